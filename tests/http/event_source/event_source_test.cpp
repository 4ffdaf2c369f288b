// Event streams as a client receives them: the parser, streams of one body, and sources that
// connect again.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/event_source/event_parser.h"
#include "http/support/serving.h"

namespace tambour::event_source_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::EventLimits;
using http::EventReader;
using http::EventSource;
using http::EventSourceOptions;
using http::ReceivedEvent;
using http::Request;
using http::Response;
using http::Status;
using http::detail::event_source::EventParser;
using namespace std::chrono_literals;

std::string text_of(const ReceivedEvent& event) {
  return event.type + "(" + event.data + ")" + event.id + ";";
}

/// All events of a text that arrives in pieces of these sizes, and the error after them.
std::string parse(std::string_view text, std::size_t first, std::size_t others,
                  const EventLimits& limits = {}) {
  EventParser parser(limits);
  std::string events;
  Buffer input;
  for (std::size_t size = first; !text.empty(); size = others) {
    input.append(text.substr(0, size));
    text.remove_prefix(std::min(size, text.size()));
    for (;;) {
      const auto parsed = parser.parse(input);
      if (!parsed) return events + parsed.error().message();
      if (!*parsed) break;
      events += text_of(parser.take_event());
    }
  }
  return events;
}

/// The events, which do not depend on how the text is divided.
std::string parse(std::string_view text, const EventLimits& limits = {}) {
  const std::string whole = parse(text, text.size(), text.size(), limits);
  EXPECT_EQ(parse(text, 1, 1, limits), whole) << text;
  for (std::size_t i = 1; i < text.size(); ++i)
    EXPECT_EQ(parse(text, i, text.size(), limits), whole) << "divided at " << i << ": " << text;
  return whole;
}

TEST(EventParser, the_examples_of_the_standard) {
  EXPECT_EQ(parse("data: YHOO\ndata: +2\ndata: 10\n\n"), "message(YHOO\n+2\n10);");
  EXPECT_EQ(parse(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
                  "data:  third event\n\n"),
            "message(first event)1;message(second event);message( third event);");
  EXPECT_EQ(parse("data\n\ndata\ndata\n\ndata:"), "message();message(\n);");
  EXPECT_EQ(parse("data:test\n\ndata: test\n\n"), "message(test);message(test);");
  EXPECT_EQ(parse("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n"),
            "add(73857293);remove(2153);");
}

TEST(EventParser, ends_of_lines) {
  for (const char* const text : {"data: a\n\ndata: b\n\n", "data: a\r\rdata: b\r\r",
                                 "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\n\rdata: b\n\r\n"})
    EXPECT_EQ(parse(text), "message(a);message(b);") << text;
  EXPECT_EQ(parse("data: a\n\r\ndata: b\n\n"), "message(a);message(b);");
}

TEST(EventParser, the_mark_of_the_byte_order) {
  EXPECT_EQ(parse("\xef\xbb\xbf"
                  "data: a\n\n"),
            "message(a);");
  EXPECT_EQ(parse("\xef\xbb\xbf\xef\xbb\xbf"
                  "data: a\n\ndata: b\n\n"),
            "message(b);");
  EXPECT_EQ(parse("data: a\n\n\xef\xbb\xbf"
                  "data: b\n\n"),
            "message(a);");
}

TEST(EventParser, fields) {
  EXPECT_EQ(parse("Data: a\ndatax: a\n data: a\nfoo\n\n"), "") << "unknown names";
  EXPECT_EQ(parse("event: lost\n\ndata: a\n\n"), "message(a);") << "a type without data is dropped";
  EXPECT_EQ(parse("id: 1\n\ndata: a\n\n"), "message(a)1;") << "an id without data counts";
  EXPECT_EQ(parse(std::string("id: 1\nid: 2\0\ndata: a\n\n", 22)), "message(a)1;") << "a null byte";
  EXPECT_EQ(parse("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"),
            "message(a)1;message(b)1;message(c);");
  EXPECT_EQ(parse("data: a:b\n\n"), "message(a:b);");
  EXPECT_EQ(parse("data: a\nid: 7"), "") << "the end of the stream completes nothing";
}

