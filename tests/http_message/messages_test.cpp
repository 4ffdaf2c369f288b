// Valid messages of HTTP/1.1: their parts, and where they end.
#include "http/support/messages.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http/support/every_way.h"

namespace tambour::messages_test {
namespace {

using http::Method;
using http::TargetForm;
using http::detail::h1::BodyKind;
using http::detail::h1::RequestParser;
using http::detail::h1::ResponseParser;
using test::Message;
using namespace std::string_literals;

/// Expects that `text` consists of complete messages and nothing else.
std::vector<Message> requests_in(std::string_view text, const http::MessageLimits& limits = {}) {
  const auto verdict = test::read_in_every_way<RequestParser>(text, limits);
  EXPECT_EQ(verdict.error, StreamError::eof) << verdict.error.message() << ":\n" << text;
  return verdict.messages;
}

std::vector<Message> responses_in(std::string_view text, const std::vector<Method>& methods = {}) {
  const auto verdict = test::read_in_every_way<ResponseParser>(text, {}, methods);
  EXPECT_EQ(verdict.error, StreamError::eof) << verdict.error.message() << ":\n" << text;
  return verdict.messages;
}

TEST(Requests, have_the_parts_of_their_text) {
  const std::string text =
      "POST /a/b?c=d HTTP/1.1\r\nHost: example.org:8080\r\nX-Y:  z \t\r\n"
      "Empty:\r\nContent-Length: 5\r\n\r\nhello";
  const auto messages = requests_in(text);
  ASSERT_EQ(messages.size(), 1);
  EXPECT_EQ(messages[0],
            (Message{.start = "POST  example.org:8080 /a/b?c=d 11",
                     .fields = "Host: example.org:8080\nX-Y: z\nEmpty: \nContent-Length: 5\n",
                     .body = "hello",
                     .end = text.size(),
                     .is_complete = true,
                     .is_persistent = true}));
}

TEST(Requests, have_names_and_values_of_any_length) {
  for (std::size_t size = 1; size < 40; ++size) {
    const std::string name = std::string(size, 'N') + "-1";
    const std::string value = std::string(size, 'v') + '\t' + std::string(size, '\xE9');
    const auto messages = requests_in("GET / HTTP/1.1\r\nHost: a\r\n" + name + ": " + value +
                                      "\r\n" + name + ':' + value + "\r\n\r\n");
    ASSERT_EQ(messages.size(), 1);
    const std::string line = name + ": " + value + '\n';
    EXPECT_EQ(messages[0].fields, "Host: a\n" + line + line);
  }
}

TEST(Requests, have_targets_of_which_each_byte_is_checked) {
  const auto is_valid = [](const std::string& target) {
    RequestParser parser;
    const Result<std::size_t> size =
        parser.parse_head("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(!size || parser.head().target == target);
    return size.has_value();
  };
  const std::string_view never = "\"#<>\x7F";
  for (const std::size_t size : {1, 14, 15, 16, 17, 31, 32, 40}) {
    for (std::size_t at = 0; at < size; ++at) {
      for (unsigned c = 1; c < 256; ++c) {
        std::string text(size, 'z');
        text[at] = static_cast<char>(c);
        const bool is_query_char = c > ' ' && c < 127 && !never.contains(static_cast<char>(c));
        EXPECT_EQ(is_valid("/?" + text), is_query_char) << c << " at " << at;
        EXPECT_EQ(is_valid("/" + text), is_query_char && c != '%') << c << " at " << at;
      }
    }
  }
}

TEST(Requests, follow_each_other) {
  const std::string first = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nGET";
  const std::string second =
      "PUT /2 HTTP/1.1\r\nHost: a\r\ntransfer-encoding: Chunked\r\n\r\n"
      "5;a;b=c ; d=\"e\\\"\t;\"\r\nGET /\r\n00A\r\n HTTP/1.1\r\r\n0;z\r\nX-Sum: "
      "1\r\nX-Sum:2\r\n\r\n";
  const std::string third = "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string fourth = "\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\n";
  const auto messages = requests_in(first + second + third + fourth);
  ASSERT_EQ(messages.size(), 4);
  EXPECT_EQ(messages[0].body, "GET");
  EXPECT_EQ(messages[0].end, first.size());
  EXPECT_EQ(messages[1].body, "GET / HTTP/1.1\r");
  EXPECT_EQ(messages[1].trailers, "X-Sum: 1\nX-Sum: 2\n");
  EXPECT_EQ(messages[1].end, (first + second).size());
  EXPECT_EQ(messages[2].start, "GET  a /3 11");
  EXPECT_EQ(messages[2].end, (first + second + third).size());
  EXPECT_EQ(messages[3].start, "GET  a /4 11");
  EXPECT_EQ(messages[3].end, (first + second + third + fourth).size());
}

TEST(Requests, may_be_followed_by_an_empty_line) {
  EXPECT_EQ(requests_in("GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n").size(), 1);
  EXPECT_TRUE(requests_in("").empty());
  EXPECT_TRUE(requests_in("\r\n").empty());
}

TEST(Requests, have_targets_of_four_forms) {
  struct Case {
    const char* line;
    const char* start;
    TargetForm form;
  };
  for (const Case& test_case :
       {Case{"GET / HTTP/1.1", "GET  host:1 / 11", TargetForm::origin},
        Case{"GET //a//b HTTP/1.1", "GET  host:1 //a//b 11", TargetForm::origin},
        Case{"GET /%00%2F?%&%z=%% HTTP/1.1", "GET  host:1 /%00%2F?%&%z=%% 11", TargetForm::origin},
        Case{"GET /[]\\^`{|}?[]\\^`{|}? HTTP/1.1", "GET  host:1 /[]\\^`{|}?[]\\^`{|}? 11",
             TargetForm::origin},
        Case{"GET /a?http://b HTTP/1.1", "GET  host:1 /a?http://b 11", TargetForm::origin},
        Case{"GET http://b HTTP/1.1", "GET http b / 11", TargetForm::absolute},
        Case{"GET HTTPS://b:?c HTTP/1.1", "GET https b: /?c 11", TargetForm::absolute},
        Case{"GET http://[::1]:80/c?d HTTP/1.1", "GET http [::1]:80 /c?d 11", TargetForm::absolute},
        Case{"OPTIONS http://b HTTP/1.1", "OPTIONS http b * 11", TargetForm::absolute},
        Case{"OPTIONS http://b/ HTTP/1.1", "OPTIONS http b / 11", TargetForm::absolute},
        Case{"OPTIONS * HTTP/1.1", "OPTIONS  host:1 * 11", TargetForm::asterisk},
        Case{"OPTIONS / HTTP/1.1", "OPTIONS  host:1 / 11", TargetForm::origin},
        Case{"CONNECT b:443 HTTP/1.1", "CONNECT  b:443 b:443 11", TargetForm::authority},
        Case{"CONNECT [::1]:443 HTTP/1.1", "CONNECT  [::1]:443 [::1]:443 11",
             TargetForm::authority},
        Case{"X-Y.Z!#$%&'*+^_`|~ / HTTP/1.1", "X-Y.Z!#$%&'*+^_`|~  host:1 / 11",
             TargetForm::origin},
        Case{"get / HTTP/1.1", "get  host:1 / 11", TargetForm::origin},
        Case{"GET / HTTP/1.0", "GET  host:1 / 10", TargetForm::origin},
        Case{"GET / HTTP/1.9", "GET  host:1 / 11", TargetForm::origin}}) {
    const std::string text = test_case.line + "\r\nHost: host:1\r\n\r\n"s;
    const auto messages = requests_in(text);
    ASSERT_EQ(messages.size(), 1) << text;
    EXPECT_EQ(messages[0].start, test_case.start);
    RequestParser parser;
    Buffer input(text);
    EXPECT_EQ(parser.parse_head(input), true);
    EXPECT_EQ(parser.head().form, test_case.form) << text;
  }
}

TEST(Requests, have_a_path_and_a_query) {
  http::RequestHead head;
  EXPECT_EQ(head.path(), "/");
  EXPECT_EQ(head.query(), std::nullopt);
  head.target = "/a?b?c";
  EXPECT_EQ(head.path(), "/a");
  EXPECT_EQ(head.query(), "b?c");
  head.target = "/?";
  EXPECT_EQ(head.query(), "");
}

TEST(Requests, may_lack_a_host_in_HTTP_1_0) {
  EXPECT_EQ(requests_in("GET / HTTP/1.0\r\n\r\n")[0].start, "GET   / 10");
  EXPECT_EQ(requests_in("GET / HTTP/1.1\r\nHost:\r\n\r\n")[0].start, "GET   / 11");
  EXPECT_EQ(requests_in("GET / HTTP/1.1\r\nHost: A_b%20:\r\n\r\n")[0].start, "GET  A_b%20: / 11");
}

TEST(Requests, say_whether_the_connection_persists) {
  const std::vector<std::pair<std::string, bool>> cases = {
      {"HTTP/1.1", true},
      {"HTTP/1.1\r\nConnection: close", false},
      {"HTTP/1.1\r\nConnection: x, CLOSE ,y", false},
      {"HTTP/1.1\r\nConnection: keep-alive\r\nConnection: close", false},
      {"HTTP/1.1\r\nConnection: closed", true},
      {"HTTP/1.0", false},
      {"HTTP/1.0\r\nConnection: Keep-Alive", true},
      {"HTTP/1.0\r\nConnection: keep-alive, close", false}};
  for (const auto& [version, persists] : cases)
    EXPECT_EQ(requests_in("GET / " + version + "\r\nHost: a\r\n\r\n")[0].is_persistent, persists)
        << version;
}

TEST(Requests, may_have_lengths_at_the_limits) {
  EXPECT_EQ(requests_in("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0000\r\n\r\n")[0].body, "");
  EXPECT_EQ(
      requests_in("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0000000000000000003\r\n\r\nabc")[0]
          .body,
      "abc");
  Buffer input("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n");
  RequestParser parser({.body_bytes_max = UINT64_MAX});
  EXPECT_EQ(parser.parse_head(input), true);
  EXPECT_EQ(parser.framing().length, 9223372036854775807U);
  Buffer chunk(
      "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "fFfFfFfFfFfFfFf\r\nabc");
  RequestParser chunks({.body_bytes_max = UINT64_MAX});
  Buffer body;
  EXPECT_EQ(chunks.parse_head(chunk), true);
  EXPECT_EQ(chunks.read_body(chunk, body, 100), 3);
}

TEST(Requests, may_be_as_large_as_the_limits) {
  const http::MessageLimits limits = {
      .fields_max = 2,
      .fields_bytes_max = 33,
      .trailers_max = 1,
      .trailers_bytes_max = 5,
      .body_bytes_max = 4,
      .http_1 = {.start_line_bytes_max = 15, .chunk_extension_bytes_max = 5}};
  EXPECT_EQ(requests_in("GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "1;a=b\r\nx\r\n3\r\nabc\r\n0\r\nA:  b\r\n\r\n",
                        limits)
                .size(),
            1);
  RequestParser parser(limits);
  Buffer input("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789");
  EXPECT_EQ(parser.parse_head(input), true);
  parser.set_body_bytes_max(9);
  Buffer body;
  EXPECT_EQ(parser.read_body(input, body, 100), 9);
  EXPECT_TRUE(parser.is_complete());
  parser.restart();
  input.append("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345");
  EXPECT_EQ(parser.parse_head(input), true);
  EXPECT_EQ(parser.read_body(input, body, 100).error(), http::ErrorCode::body_too_large);
}

/// A body that arrives in large blocks is not copied, and its head is found in spite of it.
TEST(Requests, pass_bodies_through) {
  Buffer input("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  const auto large = std::make_shared<std::string>(1000000, 'x');
  input.append_shared(std::as_bytes(std::span(*large)), large);
  input.append("GET");
  RequestParser parser({.body_bytes_max = 1000000});
  EXPECT_EQ(parser.parse_head(input), true);
  Buffer body;
  EXPECT_EQ(parser.read_body(input, body, 10000000), 1000000);
  EXPECT_TRUE(parser.is_complete());
  EXPECT_EQ(body.front().data(), std::as_bytes(std::span(*large)).data());
  EXPECT_EQ(input, "GET");
}

TEST(Responses, have_the_parts_of_their_text) {
  const auto messages = responses_in(
      "HTTP/1.1 404 Not \xC3\xA9 Found\r\nContent-Length: 2\r\n\r\nno"
      "HTTP/1.0 999 \r\nContent-Length: 0\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\na\r\n0\r\nX: y\r\n\r\n");
  ASSERT_EQ(messages.size(), 3);
  EXPECT_EQ(messages[0].start, "404 Not \xC3\xA9 Found 11");
  EXPECT_EQ(messages[0].body, "no");
  EXPECT_EQ(messages[1].start, "999  10");
  EXPECT_FALSE(messages[1].is_persistent);
  EXPECT_EQ(messages[2].body, "a");
  EXPECT_EQ(messages[2].trailers, "X: y\n");
  EXPECT_TRUE(messages[2].is_persistent);
}

TEST(Responses, may_end_with_the_connection) {
  const auto messages = responses_in("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
  ASSERT_EQ(messages.size(), 1);
  EXPECT_EQ(messages[0].body, "HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_TRUE(messages[0].is_complete);
  EXPECT_FALSE(messages[0].is_persistent);
  EXPECT_EQ(responses_in("HTTP/1.1 200 OK\r\n\r\n")[0].body, "");
}

/// RFC 9112, section 6.3.
TEST(Responses, have_bodies_that_depend_on_status_and_method) {
  const std::string next = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
  for (const char* status : {"100", "102", "103", "199", "204", "304"}) {
    for (const char* field : {"", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"}) {
      const auto messages = responses_in("HTTP/1.1 "s + status + " A\r\n" + field + "\r\n" + next);
      ASSERT_EQ(messages.size(), 2) << status << field;
      EXPECT_EQ(messages[0].body, "");
      EXPECT_EQ(messages[1].body, "x");
    }
  }
  for (const char* field : {"", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"}) {
    const auto messages =
        responses_in("HTTP/1.1 200 OK\r\n"s + field + "\r\n" + next, {Method::head, Method::get});
    ASSERT_EQ(messages.size(), 2) << field;
    EXPECT_EQ(messages[1].body, "x");
  }
}

TEST(Responses, may_begin_a_tunnel) {
  const std::string field = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nbytes";
  for (const auto& [text, method] :
       {std::pair("HTTP/1.1 200 OK\r\n" + field, Method::connect),
        std::pair("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nbytes"s, Method::get)}) {
    Buffer input(text);
    ResponseParser parser;
    EXPECT_EQ(parser.parse_head(input, method), true);
    EXPECT_EQ(parser.framing().kind, BodyKind::tunnel);
    EXPECT_FALSE(parser.is_persistent());
    Buffer body;
    EXPECT_EQ(parser.read_body(input, body, 100), 0);
    EXPECT_EQ(input, "bytes");
    EXPECT_EQ(parser.end_input(input).error(), StreamError::eof);
  }
  Buffer refused("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno");
  ResponseParser parser;
  EXPECT_EQ(parser.parse_head(refused, Method::connect), true);
  EXPECT_EQ(parser.framing().length, 2);
}

}  // namespace
}  // namespace tambour::messages_test
