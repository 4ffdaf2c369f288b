// Endpoints: parsing, formatting, and rejected input.
#include <tambour/net/endpoint.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/random.h"

namespace tambour::endpoint_test {
namespace {

using namespace std::string_literals;

TEST(Endpoint, writes_what_it_reads) {
  for (const std::string text :
       {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:0",
        "[2001:db8::1]:443", "[::ffff:10.0.0.1]:1", "[fe80::1%lo]:9", "unix:/run/server.sock",
        "unix:@abstract", "unix:relative", "unix:/with:colon:80"}) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->to_string(), text);
    EXPECT_EQ(Endpoint::parse(endpoint->to_string()), *endpoint);
    EXPECT_EQ(Endpoint::from(endpoint->data(), endpoint->size()), *endpoint);
  }
}

TEST(Endpoint, reads_other_spellings) {
  const std::vector<std::pair<std::string, std::string>> spellings = {
      {"*:80", "[::]:80"},
      {":80", "[::]:80"},
      {"[0:0:0:0:0:0:0:1]:80", "[::1]:80"},
      {"[fe80::1%1]:9", "[fe80::1%lo]:9"},
      {"[::1]:080", "[::1]:80"},
      {"[fe80::1%4000000000]:9", "[fe80::1%4000000000]:9"},
      {"unix:\0null"s, "unix:@null"}};
  for (const auto& [text, canonical] : spellings) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->to_string(), canonical);
  }
}

TEST(Endpoint, reports_why_it_rejects_text) {
  const std::vector<std::pair<std::string, int>> refused = {
      {"", EINVAL},
      {"127.0.0.1", EINVAL},
      {"127.0.0.1:", EINVAL},
      {"127.0.0.1:-1", EINVAL},
      {"127.0.0.1:+80", EINVAL},
      {"127.0.0.1: 80", EINVAL},
      {"127.0.0.1:80 ", EINVAL},
      {"127.0.0.1:http", EINVAL},
      {"127.0.0.1:65536", ERANGE},
      {"127.0.0.1:99999999999999999999", ERANGE},
      {"127.0.0:80", EINVAL},
      {"127.0.0.256:80", EINVAL},
      {"127.0.0.1.1:80", EINVAL},
      {"0x7f.0.0.1:80", EINVAL},
      {"127.0.0.01:80", EINVAL},
      {"127.0.0.1%lo:80", EINVAL},
      {"[127.0.0.1]:80", EINVAL},
      {"::1:80", EINVAL},
      {"[::1:80", EINVAL},
      {"::1]:80", EINVAL},
      {"[]:80", EINVAL},
      {"[:::]:80", EINVAL},
      {"[::1%]:80", EINVAL},
      {"[fe80::1%no-such-device]:80", ENODEV},
      {"localhost:80", EINVAL},
      {"127.0.0.1\0:80"s, EINVAL},
      {"[::1\0]:80"s, EINVAL},
      {"unix:", EINVAL},
      {"unix:/a\0b"s, EINVAL},
      {"unix:/" + std::string(107, 'x'), ENAMETOOLONG},
      {"unix:@" + std::string(108, 'x'), ENAMETOOLONG}};
  for (const auto& [text, error] : refused) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error(), system_error(error)) << text;
  }
}

TEST(Endpoint, accepts_unix_names_up_to_the_maximum_length) {
  const std::string path = "/" + std::string(106, 'x');
  const std::string abstract = "@" + std::string(107, 'x');
  for (const std::string& name : {path, abstract}) {
    const auto endpoint = Endpoint::unix_name(name);
    ASSERT_TRUE(endpoint);
    EXPECT_EQ(endpoint->address(), name);
    EXPECT_LE(endpoint->size(), sizeof(sockaddr_un));
    EXPECT_EQ(endpoint->port(), 0);
    EXPECT_FALSE(endpoint->is_ip());
  }
  // Abstract names may contain any bytes.
  const auto bytes = Endpoint::unix_name("@a\0b"s);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->address(), "@a\0b"s);
  EXPECT_NE(*bytes, *Endpoint::unix_name("@a"));
}

TEST(Endpoint, accepts_addresses_from_the_kernel) {
  sockaddr_un unnamed{};
  unnamed.sun_family = AF_UNIX;
  const auto nameless =
      Endpoint::from(reinterpret_cast<const sockaddr*>(&unnamed), sizeof(sa_family_t));
  ASSERT_TRUE(nameless);
  EXPECT_EQ(nameless->address(), "");
  sockaddr_storage other{};
  for (socklen_t size = 0; size <= sizeof(other); ++size) {
    for (const int family : {AF_UNSPEC, AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
      other.ss_family = static_cast<sa_family_t>(family);
      const auto endpoint = Endpoint::from(reinterpret_cast<const sockaddr*>(&other), size);
      const bool fits = (family == AF_INET && size == sizeof(sockaddr_in)) ||
                        (family == AF_INET6 && size == sizeof(sockaddr_in6)) ||
                        (family == AF_UNIX && size >= 2 && size <= sizeof(sockaddr_un) + 1);
      EXPECT_EQ(endpoint.has_value(), fits) << family << ", " << size;
      if (endpoint) {
        EXPECT_FALSE(endpoint->to_string().empty());
      }
    }
  }
  EXPECT_FALSE(Endpoint::from(nullptr, 16));
}

TEST(Endpoint, changes_its_port) {
  EXPECT_EQ(Endpoint::loopback_v4(1).with_port(2), *Endpoint::parse("127.0.0.1:2"));
  EXPECT_EQ(Endpoint::loopback_v6(1).with_port(2), *Endpoint::parse("[::1]:2"));
  EXPECT_EQ(Endpoint::any_v4(7).to_string(), "0.0.0.0:7");
  EXPECT_EQ(Endpoint(), Endpoint::any_v4(0));
  const auto local = Endpoint::unix_name("/x");
  EXPECT_EQ(local->with_port(2), *local);
}

TEST(Endpoint, survives_malformed_packets) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  const std::string alphabet = "0129.:[]%/@unixfe*lo\0 "s;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (auto n = random.below(24); n > 0; --n) text += alphabet[random.below(alphabet.size())];
    if (random.below(4) == 0) text.insert(0, "unix:");
    const auto endpoint = Endpoint::parse(text);
    if (!endpoint) continue;
    EXPECT_EQ(Endpoint::parse(endpoint->to_string()), *endpoint) << text;
  }
}

}  // namespace
}  // namespace tambour::endpoint_test