TEST(EventParser, retry) {
  const auto retry_of = [](std::string_view text) {
    EventParser parser({});
    Buffer input(text);
    EXPECT_TRUE(parser.parse(input));
    return parser.retry();
  };
  EXPECT_EQ(retry_of("retry: 1500\n"), 1500ms);
  EXPECT_EQ(retry_of("retry: 0\n"), 0ms);
  EXPECT_EQ(retry_of("retry: 99999999999999999999\n"), 4294967295ms);
  for (const char* const text :
       {"retry: -1\n", "retry: 1s\n", "retry:\n", "retry: 1 \n", "data: 1\n"})
    EXPECT_EQ(retry_of(text), std::nullopt) << text;
}

TEST(EventParser, limits) {
  const std::string too_long = make_error_code(http::ErrorCode::event_line_too_long).message();
  const std::string too_large = make_error_code(http::ErrorCode::event_too_large).message();
  const EventLimits limits{.line_bytes_max = 10, .data_bytes_max = 7, .id_bytes_max = 3};
  EXPECT_EQ(parse("data: 1234\n\n", limits), "message(1234);");
  EXPECT_EQ(parse("data: 12345\n\n", limits), too_long);
  EXPECT_EQ(parse(":23456789012345\ndata: 1\n\n", limits), too_long) << "comments, too";
  EXPECT_EQ(parse("data: 1234\ndata: 67\n\n", limits), "message(1234\n67);");
  EXPECT_EQ(parse("data: 1234\ndata: 678\n\n", limits), too_large);
  EXPECT_EQ(parse("data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n", limits), too_large)
      << "empty lines count";
  EXPECT_EQ(parse("id: 123\ndata: 1\n\nid: 1234\n\n", limits), "message(1)123;" + too_large);
}

/// With virtual time.
class EventSources : public test::Serving {
 public:
  std::string url() const { return "http://" + server_->endpoint().to_string() + "/"; }

  /// Answers the nth request with the nth of these: a status, a type, and a text of which
  /// what follows a "|" is sent a second later.
  struct Answer {
    std::string text{};
    Status status = Status::ok;
    std::string type = "text/event-stream; charset=utf-8";
    bool stays_open = false;
  };
  void serve_answers(std::vector<Answer> answers) {
    answers_ = std::move(answers);
    serve([this](Request& request, Response& response) { return answer(request, response); });
  }
  Task<> answer(Request& request, Response& response) {
    const Answer answer = answers_.at(std::min(requests_.size(), answers_.size() - 1));
    requests_.push_back(request.headers().joined("Accept") + "|" +
                        std::string(request.headers().get("Last-Event-ID").value_or("none")));
    times_.push_back(server_loop_.now());
    or_throw(response.headers().set("Content-Type", answer.type));
    response.set_status(answer.status);
    if (answer.status == Status::no_content) co_return;
    const auto written = co_await response.write(answer.text);
    if (written && answer.stays_open)
      static_cast<void>(co_await request.while_connected(wait_long()));
  }
  static Task<> wait_long() { static_cast<void>(co_await sleep_for(24h)); }

  /// The next `count` events, or what ends them.
  static Task<std::string> receive(EventSource& source, int count) {
    std::string events;
    for (; count > 0; --count) {
      const auto event = co_await source.next();
      if (!event) co_return events + event.error().message();
      if (!*event) co_return events + "end";
      events += text_of(**event);
    }
    co_return events;
  }
  /// The time between two requests.
  Duration delay(std::size_t after) const { return times_.at(after + 1) - times_.at(after); }

  static EventSourceOptions exact() {
    EventSourceOptions options;
    options.retry.jitter = 0;
    return options;
  }

  std::vector<Answer> answers_;
  std::vector<std::string> requests_;
  std::vector<TimePoint> times_;
  Client client_{loop_};
};

TEST_F(EventSources, connects_again_with_the_last_id) {
  serve_answers({{.text = "data: a\nid: 1\n\nid: 2\n\ndata: lost"},
                 {.text = "data: b\n\n"},
                 {.status = Status::no_content}});
  EventSource source(client_, url(), exact());
  EXPECT_EQ(run(receive(source, 9)), "message(a)1;message(b)2;end");
  EXPECT_EQ(requests_, (std::vector<std::string>{"text/event-stream|none", "text/event-stream|2",
                                                 "text/event-stream|2"}));
  EXPECT_EQ(source.last_event_id(), "2");
  EXPECT_EQ(source.connections(), 2U);
  EXPECT_EQ(source.status(), Status::no_content);
  EXPECT_EQ(run(receive(source, 1)), "end") << "no further request";
  EXPECT_EQ(requests_.size(), 3U);
  EXPECT_GE(delay(0), 3s);
  EXPECT_LT(delay(0), 4s);
}

