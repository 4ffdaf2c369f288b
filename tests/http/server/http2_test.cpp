// http::Server over HTTP/2: requests, streams, windows, and the life of connections.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/server/http2_client.h"
#include "http/support/serving.h"
#include "tls/support/certificates.h"

namespace tambour::http2_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using http::Status;
using test::Http2Client;
using ErrorCode = Http2Client::ErrorCode;
using SettingId = Http2Client::SettingId;

class Http2Server : public test::Serving {
 public:
  /// Opens a connection, lets `prepare` queue frames, and returns what the server answers.
  template <class Prepare>
  std::string talk(Prepare prepare, std::initializer_list<Http2Client::Setting> settings = {}) {
    return run([](Http2Server& test, Prepare& queue,
                  std::initializer_list<Http2Client::Setting> chosen) -> Task<std::string> {
      TcpStream stream = co_await test.open();
      Http2Client client(std::move(stream), chosen);
      queue(client);
      co_return co_await client.exchange();
    }(*this, prepare, settings));
  }
};

void hello(Request&, Response& response) { response.send("hello"); }

/// Says what it has received.
Task<> echo(Request& request, Response& response) {
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  std::string text(request.method().name());
  text.append(" ").append(request.head().target).append(" ").append(request.head().authority);
  text.append(" [").append(body->to_string()).append("]");
  for (const http::Field field : request.body().trailers())
    text.append(" ").append(field.name).append("=").append(field.value);
  response.send(text);
}

TEST_F(Http2Server, answers_a_request) {
  serve([](Request& request, Response& response) {
    EXPECT_EQ(request.head().version, http::Version::http_2);
    EXPECT_EQ(request.head().scheme, "http");
    response.headers().set("Content-Type", "text/plain");
    response.send(Status::created, "made");
  });
  EXPECT_EQ(talk([](Http2Client& client) { client.get(1, "/"); }),
            "HEADERS 1 201 content-type=text/plain content-length=4\nDATA 1 made end\n");
}

TEST_F(Http2Server, responses_do_not_wait_for_earlier_ones) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/slow") static_cast<void>(co_await sleep_for(100ms));
    response.send(request.path());
  });
  EXPECT_EQ(talk([](Http2Client& client) {
              client.get(1, "/slow");
              client.get(3, "/fast");
            }),
            "HEADERS 3 200 content-length=5\nDATA 3 /fast end\n"
            "HEADERS 1 200 content-length=5\nDATA 1 /slow end\n");
}

/// Each iteration that handles requests ends with a write.
TEST_F(Http2Server, handles_as_many_requests_in_an_iteration_as_clients_usually_have_open) {
  int handled = 0;
  int handled_at_once_max = 0;
  serve([&handled](Request&, Response& response) {
    ++handled;
    response.send("hello");
  });
  Hook count(server_loop_, HookPoint::check, [&, before = 0]() mutable {
    handled_at_once_max = std::max(handled_at_once_max, handled - before);
    before = handled;
  });
  count.start();
  talk([](Http2Client& client) {
    for (std::uint32_t id = 1; id < 200; id += 2) client.get(id, "/");
  });
  EXPECT_EQ(handled, 100);
  // The first segment has the preface and the settings too.
  EXPECT_GT(handled_at_once_max, 80);
}

TEST_F(Http2Server, receives_bodies_and_trailers) {
  serve(echo);
  EXPECT_EQ(talk([](Http2Client& client) {
              client.request(1, http::Method::post, "/a?b", false);
              client.data(1, "one ", false);
              client.request(3, http::Method::post, "/c", false);
              client.data(3, "three", true);
              client.data(1, "two", false);
              client.trailers(1, {{"x-sum", "7"}});
            }),
            "HEADERS 1 200 content-length=29\nDATA 1 POST /a?b a [one two] x-sum=7 end\n"
            "HEADERS 3 200 content-length=17\nDATA 3 POST /c a [three] end\n");
}

