// Messages of HTTP/2: the rules of RFC 9113, section 8, heads that are written and read again, and
// priorities.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "http_message/h2/head_writer.h"
#include "http_message/h2/message.h"
#include "http_message/h2/priority.h"
#include "http_message/support/frames.h"
#include "http_message/support/hpack.h"

namespace tambour::http2_messages_test {
namespace {

using http::RequestHead;
using http::ResponseHead;
using http::Status;
using http::TargetForm;
using http::detail::h2::BodyLength;
using http::detail::h2::HeadOptions;
using http::detail::h2::HpackDecoder;
using http::detail::h2::HpackEncoder;
using http::detail::h2::parse_priority;
using http::detail::h2::Priority;
using http::detail::h2::Violation;
using test::FieldList;

/// Encodes the names as they are: the encoder of the library would convert them to lower case.
std::string plain_block(const FieldList& list) {
  std::string block;
  for (const auto& [name, value] : list) {
    block += '\x40';
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  }
  return block;
}

struct ReadRequest {
  RequestHead head;
  std::string protocol;
  std::optional<Violation> violation;
};

ReadRequest read_request(const FieldList& list, bool allows_protocol = false) {
  HpackDecoder decoder;
  ReadRequest read;
  const http::detail::h2::FieldLimits limits;
  const std::string block = plain_block(list);
  // The second time, all fields are in the dynamic table.
  std::string indexed;
  for (std::size_t i = 0; i < list.size(); ++i)
    indexed += static_cast<char>(0x80 + 62 + list.size() - 1 - i);
  for (const std::string& text : {block, indexed}) {
    http::detail::h2::FieldSection section(limits);
    EXPECT_TRUE(decoder.decode(text, section));
    const std::optional<Violation> before = read.violation;
    read.violation.reset();
    const auto request = make_request(section, {.allows_connect_protocol = allows_protocol},
                                      read.head, read.protocol);
    if (!request) read.violation = request.error();
    if (text == indexed) {
      EXPECT_EQ(read.violation, before);
    }
  }
  return read;
}

const FieldList get = {
    {":method", "GET"}, {":scheme", "https"}, {":authority", "a.example"}, {":path", "/p?q"}};

FieldList with(FieldList list, const FieldList& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}
FieldList without(FieldList list, std::string_view name) {
  std::erase_if(list, [&](const auto& field) { return field.first == name; });
  return list;
}
FieldList changed(FieldList list, std::string_view name, std::string_view value) {
  for (auto& field : list) {
    if (field.first == name) field.second = value;
  }
  return list;
}

void expect_violation(const FieldList& list, Violation violation) {
  const ReadRequest read = read_request(list);
  EXPECT_EQ(read.violation, violation) << testing::PrintToString(list);
}

TEST(Http2Requests, have_the_same_head_as_those_of_http_1) {
  const ReadRequest read = read_request(with(get, {{"accept", "*/*"}, {"te", "Trailers"}}));
  EXPECT_EQ(read.violation, std::nullopt);
  EXPECT_EQ(read.head.method, http::Method::get);
  EXPECT_EQ(read.head.target, "/p?q");
  EXPECT_EQ(read.head.scheme, "https");
  EXPECT_EQ(read.head.authority, "a.example");
  EXPECT_EQ(read.head.form, TargetForm::origin);
  EXPECT_EQ(read.head.version, http::Version::http_2);
  EXPECT_EQ(test::list_of(read.head.fields), (FieldList{{"accept", "*/*"}, {"te", "Trailers"}}));
  EXPECT_EQ(read.head.fields.get("Accept"), "*/*");
}

TEST(Http2Requests, join_cookies) {
  const ReadRequest read = read_request(
      with(get, {{"cookie", "a=1"}, {"accept", "x"}, {"cookie", "b=2"}, {"cookie", "c=3"}}));
  EXPECT_EQ(test::list_of(read.head.fields),
            (FieldList{{"cookie", "a=1; b=2; c=3"}, {"accept", "x"}}));
  EXPECT_EQ(read.head.fields.bytes(), 6U + 13 + 6 + 1);
  EXPECT_EQ(read_request(with(get, {{"cookie", "a=1"}})).head.fields.get("cookie"), "a=1");
}

TEST(Http2Requests, keep_their_target_when_long_cookies_are_joined) {
  std::string block;
  const auto put = [&block](std::string_view name, std::string_view value) {
    block += '\0';  // Not added to the dynamic table.
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  };
  for (const auto& [name, value] : get) put(name, value);
  for (int i = 0; i < 40; ++i) put("cookie", std::string(120, 'c'));
  HpackDecoder decoder;
  const http::detail::h2::FieldLimits limits;
  http::detail::h2::FieldSection section(limits);
  ASSERT_TRUE(decoder.decode(block, section));
  RequestHead head;
  std::string protocol;
  EXPECT_TRUE(make_request(section, {}, head, protocol));
  EXPECT_EQ(head.authority, "a.example");
  EXPECT_EQ(head.target, "/p?q");
  EXPECT_EQ(head.fields.get("cookie")->size(), 40U * 122 - 2);
}

TEST(Http2Requests, take_the_authority_from_the_host) {
  const FieldList host = with(without(get, ":authority"), {{"host", "b.example"}, {"x", "y"}});
  const ReadRequest read = read_request(host);
  EXPECT_EQ(read.violation, std::nullopt);
  EXPECT_EQ(read.head.authority, "b.example");
  EXPECT_EQ(test::list_of(read.head.fields), (FieldList{{"x", "y"}}));
  EXPECT_EQ(read_request(with(get, {{"host", "A.example"}})).violation, std::nullopt);
  expect_violation(with(get, {{"host", "b.example"}}), Violation::different_host);
  expect_violation(with(host, {{"host", "b.example"}}), Violation::different_host);
  expect_violation(without(get, ":authority"), Violation::missing_authority);
}

TEST(Http2Requests, have_targets_of_their_method) {
  const ReadRequest options =
      read_request(changed(changed(get, ":method", "OPTIONS"), ":path", "*"));
  EXPECT_EQ(options.violation, std::nullopt);
  EXPECT_EQ(options.head.form, TargetForm::asterisk);
  const ReadRequest connect =
      read_request({{":method", "CONNECT"}, {":authority", "a.example:443"}});
  EXPECT_EQ(connect.violation, std::nullopt);
  EXPECT_EQ(connect.head.form, TargetForm::authority);
  EXPECT_EQ(connect.head.target, "a.example:443");
  expect_violation({{":method", "CONNECT"}, {":authority", "a.example"}}, Violation::bad_authority);
  expect_violation({{":method", "CONNECT"}}, Violation::missing_pseudo_header);
  expect_violation(changed(get, ":method", "CONNECT"), Violation::unexpected_pseudo_header);
  expect_violation(changed(get, ":path", ""), Violation::bad_path);
  expect_violation(changed(get, ":path", "*"), Violation::bad_path);
  expect_violation(changed(get, ":path", "path"), Violation::bad_path);
  expect_violation(changed(get, ":path", "/a b"), Violation::bad_path);
}

TEST(Http2Requests, may_be_extended_connects) {
  const FieldList connect = with(changed(get, ":method", "CONNECT"), {{":protocol", "websocket"}});
  const ReadRequest read = read_request(connect, true);
  EXPECT_EQ(read.violation, std::nullopt);
  EXPECT_EQ(read.protocol, "websocket");
  EXPECT_EQ(read.head.method, http::Method::connect);
  EXPECT_EQ(read.head.form, TargetForm::origin);
  EXPECT_EQ(read.head.target, "/p?q");
  expect_violation(connect, Violation::unexpected_pseudo_header);
  EXPECT_EQ(read_request(with(get, {{":protocol", "websocket"}}), true).violation,
            Violation::unexpected_pseudo_header);
  EXPECT_EQ(read_request(without(connect, ":path"), true).violation,
            Violation::missing_pseudo_header);
  EXPECT_EQ(read_request(changed(connect, ":path", "*"), true).violation, Violation::bad_path);
}

TEST(Http2Requests, are_rejected_for_pseudo_headers) {
  for (const char* name : {":method", ":scheme", ":path"})
    expect_violation(without(get, name), Violation::missing_pseudo_header);
  for (const auto& field : get)
    expect_violation(with(get, {field}), Violation::repeated_pseudo_header);
  expect_violation(with({{"a", "b"}}, get), Violation::pseudo_header_after_field);
  expect_violation(with(get, {{":other", "x"}}), Violation::unknown_pseudo_header);
  expect_violation(with(get, {{":", "x"}}), Violation::unknown_pseudo_header);
  expect_violation(with(get, {{":status", "200"}}), Violation::unexpected_pseudo_header);
  expect_violation(changed(get, ":method", "G T"), Violation::bad_method);
  expect_violation(changed(get, ":scheme", "1"), Violation::bad_scheme);
  expect_violation(changed(get, ":scheme", ""), Violation::bad_scheme);
  expect_violation(changed(get, ":authority", "user@a.example"), Violation::bad_authority);
  expect_violation(changed(get, ":authority", ""), Violation::missing_authority);
  EXPECT_EQ(read_request(changed(changed(get, ":scheme", "coap"), ":authority", "")).violation,
            std::nullopt);
}

TEST(Http2Requests, are_rejected_for_fields) {
  for (const char* name :
       {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})
    expect_violation(with(get, {{name, "x"}}), Violation::connection_specific_field);
  expect_violation(with(get, {{"te", "gzip"}}), Violation::bad_te);
  expect_violation(with(get, {{"Accept", "x"}}), Violation::upper_case_field_name);
  expect_violation(with(get, {{"x-A", "x"}}), Violation::upper_case_field_name);
  expect_violation(with(get, {{"", "x"}}), Violation::bad_field_name);
  expect_violation(with(get, {{"a b", "x"}}), Violation::bad_field_name);
  expect_violation(with(get, {{"a:", "x"}}), Violation::bad_field_name);
  for (const char* value : {"a\nb", "a\rb", " a", "a ", "\ta", "a\t", "\x7f"})
    expect_violation(with(get, {{"a", value}}), Violation::bad_field_value);
  expect_violation(with(get, {{"a", std::string("a\0b", 3)}}), Violation::bad_field_value);
  expect_violation(changed(get, ":path", "/a\n"), Violation::bad_field_value);
}

std::optional<Violation> read_response(const FieldList& list, bool ends_stream,
                                       ResponseHead& head) {
  HpackDecoder decoder;
  const http::detail::h2::FieldLimits limits;
  http::detail::h2::FieldSection section(limits);
  EXPECT_TRUE(decoder.decode(plain_block(list), section));
  const auto response = make_response(section, ends_stream, head);
  if (response) return std::nullopt;
  return response.error();
}

TEST(Http2Responses, have_a_status) {
  ResponseHead head;
  EXPECT_EQ(read_response({{":status", "404"}, {"a", "b"}}, true, head), std::nullopt);
  EXPECT_EQ(head.status, Status::not_found);
  EXPECT_EQ(head.version, http::Version::http_2);
  EXPECT_EQ(test::list_of(head.fields), (FieldList{{"a", "b"}}));
  EXPECT_EQ(read_response({{":status", "103"}}, false, head), std::nullopt);
  EXPECT_EQ(read_response({{":status", "103"}}, true, head),
            Violation::interim_response_ends_stream);
  EXPECT_EQ(read_response({{":status", "101"}}, false, head), Violation::switching_protocols);
  EXPECT_EQ(read_response({{"a", "b"}}, false, head), Violation::missing_pseudo_header);
  EXPECT_EQ(read_response({{":status", "200"}, {":path", "/"}}, false, head),
            Violation::unexpected_pseudo_header);
  EXPECT_EQ(read_response({{":status", "200"}, {"A", "/"}}, false, head),
            Violation::upper_case_field_name);
  for (const char* status : {"", "20", "2000", "a00", "2a0", "20a", "099"})
    EXPECT_EQ(read_response({{":status", status}}, false, head), Violation::bad_status) << status;
}

TEST(Http2Trailers, have_no_pseudo_headers) {
  const auto read = [](const FieldList& list, http::Fields& trailers) -> std::optional<Violation> {
    HpackDecoder decoder;
    const http::detail::h2::FieldLimits limits;
    http::detail::h2::FieldSection section(limits);
    EXPECT_TRUE(decoder.decode(plain_block(list), section));
    const auto created = make_trailers(section, trailers);
    if (created) return std::nullopt;
    return created.error();
  };
  http::Fields trailers;
  EXPECT_EQ(read({{"checksum", "1"}}, trailers), std::nullopt);
  EXPECT_EQ(test::list_of(trailers), (FieldList{{"checksum", "1"}}));
  EXPECT_EQ(read({{":status", "200"}}, trailers), Violation::pseudo_header_in_trailers);
  EXPECT_EQ(read({{"content-length", "1"}}, trailers), Violation::bad_trailer);
  EXPECT_EQ(read({{"a", " "}}, trailers), Violation::bad_field_value);
  EXPECT_EQ(read({}, trailers), std::nullopt);
  EXPECT_TRUE(trailers.empty());
}

TEST(Http2BodyLength, is_that_of_the_content_length) {
  RequestHead request;
  EXPECT_EQ(BodyLength::of_request(request)->bytes_left(), std::nullopt);
  EXPECT_TRUE(BodyLength::of_request(request)->finish());
  ASSERT_TRUE(request.fields.add("content-length", "5"));
  auto body = *BodyLength::of_request(request);
  EXPECT_TRUE(body.add(3));
  EXPECT_EQ(body.finish().error(), Violation::body_shorter_than_content_length);
  EXPECT_EQ(body.add(3).error(), Violation::body_longer_than_content_length);
  EXPECT_TRUE(body.add(2));
  EXPECT_TRUE(body.finish());
  request.method = http::Method::connect;
  EXPECT_EQ(BodyLength::of_request(request)->bytes_left(), std::nullopt);
  ASSERT_TRUE(request.fields.add("content-length", "5"));
  EXPECT_EQ(BodyLength::of_request(request).error(), Violation::bad_content_length);

  ResponseHead response;
  ASSERT_TRUE(response.fields.add("content-length", "7"));
  EXPECT_EQ(BodyLength::of_response(response, http::Method::get)->bytes_left(), 7U);
  EXPECT_EQ(BodyLength::of_response(response, http::Method::head)->bytes_left(), 0U);
  EXPECT_EQ(BodyLength::of_response(response, http::Method::connect)->bytes_left(), std::nullopt);
  response.status = Status::not_modified;
  EXPECT_EQ(BodyLength::of_response(response, http::Method::get)->bytes_left(), 0U);
  ASSERT_TRUE(response.fields.set("content-length", "x"));
  EXPECT_EQ(BodyLength::of_response(response, http::Method::get).error(),
            Violation::bad_content_length);
  auto unknown = BodyLength();
  EXPECT_TRUE(unknown.add(1));
}

/// The field block of frames that consist of HEADERS and CONTINUATION, without their heads.
FieldList decode_frames(const Buffer& frames, HpackDecoder& decoder, std::string* start = nullptr) {
  auto verdict = test::read_frames(test::raw_frame(4, 0, 0, "") + frames.to_string(),
                                   http::detail::h2::FrameParser::Role::client);
  EXPECT_EQ(verdict.error, "");
  EXPECT_EQ(verdict.frames.size(), 2U);
  const std::string& frame = verdict.frames.back();
  const bool ends = frame.starts_with("headers 1 end ");
  const std::size_t at = std::string_view(ends ? "headers 1 end " : "headers 1 ").size();
  if (start != nullptr) *start = frame.substr(0, at);
  const auto decoded = test::decode(decoder, frame.substr(at));
  EXPECT_TRUE(decoded);
  return decoded.value_or(FieldList());
}

TEST(Http2HeadWriter, writes_requests) {
  RequestHead head;
  head.target = "/path";
  head.authority = "a.example";
  ASSERT_TRUE(head.fields.add("Accept", "*/*"));
  for (const char* name : {"Connection", "Host", "Content-Length", "Upgrade", "TE"})
    ASSERT_TRUE(head.fields.add(name, "1"));
  HpackEncoder encoder;
  HpackDecoder decoder;
  Buffer to;
  ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 1, .content_length = 12}));
  std::string start;
  EXPECT_EQ(decode_frames(to, decoder, &start), (FieldList{{":method", "GET"},
                                                           {":scheme", "https"},
                                                           {":authority", "a.example"},
                                                           {":path", "/path"},
                                                           {"accept", "*/*"},
                                                           {"content-length", "12"}}));
  EXPECT_EQ(start, "headers 1 ");
  head.fields.clear();
  ASSERT_TRUE(head.fields.add("te", "trailers"));
  head.scheme = "http";
  to.clear();
  ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 1, .end_stream = true}));
  EXPECT_EQ(decode_frames(to, decoder, &start), (FieldList{{":method", "GET"},
                                                           {":scheme", "http"},
                                                           {":authority", "a.example"},
                                                           {":path", "/path"},
                                                           {"te", "trailers"}}));
  EXPECT_EQ(start, "headers 1 end ");
}