TEST_F(EventSources, an_id_that_the_program_has_stored) {
  serve_answers({{.text = "id\ndata: a\n\n"}, {.status = Status::no_content}});
  EventSourceOptions options = exact();
  options.last_event_id = "41";
  or_throw(options.fields.set("X-Key", "k"));
  EventSource source(client_, url(), options);
  EXPECT_EQ(run(receive(source, 2)), "message(a);end");
  EXPECT_EQ(requests_, (std::vector<std::string>{"text/event-stream|41", "text/event-stream|none"}))
      << "the server has cleared it";
}

TEST_F(EventSources, delays) {
  const Answer busy{.status = Status::service_unavailable, .type = "text/html"};
  serve_answers({{.text = "retry: 500\ndata: a\n\n"},
                 busy,
                 busy,
                 {.text = "retry: 99999999\ndata: b\n\n"},
                 {.status = Status::no_content}});
  EventSource source(client_, url(), exact());
  EXPECT_EQ(run(receive(source, 9)), "message(a);message(b);end");
  const std::vector<Duration> expected{500ms, 1s, 2s, 60s};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_GE(delay(i), expected[i]) << i;
    EXPECT_LT(delay(i), expected[i] + 400ms) << i;
  }
}

TEST_F(EventSources, attempts_are_limited) {
  serve_answers({{.status = Status::bad_gateway}});
  EventSourceOptions options = exact();
  options.retry.attempts_max = 3;
  EventSource source(client_, url(), options);
  EXPECT_EQ(run(receive(source, 1)), make_error_code(http::ErrorCode::unexpected_status).message());
  EXPECT_EQ(requests_.size(), 3U);
  EXPECT_EQ(source.status(), Status::bad_gateway);
  EXPECT_EQ(run(receive(source, 1)), make_error_code(http::ErrorCode::unexpected_status).message());
  EXPECT_EQ(requests_.size(), 6U) << "a further call tries again";
}

TEST_F(EventSources, responses_that_are_no_streams) {
  serve_answers({{.text = "data: a\n\n", .type = "text/plain"},
                 {.text = "no", .status = Status::forbidden},
                 {.text = "data: a\n\n", .type = "Text/Event-Stream"}});
  EventSource source(client_, url(), exact());
  EXPECT_EQ(run(receive(source, 1)),
            make_error_code(http::ErrorCode::not_an_event_stream).message());
  EXPECT_EQ(run(receive(source, 1)), make_error_code(http::ErrorCode::unexpected_status).message());
  EXPECT_EQ(source.status(), Status::forbidden);
  EXPECT_EQ(run(receive(source, 1)), "message(a);");
  EXPECT_EQ(requests_.size(), 3U) << "none is repeated";
}

TEST_F(EventSources, limits_end_the_stream) {
  serve_answers({{.text = "data: a\n\ndata: 0123456789\n\n", .stays_open = true}});
  EventSourceOptions options = exact();
  options.limits.data_bytes_max = 9;
  EventSource source(client_, url(), options);
  EXPECT_EQ(run(receive(source, 9)),
            "message(a);" + make_error_code(http::ErrorCode::event_too_large).message());
  EXPECT_EQ(client_.connections(), 0U);
}

TEST_F(EventSources, silent_streams) {
  serve_answers({{.text = "data: a\n\n", .stays_open = true}, {.status = Status::no_content}});
  EventSourceOptions options = exact();
  options.idle_timeout = 1min;
  EventSource source(client_, url(), options);
  EXPECT_EQ(run(receive(source, 2)), "message(a);end");
  EXPECT_GE(delay(0), 63s);
  EXPECT_LT(delay(0), 65s);
}

TEST_F(EventSources, the_time_limits_of_the_client_do_not_end_streams) {
  ClientOptions options;
  options.total_timeout = 1min;
  options.read_timeout = 10s;
  options.body_rate_min = 1'000'000;
  Client client(loop_, options);
  serve(http::serve_events(
      [](http::EventStream& events) -> Task<> {
        for (int i = 0; i < 3; ++i) {
          static_cast<void>(co_await sleep_for(100s));
          http::ServerEvent event;
          event.data = "late";
          const auto sent = co_await events.send(event);
          if (!sent) co_return;
        }
      },
      {.keep_alive = Duration::zero()}));
  EventSource source(client, url(), exact());
  EXPECT_EQ(run(receive(source, 3)), "message(late);message(late);message(late);");
  EXPECT_EQ(source.connections(), 1U);
}

