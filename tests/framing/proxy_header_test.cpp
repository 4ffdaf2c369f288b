// PROXY headers: parsed, serialized and rejected, with bytes written by hand.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/proxy_protocol.h>

#include "framing/crc32c.h"

namespace tambour::proxy_header_test {
namespace {

using namespace std::string_literals;

Endpoint at(std::string_view text) { return Endpoint::parse(text).value(); }

/// Returns a version 2 header with this command, family and protocol, and block.
std::string version_2(char command, char family, const std::string& block) {
  std::string whole = "\r\n\r\n\0\r\nQUIT\n"s;
  whole += command;
  whole += family;
  whole += char(block.size() >> 8);
  whole += char(block.size() & 0xFF);
  return whole + block;
}
const std::string ip_4_block = "\x0A\0\0\x01\xC0\xA8\0\x02\x30\x39\x01\xBB"s;

std::string field(char type, const std::string& value) {
  return type + std::string(1, char(value.size() >> 8)) + char(value.size() & 0xFF) + value;
}

/// Every prefix is incomplete; the whole is the header, and the bytes after it stay in the buffer.
void expect(const std::string& bytes, const ProxyHeader& expected) {
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Buffer part(bytes.substr(0, size));
    const auto header = take_proxy_header(part);
    ASSERT_TRUE(header) << size << ": " << header.error().message();
    EXPECT_FALSE(header->has_value()) << size;
    EXPECT_EQ(part.size(), size);
  }
  Buffer whole(bytes + "more\r\n");
  const auto header = take_proxy_header(whole);
  ASSERT_TRUE(header) << header.error().message();
  ASSERT_TRUE(*header);
  EXPECT_TRUE(**header == expected);
  EXPECT_EQ(whole, "more\r\n");
}

/// Expects an error that leaves the buffer unchanged.
void expect_error(const std::string& bytes, int error) {
  Buffer buffer(bytes);
  for (int i = 0; i < 2; ++i) {
    const auto header = take_proxy_header(buffer);
    ASSERT_FALSE(header) << bytes;
    EXPECT_EQ(header.error(), system_error(error)) << bytes;
    EXPECT_TRUE(buffer == bytes);
  }
}

TEST(ProxyVersion1, contains_both_endpoints) {
  expect("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
         {.version = 1, .source = at("192.168.0.1:56324"), .destination = at("192.168.0.11:443")});
  expect("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
         {.version = 1,
          .source = at("255.255.255.255:65535"),
          .destination = at("255.255.255.255:65535")});
  expect("PROXY TCP6 2001:DB8::1 ::ffff:10.0.0.1 0 1\r\n",
         {.version = 1, .source = at("[2001:db8::1]:0"), .destination = at("[::ffff:10.0.0.1]:1")});
  const std::string longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  expect("PROXY TCP6 " + longest + " " + longest + " 65535 65535\r\n",
         {.version = 1,
          .source = at("[" + longest + "]:65535"),
          .destination = at("[" + longest + "]:65535")});
}

TEST(ProxyVersion1, may_contain_no_endpoints) {
  expect("PROXY UNKNOWN\r\n", {.version = 1});
  expect("PROXY UNKNOWN whatever it is \0\r\n"s, {.version = 1});
  expect("PROXY UNKNOWN " + std::string(91, 'x') + "\r\n", {.version = 1});
}

TEST(ProxyVersion1, is_rejected_if_it_is_malformed) {
  for (const std::string line : {"GET / HTTP/1.1",
                                 "PROXZ",
                                 "PROXY\t",
                                 "proxy TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
                                 "PROXY  TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
                                 "PROXY TCP5 1.1.1.1 2.2.2.2 1 2\r\n",
                                 "PROXY UNKNOWNX\r\n",
                                 "PROXY \r\n",
                                 "PROXY TCP4\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 \r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 \r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n",
                                 "PROXY TCP4 1.1.1.1  2.2.2.2 1 2\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 01 2\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 +1 2\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 -2\r\n",
                                 "PROXY TCP4 1.1.1.01 2.2.2.2 1 2\r\n",
                                 "PROXY TCP4 1.1.1.256 2.2.2.2 1 2\r\n",
                                 "PROXY TCP4 ::1 ::2 1 2\r\n",
                                 "PROXY TCP6 1.1.1.1 2.2.2.2 1 2\r\n",
                                 "PROXY TCP6 ::1 2.2.2.2 1 2\r\n",
                                 "PROXY TCP6 fe80::1%lo ::2 1 2\r\n",
                                 "PROXY TCP6 :::1 ::2 1 2\r\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n",
                                 "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\rx",
                                 "PROXY TCP4 1.1.1.1\r2.2.2.2 1 2\r\n"})
    expect_error(line, EPROTO);
  expect_error("PROXY TCP4 1.1.1.1 2.2.2.2 1\0 2\r\n"s, EPROTO);
  // No end of line within the first 107 bytes.
  expect_error("PROXY UNKNOWN " + std::string(93, 'x'), EPROTO);
  expect_error("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n", EPROTO);
}

TEST(ProxyVersion2, contains_both_endpoints) {
  expect(version_2(0x21, 0x11, ip_4_block),
         {.source = at("10.0.0.1:12345"), .destination = at("192.168.0.2:443")});
  expect(version_2(0x21, 0x12, ip_4_block), {.socket_type = SOCK_DGRAM,
                                             .source = at("10.0.0.1:12345"),
                                             .destination = at("192.168.0.2:443")});
  const std::string ip_6_block = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x01" +
                                 std::string(15, '\0') + "\x01" + "\x30\x39\x01\xBB";
  expect(version_2(0x21, 0x21, ip_6_block),
         {.source = at("[2001:db8::1]:12345"), .destination = at("[::1]:443")});
  const std::string path = "/run/client";
  const std::string unix_block =
      path + std::string(108 - path.size(), '\0') + "\0server"s + std::string(101, '\0');
  expect(version_2(0x21, 0x31, unix_block),
         {.source = at("unix:/run/client"), .destination = at("unix:@server")});
}

TEST(ProxyVersion2, of_unix_sockets_may_have_no_name_or_one_of_maximum_length) {
  const std::string block = std::string(108, '\0') + std::string(108, 'x');
  Buffer buffer(version_2(0x21, 0x31, block));
  const auto header = take_proxy_header(buffer);
  ASSERT_TRUE(header && *header);
  EXPECT_EQ((*header)->source->address(), "");
  EXPECT_EQ((*header)->destination->address(), std::string(108, 'x'));
  Buffer again;
  ASSERT_TRUE(append_proxy_header(again, **header));
  EXPECT_TRUE(again == version_2(0x21, 0x31, block));
}

TEST(ProxyVersion2, local_or_unspecified_contains_no_endpoints) {
  expect(version_2(0x20, 0x00, ""), {.is_local = true});
  expect(version_2(0x20, 0x11, ip_4_block + "\x02"), {.is_local = true});
  expect(version_2(0x20, char(0xEF), "not looked at"), {.is_local = true});
  expect(version_2(0x21, 0x00, ""), {});
  expect(version_2(0x21, 0x00, "addresses of a kind that has no name"), {});
  expect(version_2(0x21, 0x00, field(ProxyField::authority, "host")),
         {.fields = {{ProxyField::authority, "host"}}});
  expect(version_2(0x21, 0x10, ip_4_block + field(ProxyField::authority, "host")),
         {.fields = {{ProxyField::authority, "host"}}});
  expect(version_2(0x21, 0x01, ""), {});
}

TEST(ProxyVersion2, is_rejected_if_it_is_malformed) {
  expect_error("\r\n\r\n\0\r\nQUIX"s, EPROTO);
  expect_error(version_2(0x11, 0x11, ip_4_block), EPROTO);
  expect_error(version_2(0x22, 0x11, ip_4_block), EPROTO);
  expect_error(version_2(0x21, 0x13, ip_4_block), EPROTO);
  expect_error(version_2(0x21, 0x41, ip_4_block), EPROTO);
  // Rejected as early as possible.
  expect_error(version_2(0x31, 0x11, "").substr(0, 13), EPROTO);
  expect_error(version_2(0x21, 0x51, "").substr(0, 14), EPROTO);
  expect_error(version_2(0x21, 0x11, ip_4_block.substr(1)), EBADMSG);
  expect_error(version_2(0x21, 0x21, ip_4_block), EBADMSG);
  expect_error(version_2(0x21, 0x31, std::string(215, 'x')), EBADMSG);
}

TEST(ProxyFields, are_read_in_order) {
  const std::string id(128, 'i');
  expect(version_2(0x21, 0x11,
                   ip_4_block + field(ProxyField::alpn, "h2") + field(ProxyField::padding, "...") +
                       field(ProxyField::authority, "") + field(ProxyField::unique_id, id) +
                       field(char(0xE0), "own")),
         {.source = at("10.0.0.1:12345"),
          .destination = at("192.168.0.2:443"),
          .fields = {{ProxyField::alpn, "h2"},
                     {ProxyField::authority, ""},
                     {ProxyField::unique_id, id},
                     {0xE0, "own"}}});
}

TEST(ProxyFields, are_rejected_if_they_extend_beyond_the_header) {
  for (const std::string& bytes :
       {"\x01"s, "\x01\0"s, "\x01\0\x01"s, "\x04\xFF\xFF..."s, "\x20\0\x05...."s,
        field(ProxyField::unique_id, std::string(129, 'i'))})
    expect_error(version_2(0x21, 0x11, ip_4_block + bytes), EBADMSG);
}

TEST(ProxyFields, are_found_by_their_type) {
  const ProxyHeader header{.fields = {{ProxyField::alpn, "h2"}, {ProxyField::alpn, "second"}}};
  EXPECT_EQ(header.find(ProxyField::alpn), "h2");
  EXPECT_EQ(header.find(ProxyField::authority), std::nullopt);
}

TEST(ProxyChecksum, is_that_of_rfc_4960) {
  EXPECT_EQ(detail::framing::crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(detail::framing::crc32c("6789", detail::framing::crc32c("12345")), 0xE3069283U);
  EXPECT_EQ(detail::framing::crc32c(std::string(32, '\0')), 0x8A9136AAU);
}

TEST(ProxyChecksum, is_verified_if_present) {
  const ProxyHeader header{.source = at("10.0.0.1:12345"),
                           .destination = at("192.168.0.2:443"),
                           .fields = {{ProxyField::alpn, "h2"}},
                           .has_checksum = true};
  Buffer buffer;
  ASSERT_TRUE(append_proxy_header(buffer, header));
  const std::string bytes = buffer.to_string();
  expect(bytes, header);
  for (std::size_t bit = 8 * 16; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = char(flipped[bit / 8] ^ 1 << bit % 8);
    Buffer wrong(flipped);
    const auto read = take_proxy_header(wrong);
    // If the flipped bit turned the checksum into another type of field, the error cannot be
    // detected.
    EXPECT_TRUE(!read || !(*read)->has_checksum) << bit;
  }
  const std::string sum = bytes.substr(bytes.size() - 7);
  expect_error(version_2(0x21, 0x11, ip_4_block + sum + sum), EBADMSG);
  expect_error(version_2(0x21, 0x11, ip_4_block + field(ProxyField::checksum, "abc")), EBADMSG);
}

TEST(ProxyWriter, writes_headers_that_parse_to_the_same_values) {
  const std::vector<ProxyHeader> headers = {
      {.version = 1},
      {.version = 1, .source = at("10.0.0.1:1"), .destination = at("10.0.0.2:2")},
      {.version = 1, .source = at("[::1]:1"), .destination = at("[2001:db8::2]:65535")},
      {},
      {.is_local = true},
      {.source = at("10.0.0.1:1"), .destination = at("10.0.0.2:2")},
      {.socket_type = SOCK_DGRAM, .source = at("[::1]:1"), .destination = at("[::2]:2")},
      {.source = at("unix:/run/a"), .destination = at("unix:@b"), .has_checksum = true},
      {.fields = {{ProxyField::authority, std::string(60000, 'x')}}, .has_checksum = true}};
  for (const ProxyHeader& header : headers) {
    Buffer buffer;
    ASSERT_TRUE(append_proxy_header(buffer, header));
    const auto read = take_proxy_header(buffer);
    ASSERT_TRUE(read && *read);
    EXPECT_TRUE(**read == header);
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(ProxyWriter, reproduces_headers_parsed_after_a_bit_flip) {
  for (const ProxyHeader& header :
       {ProxyHeader{.version = 1, .source = at("[::1]:1"), .destination = at("[2001::2]:65535")},
        ProxyHeader{.source = at("10.0.0.1:1"), .destination = at("10.0.0.2:2")},
        ProxyHeader{.socket_type = SOCK_DGRAM,
                    .source = at("unix:/run/a"),
                    .destination = at("unix:@b"),
                    .fields = {{ProxyField::alpn, "h2"}, {ProxyField::unique_id, "17"}}}}) {
    Buffer written;
    ASSERT_TRUE(append_proxy_header(written, header));
    const std::string bytes = written.to_string();
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = char(flipped[bit / 8] ^ 1 << bit % 8);
      Buffer buffer(flipped);
      const auto read = take_proxy_header(buffer);
      if (!read || !*read) continue;
      Buffer again;
      ASSERT_TRUE(append_proxy_header(again, **read)) << bit;
      const auto same = take_proxy_header(again);
      EXPECT_TRUE(same && *same && **same == **read) << bit;
    }
  }
}

TEST(ProxyWriter, rejects_values_that_the_protocol_cannot_represent) {
  const auto expect_refused = [](const ProxyHeader& header, int error) {
    Buffer buffer("before");
    EXPECT_EQ(append_proxy_header(buffer, header).error(), system_error(error));
    EXPECT_EQ(buffer, "before");
  };
  const Endpoint four = at("10.0.0.1:1"), six = at("[::1]:1");
  const Endpoint zone = at("[fe80::1%1]:1"), path = at("unix:/run/a");
  expect_refused({.version = 3}, EINVAL);
  expect_refused({.source = four}, EINVAL);
  expect_refused({.destination = four}, EINVAL);
  expect_refused({.source = four, .destination = six}, EINVAL);
  expect_refused({.source = zone, .destination = six}, EINVAL);
  expect_refused({.socket_type = SOCK_RAW, .source = four, .destination = four}, EINVAL);
  expect_refused({.is_local = true, .source = four, .destination = four}, EINVAL);
  expect_refused({.is_local = true, .fields = {{ProxyField::alpn, "h2"}}}, EINVAL);
  expect_refused({.source = path, .destination = at("unix:@a\0"s)}, EINVAL);
  expect_refused({.fields = {{ProxyField::checksum, "1234"}}}, EINVAL);
  expect_refused({.fields = {{ProxyField::padding, ""}}}, EINVAL);
  expect_refused({.fields = {{ProxyField::unique_id, std::string(129, 'x')}}}, EMSGSIZE);
  expect_refused({.fields = {{0xE0, std::string(65536, 'x')}}}, EMSGSIZE);
  expect_refused({.fields = {{0xE0, std::string(65533, 'x')}}}, EMSGSIZE);
  expect_refused({.version = 1, .is_local = true}, EINVAL);
  expect_refused({.version = 1, .fields = {{ProxyField::alpn, "h2"}}}, EINVAL);
  expect_refused({.version = 1, .has_checksum = true}, EINVAL);
  expect_refused({.version = 1, .source = path, .destination = path}, EINVAL);
  expect_refused({.version = 1, .socket_type = SOCK_DGRAM, .source = four, .destination = four},
                 EINVAL);
}

TEST(ProxyTls, is_read_and_written) {
  const ProxyTls tls{.certificate_on_connection = true,
                     .verify = 0x01020304,
                     .fields = {{ProxyField::tls_version, "TLSv1.3"},
                                {ProxyField::tls_common_name, "example.com"}}};
  const auto value = tls.to_value();
  ASSERT_TRUE(value);
  EXPECT_EQ(value->substr(0, 8), "\x03\x01\x02\x03\x04\x21\0\x07"s);
  const auto read = ProxyTls::parse(*value);
  ASSERT_TRUE(read);
  EXPECT_TRUE(*read == tls);
  EXPECT_EQ(read->find(ProxyField::tls_version), "TLSv1.3");
  EXPECT_EQ(read->find(ProxyField::tls_cipher), std::nullopt);
  for (std::size_t size = 0; size < value->size(); ++size) {
    const auto part = ProxyTls::parse(value->substr(0, size));
    // Whole fields may be missing, but none may be truncated.
    EXPECT_EQ(part.has_value(), size == 5 || size == 15) << size;
    if (!part) {
      EXPECT_EQ(part.error(), system_error(EBADMSG));
    }
  }
  EXPECT_EQ((ProxyTls{.fields = {{0x21, std::string(65536, 'x')}}}.to_value().error()),
            system_error(EMSGSIZE));
}

}  // namespace
}  // namespace tambour::proxy_header_test