TEST_F(Http2Server, sends_bodies_in_pieces_with_trailers) {
  serve([](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(co_await response.write("one"));
    EXPECT_TRUE(co_await response.write("two"));
    http::Fields trailers;
    or_throw(trailers.add("X-Sum", "6"));
    EXPECT_TRUE(response.end(trailers));
  });
  EXPECT_EQ(talk([](Http2Client& client) { client.get(1, "/"); }),
            "HEADERS 1 200\nDATA 1 one\nDATA 1 two\nHEADERS 1 x-sum=6 end\n");
}

TEST_F(Http2Server, responses_without_a_body_end_with_their_head) {
  serve([](Request& request, Response& response) {
    if (request.path() == "/none") return;
    if (request.path() == "/204") return static_cast<void>(response.send(Status::no_content));
    response.send("hello");
  });
  EXPECT_EQ(talk([](Http2Client& client) {
              client.request(1, http::Method::head, "/", true);
              client.get(3, "/none");
              client.get(5, "/204");
            }),
            "HEADERS 1 200 content-length=5 end\nHEADERS 3 200 content-length=0 end\n"
            "HEADERS 5 204 end\n");
}

TEST_F(Http2Server, an_exception_ends_its_own_request_only) {
  int exceptions = 0;
  http::ServerOptions options;
  options.listen.on_error = [&exceptions](std::exception_ptr) { ++exceptions; };
  serve(
      [](Request& request, Response& response) -> Task<> {
        if (request.path() == "/throw") throw std::runtime_error("planned");
        if (request.path() == "/late") {
          EXPECT_TRUE(co_await response.write("part"));
          throw std::runtime_error("planned");
        }
        static_cast<void>(co_await sleep_for(10ms));
        response.send("fine");
      },
      options);
  EXPECT_EQ(talk([](Http2Client& client) {
              client.get(1, "/");
              client.get(3, "/throw");
              client.get(5, "/late");
            }),
            "HEADERS 3 500 content-type=text/plain content-length=26\n"
            "DATA 3 500 Internal Server Error\n end\n"
            "HEADERS 5 200\nDATA 5 part\nRST_STREAM 5 INTERNAL_ERROR\n"
            "HEADERS 1 200 content-length=4\nDATA 1 fine end\n");
  EXPECT_EQ(exceptions, 2);
}

TEST_F(Http2Server, reports_no_exception_after_on_error_has_destroyed_the_server) {
  int exceptions = 0;
  http::ServerOptions options;
  options.listen.on_error = [this, &exceptions](std::exception_ptr) {
    ++exceptions;
    server_.reset();
  };
  serve([](Request&, Response&) { throw std::runtime_error("planned"); }, options);
  talk([](Http2Client& client) {
    client.get(1, "/");
    client.get(3, "/");
  });
  EXPECT_EQ(exceptions, 1);
}

TEST_F(Http2Server, asks_for_a_body_that_the_client_holds_back) {
  serve(echo);
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.request(1, http::Method::post, "/", false, {{"expect", "100-continue"}});
              std::string lines = co_await client.exchange();
              client.data(1, "body", true);
              lines += co_await client.exchange();
              co_return lines;
            }(*this)),
            "HEADERS 1 100\nHEADERS 1 200 content-length=15\nDATA 1 POST / a [body] end\n");
}

TEST_F(Http2Server, sends_no_more_than_the_windows_allow) {
  serve(hello);
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              TcpStream stream = co_await test.open();
              Http2Client client(std::move(stream), {{SettingId::initial_window_size, 2}});
              client.get(1, "/");
              std::string lines = co_await client.exchange();
              client.grow_window(1, 2);
              lines += co_await client.exchange();
              http::detail::h2::append_settings(
                  client.out(),
                  std::vector{Http2Client::Setting{SettingId::initial_window_size, 3}});
              lines += co_await client.exchange();
              co_return lines;
            }(*this)),
            "HEADERS 1 200 content-length=5\nDATA 1 he\nDATA 1 ll\nDATA 1 o end\n");
}

