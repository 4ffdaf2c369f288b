// The parsers of the configuration files.
#include <netdb.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/endpoint.h>

#include "dns_message/hosts.h"
#include "dns_message/nsswitch.h"
#include "dns_message/resolv_conf.h"

namespace tambour::configuration_test {
namespace {

using namespace std::chrono_literals;
using dns::detail::Hosts;
using dns::detail::ResolvConf;
using dns::detail::Source;
using dns::detail::Status;

ResolvConf parse(std::string_view text) {
  ResolvConf conf;
  conf.apply_file(text);
  return conf;
}

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

TEST(ResolvConfFile, has_servers_search_list_and_options) {
  const ResolvConf conf = parse(
      "# a comment\n; another\n"
      "nameserver 192.0.2.1\nnameserver\t2001:db8::1 # ignored\n"
      "search example.org  sub.example.org.\n"
      "options ndots:3 timeout:7 attempts:4 rotate edns0 trust-ad use-vc no-aaaa single-request\n");
  ASSERT_EQ(conf.servers.size(), 2U);
  EXPECT_EQ(conf.servers[0].to_string(), "192.0.2.1:53");
  EXPECT_EQ(conf.servers[1].to_string(), "[2001:db8::1]:53");
  ASSERT_EQ(conf.search.size(), 2U);
  EXPECT_EQ(conf.search[1].to_string(), "sub.example.org.");
  EXPECT_EQ(conf.ndots, 3U);
  EXPECT_EQ(conf.timeout, 7s);
  EXPECT_EQ(conf.attempts, 4U);
  EXPECT_TRUE(conf.rotate && conf.edns0 && conf.trust_ad && conf.use_vc && conf.no_aaaa &&
              conf.single_request);
}

TEST(ResolvConfFile, has_the_limits_of_glibc) {
  ResolvConf conf = parse("options ndots:100 timeout:100 attempts:100\n");
  EXPECT_EQ(conf.ndots, 15U);
  EXPECT_EQ(conf.timeout, 30s);
  EXPECT_EQ(conf.attempts, 5U);
  conf = parse("options timeout:0 attempts:0\n");
  EXPECT_EQ(conf.timeout, 1s);
  EXPECT_EQ(conf.attempts, 1U);
  std::string many;
  for (int i = 1; i < 10; ++i) many += "nameserver 10.0.0." + std::to_string(i) + "\n";
  EXPECT_EQ(parse(many).servers.size(), 3U);
}

TEST(ResolvConfFile, uses_the_last_of_domain_and_search) {
  EXPECT_EQ(parse("search a b\ndomain c\n").search.size(), 1U);
  EXPECT_EQ(parse("domain c\nsearch a b\n").search.size(), 2U);
  EXPECT_TRUE(parse("search\n").search.empty());
  EXPECT_TRUE(parse("search\n").has_search);
}

TEST(ResolvConfFile, tolerates_malformed_lines) {
  std::mt19937 random(1);
  std::string garbage(1 << 20, '\0');
  for (char& text : garbage) text = static_cast<char>(random());
  garbage += "\nnameserver 192.0.2.1\n" + garbage.substr(0, 1000);
  const ResolvConf conf = parse(garbage);
  ASSERT_EQ(conf.servers.size(), 1U);
  EXPECT_EQ(conf.servers[0].address(), "192.0.2.1");
  std::string words = "options";
  for (int i = 0; i < 100'000; ++i) words += " ndots:" + std::to_string(i);
  EXPECT_EQ(parse(words).ndots, 15U);
}

TEST(HostsFile, finds_addresses_in_the_order_of_the_file) {
  Hosts hosts;
  hosts.add("10.0.0.1 a b\n10.0.0.2 B # comment c\n\n  ::1\ta\nx y\n10.0.0.3\n10.0.0.1 a");
  std::vector<IpAddress> found;
  hosts.find("a", found);
  EXPECT_EQ(found, (std::vector<IpAddress>{address("10.0.0.1"), address("::1")}));
  found.clear();
  hosts.find("b", found);
  EXPECT_EQ(found, (std::vector<IpAddress>{address("10.0.0.1"), address("10.0.0.2")}));
  found.clear();
  hosts.find("c", found);
  hosts.find("y", found);
  EXPECT_TRUE(found.empty());
  EXPECT_EQ(hosts.names_of(address("10.0.0.1")), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(hosts.names_of(address("10.0.0.9")).empty());
}

TEST(HostsFile, may_have_many_lines) {
  std::string text;
  constexpr int lines = 100'000;
  for (int i = 0; i < lines; ++i) {
    text += "10." + std::to_string(i / 65536) + '.' + std::to_string(i / 256 % 256) + '.' +
            std::to_string(i % 256) + " host" + std::to_string(i) + " alias" + std::to_string(i) +
            '\n';
  }
  Hosts hosts;
  hosts.add(text);
  EXPECT_EQ(hosts.size(), 2U * lines);
  for (const int i : {0, 1, 4711, lines - 1}) {
    std::vector<IpAddress> found;
    hosts.find("ALIAS" + std::to_string(i), found);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].bytes()[3], i % 256);
    EXPECT_EQ(hosts.names_of(found[0]).size(), 2U);
  }
}

std::vector<Source::Kind> kinds(std::string_view text) {
  std::vector<Source::Kind> found;
  for (const Source& source : dns::detail::parse_nsswitch(text)) found.push_back(source.kind);
  return found;
}

TEST(NsswitchFile, names_sources) {
  using enum Source::Kind;
  using Kinds = std::vector<Source::Kind>;
  EXPECT_EQ(kinds(""), (Kinds{files, dns}));
  EXPECT_EQ(kinds("hosts:\n"), (Kinds{files, dns}));
  EXPECT_EQ(kinds("passwd: x\nhosts: dns files# c\n"), (Kinds{dns, files}));
  EXPECT_EQ(kinds(" hosts:files mdns4_minimal [NOTFOUND=return] dns myhostname"),
            (Kinds{files, local_only, dns, other}));
  EXPECT_EQ(kinds("hosts: files[SUCCESS=return]dns"), (Kinds{files, dns}));
  EXPECT_EQ(kinds("hosts: [x] files [unterminated"), (Kinds{files}));
}

TEST(NsswitchFile, parses_actions) {
  const auto sources = dns::detail::parse_nsswitch(
      "hosts: files resolve [!UNAVAIL=return] dns [NOTFOUND=return success=continue TryAgain=x]");
  ASSERT_EQ(sources.size(), 3U);
  EXPECT_TRUE(sources[0].ends_with(Status::success));
  EXPECT_FALSE(sources[0].ends_with(Status::not_found));
  EXPECT_TRUE(sources[1].ends_with(Status::not_found));
  EXPECT_TRUE(sources[1].ends_with(Status::try_again));
  EXPECT_FALSE(sources[1].ends_with(Status::unavailable));
  EXPECT_TRUE(sources[2].ends_with(Status::not_found));
  EXPECT_FALSE(sources[2].ends_with(Status::success));
}

}  // namespace
}  // namespace tambour::configuration_test