TEST(Http2HeadWriter, writes_connects) {
  RequestHead head;
  head.method = http::Method::connect;
  head.target = head.authority = "a.example:80";
  head.form = TargetForm::authority;
  HpackEncoder encoder;
  HpackDecoder decoder;
  Buffer to;
  ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 1}));
  EXPECT_EQ(decode_frames(to, decoder),
            (FieldList{{":method", "CONNECT"}, {":authority", "a.example:80"}}));
  const HeadOptions extended{.stream_id = 1, .protocol = "websocket"};
  to.clear();
  EXPECT_EQ(append_head(to, encoder, head, extended).error(), http::ErrorCode::bad_target);
  head.form = TargetForm::origin;
  EXPECT_EQ(append_head(to, encoder, head, {.stream_id = 1}).error(), http::ErrorCode::bad_target);
  head.target = "/chat";
  ASSERT_TRUE(append_head(to, encoder, head, extended));
  EXPECT_EQ(decode_frames(to, decoder), (FieldList{{":method", "CONNECT"},
                                                   {":protocol", "websocket"},
                                                   {":scheme", "https"},
                                                   {":authority", "a.example:80"},
                                                   {":path", "/chat"}}));
  head.method = http::Method::get;
  EXPECT_EQ(append_head(to, encoder, head, extended).error(), http::ErrorCode::bad_target);
  head.authority = "a b";
  EXPECT_EQ(append_head(to, encoder, head, {}).error(), http::ErrorCode::bad_host);
  head.method = http::Method::connect;
  EXPECT_EQ(append_head(to, encoder, head, extended).error(), http::ErrorCode::bad_host);
}