/// The sizes of the DATA frames of a stream.
std::vector<std::size_t> data_sizes(const std::string& lines, const std::string& stream) {
  const std::string data = "DATA " + stream + " ";
  std::vector<std::size_t> sizes;
  for (std::size_t at = lines.find(data); at != std::string::npos; at = lines.find(data, at + 1))
    sizes.push_back(std::stoul(lines.substr(at + data.size())));
  return sizes;
}

/// What a write has beyond one segment would be sent as a second one of a few bytes.
void expect_writes_of_a_segment(const std::string& lines) {
  const std::vector<std::size_t> sizes = data_sizes(lines, "1");
  ASSERT_GT(sizes.size(), 8U) << lines;
  constexpr std::size_t whole = 16'384;
  constexpr std::size_t last = 65'000 - 3 * (9 + whole) - 9;
  EXPECT_LT(sizes[3], last) << "the first write has the head of the response too";
  EXPECT_EQ(std::vector(sizes.begin() + 4, sizes.begin() + 8),
            (std::vector<std::size_t>{whole, whole, whole, last}));
}

void send_long(Request&, Response& response) { response.send(std::string(300'000, 'x')); }

Task<std::string> receive_long(TcpStream stream) {
  Http2Client client(std::move(stream), {{SettingId::initial_window_size, 1'000'000}});
  client.grow_window(0, 1'000'000);
  client.get(1, "/");
  co_return co_await client.exchange();
}

TEST_F(Http2Server, a_write_fits_into_a_segment_with_the_heads_of_frames) {
  serve(send_long);
  expect_writes_of_a_segment(run([](Http2Server& test) -> Task<std::string> {
    co_return co_await receive_long(co_await test.open());
  }(*this)));
}

TEST_F(Http2Server, a_write_over_tls_fits_into_a_segment_with_the_heads_of_frames) {
  tls::ServerOptions for_server;
  tls::ClientOptions for_client;
  for_server.alpn = for_client.alpn = {"h2"};
  const test::Contexts contexts(std::move(for_server), std::move(for_client));
  http::ServerOptions options;
  options.listen.tls = contexts.server;
  serve(send_long, options);
  expect_writes_of_a_segment(
      run([](Http2Server& test, const tls::ClientContext& tls) -> Task<std::string> {
        TcpStream stream = co_await test.open();
        const auto done = co_await tls::connect(stream, tls, "localhost");
        EXPECT_TRUE(done);
        co_return co_await receive_long(std::move(stream));
      }(*this, contexts.client)));
}

TEST_F(Http2Server, a_body_that_no_handler_reads_gets_no_further_window) {
  serve([](Request& request, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(2s));
    auto body = co_await request.body().read_all();
    response.send(std::to_string(body->size()));
  });
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.request(1, http::Method::post, "/", false);
              const std::string piece(16384, 'x');
              for (int i = 0; i < 16; ++i) client.data(1, piece, false);
              std::string lines = co_await client.exchange(1s);
              lines += "two seconds\n";
              lines += co_await client.exchange(2s);
              client.data(1, piece, true);
              lines += co_await client.exchange();
              co_return lines;
            }(*this)),
            "two seconds\nWINDOW 1 262144\nHEADERS 1 200 content-length=6\nDATA 1 278528 end\n");
}

TEST_F(Http2Server, data_beyond_a_window_resets_the_stream) {
  serve([](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(100ms));
    response.send("unread");
  });
  EXPECT_EQ(talk([](Http2Client& client) {
              client.request(1, http::Method::post, "/", false);
              const std::string piece(16384, 'x');
              for (int i = 0; i < 17; ++i) client.data(1, piece, false);
              client.get(3, "/");
            }),
            "RST_STREAM 1 FLOW_CONTROL_ERROR\n"
            "HEADERS 3 200 content-length=6\nDATA 3 unread end\n");
}

TEST_F(Http2Server, handlers_notice_that_the_client_resets_the_stream) {
  bool is_stopped = false;
  serve([&is_stopped](Request& request, Response& response) -> Task<> {
    const std::stop_token gone = request.disconnect_token();
    static_cast<void>(co_await sleep_for(200ms));
    is_stopped = gone.stop_requested();
    const Result<> written = co_await response.write("x");
    EXPECT_EQ(written.error(), system_error(ECONNRESET));
  });
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.get(1, "/");
              static_cast<void>(co_await client.exchange(50ms));
              client.reset(1, ErrorCode::cancel);
              co_return co_await client.exchange();
            }(*this)),
            "");
  EXPECT_TRUE(is_stopped);
}