TEST_F(EventSources, cancelled_waits_lose_nothing) {
  serve([this](Request& request, Response& response) -> Task<> {
    requests_.push_back(std::string(request.path()));
    or_throw(response.headers().set("Content-Type", "text/event-stream"));
    for (const char* const text : {"data: a\n\nda", "ta: b\n\n", "data: c\n\n"}) {
      if (!co_await response.write(text)) co_return;
      static_cast<void>(co_await sleep_for(30s));
    }
  });
  std::optional<EventSource> source(std::in_place, client_, url(), exact());
  EXPECT_EQ(run(receive(*source, 1)), "message(a);");
  // `b` arrives between two waits, and `c` afterwards.
  EXPECT_EQ(run([](EventSource& from) -> Task<std::string> {
              const auto event = co_await timeout(10s, from.next());
              const auto first = co_await select(from.next(), sleep_for(10s));
              static_cast<void>(co_await sleep_for(1min));
              co_return (event ? "event" : event.error().message()) + std::to_string(first.index());
            }(*source)),
            system_error(ETIMEDOUT).message() + "1");
  EXPECT_EQ(run(receive(*source, 1)), "message(b);");
  // A task that is destroyed while it waits.
  {
    TaskScope scope(loop_);
    scope.spawn([&]() -> Task<> { static_cast<void>(co_await source->next()); });
  }
  EXPECT_EQ(run(receive(*source, 1)), "message(c);");
  EXPECT_EQ(source->connections(), 1U);
  EXPECT_EQ(client_.connections(), 1U);
  source.reset();
  EXPECT_EQ(client_.connections(), 0U);
}

/// The id is that of the last event that next() has returned, although another one has arrived.
TEST_F(EventSources, the_id_of_an_event_ahead) {
  serve_answers({{.text = "data: a\nid: 1\n\ndata: b\nid: 2\n\n", .stays_open = true}});
  EventSource source(client_, url(), exact());
  EXPECT_EQ(run(receive(source, 1)), "message(a)1;");
  run([]() -> Task<> { static_cast<void>(co_await sleep_for(1s)); }());
  EXPECT_EQ(source.last_event_id(), "1");
  EXPECT_EQ(run(receive(source, 1)), "message(b)2;");
  EXPECT_EQ(source.last_event_id(), "2");
}

TEST_F(EventSources, a_delay_of_zero_is_no_busy_loop) {
  serve_answers({{.text = "retry: 0\ndata: a\n\n"}, {.text = ""}, {.status = Status::no_content}});
  EventSource source(client_, url(), exact());
  EXPECT_EQ(run(receive(source, 2)), "message(a);end");
  EXPECT_GE(delay(0), 100ms);
  EXPECT_GE(delay(1), 100ms);
  EXPECT_LT(delay(0), 1s);
}

TEST_F(EventSources, a_server_that_is_not_there_yet) {
  const sockaddr_in at = host_.endpoint(80);
  const std::string to =
      Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value().to_string();
  simulation_.after(10s, [this] { serve_answers({{.text = "data: a\n\n"}}); });
  EventSource source(client_, "http://" + to, exact());
  EXPECT_EQ(run(receive(source, 1)), "message(a);");
  EventSource wrong(client_, "ftp://host/", exact());
  EXPECT_EQ(run(receive(wrong, 1)), make_error_code(http::ErrorCode::url_bad_scheme).message());
}

TEST_F(EventSources, events_in_the_response_to_a_post) {
  serve([](Request& request, Response& response) -> Task<> {
    const auto body = co_await request.body().read_all();
    if (!body) co_return;
    or_throw(response.headers().set("Content-Type", "text/event-stream"));
    response.send("data: " + body->to_string() + "\n\ndata: [DONE]\n\ndata: cut");
  });
  EXPECT_EQ(run([](Client& client, std::string to) -> Task<std::string> {
              auto response = co_await client.post(to, "text/plain", Buffer("question"));
              if (!response) co_return "no response";
              EventReader reader(response->body());
              std::string events;
              for (;;) {
                const auto event = co_await reader.next();
                if (!event) co_return event.error().message();
                if (!*event) co_return events + "end";
                events += text_of(**event);
              }
            }(client_, url())),
            "message(question);message([DONE]);end");
}

}  // namespace
}  // namespace tambour::event_source_test