TEST(Http2HeadWriter, writes_responses_and_trailers) {
  ResponseHead head;
  ASSERT_TRUE(head.fields.add("Server", "x"));
  ASSERT_TRUE(head.fields.add("Host", "kept"));
  HpackEncoder encoder;
  HpackDecoder decoder;
  Buffer to;
  ASSERT_TRUE(
      append_head(to, encoder, head, {.stream_id = 1, .content_length = 0, .date = "today"}));
  EXPECT_EQ(decode_frames(to, decoder), (FieldList{{":status", "200"},
                                                   {"date", "today"},
                                                   {"server", "x"},
                                                   {"host", "kept"},
                                                   {"content-length", "0"}}));
  ASSERT_TRUE(head.fields.add("Date", "mine"));
  head.status = Status(299);
  to.clear();
  ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 1, .date = "today"}));
  EXPECT_EQ(decode_frames(to, decoder),
            (FieldList{{":status", "299"}, {"server", "x"}, {"host", "kept"}, {"date", "mine"}}));
  to.clear();
  for (const int code : {101, 99, 1000}) {
    head.status = Status(code);
    EXPECT_EQ(append_head(to, encoder, head, {}).error(), http::ErrorCode::bad_status);
  }
  http::Fields trailers;
  ASSERT_TRUE(trailers.add("Checksum", "1"));
  ASSERT_TRUE(append_trailers(to, encoder, trailers, {.stream_id = 1}));
  std::string start;
  EXPECT_EQ(decode_frames(to, decoder, &start), (FieldList{{"checksum", "1"}}));
  EXPECT_EQ(start, "headers 1 end ");
  ASSERT_TRUE(trailers.add("Host", "x"));
  EXPECT_EQ(append_trailers(to, encoder, trailers, {}).error(),
            http::ErrorCode::trailer_not_allowed);
}