TEST_F(Http2Server, urgent_responses_overtake_others) {
  serve([](Request& request, Response& response) {
    response.send(std::string(request.path() == "/" ? 40'000 : 10'000, 'x'));
  });
  EXPECT_EQ(talk([](Http2Client& client) {
              client.get(1, "/");
              client.get(3, "/", {{"priority", "i"}});
              client.get(5, "/urgent", {{"priority", "u=0"}});
            }),
            "HEADERS 1 200 content-length=40000\nHEADERS 3 200 content-length=40000\n"
            "HEADERS 5 200 content-length=10000\nDATA 5 10000 end\nDATA 1 16384\nDATA 1 16384\n"
            "DATA 1 7232 end\nDATA 3 14794\nDATA 3 741\n");
}

/// RFC 9218, section 7: PRIORITY_UPDATE may arrive before its request, and overrides its field.
TEST_F(Http2Server, a_priority_update_may_arrive_before_its_request) {
  serve([](Request& request, Response& response) {
    response.send(std::string(request.path() == "/" ? 20'000 : 10'000, 'x'));
  });
  EXPECT_EQ(talk([](Http2Client& client) {
              // More than the server keeps: the oldest are dropped.
              for (std::uint32_t id = 101; id < 141; id += 2)
                http::detail::h2::append_priority_update(client.out(), id, "u=1");
              http::detail::h2::append_priority_update(client.out(), 3, "u=7");
              http::detail::h2::append_priority_update(client.out(), 3, "u=0");
              client.get(1, "/");
              client.get(3, "/urgent", {{"priority", "u=6"}});
            }),
            "HEADERS 1 200 content-length=20000\nHEADERS 3 200 content-length=10000\n"
            "DATA 3 10000 end\nDATA 1 16384\nDATA 1 3616 end\n");
}

/// A client that is limited by the windows sends at most one window in a round trip.
TEST_F(Http2Server, windows_grow_while_a_client_sends_as_much_as_they_allow) {
  http::ServerOptions options;
  options.http_2.window_bytes_max = 1'000'000;
  std::size_t received = 0;
  serve(
      [&received](Request& request, Response& response) -> Task<> {
        for (;;) {
          const auto piece = co_await request.body().read();
          if (!piece || piece->empty()) break;
          received += piece->size();
        }
        response.send("read");
      },
      options);
  run([](Http2Server& test) -> Task<> {
    Http2Client client(co_await test.open());
    client.request(1, http::Method::post, "/", false);
    const std::string piece(16384, 'x');
    std::int64_t window = 262'144;
    std::int64_t connection_window = 1'048'576;
    std::int64_t window_max = 0;
    for (int round = 0; round < 12; ++round) {
      for (; window >= 16384 && connection_window >= 16384; window -= 16384) {
        client.data(1, piece, false);
        connection_window -= 16384;
      }
      const std::string lines = co_await client.exchange(10ms);
      connection_window += client.take_connection_window();
      for (std::size_t at = 0; (at = lines.find("WINDOW 1 ", at)) != std::string::npos; ++at)
        window += std::stol(lines.substr(at + 9));
      window_max = std::max(window_max, window);
    }
    EXPECT_GT(window_max, 500'000);
    EXPECT_LE(window_max, 1'000'000);
    client.data(1, "", true);
    const std::string end = co_await client.exchange();
    EXPECT_TRUE(end.ends_with("DATA 1 read end\n")) << end;
  }(*this));
  EXPECT_GT(received, 2'000'000);
}

TEST_F(Http2Server, extended_connect_opens_a_tunnel) {
  serve([](Request& request, Response& response) -> Task<> {
    EXPECT_EQ(request.head().protocol, "websocket");
    EXPECT_EQ(request.path(), "/chat");
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    if (!tunnel) co_return;
    Buffer received;
    for (;;) {
      const auto got = co_await tunnel->read(received);
      if (!got || *got == 0) break;
      EXPECT_TRUE(co_await tunnel->write(received));
    }
    EXPECT_TRUE(co_await tunnel->shutdown_write());
  });
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.request(1, http::Method::connect, "/chat", false, {}, "websocket");
              client.data(1, "one", false);
              std::string lines = co_await client.exchange();
              client.data(1, "two", true);
              lines += co_await client.exchange();
              co_return lines;
            }(*this)),
            "HEADERS 1 200\nDATA 1 one\nDATA 1 two\nDATA 1  end\n");
}

