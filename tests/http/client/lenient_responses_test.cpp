// Responses that break RFC 9112 without changing where a message ends: clients accept them, as
// curl, browsers and Go do. What could change the framing is rejected by clients, too.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http/support/every_way.h"
#include "http/support/messages.h"

namespace tambour::lenient_responses_test {
namespace {

using http::detail::h1::RequestParser;
using http::detail::h1::ResponseParser;
using test::StrictResponseParser;
using namespace std::string_literals;

struct Accepted {
  std::string text;
  std::string start;  ///< Status, reason, version.
  std::string fields{};
  std::string body{};
  std::string trailers{};
};

/// The text must be one response with these parts for clients, and none in the strict mode.
void expect_accepted(const std::vector<Accepted>& table) {
  for (const Accepted& response : table) {
    const test::Verdict verdict = test::read_in_every_way<ResponseParser>(response.text);
    EXPECT_EQ(verdict.error, StreamError::eof) << verdict.error.message() << ":\n" << response.text;
    ASSERT_EQ(verdict.messages.size(), 1U) << response.text;
    const test::Message& message = verdict.messages[0];
    EXPECT_TRUE(message.is_complete) << response.text;
    EXPECT_EQ(message.start, response.start) << response.text;
    EXPECT_EQ(message.fields, response.fields) << response.text;
    EXPECT_EQ(message.body, response.body) << response.text;
    EXPECT_EQ(message.trailers, response.trailers) << response.text;
    EXPECT_EQ(message.end, response.text.size()) << response.text;
    const Error strict = test::read_in_every_way<StrictResponseParser>(response.text).error;
    EXPECT_NE(strict, StreamError::eof) << response.text;
    EXPECT_EQ(strict.category(), http::error_category()) << response.text;
  }
}

/// A response without a body, so that the fields alone decide.
std::string empty_with(const std::string& fields) {
  return "HTTP/1.1 204 No Content\r\n" + fields + "\r\n";
}
std::string chunked(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

TEST(LenientStatusLine, lacks_a_reason_or_has_other_blanks) {
  expect_accepted({
      {"HTTP/1.1 204\r\n\r\n", "204  11"},
      {"HTTP/1.0 204\r\nA: b\r\n\r\n", "204  10", "A: b\n"},
      {"HTTP/1.1  204 No Content\r\n\r\n", "204 No Content 11"},
      {"HTTP/1.1 \t 204 x\r\n\r\n", "204 x 11"},
      {"HTTP/1.1\t204 x\r\n\r\n", "204 x 11"},
      {"HTTP/1.1 204\tx\r\n\r\n", "204 x 11"},
      {"HTTP/1.1  204\r\n\r\n", "204  11"},
      {"HTTP/1.1 204 a\x01z\r\n\r\n", "204  11"},
      {"HTTP/1.1 204 a\0z\r\n\r\n"s, "204  11"},
  });
}

TEST(LenientFields, are_folded) {
  expect_accepted({
      {empty_with("A: b\r\n c\r\n"), "204 No Content 11", "A: b c\n"},
      {empty_with("A: b\r\n\tc\r\n"), "204 No Content 11", "A: b c\n"},
      {empty_with("A: b \t\r\n \t c \r\n"), "204 No Content 11", "A: b c\n"},
      {empty_with("A: b\r\n c\r\n\td\r\n  e\r\nB: f\r\n"), "204 No Content 11",
       "A: b c d e\nB: f\n"},
      {empty_with("A:\r\n b\r\n"), "204 No Content 11", "A: b\n"},
      {empty_with("A: \t \r\n b\r\n"), "204 No Content 11", "A: b\n"},
      {empty_with("A: b\r\n \r\n"), "204 No Content 11", "A: b\n"},
      {empty_with("A: b\r\n \r\n\t\r\n c\r\nB: d\r\n"), "204 No Content 11", "A: b c\nB: d\n"},
      {empty_with("A:\r\n \r\nB: c\r\n"), "204 No Content 11", "A: \nB: c\n"},
      {empty_with("A: b  c\r\n Content-Length: 5\r\n"), "204 No Content 11",
       "A: b  c Content-Length: 5\n"},
      {empty_with("A: b\r\nA: c\r\n : d\r\nE: f\r\n"), "204 No Content 11",
       "A: b\nA: c : d\nE: f\n"},
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\nD: e\r\n f\r\n\r\nhi", "200 OK 11",
       "A: b c\nContent-Length: 2\nD: e f\n", "hi"},
      {empty_with("A: b\n c\n\td\n"), "204 No Content 11", "A: b c d\n"},
  });
}

TEST(LenientFields, have_blanks_before_the_colon_or_no_name) {
  expect_accepted({
      {empty_with("A : b\r\nC\t: d\r\nE \t :\r\n"), "204 No Content 11", "A: b\nC: d\nE: \n"},
      {empty_with("A : b\r\n c\r\n"), "204 No Content 11", "A: b c\n"},
      {empty_with(": a\r\nB: c\r\n"), "204 No Content 11", "B: c\n"},
      {empty_with(":status: 200\r\nB: c\r\n"), "204 No Content 11", "B: c\n"},
      {empty_with("B: c\r\n: a\r\n d\r\n"), "204 No Content 11", "B: c\n"},
  });
}

TEST(LenientFields, have_control_characters) {
  expect_accepted({
      {empty_with("A: b\x01\x1F\x7Fz\r\nC: d\r\n"), "204 No Content 11", "A: b   z\nC: d\n"},
      {empty_with("A: \x01z\x01\r\n"), "204 No Content 11", "A: z\n"},
      {empty_with("A: \x01\r\n"), "204 No Content 11", "A: \n"},
      {empty_with("A: b\x01\r\n z\r\n"), "204 No Content 11", "A: b z\n"},
  });
}

TEST(LenientHeads, have_lines_that_end_without_a_carriage_return) {
  expect_accepted({
      {"HTTP/1.1 204\n\n", "204  11"},
      {"HTTP/1.1 200 OK\nA: b\nContent-Length: 2\n\nhi", "200 OK 11", "A: b\nContent-Length: 2\n",
       "hi"},
      {"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\nhi", "200 OK 11",
       "A: b\nContent-Length: 2\n", "hi"},
      {"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nhi", "200 OK 11", "Content-Length: 2\n", "hi"},
      {chunked("0\r\nA: b\n\n"), "200 OK 11", "Transfer-Encoding: chunked\n", "", "A: b\n"},
  });
}

TEST(LenientLengths, are_repeated) {
  expect_accepted({
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "200 OK 11",
       "Content-Length: 2\nContent-Length: 2\n", "hi"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2, 02\t,2\r\n\r\nhi", "200 OK 11",
       "Content-Length: 2, 02\t,2\n", "hi"},
  });
}

TEST(LenientChunks, have_blanks_and_other_extensions) {
  const std::string fields = "Transfer-Encoding: chunked\n";
  for (const char* const line :
       {"5 ", "5\t", "5  \t ", "5;", "5; ", "5;;", "5;=", "5;a=", "5;a= ", "5 ;a b", "5;a=\"b",
        "5;a=\"b\"c", "5;\xC3\xA9", "5;a=b=c", "0000000000000005", "0000000000000005 ;x"})
    expect_accepted({{chunked(line + "\r\nhello\r\n0\r\n\r\n"s), "200 OK 11", fields, "hello"}});
  for (const char* const line : {"0 ", "0\t", "0;", "0000000000000000"})
    expect_accepted({{chunked(line + "\r\n\r\n"s), "200 OK 11", fields}});
}

TEST(LenientTrailers, are_ignored_if_they_are_not_allowed) {
  const std::string fields = "Transfer-Encoding: chunked\n";
  for (const char* const name :
       {"Content-Length", "Transfer-Encoding", "Host", "Content-Encoding", "Authorization",
        "Connection", "Content-Range", "Trailer", "Upgrade", "TE", "Expect"}) {
    const std::string field = name + ": 5"s;
    expect_accepted({
        {chunked("0\r\n" + field + "\r\n\r\n"), "200 OK 11", fields},
        {chunked("0\r\nA: b\r\n" + field + "\r\nC: d\r\n\r\n"), "200 OK 11", fields, "",
         "A: b\nC: d\n"},
    });
  }
  expect_accepted({
      {chunked("0\r\nA: b\r\nHost: c\r\n d\r\nE: f\r\n g\r\n\r\n"), "200 OK 11", fields, "",
       "A: b\nE: f g\n"},
  });
}

struct Rejected {
  std::string text;
  http::ErrorCode error;
};

TEST(LenientResponses, are_rejected_if_their_framing_is_not_certain) {
  const std::vector<Rejected> table = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
       http::ErrorCode::several_content_lengths},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", http::ErrorCode::several_content_lengths},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n", http::ErrorCode::bad_content_length},
      {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", http::ErrorCode::bad_content_length},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\x01\r\n\r\n", http::ErrorCode::bad_field_value},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 0\r\n\r\n", http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\nContent-Length:\r\n 10\r\n\r\n", http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n \r\n\r\n", http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n", http::ErrorCode::space_before_colon},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding\t: chunked\r\n\r\n",
       http::ErrorCode::space_before_colon},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n , x\r\n\r\n",
       http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0B"
       "chunked\r\n\r\n",
       http::ErrorCode::bad_field_value},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
       http::ErrorCode::length_with_transfer_encoding},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
       http::ErrorCode::transfer_encoding_in_http_1_0},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
       http::ErrorCode::bad_transfer_encoding},
      {"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\n \r\n\r\n", http::ErrorCode::folded_field},
      {"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n"s, http::ErrorCode::bad_field_value},
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\0\r\n\r\n"s, http::ErrorCode::bad_field_value},
      {"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\rd\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {"HTTP/1.1 200 OK\r\nA\r\n\r\n", http::ErrorCode::missing_colon},
      {"HTTP/1.1 200 OK\r\nA\r\n : b\r\n\r\n", http::ErrorCode::missing_colon},
      {"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", http::ErrorCode::bad_field_name},
      {"HTTP/1.1 200 OK\r\nA\x0B: c\r\n\r\n", http::ErrorCode::bad_field_name},
      {"HTTP/1.1 200OK\r\n\r\n", http::ErrorCode::bad_status_line},
      {"HTTP/1.1 2000\r\n\r\n", http::ErrorCode::bad_status_line},
      {"HTTP/1.1 20\r\n\r\n", http::ErrorCode::bad_status_line},
      {"HTTP/1.1 20 OK\r\n\r\n", http::ErrorCode::bad_status_line},
      {"HTTP/1.1 \r\n\r\n", http::ErrorCode::bad_status_line},
      {"HTTP/1.1\r\n\r\n", http::ErrorCode::bad_status_line},
      {"HTTP/1.1 200 O\rK\r\n\r\n", http::ErrorCode::bare_carriage_return},
      {" HTTP/1.1 200 OK\r\n\r\n", http::ErrorCode::bad_version},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", http::ErrorCode::bad_version},
      {"\nHTTP/1.1 200 OK\r\n\r\n", http::ErrorCode::bad_version},
      {chunked("5\nhello\r\n0\r\n\r\n"), http::ErrorCode::bare_line_feed},
      {chunked("5;a\nhello\r\n0\r\n\r\n"), http::ErrorCode::bare_line_feed},
      {chunked("5 \nhello\r\n0\r\n\r\n"), http::ErrorCode::bare_line_feed},
      {chunked("5\r\nhello\n0\r\n\r\n"), http::ErrorCode::bad_chunk_end},
      {chunked("5\r\nhello0\r\n\r\n"), http::ErrorCode::bad_chunk_end},
      {chunked("5;a\rb\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bare_carriage_return},
      {chunked("5;a\x01\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_extension},
      {chunked("5;a\0\r\nhello\r\n0\r\n\r\n"s), http::ErrorCode::bad_chunk_extension},
      {chunked(" 5\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("5 5\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("5x\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("0x5\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("1000000000000005\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("10000000000000000\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("00000000000000005\r\nhello\r\n0\r\n\r\n"), http::ErrorCode::bad_chunk_size},
      {chunked("0\r\nContent-Length : 5\r\n\r\n"), http::ErrorCode::space_before_colon},
      {chunked("0\r\nContent-Length: 5\0\r\n\r\n"s), http::ErrorCode::bad_field_value},
  };
  for (const Rejected& response : table) {
    const test::Verdict verdict = test::read_in_every_way<ResponseParser>(response.text);
    EXPECT_EQ(verdict.error, response.error) << verdict.error.message() << ":\n" << response.text;
    for (const test::Message& message : verdict.messages)
      EXPECT_FALSE(message.is_complete) << response.text;
  }
}

TEST(LenientResponses, have_the_limits_of_strict_ones) {
  const http::MessageLimits small = {.fields_max = 4,
                                     .fields_bytes_max = 32,
                                     .trailers_bytes_max = 32,
                                     .http_1 = {.chunk_extension_bytes_max = 16}};
  std::string folds = "A: b\r\n";
  for (int i = 0; i < 15; ++i) folds += " c\r\n";
  const std::vector<Rejected> table = {
      {empty_with(folds), http::ErrorCode::fields_too_large},
      {empty_with("A: b\r\n " + std::string(40, 'c') + "\r\n"), http::ErrorCode::fields_too_large},
      {empty_with("A:1\r\nB:2\r\nC:3\r\nD:4\r\nE:5\r\n"), http::ErrorCode::too_many_fields},
      {chunked("0\r\nHost: " + std::string(40, 'c') + "\r\n\r\n"),
       http::ErrorCode::fields_too_large},
      {chunked("5" + std::string(17, ' ') + "\r\n"), http::ErrorCode::chunk_extensions_too_large},
      {chunked("5;" + std::string(16, 'a') + "\r\n"), http::ErrorCode::chunk_extensions_too_large},
  };
  for (const Rejected& response : table) {
    const test::Verdict verdict = test::read_in_every_way<ResponseParser>(response.text, small);
    EXPECT_EQ(verdict.error, response.error) << verdict.error.message() << ":\n" << response.text;
  }
  // The size of a value includes its further lines.
  const test::Verdict verdict = test::read_in_every_way<ResponseParser>(
      empty_with("A: b\r\n c\r\n"), {.fields_bytes_max = 6});
  EXPECT_EQ(verdict.error, StreamError::eof);
}

/// Servers stay strict: none of these deviations is accepted in a request.
TEST(LenientResponses, are_not_requests) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  for (const std::string& text :
       {post + "A: b\r\n c\r\n\r\n", post + "A : b\r\n\r\n", post + ": b\r\n\r\n",
        post + "A: b\x01\r\n\r\n", post + "A: b\n\r\n",
        post + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n0 \r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n0;=\r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n0000000000000000\r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n0\r\nHost: a\r\n\r\n"}) {
    const test::Verdict verdict = test::read_in_every_way<RequestParser>(text);
    EXPECT_EQ(verdict.error.category(), http::error_category()) << text;
    for (const test::Message& message : verdict.messages) EXPECT_FALSE(message.is_complete);
  }
}

}  // namespace
}  // namespace tambour::lenient_responses_test
