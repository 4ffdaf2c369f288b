// Messages of HTTP/1.1 as they are sent.
#include "http_message/h1/writer.h"

#include <concepts>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "http/support/messages.h"

namespace tambour::writer_test {
namespace {

using http::Fields;
using http::Method;
using http::RequestHead;
using http::ResponseHead;
using http::Status;
using http::TargetForm;
using http::detail::h1::BodyKind;
using namespace std::string_literals;

Fields fields_of(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  Fields fields;
  for (const auto& [name, value] : pairs) or_throw(fields.add(name, value), name);
  return fields;
}

std::string written(const auto& head, const http::detail::h1::HeadOptions& options = {}) {
  Buffer buffer;
  or_throw(http::detail::h1::append_head(buffer, head, options), "append_head");
  std::string text = buffer.to_string();
  if constexpr (std::same_as<std::remove_cvref_t<decltype(head)>, ResponseHead>) {
    // Memory that may be too small gets the same, or nothing.
    for (const std::size_t room : {text.size() - 1, std::size_t{4096}}) {
      std::string memory(room, '!');
      const std::size_t size = or_throw(http::detail::h1::write_head(memory, head, options));
      EXPECT_EQ(memory.substr(0, size), size > 0 ? text : "");
      EXPECT_EQ(memory.find_first_not_of('!', size), std::string::npos);
      EXPECT_TRUE(size > 0 || room < text.size());
    }
  }
  return text;
}

TEST(Writer, writes_requests_with_targets_of_four_forms) {
  EXPECT_EQ(written(RequestHead{.target = "/a?b", .authority = "c:1"}),
            "GET /a?b HTTP/1.1\r\nHost: c:1\r\n\r\n");
  EXPECT_EQ(written(RequestHead{.method = Method::post,
                                .target = "/a",
                                .authority = "b",
                                .scheme = "https",
                                .form = TargetForm::absolute,
                                .fields = fields_of({{"X", "y"}, {"Z", ""}})}),
            "POST https://b/a HTTP/1.1\r\nHost: b\r\nX: y\r\nZ: \r\n\r\n");
  EXPECT_EQ(written(RequestHead{.method = Method::options,
                                .target = "*",
                                .authority = "b",
                                .scheme = "http",
                                .form = TargetForm::absolute}),
            "OPTIONS http://b HTTP/1.1\r\nHost: b\r\n\r\n");
  EXPECT_EQ(
      written(RequestHead{.method = Method::options, .target = "*", .form = TargetForm::asterisk}),
      "OPTIONS * HTTP/1.1\r\nHost: \r\n\r\n");
  EXPECT_EQ(written(RequestHead{.method = Method::connect,
                                .target = "[::1]:443",
                                .authority = "[::1]:443",
                                .form = TargetForm::authority}),
            "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
}

TEST(Writer, writes_responses) {
  EXPECT_EQ(written(ResponseHead{}), "HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(written(ResponseHead{.status = Status(299)}), "HTTP/1.1 299 \r\n\r\n");
  EXPECT_EQ(written(ResponseHead{.status = Status::not_found,
                                 .reason = "Gone \xC3\xA9",
                                 .fields = fields_of({{"Server", "x"}})},
                    {.connection = "close", .date_line = "Date: today\r\n"}),
            "HTTP/1.1 404 Gone \xC3\xA9\r\nServer: x\r\nDate: today\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(written(ResponseHead{.fields = fields_of({{"date", "then"}})},
                    {.date_line = "Date: today\r\n"}),
            "HTTP/1.1 200 OK\r\ndate: then\r\n\r\n");
}

TEST(Writer, writes_the_framing_of_the_options_only) {
  const ResponseHead head{.fields = fields_of({{"content-length", "1"},
                                               {"A", "b"},
                                               {"Transfer-Encoding", "gzip"},
                                               {"CONNECTION", "close"},
                                               {"Content-Length", "2"},
                                               {"Host", "c"}})};
  EXPECT_EQ(written(head), "HTTP/1.1 200 OK\r\nA: b\r\nHost: c\r\n\r\n");
  EXPECT_EQ(written(head, {.framing = {.kind = BodyKind::length, .length = 18446744073709551615U}}),
            "HTTP/1.1 200 OK\r\nA: b\r\nHost: c\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_EQ(written(head, {.framing = {.kind = BodyKind::length}}),
            "HTTP/1.1 200 OK\r\nA: b\r\nHost: c\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(written(head, {.framing = {.kind = BodyKind::chunked}}),
            "HTTP/1.1 200 OK\r\nA: b\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(written(head, {.framing = {.kind = BodyKind::until_close}}),
            "HTTP/1.1 200 OK\r\nA: b\r\nHost: c\r\n\r\n");
  EXPECT_EQ(written(RequestHead{.authority = "d", .fields = head.fields}),
            "GET / HTTP/1.1\r\nHost: d\r\nA: b\r\n\r\n");
}

/// Fields that a program adds are kept as they are sent, unless it changes them.
TEST(Writer, writes_fields_after_any_change) {
  const auto lines_of = [](const Fields& fields) {
    std::string text = written(ResponseHead{.fields = fields});
    EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n")) << text;
    return text.substr(17, text.size() - 19);
  };
  Fields fields;
  EXPECT_EQ(lines_of(fields), "");
  for (int round = 0; round < 2; ++round) {
    fields = fields_of({{"A", " 1 "}, {"B", ""}, {"Connection", "x"}, {"C", "3"}});
    EXPECT_EQ(lines_of(fields), "A: 1\r\nB: \r\nC: 3\r\n");
    fields.remove("connection");
    EXPECT_EQ(lines_of(fields), "A: 1\r\nB: \r\nC: 3\r\n");
    EXPECT_FALSE(fields.add("D", "a\nb"));
    EXPECT_FALSE(fields.add("E:", "a"));
    EXPECT_TRUE(fields.set("b", "2"));
    EXPECT_EQ(lines_of(fields), "A: 1\r\nb: 2\r\nC: 3\r\n");
    const Fields copy = fields;
    const Fields moved = std::move(fields);
    fields.clear();
    EXPECT_TRUE(fields.add("F", "4"));
    EXPECT_EQ(lines_of(fields), "F: 4\r\n");
    EXPECT_EQ(lines_of(copy), lines_of(moved));
    fields = copy;
    // The text has to grow.
    const std::string value(300, 'v');
    EXPECT_TRUE(fields.add("G", value));
    EXPECT_TRUE(fields.add("H", "5"));
    EXPECT_EQ(lines_of(fields), "A: 1\r\nb: 2\r\nC: 3\r\nG: " + value + "\r\nH: 5\r\n");
    EXPECT_EQ(fields.remove("G"), 1);
    EXPECT_TRUE(fields.add("Transfer-Encoding", "x"));
    EXPECT_EQ(lines_of(fields), "A: 1\r\nb: 2\r\nC: 3\r\nH: 5\r\n");
  }
}

TEST(Writer, refuses_what_would_inject_a_line) {
  const auto error_of = [](const auto& head) {
    Buffer buffer("before");
    const auto result = http::detail::h1::append_head(buffer, head, {});
    EXPECT_EQ(buffer, "before");
    return result.error();
  };
  for (const std::string& target : {""s, "a"s, "/a b"s, "/\r\nX: y"s, "/\n"s, "/\0"s, "/#a"s, "*"s,
                                    "/\xC3\xA9"s, "/%"s, "http://a/"s})
    EXPECT_EQ(error_of(RequestHead{.target = target}), http::ErrorCode::bad_target) << target;
  for (const std::string& authority : {"a b"s, "a\r\nX: y"s, "a/b"s, "u@a"s, "a:x"s, "[::1"s})
    EXPECT_EQ(error_of(RequestHead{.authority = authority}), http::ErrorCode::bad_host)
        << authority;
  for (const std::string& reason : {"a\r\nX: y"s, "a\nb"s, "\0"s, "\x7F"s})
    EXPECT_EQ(error_of(ResponseHead{.reason = reason}), http::ErrorCode::bad_reason) << reason;
  for (const int status : {0, 99, 1000, 65535})
    EXPECT_EQ(error_of(ResponseHead{.status = Status(status)}), http::ErrorCode::bad_status);
}

TEST(Writer, refuses_targets_that_do_not_belong_to_the_method) {
  const auto error_of = [](const RequestHead& head) {
    Buffer buffer;
    return http::detail::h1::append_head(buffer, head, {}).error();
  };
  for (const RequestHead& head :
       {RequestHead{.method = Method::connect},
        RequestHead{.target = "a:1", .authority = "a:1", .form = TargetForm::authority},
        RequestHead{.method = Method::connect,
                    .target = "a:1",
                    .authority = "b:1",
                    .form = TargetForm::authority},
        RequestHead{.method = Method::connect,
                    .target = "a",
                    .authority = "a",
                    .form = TargetForm::authority},
        RequestHead{.target = "*", .form = TargetForm::asterisk},
        RequestHead{.method = Method::options, .form = TargetForm::asterisk},
        RequestHead{.authority = "a", .scheme = "ftp", .form = TargetForm::absolute},
        RequestHead{.authority = "a", .form = TargetForm::absolute}})
    EXPECT_EQ(error_of(head), http::ErrorCode::bad_target) << head.target;
  EXPECT_EQ(error_of(RequestHead{.scheme = "http", .form = TargetForm::absolute}),
            http::ErrorCode::bad_host);
}

TEST(Writer, writes_chunks) {
  Buffer buffer;
  http::detail::h1::append_chunk(buffer, Buffer("hello"));
  http::detail::h1::append_chunk(buffer, Buffer(std::string(26, 'x')));
  EXPECT_TRUE(http::detail::h1::append_last_chunk(buffer, fields_of({{"X", "y"}, {"Z", ""}})));
  EXPECT_EQ(buffer, "5\r\nhello\r\n1a\r\n" + std::string(26, 'x') + "\r\n0\r\nX: y\r\nZ: \r\n\r\n");
  Buffer end;
  EXPECT_TRUE(http::detail::h1::append_last_chunk(end, {}));
  EXPECT_EQ(end, "0\r\n\r\n");
  for (const char* name : {"Content-Length", "host", "Transfer-Encoding"})
    EXPECT_EQ(http::detail::h1::append_last_chunk(end, fields_of({{name, "1"}})).error(),
              http::ErrorCode::trailer_not_allowed);
  EXPECT_EQ(end, "0\r\n\r\n");
}

/// Random heads: what is written is read as the same message.
TEST(Writer, writes_what_the_parser_reads) {
  std::mt19937 random(1);
  const std::string name_chars = "!#$%&'*+-.^_`|~0123456789abcXYZ";
  for (int i = 0; i < 2000; ++i) {
    RequestHead head{.method = random() % 2 == 0 ? Method::put : Method::parse("X-1").value(),
                     .target = "/a" + std::string(random() % 20, 'b') + "?%41",
                     .authority = "example.org"};
    for (std::size_t left = random() % 5; left > 0; --left) {
      std::string name(1 + random() % 10, '-');
      for (char& c : name) c = name_chars[random() % name_chars.size()];
      std::string value(random() % 10, ' ');
      for (char& c : value)
        c = static_cast<char>(random() % 2 == 0 ? 32 + random() % 95 : 128 + random() % 128);
      if (name == "TE") continue;
      ASSERT_TRUE(head.fields.add(name, value));
    }
    const std::string body(1 + random() % 50, 'x');
    const bool is_chunked = random() % 2 == 0;
    Buffer buffer;
    if (is_chunked) {
      ASSERT_TRUE(
          http::detail::h1::append_head(buffer, head, {.framing = {.kind = BodyKind::chunked}}));
      http::detail::h1::append_chunk(buffer, Buffer(body));
      ASSERT_TRUE(http::detail::h1::append_last_chunk(buffer, head.fields));
    } else {
      ASSERT_TRUE(http::detail::h1::append_head(
          buffer, head, {.framing = {.kind = BodyKind::length, .length = body.size()}}));
      buffer.append(body);
    }
    test::MessageReader<http::detail::h1::RequestParser> reader;
    const auto verdict = test::read_in_pieces(buffer.to_string(), {}, reader);
    ASSERT_EQ(verdict.error, StreamError::eof) << verdict.error.message();
    ASSERT_EQ(verdict.messages.size(), 1);
    const test::Message& message = verdict.messages[0];
    EXPECT_EQ(message.start,
              std::string(head.method.name()) + "  example.org " + head.target + " 11");
    EXPECT_EQ(message.body, body);
    EXPECT_EQ(message.trailers, is_chunked ? test::text_of(head.fields) : "");
    EXPECT_EQ(message.fields.substr(0, 18 + test::text_of(head.fields).size()),
              "Host: example.org\n" + test::text_of(head.fields));
  }
}

}  // namespace
}  // namespace tambour::writer_test