/// Opens a tunnel, lets the client send the end of its side if it gets that of the server, and
/// returns what the server sends.
template <class Handler>
std::string tunnel_of(Http2Server& on, Handler handler) {
  http::ServerOptions options;
  options.listen.on_error = [](const std::exception_ptr&) {};
  on.serve(std::move(handler), options);
  return on.run([](Http2Server& test) -> Task<std::string> {
    TcpStream stream = co_await test.open();
    Http2Client client(std::move(stream), {{SettingId::initial_window_size, 10}});
    client.request(1, http::Method::connect, "/", false, {}, "echo");
    std::string lines = co_await client.exchange();
    client.data(1, "more", false);
    client.get(3, "/");
    lines += co_await client.exchange();
    client.data(1, "", true);
    lines += co_await client.exchange(20s);
    co_return lines;
  }(on));
}

Task<> send_and_destroy(Request& request, Response& response) {
  if (request.method() != http::Method::connect) {
    response.send("ok");
    co_return;
  }
  auto tunnel = co_await response.upgrade();
  EXPECT_TRUE(tunnel);
  if (!tunnel) co_return;
  EXPECT_TRUE(co_await tunnel->write("bye"));
}

TEST_F(Http2Server, a_tunnel_that_its_handler_destroys_ends_the_stream) {
  const std::string next = "HEADERS 3 200 content-length=2\nDATA 3 ok end\n";
  EXPECT_EQ(tunnel_of(*this, send_and_destroy), "HEADERS 1 200\nDATA 1 bye\nDATA 1  end\n" + next);
}

/// The window of the client has ten bytes.
TEST_F(Http2Server, a_tunnel_accepts_without_waiting_what_it_can_send_next) {
  const auto handler = [](Request& request, Response& response) -> Task<> {
    if (request.method() != http::Method::connect) {
      response.send("ok");
      co_return;
    }
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    if (!tunnel) co_return;
    Buffer large("more than ten bytes");
    EXPECT_EQ(tunnel->try_write(large).error(), system_error(EAGAIN));
    EXPECT_EQ(large.size(), 19);
    Buffer none;
    for (const std::string_view text : {"first ", "last"}) {
      Buffer bytes(text);
      EXPECT_TRUE(tunnel->try_write(bytes));
      EXPECT_TRUE(bytes.empty());
      EXPECT_TRUE(tunnel->try_write(none));
    }
    Buffer beyond("x");
    EXPECT_EQ(tunnel->try_write(beyond).error(), system_error(EAGAIN));
  };
  EXPECT_EQ(tunnel_of(*this, handler),
            "HEADERS 1 200\nDATA 1 first \nDATA 1 last\nDATA 1  end\n"
            "HEADERS 3 200 content-length=2\nDATA 3 ok end\n");
}

TEST_F(Http2Server, a_tunnel_is_reset_if_a_write_was_interrupted_or_an_exception_destroys_it) {
  const auto interrupt = [](Request& request, Response& response) -> Task<> {
    if (request.method() != http::Method::connect) {
      response.send("ok");
      co_return;
    }
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    if (!tunnel) co_return;
    const auto written = co_await timeout(100ms, tunnel->write("more than ten bytes"));
    EXPECT_EQ(written.error(), system_error(ETIMEDOUT));
  };
  const auto fail = [](Request& request, Response& response) -> Task<> {
    if (request.method() != http::Method::connect) {
      response.send("ok");
      co_return;
    }
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    throw std::runtime_error("of the handler");
  };
  const std::string next = "HEADERS 3 200 content-length=2\nDATA 3 ok end\n";
  EXPECT_EQ(tunnel_of(*this, interrupt),
            "HEADERS 1 200\nDATA 1 more than \nRST_STREAM 1 CANCEL\n" + next);
  server_.reset();
  EXPECT_EQ(tunnel_of(*this, fail), "HEADERS 1 200\nRST_STREAM 1 CANCEL\n" + next);
}

