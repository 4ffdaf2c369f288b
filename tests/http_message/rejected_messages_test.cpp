// Messages of HTTP/1.1 that must be rejected: the error, the status of the answer, and that both do
// not depend on how the bytes arrive. llhttp must reject them too, unless the reason is listed in
// support/reference_comparison.h. Sections without a number of an RFC are those of RFC 9112.
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "http/support/every_way.h"
#include "http/support/messages.h"
#include "http/support/reference_comparison.h"

namespace tambour::rejected_messages_test {
namespace {

using http::Status;
using http::detail::h1::RequestParser;
using test::StrictResponseParser;
using namespace std::string_literals;

struct Rejected {
  std::string text;
  http::ErrorCode error;
  int status = 400;
};

/// Limits that tests can reach.
constexpr http::MessageLimits small = {
    .fields_max = 4,
    .fields_bytes_max = 128,
    .trailers_max = 2,
    .trailers_bytes_max = 32,
    .body_bytes_max = 100,
    .http_1 = {.start_line_bytes_max = 64, .chunk_extension_bytes_max = 16}};

template <class Parser>
void expect_rejected(const std::vector<Rejected>& table, const http::MessageLimits& limits) {
  constexpr bool has_requests = std::is_same_v<Parser, RequestParser>;
  test::ReferenceComparison comparison(has_requests, limits);
  for (const Rejected& rejected : table) {
    const test::Verdict verdict = test::read_in_every_way<Parser>(rejected.text, limits);
    EXPECT_EQ(verdict.error, rejected.error) << verdict.error.message() << ":\n" << rejected.text;
    EXPECT_EQ(http::code_of(http::status_for(verdict.error)), rejected.status) << rejected.text;
    for (const test::Message& message : verdict.messages)
      EXPECT_FALSE(message.is_complete) << rejected.text;
    if (test::has_reference_parser()) {
      EXPECT_EQ(comparison.compare_in_every_way(rejected.text), "") << rejected.text;
    }
  }
}

void expect_requests_rejected(const std::vector<Rejected>& table,
                              const http::MessageLimits& limits = {}) {
  expect_rejected<RequestParser>(table, limits);
}

TEST(RejectedRequestLine, is_not_of_three_parts_with_single_spaces) {
  expect_requests_rejected({
      {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"\tGET / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET\x0B/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET /\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET / \r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET  HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"Host: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"HTTP/1.1 200 OK\r\n\r\n", http::ErrorCode::bad_method_name},
      {"\x16\x03\x01\x02", http::ErrorCode::bad_method_name},  // TLS.
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http::ErrorCode::version_not_supported, 505},
  });
}

TEST(RejectedRequestLine, has_no_method) {
  expect_requests_rejected({
      {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n"s, http::ErrorCode::bad_method_name},
      {"GET: / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"(GET) / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"\"GET\" / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {"G\xC3\x8BT / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_method_name},
      {std::string(32, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::method_too_long,
       501},
      {std::string(10000, 'M'), http::ErrorCode::method_too_long, 501},
  });
}

TEST(RejectedRequestLine, has_no_target_that_the_method_allows) {
  expect_requests_rejected({
      {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET ?a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"OPTIONS *?a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /?a#b HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /\"a\" HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /<a> HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /?\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /\x7F HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, http::ErrorCode::bad_target},
      {"GET /?\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, http::ErrorCode::bad_target},
      {"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /% HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET /%zz?a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http:a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://:80/a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://a:b@c/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://a:99999/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://a\\b/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"GET http://a#b HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT :443 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT a:443/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT http://a:443 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT u@a:443 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT ::1:443 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT a:65536 HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
      {"CONNECT * HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_target},
  });
}

TEST(RejectedRequestLine, has_no_supported_version) {
  expect_requests_rejected({
      {"GET / HTTP/1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/1.\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/11\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/01.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/1.01\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/1,1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/a.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/1.x\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / Http/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP 1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_request_line},
      {"GET / HTTPS/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / RTSP/1.0\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / ICE/1.0\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/1.1\0\r\nHost: a\r\n\r\n"s, http::ErrorCode::bad_version},
      {"GET / HTTP/1.1\t\r\nHost: a\r\n\r\n", http::ErrorCode::bad_version},
      {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", http::ErrorCode::version_not_supported, 505},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", http::ErrorCode::version_not_supported, 505},
      {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", http::ErrorCode::version_not_supported, 505},
  });
}

/// Section 2.2: CRLF ends lines, and a CR occurs nowhere else.
TEST(RejectedLineEnds, are_not_exactly_CRLF) {
  expect_requests_rejected({
      {"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_line_feed},
      {"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", http::ErrorCode::bare_line_feed},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", http::ErrorCode::bare_line_feed},
      {"GET / HTTP/1.1\r\nHost: a\r\n\n", http::ErrorCode::bare_line_feed},
      {"GET / HTTP/1.1\nHost: a\n\n", http::ErrorCode::bare_line_feed},
      {"GET\n/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_line_feed},
      {"GET / HTTP/1.1\rHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET\r/ HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/\r1.1\r\nHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\nHost\r: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\n\rHost: a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\nHost:\r a\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", http::ErrorCode::bare_carriage_return},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\r\r\n\r\n", http::ErrorCode::bare_carriage_return},
  });
}

/// Section 5.
TEST(RejectedFields, are_malformed) {
  expect_requests_rejected({
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n y\r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\nHost: a\r\n Content-Length: 5\r\n\r\n", http::ErrorCode::folded_field},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", http::ErrorCode::space_before_colon},
      {"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", http::ErrorCode::space_before_colon},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n",
       http::ErrorCode::space_before_colon},
      {"GET / HTTP/1.1\r\nHost: a\r\nX \t : 5\r\n\r\n", http::ErrorCode::space_before_colon},
      {"GET / HTTP/1.1\r\nHost\r\n\r\n", http::ErrorCode::missing_colon},
      {"GET / HTTP/1.1\r\nHost a\r\n\r\n", http::ErrorCode::missing_colon},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", http::ErrorCode::missing_colon},
      {"GET / HTTP/1.1\r\nHost: a\r\n\0\r\n\r\n"s, http::ErrorCode::missing_colon},
      {"GET / HTTP/1.1\r\n: a\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX(Y): b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"s, http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\x0B: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\x7F: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\n\xC3\xA9: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\n\"X\": b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX/Y: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\n{X}: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX@: b\r\n\r\n", http::ErrorCode::bad_field_name},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s, http::ErrorCode::bad_field_value},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", http::ErrorCode::bad_field_value},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x1F\r\n\r\n", http::ErrorCode::bad_field_value},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7F\r\n\r\n", http::ErrorCode::bad_field_value},
      {"GET / HTTP/1.1\r\nHost: a\r\nX:\x0B b\r\n\r\n", http::ErrorCode::bad_field_value},
      {"GET / HTTP/1.1\r\nHost: a\r\nX:\x0C\r\n\r\n", http::ErrorCode::bad_field_value},
  });
}

/// Section 3.2.
TEST(RejectedHost, is_missing_repeated_or_malformed) {
  expect_requests_rejected({
      {"GET / HTTP/1.1\r\n\r\n", http::ErrorCode::missing_host},
      {"GET / HTTP/1.2\r\nX: a\r\n\r\n", http::ErrorCode::missing_host},
      {"GET http://a/ HTTP/1.1\r\n\r\n", http::ErrorCode::missing_host},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", http::ErrorCode::several_hosts},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\nhOST: c\r\n\r\n", http::ErrorCode::several_hosts},
      {"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", http::ErrorCode::several_hosts},
      {"GET http://a/ HTTP/1.1\r\nHost: a\r\nHost:\r\n\r\n", http::ErrorCode::several_hosts},
      {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a:-1\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: [a]\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a?b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a#b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: \xC3\xA9\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.1\r\nHost: a%zz\r\n\r\n", http::ErrorCode::bad_host},
      {"GET / HTTP/1.0\r\nHost: a b\r\n\r\n", http::ErrorCode::bad_host},
      {"GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n", http::ErrorCode::bad_host},
  });
}

std::string with_field(std::string_view field) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(field) + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
}

/// Section 6.2 and RFC 9110, section 8.6.
TEST(RejectedLength, is_not_one_number) {
  std::vector<Rejected> table;
  for (const char* value : {"",
                            "-1",
                            "+5",
                            "5a",
                            "a5",
                            "0x5",
                            "5.0",
                            "5e0",
                            "5 5",
                            "\"5\"",
                            "five",
                            "5;",
                            "1_000",
                            "9223372036854775808",
                            "18446744073709551616",
                            "18446744073709551621",
                            "99999999999999999999",
                            "00000000000000000005",
                            "\xD9\xA5",
                            "5%",
                            "- 5",
                            "5-"})
    table.push_back({with_field("Content-Length: "s + value), http::ErrorCode::bad_content_length});
  for (const char* fields :
       {"Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nX: y\r\ncontent-length: 0", "Content-Length: 5, 5",
        "Content-Length: 5,6", "Content-Length: 5,", "Content-Length: ,5", "Content-Length: ,",
        "Content-Length:\r\nContent-Length: 5"})
    table.push_back({with_field(fields), http::ErrorCode::several_content_lengths});
  expect_requests_rejected(table);
}

/// Section 6.1.
TEST(RejectedTransferEncoding, does_not_end_with_one_chunked) {
  std::vector<Rejected> table;
  for (const char* value : {"",
                            "identity",
                            "gzip",
                            "chunked, gzip",
                            "chunked, identity",
                            "chunked, chunked",
                            "chunked,",
                            ", chunked",
                            "gzip, chunked, chunked",
                            "gzip,,chunked",
                            "xchunked",
                            "chunkedx",
                            "chunked;a=b",
                            "\"chunked\"",
                            "'chunked'",
                            "chunke",
                            "chunked chunked",
                            "chunked\x0B",
                            "x",
                            "gzip;chunked",
                            "gzip chunked",
                            "cow, chunked;x"})
    table.push_back({with_field("Transfer-Encoding: "s + value),
                     value == "chunked\x0B"s ? http::ErrorCode::bad_field_value
                                             : http::ErrorCode::bad_transfer_encoding});
  for (const char* fields : {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                             "Transfer-Encoding: chunked\r\nX: y\r\ntransfer-encoding: gzip",
                             "Transfer-Encoding:\r\nTransfer-Encoding: chunked"})
    table.push_back({with_field(fields), http::ErrorCode::bad_transfer_encoding});
  for (const char* fields :
       {"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: x, y , chunked",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity, chunked"})
    table.push_back({with_field(fields), http::ErrorCode::unsupported_transfer_encoding, 501});
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5",
                             "transfer-encoding: x\r\nCONTENT-LENGTH: 0",
                             "Content-Length: x\r\nTransfer-Encoding: chunked"})
    table.push_back({with_field(fields), http::ErrorCode::length_with_transfer_encoding});
  table.push_back({"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   http::ErrorCode::transfer_encoding_in_http_1_0});
  table.push_back({"POST / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n",
                   http::ErrorCode::transfer_encoding_in_http_1_0});
  expect_requests_rejected(table);
}

std::string chunked(std::string_view body) {
  return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body);
}

/// Section 7.1.
TEST(RejectedChunk, has_a_bad_size_or_end) {
  std::vector<Rejected> table;
  for (const char* body : {"\r\n",
                           "g\r\n",
                           "-5\r\nhello\r\n",
                           "+5\r\nhello\r\n",
                           "0x5\r\nhello\r\n",
                           " 5\r\nhello\r\n",
                           "\t5\r\nhello\r\n",
                           "5 \r\nhello\r\n",
                           "5\t\r\nhello\r\n",
                           "5 5\r\nhello\r\n",
                           "5,\r\nhello\r\n",
                           "5.0\r\nhello\r\n",
                           "5h\r\nhello\r\n",
                           "\"5\"\r\nhello\r\n",
                           ";a\r\nhello\r\n",
                           "1000000000000000\r\n",
                           "0000000000000005\r\nhello\r\n",
                           "ffffffffffffffff\r\n",
                           "10000000000000005\r\n",
                           "5\r\nhello\r\n\r\n",
                           "0 \r\n\r\n"})
    table.push_back({chunked(body), http::ErrorCode::bad_chunk_size});
  for (const char* body :
       {"5\r\nhello0\r\n\r\n", "5\r\nhelloworld\r\n", "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n", "5\r\nhello\r\r\n", "5\r\nhello 5\r\n", "5\r\nhellohello"})
    table.push_back({chunked(body), http::ErrorCode::bad_chunk_end});
  for (const char* body :
       {"5\nhello\r\n", "5;a\nhello\r\n", "5;a=b\nhello\r\n", "5;a=\"b\nhello\r\n",
        "5;a=\"b\"\nhello\r\n", "5;\n", "0\n\r\n", "\nhello", "5 \n"})
    table.push_back({chunked(body), body == "\nhello"s ? http::ErrorCode::bad_chunk_size
                                                       : http::ErrorCode::bare_line_feed});
  for (const char* body : {"5\rhello\r\n", "5\r\rhello\r\n", "5;a\rb\r\nhello\r\n", "0\r0\r\n"})
    table.push_back({chunked(body), http::ErrorCode::bare_carriage_return});
  expect_requests_rejected(table);
}

TEST(RejectedChunk, has_a_bad_extension) {
  std::vector<Rejected> table;
  for (const char* body :
       {"5;\r\nhello\r\n",         "5; \r\nhello\r\n",          "5;;a\r\nhello\r\n",
        "5;=b\r\nhello\r\n",       "5;a=\r\nhello\r\n",         "5;a= \r\nhello\r\n",
        "5;a==b\r\nhello\r\n",     "5;a b\r\nhello\r\n",        "5;a=b c\r\nhello\r\n",
        "5;a=b=c\r\nhello\r\n",    "5;a,b\r\nhello\r\n",        "5;a=\"b\r\nhello\r\n",
        "5;a=\"b\"c\r\nhello\r\n", "5;a=\"\x01\"\r\nhello\r\n", "5;a=\"\\\x01\"\r\nhello\r\n",
        "5;a \r\nhello\r\n",       "5;a=b \r\nhello\r\n",       "5;a=\"b\" \r\nhello\r\n",
        "5;a;\r\nhello\r\n",       "5;\xC3\xA9\r\nhello\r\n",   "5;a=\xC3\xA9\r\nhello\r\n",
        "5;\"a\"\r\nhello\r\n",    "5;a=(b)\r\nhello\r\n"})
    table.push_back({chunked(body), http::ErrorCode::bad_chunk_extension});
  expect_requests_rejected(table);
}

/// Section 7.1.2 and RFC 9110, section 6.5.1.
TEST(RejectedTrailer, is_malformed_or_not_allowed) {
  std::vector<Rejected> table = {
      {chunked("0\r\nX : y\r\n\r\n"), http::ErrorCode::space_before_colon},
      {chunked("0\r\n X: y\r\n\r\n"), http::ErrorCode::folded_field},
      {chunked("0\r\nX: y\r\n z\r\n\r\n"), http::ErrorCode::folded_field},
      {chunked("0\r\nX\r\n\r\n"), http::ErrorCode::missing_colon},
      {chunked("0\r\nX: \x01\r\n\r\n"), http::ErrorCode::bad_field_value},
      {chunked("0\r\nX: y\n\r\n"), http::ErrorCode::bare_line_feed},
      {chunked("0\r\n\n"), http::ErrorCode::bare_line_feed},
      {chunked("0\r\nX: y\rz\r\n\r\n"), http::ErrorCode::bare_carriage_return},
      {chunked("0\r\n\rX: y\r\n\r\n"), http::ErrorCode::bare_carriage_return},
      {chunked("0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), http::ErrorCode::missing_colon},
      {chunked("0\r\nGET http://a/ HTTP/1.1\r\n\r\n"), http::ErrorCode::bad_field_name},
  };
  for (const char* name :
       {"Content-Length", "transfer-encoding", "Host", "Connection", "Trailer", "TE", "Upgrade",
        "Expect", "Content-Encoding", "Content-Range", "Authorization", "Proxy-Authorization"})
    table.push_back(
        {chunked("0\r\n"s + name + ": 5\r\n\r\n"), http::ErrorCode::trailer_not_allowed});
  expect_requests_rejected(table);
}

TEST(RejectedMessages, exceed_limits) {
  const std::string target = "/" + std::string(51, 'a');
  expect_requests_rejected(
      {
          {"GET " + target + "a HTTP/1.1\r\nHost: a\r\n\r\n", http::ErrorCode::start_line_too_long,
           414},
          {"GET " + target + std::string(100, 'a'), http::ErrorCode::start_line_too_long, 414},
          {"GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n\r\n",
           http::ErrorCode::too_many_fields, 431},
          {"GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(119, 'a') + "\r\n\r\n",
           http::ErrorCode::fields_too_large, 431},
          {"GET / HTTP/1.1\r\nHost: a\r\n" + std::string(122, 'A'),
           http::ErrorCode::fields_too_large, 431},
          {"GET / HTTP/1.1\r\nHost: a\r\n:" + std::string(121, ' ') + "\r\n\r\n",
           http::ErrorCode::fields_too_large, 431},
          {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n",
           http::ErrorCode::body_too_large, 413},
          {chunked("65\r\n"), http::ErrorCode::body_too_large, 413},
          {chunked("5\r\nhello\r\n60\r\n"), http::ErrorCode::body_too_large, 413},
          {chunked("5;aaaaaaaaaaaaaaaa\r\nhello\r\n"), http::ErrorCode::chunk_extensions_too_large},
          {chunked("5;aaaaaaa\r\nhello\r\n5;aaaaaaaa\r\n"),
           http::ErrorCode::chunk_extensions_too_large},
          {chunked("5;a=\"aaaaaaaaaaaaaaaaaaa"), http::ErrorCode::chunk_extensions_too_large},
          {chunked("5                 ;a\r\n"), http::ErrorCode::chunk_extensions_too_large},
          {chunked("0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"), http::ErrorCode::too_many_fields, 431},
          {chunked("0\r\nA: " + std::string(30, 'a') + "\r\n\r\n"),
           http::ErrorCode::fields_too_large, 431},
          {chunked("0\r\n" + std::string(40, 'A')), http::ErrorCode::fields_too_large, 431},
      },
      small);
  // The names of fields and the spaces before values have limits of their own.
  const http::MessageLimits large = {.fields_bytes_max = 200000};
  for (const std::string& field :
       {std::string(65536, 'A') + ": b", "A:" + std::string(65536, ' ')}) {
    Buffer input("GET / HTTP/1.1\r\nHost: a\r\n" + field + "b\r\n\r\n");
    EXPECT_EQ(RequestParser(large).parse_head(input).error(), http::ErrorCode::fields_too_large);
  }
}

/// A front end that ignores the body takes it for the first bytes of the tunnel.
TEST(RejectedRequests, are_connect_with_a_body) {
  const std::string connect = "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n";
  expect_requests_rejected({
      {connect + "Content-Length: 5\r\n\r\nhello", http::ErrorCode::connect_with_body},
      {connect + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", http::ErrorCode::connect_with_body},
      {connect + "Content-Length: x\r\n\r\n", http::ErrorCode::bad_content_length},
  });
  Buffer input(connect + "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(RequestParser().parse_head(input), true);
}

TEST(RejectedResponses, are_malformed) {
  expect_rejected<StrictResponseParser>(
      {
          {"\r\nHTTP/1.1 200 OK\r\n\r\n", http::ErrorCode::bad_version},
          {"HTTP/1.1 200\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1  200 OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 20 OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 2000 OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 099 OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 -20 OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 2x0 OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 200\tOK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 200OK\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 200 \x01\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1 200 O\0K\r\n\r\n"s, http::ErrorCode::bad_status_line, 500},
          {"HTTP/1.1\r\n\r\n", http::ErrorCode::bad_status_line, 500},
          {"HTTP/2.0 200 OK\r\n\r\n", http::ErrorCode::version_not_supported, 505},
          {"http/1.1 200 OK\r\n\r\n", http::ErrorCode::bad_version},
          {"ICY 200 OK\r\n\r\n", http::ErrorCode::bad_version},
          {"<html>\r\n", http::ErrorCode::bad_version},
          {"HTTP/1.1 200 OK\nA: b\r\n\r\n", http::ErrorCode::bare_line_feed},
          {"HTTP/1.1 200 O\rK\r\n\r\n", http::ErrorCode::bare_carriage_return},
          {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", http::ErrorCode::folded_field},
          {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", http::ErrorCode::space_before_colon},
          {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
           http::ErrorCode::several_content_lengths},
          {"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n", http::ErrorCode::bad_content_length},
          {"HTTP/1.1 304 OK\r\nContent-Length: 5x\r\n\r\n", http::ErrorCode::bad_content_length},
          {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           http::ErrorCode::length_with_transfer_encoding},
          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
           http::ErrorCode::bad_transfer_encoding},
          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           http::ErrorCode::unsupported_transfer_encoding, 501},
          {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
           http::ErrorCode::transfer_encoding_in_http_1_0},
          {"HTTP/1.1 200 OK\r\n\r\n" + std::string(101, 'a'), http::ErrorCode::body_too_large, 413},
          {"HTTP/1.1 200 " + std::string(52, 'a') + "\r\n\r\n",
           http::ErrorCode::start_line_too_long, 414},
      },
      small);
}

/// What is cut off at any point is truncated, or another error was found before; it is never a
/// complete message.
TEST(RejectedMessages, are_cut_off) {
  const std::string whole = chunked("5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n");
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto verdict = test::read_in_every_way<RequestParser>(whole.substr(0, size));
    EXPECT_EQ(verdict.error, StreamError::truncated) << whole.substr(0, size);
    EXPECT_EQ(http::status_for(verdict.error), Status::bad_request);
    EXPECT_TRUE(verdict.messages.empty() || !verdict.messages[0].is_complete);
  }
  const std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
  for (std::size_t size = 1; size < response.size(); ++size)
    EXPECT_EQ(test::read_in_every_way<StrictResponseParser>(response.substr(0, size)).error,
              StreamError::truncated);
}

TEST(RejectedMessages, stay_rejected) {
  Buffer input("GET / HTTP/1.1\r\nHost : a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  RequestParser parser;
  Buffer body;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parser.parse_head(input).error(), http::ErrorCode::space_before_colon);
    EXPECT_EQ(parser.read_body(input, body, 10).error(), http::ErrorCode::space_before_colon);
    EXPECT_EQ(parser.end_input(input).error(), http::ErrorCode::space_before_colon);
  }
}

TEST(RejectedMessages, have_a_status) {
  EXPECT_EQ(http::status_for(system_error(ETIMEDOUT)), Status::request_timeout);
  EXPECT_EQ(http::status_for(system_error(ENOMEM)), Status::internal_server_error);
}

}  // namespace
}  // namespace tambour::rejected_messages_test