TEST(Http2HeadWriter, splits_large_blocks) {
  for (const std::size_t size : {0U, 1U, 16'000U, 16'384U, 16'385U, 40'000U, 100'000U}) {
    ResponseHead head;
    // Huffman codes do not make it shorter.
    ASSERT_TRUE(head.fields.add("x", std::string(size, '\xE0')));
    ASSERT_TRUE(head.fields.add("y", std::string(size / 2, 'a')));
    HpackEncoder encoder;
    HpackDecoder decoder;
    Buffer to("");
    ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 1, .end_stream = true}));
    std::string start;
    EXPECT_EQ(decode_frames(to, decoder, &start), (FieldList{{":status", "200"},
                                                             {"x", std::string(size, '\xE0')},
                                                             {"y", std::string(size / 2, 'a')}}));
    EXPECT_EQ(start, "headers 1 end ");
  }
}

TEST(Http2Priorities, are_parsed) {
  EXPECT_EQ(parse_priority(""), (Priority{}));
  EXPECT_EQ(parse_priority("u=1, i"), (Priority{1, true}));
  EXPECT_EQ(parse_priority("i,u=7"), (Priority{7, true}));
  EXPECT_EQ(parse_priority("  u=0\t,\ti=?0"), (Priority{0, false}));
  EXPECT_EQ(parse_priority("i;a=b;c, u=2;x=\"y\\\"\""), (Priority{2, true}));
  EXPECT_EQ(parse_priority("u=1, u=2"), (Priority{2, false}));
  EXPECT_EQ(parse_priority("x=(1 \"a\" tok;p=1), y=:YWJj:, z=1.5, *k=*t/x:y, u=4, w=-1, ()=1"),
            (Priority{}));
  EXPECT_EQ(parse_priority("x=(1 \"a\" tok;p=1), y=:YWJj:, z=1.5, *k=*t/x:y, u=4, w=-1, e=()"),
            (Priority{4, false}));
  // Values of another type or range.
  for (const char* text : {"u=8", "u=-1", "u=1.0", "u=a", "u", "u=?1", "i=1", "i=?0", "u=100000"})
    EXPECT_EQ(parse_priority(text), (Priority{})) << text;
  EXPECT_EQ(parse_priority("u=-0"), (Priority{0, false}));
  // No dictionaries.
  for (const char* text : {"u=1,",
                           "u=1 i",
                           "=1",
                           "u=1, U=2",
                           "u=1,,i",
                           "u=",
                           "u=1;",
                           "u=1, i=?2",
                           "u=1, x=\"",
                           "u=1, x=\"\\a\"",
                           "u=1, x=\"\x7f\"",
                           "u=1, x=:a",
                           "u=1, x=(1",
                           "u=1, x=((1))",
                           "u=1, x=(1\"a\")",
                           "u=1, x=1.",
                           "u=1, x=1.2345",
                           "u=1, x=-",
                           "u=1, x=1234567890123456",
                           "u=1, x;y=(1)",
                           "u=1, x={"})
    EXPECT_EQ(parse_priority(text), (Priority{})) << text;
}

