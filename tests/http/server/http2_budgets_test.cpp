// What a client of HTTP/2 may cost a server: each budget of Http2Options.
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/server/http2_client.h"
#include "http/support/serving.h"
#include "http_message/h2/frame.h"

namespace tambour::http2_budgets_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::Http2Client;
using ErrorCode = Http2Client::ErrorCode;
using SettingId = Http2Client::SettingId;

class Http2Budgets : public test::Serving {
 public:
  template <class Prepare>
  std::string talk(Prepare prepare, Duration patience = 500ms,
                   std::initializer_list<Http2Client::Setting> settings = {}) {
    return run([](Http2Budgets& test, Prepare& queue, Duration silence,
                  std::initializer_list<Http2Client::Setting> chosen) -> Task<std::string> {
      TcpStream stream = co_await test.open();
      Http2Client client(std::move(stream), chosen);
      queue(client);
      co_return co_await client.exchange(silence);
    }(*this, prepare, patience, settings));
  }

  [[nodiscard]] http::Http2Stats stats() const { return server_->http_2_stats(); }

  static std::string last_line(const std::string& lines, int from_end = 2) {
    std::vector<std::string> all;
    std::size_t begin = 0;
    for (std::size_t end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
      all.push_back(lines.substr(begin, end - begin));
    const auto index = static_cast<int>(all.size()) - from_end;
    return index < 0 ? "" : all[static_cast<std::size_t>(index)];
  }
};

void hello(Request&, Response& response) { response.send("hello"); }

Task<> wait_long(Request&, Response& response) {
  static_cast<void>(co_await sleep_for(100ms));
  response.send("hello");
}

TEST_F(Http2Budgets, streams_above_the_maximum_are_refused) {
  http::ServerOptions options;
  options.http_2.streams_max = 2;
  serve(wait_long, options);
  EXPECT_EQ(talk([](Http2Client& client) {
              for (std::uint32_t id = 1; id < 7; id += 2) client.get(id, "/");
            }),
            "RST_STREAM 5 REFUSED_STREAM\nHEADERS 1 200 content-length=5\nDATA 1 hello end\n"
            "HEADERS 3 200 content-length=5\nDATA 3 hello end\n");
  EXPECT_EQ(stats().refused_streams, 1);
  EXPECT_EQ(stats().connections, 1);
}

/// The client, which counts streams, may send as many requests as it has received responses.
TEST_F(Http2Budgets, a_handler_that_has_responded_holds_no_stream) {
  http::ServerOptions options;
  options.http_2.streams_max = 2;
  serve(
      [](Request&, Response& response) -> Task<> {
        response.send("x");
        static_cast<void>(co_await sleep_for(1s));
      },
      options);
  EXPECT_EQ(run([](Http2Budgets& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              std::string lines;
              for (std::uint32_t id = 1; id < 11; id += 2) {
                client.get(id, "/");
                lines += co_await client.exchange(10ms);
              }
              co_return lines;
            }(*this)),
            "HEADERS 1 200 content-length=1\nDATA 1 x end\n"
            "HEADERS 3 200 content-length=1\nDATA 3 x end\n"
            "HEADERS 5 200 content-length=1\nDATA 5 x end\n"
            "HEADERS 7 200 content-length=1\nDATA 7 x end\n"
            "RST_STREAM 9 REFUSED_STREAM\n");
  EXPECT_EQ(stats().refused_streams, 1);
}

/// CVE-2023-44487: the handlers of streams that were reset still count.
TEST_F(Http2Budgets, handlers_of_streams_that_were_reset_count_as_streams) {
  http::ServerOptions options;
  options.http_2.streams_max = 2;
  int running = 0;
  int running_max = 0;
  serve(
      [&](Request&, Response&) -> Task<> {
        running_max = std::max(running_max, ++running);
        static_cast<void>(co_await sleep_for(1s));
        --running;
      },
      options);
  talk([](Http2Client& client) {
    for (std::uint32_t id = 1; id < 101; id += 2) {
      client.get(id, "/");
      client.reset(id, ErrorCode::cancel);
    }
  });
  EXPECT_EQ(running_max, 2);
}

TEST_F(Http2Budgets, resets_delay_the_connection_and_then_end_it) {
  http::ServerOptions options;
  options.http_2.resets_max = 10;
  serve(wait_long, options);
  const std::string lines = talk(
      [](Http2Client& client) {
        for (std::uint32_t id = 1; id < 81; id += 2) {
          client.get(id, "/");
          client.reset(id, ErrorCode::cancel);
        }
      },
      5s);
  EXPECT_TRUE(last_line(lines).ends_with(" ENHANCE_YOUR_CALM")) << lines;
  EXPECT_EQ(stats().reset_floods, 1);
  EXPECT_GT(stats().delayed_reads, 0);
}

/// CVE-2025-8671: the server resets the streams because of what the client does.
TEST_F(Http2Budgets, resets_that_the_client_provokes_count_too) {
  http::ServerOptions options;
  options.http_2.resets_max = 10;
  serve(wait_long, options);
  const std::string lines = talk(
      [](Http2Client& client) {
        for (std::uint32_t id = 1; id < 81; id += 2) {
          client.get(id, "/");
          client.grow_window(id, http::detail::h2::window_size_max);
        }
      },
      5s);
  EXPECT_TRUE(last_line(lines).ends_with(" ENHANCE_YOUR_CALM")) << lines;
}

TEST_F(Http2Budgets, complete_requests_make_up_for_resets) {
  http::ServerOptions options;
  options.http_2.resets_max = 2;
  serve(
      [](Request& request, Response& response) -> Task<> {
        if (request.path() == "/slow") static_cast<void>(co_await sleep_for(1ms));
        response.send("x");
      },
      options);
  EXPECT_EQ(run([](Http2Budgets& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              std::string lines;
              for (std::uint32_t id = 1; id < 200; id += 4) {
                client.get(id, "/slow");
                client.reset(id, ErrorCode::cancel);
                client.get(id + 2, "/");
                lines = co_await client.exchange(5ms);
              }
              co_return lines;
            }(*this)),
            "HEADERS 199 200 content-length=1\nDATA 199 x end\n");
}

TEST_F(Http2Budgets, frames_that_advance_nothing_end_the_connection) {
  const auto ending_after = [this](auto append) {
    http::ServerOptions options;
    options.http_2.idle_frames_max = 100;
    server_.reset();
    serve(hello, options);
    const std::string lines = talk([&append](Http2Client& client) {
      client.request(1, http::Method::post, "/", false);
      for (int i = 0; i < 130; ++i) append(client.out());
    });
    EXPECT_EQ(stats().idle_frame_floods, 1);
    return last_line(lines);
  };
  using namespace http::detail::h2;
  const std::string calm = "GOAWAY 1 ENHANCE_YOUR_CALM";
  EXPECT_EQ(ending_after([](Buffer& out) { append_ping(out, "12345678", false); }), calm);
  EXPECT_EQ(ending_after([](Buffer& out) { append_settings(out, {}); }), calm);
  EXPECT_EQ(ending_after([](Buffer& out) { append_window_update(out, 0, 1); }), calm);
  EXPECT_EQ(ending_after([](Buffer& out) { append_data(out, 1, Buffer(), false); }), calm);
  EXPECT_EQ(ending_after([](Buffer& out) { append_priority_update(out, 1, "u=1"); }), calm);
  EXPECT_EQ(ending_after([](Buffer& out) { append_goaway(out, 0, ErrorCode::no_error, ""); }),
            calm);
  EXPECT_EQ(
      ending_after([](Buffer& out) { out.append(std::string_view("\0\0\0\x77\0\0\0\0\0", 9)); }),
      calm);
}

/// A server that has refused a stream may still receive frames of it, but not without end.
TEST_F(Http2Budgets, headers_of_refused_streams_end_the_connection) {
  http::ServerOptions options;
  options.http_2.streams_max = 1;
  options.http_2.idle_frames_max = 100;
  serve(wait_long, options);
  const auto lines_after = [this](int repeated) {
    return talk([repeated](Http2Client& client) {
      client.get(1, "/");
      client.request(3, http::Method::post, "/", false);
      for (int i = 0; i < repeated; ++i) client.trailers(3, {{"a", "b"}});
    });
  };
  EXPECT_EQ(lines_after(50),
            "RST_STREAM 3 REFUSED_STREAM\nHEADERS 1 200 content-length=5\nDATA 1 hello end\n");
  EXPECT_EQ(stats().idle_frame_floods, 0);
  EXPECT_EQ(last_line(lines_after(130)), "GOAWAY 3 ENHANCE_YOUR_CALM");
  EXPECT_EQ(stats().idle_frame_floods, 1);
}

TEST_F(Http2Budgets, a_field_block_has_few_continuations) {
  serve(hello);
  const std::string lines = talk([](Http2Client& client) {
    using namespace http::detail::h2;
    std::byte head[frame_head_size];
    write_frame_head(head, 0, FrameType::headers, flag::end_stream, 1);
    client.out().append(std::span<const std::byte>(head));
    write_frame_head(head, 0, FrameType::continuation, 0, 1);
    for (int i = 0; i < 10; ++i) client.out().append(std::span<const std::byte>(head));
  });
  EXPECT_EQ(lines, "GOAWAY 0 ENHANCE_YOUR_CALM\nclosed\n");
  EXPECT_EQ(stats().oversized_blocks, 1);
}

TEST_F(Http2Budgets, too_many_fields_are_answered_with_431) {
  serve(hello);
  EXPECT_TRUE(talk([](Http2Client& client) {
                http::RequestHead head{.authority = "a"};
                for (int i = 0; i < 200; ++i) or_throw(head.fields.add("x-a", std::to_string(i)));
                http::detail::h2::HpackEncoder encoder;
                or_throw(http::detail::h2::append_head(client.out(), encoder, head,
                                                       {.stream_id = 1, .end_stream = true}));
              }).starts_with("HEADERS 1 431 "));
  EXPECT_EQ(stats().oversized_heads, 1);
}

TEST_F(Http2Budgets, far_too_many_fields_end_the_connection) {
  serve(hello);
  EXPECT_EQ(talk([](Http2Client& client) {
              http::RequestHead head{.authority = "a"};
              for (int i = 0; i < 1100; ++i) or_throw(head.fields.add("a", "b"));
              http::detail::h2::HpackEncoder encoder;
              or_throw(http::detail::h2::append_head(client.out(), encoder, head,
                                                     {.stream_id = 1, .end_stream = true}));
            }),
            "GOAWAY 0 ENHANCE_YOUR_CALM\nclosed\n");
  EXPECT_EQ(stats().oversized_blocks, 1);
}

/// CVE-2026-49975: windows that are opened by one byte at a time.
TEST_F(Http2Budgets, a_client_that_accepts_single_bytes_loses_its_stream) {
  serve([](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
  const std::string lines = run([](Http2Budgets& test) -> Task<std::string> {
    TcpStream stream = co_await test.open();
    Http2Client client(std::move(stream), {{SettingId::initial_window_size, 0}});
    client.get(1, "/");
    std::string all;
    for (int second = 0; second < 120 && all.find("RST_STREAM") == std::string::npos; ++second) {
      client.grow_window(1, 1);
      all += co_await client.exchange(1s);
    }
    co_return all;
  }(*this));
  EXPECT_EQ(last_line(lines, 1), "RST_STREAM 1 CANCEL");
  EXPECT_EQ(stats().stalled_streams, 1);
}

TEST_F(Http2Budgets, a_closed_window_of_the_connection_ends_it) {
  serve([](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
  const std::string lines = talk([](Http2Client& client) { client.get(1, "/"); }, 120s,
                                 {{SettingId::initial_window_size, 1'000'000}});
  EXPECT_EQ(last_line(lines), "GOAWAY 1 ENHANCE_YOUR_CALM") << lines;
  EXPECT_EQ(stats().stalled_connections, 1);
}

TEST_F(Http2Budgets, a_client_that_reads_no_answers_is_not_read_from) {
  http::ServerOptions options;
  options.http_2.idle_frames_max = 1'000'000'000;
  serve(hello, options);
  run([](Http2Budgets& test) -> Task<> {
    Http2Client client(co_await test.open());
    Buffer pings;
    for (int i = 0; i < 10'000; ++i) http::detail::h2::append_ping(pings, "12345678", false);
    client.out().append(pings.slice());
    // The answers fill the buffers of both sockets, then those of the requests fill up.
    bool is_blocked = false;
    for (int i = 0; i < 1000 && !is_blocked; ++i) {
      client.out().append(pings.slice());
      const auto sent = co_await timeout(1s, client.stream().write(client.out()));
      is_blocked = !sent;
    }
    EXPECT_TRUE(is_blocked);
  }(*this));
  EXPECT_GT(stats().unread_answers, 0);
}

/// CVE-2026-49975 with many streams: handlers start only while little is waiting for the client.
TEST_F(Http2Budgets, responses_that_are_not_received_postpone_handlers) {
  http::ServerOptions options;
  options.http_2.unsent_bytes_max = 300'000;
  int handlers = 0;
  serve(
      [&handlers](Request&, Response& response) {
        ++handlers;
        response.send(std::string(100'000, 'x'));
      },
      options);
  run([](Http2Budgets& test, int& started) -> Task<> {
    TcpStream stream = co_await test.open();
    Http2Client client(std::move(stream), {{SettingId::initial_window_size, 0}});
    for (std::uint32_t id = 1; id < 101; id += 2) client.get(id, "/");
    co_await client.exchange(100ms);
    EXPECT_EQ(started, 4);
    EXPECT_EQ(test.stats().postponed_handlers, 46);
    EXPECT_GE(test.stats().buffered_bytes, 300'000);
    EXPECT_LE(test.stats().buffered_bytes, 500'000);
    // One that is more urgent than all that have started is served, another one of its urgency not.
    client.get(101, "/", {{"priority", "u=1"}});
    client.get(103, "/", {{"priority", "u=1"}});
    co_await client.exchange(100ms);
    EXPECT_EQ(started, 5);
    EXPECT_EQ(test.stats().postponed_handlers, 47);
    client.reset(101, ErrorCode::cancel);
    client.reset(103, ErrorCode::cancel);
    co_await client.exchange(100ms);
    // Another client is served meanwhile.
    Http2Client other(co_await test.open());
    other.get(1, "/");
    const std::string got = co_await other.exchange(100ms);
    EXPECT_TRUE(got.starts_with("HEADERS 1 200 content-length=100000\nDATA 1 ")) << got;
    // A postponed request that the client cancels starts no handler.
    client.reset(99, ErrorCode::cancel);
    client.grow_window(0, 10'000'000);
    for (std::uint32_t id = 1; id < 99; id += 2) client.grow_window(id, 200'000);
    const std::string rest = co_await client.exchange(1s);
    EXPECT_NE(rest.find("DATA 97 "), std::string::npos) << rest;
    EXPECT_EQ(started, 51);
  }(*this, handlers));
  EXPECT_LT(stats().buffered_bytes, 150'000);  // Two connections, each in steps of 64 KiB.
}

/// Holds as many responses as it may on one connection after the other, until `done`.
Task<> hold_responses(Http2Budgets& test, const bool& done) {
  while (!done) {
    TcpStream stream = co_await test.open();
    Http2Client client(std::move(stream), {{SettingId::initial_window_size, 0}});
    std::uint32_t next = 1;
    for (; next < 200; next += 2) client.get(next, "/");
    while (!done) {
      const std::string lines = co_await client.exchange(30s);
      if (lines.find("closed") != std::string::npos) break;
      for (std::uint32_t id = 1; id < next; id += 8) client.grow_window(id, 1);
      for (std::size_t at = 0; (at = lines.find("RST_STREAM", at)) != std::string::npos; ++at) {
        client.get(next, "/");
        next += 2;
      }
    }
  }
}

constexpr std::uint64_t held_response = 100'000;
constexpr int holders = 2;

/// Sends a request every minute, and returns the maximum of what the server buffers.
Task<std::uint64_t> ask_for_50_minutes(Http2Budgets& test) {
  std::uint64_t bytes_max = 0;
  for (int minute = 0; minute < 50; ++minute) {
    static_cast<void>(co_await sleep_for(1min));
    Http2Client other(co_await test.open());
    other.get(1, "/small");
    const std::string got = co_await other.exchange(100ms);
    EXPECT_EQ(got, "HEADERS 1 200 content-length=5\nDATA 1 xxxxx end\n");
    bytes_max = std::max(bytes_max, test.stats().buffered_bytes);
  }
  co_return bytes_max;
}

TEST_F(Http2Budgets, clients_that_hold_responses_for_hours_occupy_little) {
  serve([](Request& request, Response& response) {
    response.send(std::string(request.path() == "/" ? held_response : 5, 'x'));
  });
  bool done = false;
  TaskScope holding(loop_);
  for (int i = 0; i < holders; ++i) holding.spawn(hold_responses(*this, done));
  constexpr std::uint64_t mebibyte = 1 << 20;
  constexpr std::uint64_t step = 65'536;  // What a connection buffers is counted in steps.
  for (int part = 0; part < 4; ++part) {
    const std::uint64_t bytes_max = run(ask_for_50_minutes(*this));
    EXPECT_LE(bytes_max, holders * (mebibyte + held_response + step));
    EXPECT_GE(bytes_max, mebibyte) << "nothing is held";
  }
  done = true;
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(holding));
  EXPECT_GT(stats().stalled_streams + stats().stalled_connections, 100);
}

TEST_F(Http2Budgets, postponed_requests_end_with_their_connection) {
  http::ServerOptions options;
  options.http_2.unsent_bytes_max = 1;
  serve([](Request&, Response& response) { response.send(std::string(100'000, 'x')); }, options);
  run([](Http2Budgets& test) -> Task<> {
    TcpStream stream = co_await test.open();
    Http2Client client(std::move(stream), {{SettingId::initial_window_size, 0}});
    for (std::uint32_t id = 1; id < 11; id += 2) client.get(id, "/");
    co_await client.exchange(100ms);
    EXPECT_EQ(test.server_->connections(), 1);
  }(*this));
  run([](Http2Budgets& test) -> Task<> {
    static_cast<void>(co_await sleep_for(200s));
    EXPECT_EQ(test.server_->connections(), 0);
  }(*this));
  EXPECT_EQ(stats().postponed_handlers, 3);
  EXPECT_EQ(stats().buffered_bytes, 0);
}

TEST_F(Http2Budgets, a_server_with_little_memory_left_refuses_streams_of_those_that_use_it) {
  http::ServerOptions options;
  options.http_2.server_bytes_max = 200'000;
  serve([](Request&, Response& response) { response.send(std::string(100'000, 'x')); }, options);
  run([](Http2Budgets& test) -> Task<> {
    TcpStream stream = co_await test.open();
    Http2Client client(std::move(stream), {{SettingId::initial_window_size, 0}});
    for (std::uint32_t id = 1; id < 21; id += 2) client.get(id, "/");
    const std::string got = co_await client.exchange(100ms);
    EXPECT_NE(got.find("RST_STREAM 7 REFUSED_STREAM"), std::string::npos) << got;
    EXPECT_EQ(test.stats().overloaded_streams, 7);
    Http2Client other(co_await test.open());
    other.get(1, "/");
    const std::string served = co_await other.exchange(100ms);
    EXPECT_TRUE(served.starts_with("HEADERS 1 200 ")) << served;
  }(*this));
}

/// What a codec takes is much more than what it has compressed, or has received.
TEST_F(Http2Budgets, codecs_count_as_memory_of_the_server) {
  http::ServerOptions options;
  options.http_2.server_bytes_max = 2'000'000;
  http::Router router;
  router.use(http::compress());
  router.use(http::decode_requests());
  router.any("/", [](Request& request, Response& response) -> Task<> {
    if (request.method() == http::Method::post) {
      static_cast<void>(co_await request.body().read_all());
      co_return;
    }
    static_cast<void>(response.headers().set("Content-Type", "text/plain"));
    static_cast<void>(co_await response.write(std::string(100'000, 'x')));
    response.end();
  });
  serve(std::move(router).handler(), options);
  const auto accepted_of = [this](const std::function<void(Http2Client&, std::uint32_t)>& add) {
    return run([](Http2Budgets& test,
                  const std::function<void(Http2Client&, std::uint32_t)>& append) -> Task<int> {
      TcpStream stream = co_await test.open();
      Http2Client client(std::move(stream), {{SettingId::initial_window_size, 0}});
      int accepted = 0;
      for (std::uint32_t id = 1; id < 41; id += 2) {
        append(client, id);
        const std::string got = co_await client.exchange(10ms);
        if (got.find("REFUSED_STREAM") != std::string::npos) break;
        ++accepted;
      }
      co_return accepted;
    }(*this, add));
  };
  if (http::is_available(http::Coding::gzip)) {
    const int accepted = accepted_of([](Http2Client& client, std::uint32_t id) {
      client.get(id, "/", {{"accept-encoding", "gzip"}});
    });
    EXPECT_GE(accepted, 4);
    EXPECT_LE(accepted, 10);
  }
  if (http::is_available(http::Coding::zstd)) {
    const int accepted = accepted_of([](Http2Client& client, std::uint32_t id) {
      client.get(id, "/", {{"accept-encoding", "zstd"}});
    });
    EXPECT_GE(accepted, 1);
    EXPECT_LE(accepted, 3);
  }
  if (http::is_available(http::Coding::br)) {
    // A window of 16 MiB, and the beginning of a block.
    const int accepted = accepted_of([](Http2Client& client, std::uint32_t id) {
      client.request(id, http::Method::post, "/", false, {{"content-encoding", "br"}});
      client.data(id, std::string_view("\x0f\xff\xff\xff", 4), false);
    });
    EXPECT_GE(accepted, 1);
  }
  simulation_.run_for(2min);
  EXPECT_EQ(stats().buffered_bytes, 0U);
}

TEST_F(Http2Budgets, settings_that_are_not_acknowledged_end_the_connection) {
  serve([](Request&, Response&) -> Task<> { static_cast<void>(co_await sleep_for(15s)); });
  run([](Http2Budgets& test) -> Task<> {
    Http2Client client(co_await test.open());
    client.get(1, "/");
    const std::string got = co_await client.exchange_unanswered(20s);
    EXPECT_EQ(got, "GOAWAY 1 SETTINGS_TIMEOUT\nclosed\n");
  }(*this));
  EXPECT_EQ(stats().settings_timeouts, 1);
}

/// Some clients write only when there is nothing to read.
TEST_F(Http2Budgets, settings_may_be_acknowledged_after_a_long_response) {
  serve([](Request&, Response& response) -> Task<> {
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(co_await sleep_for(3s));
      static_cast<void>(co_await response.write("part"));
    }
  });
  run([](Http2Budgets& test) -> Task<> {
    Http2Client client(co_await test.open());
    client.get(1, "/");
    const std::string got = co_await client.exchange_unanswered(35s);
    EXPECT_EQ(got.find("GOAWAY"), std::string::npos) << got;
    EXPECT_NE(got.find("part"), std::string::npos) << got;
  }(*this));
  EXPECT_EQ(stats().settings_timeouts, 0);
}

TEST_F(Http2Budgets, a_silent_client_is_asked_whether_it_is_alive) {
  Error error;
  serve(
      [&error](Request& request, Response&) -> Task<> {
        const auto body = co_await request.body().read_all();
        if (!body) error = body.error();
      },
      [] {
        http::ServerOptions options;
        options.body_timeout = 0s;
        return options;
      }());
  run([](Http2Budgets& test) -> Task<> {
    Http2Client client(co_await test.open());
    client.request(1, http::Method::post, "/", false);
    // Answers extend the life of the connection, also that of silent handlers.
    const std::string silence = co_await client.exchange(55s);
    EXPECT_EQ(silence, "");
    const std::string ping = co_await client.exchange(55s);
    EXPECT_EQ(ping, "PING\n");
    const std::string got = co_await client.exchange_unanswered(100s);
    EXPECT_EQ(got, "PING\nclosed\n");
  }(*this));
  EXPECT_EQ(error, system_error(ETIMEDOUT));
  EXPECT_EQ(stats().ping_timeouts, 1);
}

/// The time limit is ServerOptions::linger, not a part of write_timeout.
TEST_F(Http2Budgets, the_rest_of_an_answered_request_is_awaited_for_the_time_of_linger) {
  http::ServerOptions options;
  options.linger = 2s;
  options.write_timeout = 0s;
  serve(hello, options);
  EXPECT_EQ(run([](Http2Budgets& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.request(1, http::Method::post, "/", false);
              std::string lines = co_await client.exchange(1900ms);
              lines += "then\n" + co_await client.exchange(200ms);
              co_return lines;
            }(*this)),
            "HEADERS 1 200 content-length=5\nDATA 1 hello end\nthen\nRST_STREAM 1 NO_ERROR\n");
}

}  // namespace
}  // namespace tambour::http2_budgets_test