/// The rest of what the client sends is discarded for the time of linger.
TEST_F(Http2Server, a_client_that_does_not_end_its_side_of_a_tunnel_loses_it) {
  serve(send_and_destroy);
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.request(1, http::Method::connect, "/", false, {}, "echo");
              co_return co_await client.exchange(20s);
            }(*this)),
            "HEADERS 1 200\nDATA 1 bye\nDATA 1  end\nRST_STREAM 1 NO_ERROR\n");
}

TEST_F(Http2Server, a_half_closed_tunnel_notices_that_the_client_resets_it) {
  Error error;
  serve([&error](Request&, Response& response) -> Task<> {
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    if (!tunnel) co_return;
    EXPECT_TRUE(co_await tunnel->shutdown_write());
    Buffer bytes;
    const auto got = co_await tunnel->read(bytes);
    EXPECT_FALSE(got);
    if (!got) error = got.error();
  });
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.request(1, http::Method::connect, "/", false, {}, "echo");
              std::string lines = co_await client.exchange();
              client.reset(1, ErrorCode::cancel);
              lines += co_await client.exchange();
              co_return lines;
            }(*this)),
            "HEADERS 1 200\nDATA 1  end\n");
  EXPECT_EQ(error, system_error(ECONNRESET));
}

/// More than the window, of which no byte reaches the handler.
TEST_F(Http2Server, padding_renews_the_window) {
  http::ServerOptions options;
  options.http_2.stream_window_bytes = 65'535;
  serve(echo, options);
  EXPECT_EQ(talk([](Http2Client& client) {
              client.request(1, http::Method::post, "/", false);
              client.padding(1, 300);
              client.data(1, "x", true);
            }),
            "WINDOW 1 32768\nWINDOW 1 32768\n"
            "HEADERS 1 200 content-length=12\nDATA 1 POST / a [x] end\n");
}

TEST_F(Http2Server, limits_of_fields_do_not_wrap_around) {
  http::ServerOptions options;
  options.limits.http_1.start_line_bytes_max = 0;
  options.limits.fields_bytes_max = SIZE_MAX - 3000;  // Less than 100 * 32.
  serve(hello, options);
  EXPECT_EQ(talk([](Http2Client& client) { client.get(1, "/", {{"x-a", "1"}, {"x-b", "2"}}); }),
            "HEADERS 1 200 content-length=5\nDATA 1 hello end\n");
}

TEST_F(Http2Server, a_shutdown_announces_itself_and_answers_what_has_been_sent) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/slow") static_cast<void>(co_await sleep_for(300ms));
    response.send(request.path());
  });
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.get(1, "/slow");
              std::string lines = co_await client.exchange(50ms);
              spawn(test.server_loop_, test.server_->shut_down(10s));
              lines += co_await client.exchange(50ms);
              client.get(3, "/late");  // The answer to PING is in front of it.
              lines += co_await client.exchange();
              co_return lines;
            }(*this)),
            "GOAWAY 2147483647 NO_ERROR\nPING\nGOAWAY 1 NO_ERROR\n"
            "HEADERS 1 200 content-length=5\nDATA 1 /slow end\nclosed\n");
  simulation_.run_for(2s);
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(Http2Server, stopped_handlers_do_not_complete_their_responses) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/begun") static_cast<void>(co_await response.write("a part"));
    static_cast<void>(co_await sleep_for(1h));
  });
  const std::string lines = run([](Http2Server& test) -> Task<std::string> {
    Http2Client client(co_await test.open());
    client.get(1, "/");
    client.get(3, "/begun");
    static_cast<void>(co_await client.exchange(50ms));
    spawn(test.server_loop_, test.server_->shut_down(100ms));
    co_return co_await client.exchange(1s);
  }(*this));
  EXPECT_EQ(lines.find("HEADERS 1 200"), std::string::npos) << lines;
  EXPECT_EQ(lines.find(" end\n"), std::string::npos) << lines;
  EXPECT_TRUE(lines.ends_with("closed\n")) << lines;
}