/// The head of a random response, of few different ones, so that some are repeated.
struct RandomResponse {
  explicit RandomResponse(std::minstd_rand& random) {
    const auto one_of = [&random](unsigned count) { return random() % count; };
    head.status = one_of(8) == 0 ? Status::not_found : Status::ok;
    if (one_of(6) > 0) or_throw(head.fields.add("Content-Type", one_of(4) > 0 ? "a/b" : "a/c"));
    if (one_of(30) == 0) or_throw(head.fields.add("x-" + std::to_string(one_of(9)), "value"));
    if (one_of(40) == 0) or_throw(head.fields.add("Set-Cookie", "secret"));
    options.stream_id = 1;
    options.date =
        one_of(20) > 0 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "Sun, 06 Nov 1994 08:49:38 GMT";
    if (one_of(5) > 0) options.content_length = one_of(4) > 0 ? 64 : one_of(200);
  }

  ResponseHead head;
  HeadOptions options;
};

TEST(Http2Messages, the_block_of_the_last_response_changes_no_block) {
  std::minstd_rand random(1);
  std::size_t matches = 0;
  for (int connection = 0; connection < 20; ++connection) {
    HpackEncoder plain;
    HpackEncoder remembering;
    http::detail::h2::ResponseBlock last;
    for (int i = 0; i < 1000; ++i) {
      const RandomResponse response(random);
      if (random() % 100 == 0) {
        const auto size = static_cast<std::uint32_t>(random() % 300);
        plain.set_peer_table_size_max(size);
        remembering.set_peer_table_size_max(size);
      }
      if (!last.find(remembering, response.head, response.options).block.empty()) ++matches;
      Buffer expected;
      Buffer written;
      or_throw(append_head(expected, plain, response.head, response.options));
      or_throw(append_head(written, remembering, response.head, response.options, &last));
      ASSERT_EQ(written.to_string(), expected.to_string()) << "response " << i;
    }
  }
  EXPECT_GT(matches, 500U);
}

TEST(Http2Messages, a_repeated_response_has_the_block_of_the_last_one) {
  HpackEncoder encoder;
  http::detail::h2::ResponseBlock last;
  ResponseHead head;
  or_throw(head.fields.add("Content-Type", "text/plain"));
  HeadOptions options{.stream_id = 1, .content_length = 64};
  Buffer to;
  for (int i = 0; i < 3; ++i) or_throw(append_head(to, encoder, head, options, &last));
  EXPECT_TRUE(last.find(encoder, head, options).has_length);
  options.content_length = 65;
  EXPECT_FALSE(last.find(encoder, head, options).block.empty());
  EXPECT_FALSE(last.find(encoder, head, options).has_length);
  head.status = Status::not_found;
  EXPECT_TRUE(last.find(encoder, head, options).block.empty());
}

}  // namespace
}  // namespace tambour::http2_messages_test