TEST_F(Http2Server, a_client_that_closes_its_side_still_gets_responses) {
  serve([](Request& request, Response& response) -> Task<> {
    static_cast<void>(co_await request.body().read_all());
    static_cast<void>(co_await sleep_for(100ms));
    response.send("later");
  });
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.get(1, "/");
              client.request(3, http::Method::post, "/", false);
              static_cast<void>(co_await client.exchange(10ms));
              EXPECT_TRUE(co_await client.stream().shutdown_write());
              co_return co_await client.exchange();
            }(*this)),
            "HEADERS 1 200 content-length=5\nDATA 1 later end\nclosed\n");
}

/// Nothing reads the connection any more, so only a write finds out.
TEST_F(Http2Server, a_client_that_closes_its_side_and_vanishes_leaves_nothing) {
  http::ServerOptions options;
  options.write_timeout = 1s;
  serve([](Request&, Response& response) { response.send(std::string(10'000'000, 'x')); }, options);
  for (const bool resets : {false, true}) {
    run([](Http2Server& test, bool closes) -> Task<> {
      TcpStream stream = co_await test.open();
      Http2Client client(std::move(stream),
                         {{http::detail::h2::SettingId::initial_window_size, 0x7fff'ffff}});
      client.grow_window(0, 0x7000'0000);
      client.get(1, "/");
      EXPECT_TRUE(co_await client.stream().write(client.out()));
      EXPECT_TRUE(co_await client.stream().shutdown_write());
      if (!closes) static_cast<void>(co_await sleep_for(10s));
    }(*this, resets));
    simulation_.run_for(10s);
    EXPECT_EQ(server_->connections(), 0U) << resets;
  }
}

TEST_F(Http2Server, half_closed_clients_have_no_time_limits_for_answers) {
  http::ServerOptions options;
  options.http_2.ping_interval = 1s;
  options.http_2.ping_timeout = 1s;
  options.http_2.settings_timeout = 2s;
  serve(
      [](Request&, Response& response) -> Task<> {
        static_cast<void>(co_await sleep_for(1h));
        response.send("late");
      },
      options);
  run([](Http2Server& test) -> Task<> {
    Http2Client client(co_await test.open());
    client.get(1, "/");
    EXPECT_TRUE(co_await client.stream().write(client.out()));
    static_cast<void>(co_await sleep_for(1500ms));
    EXPECT_TRUE(co_await client.stream().shutdown_write());
    static_cast<void>(co_await sleep_for(1s));
    const std::uint64_t before = test.server_loop_.stats().iterations;
    static_cast<void>(co_await sleep_for(10s));
    EXPECT_LT(test.server_loop_.stats().iterations - before, 200U);
    EXPECT_EQ(test.server_->connections(), 1U);
  }(*this));
}

TEST_F(Http2Server, idle_connections_are_closed) {
  serve(hello);
  EXPECT_EQ(run([](Http2Server& test) -> Task<std::string> {
              Http2Client client(co_await test.open());
              client.get(1, "/");
              co_return co_await client.exchange(61s);
            }(*this)),
            "HEADERS 1 200 content-length=5\nDATA 1 hello end\nGOAWAY 1 NO_ERROR\nclosed\n");
}

TEST_F(Http2Server, can_be_disabled) {
  http::ServerOptions options;
  options.http_2.is_enabled = false;
  serve(hello, options);
  const std::string answer = ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 505 ")) << answer;
  EXPECT_NE(answer.find("HTTP/2 without negotiation"), std::string::npos) << answer;
}

}  // namespace
}  // namespace tambour::http2_test
