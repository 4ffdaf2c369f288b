// The HTTP client over HTTP/2: against the library's own server, and against servers that send the
// frames of a script.
#include "http/server/http2_client.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"
#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_encoder.h"

namespace tambour::http2_client_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::Method;
using http::Request;
using http::Response;
using http::VersionChoice;
using namespace std::chrono_literals;
namespace h2 = http::detail::h2;

ClientOptions http_2_only() {
  ClientOptions options;
  options.version = VersionChoice::http_2;
  return options;
}

/// Echoes the body and its trailers.
Task<> echo(Request& request, Response& response) {
  if (request.method() == Method::connect) {
    auto tunnel = co_await response.upgrade();
    if (!tunnel) co_return;
    Buffer bytes;
    for (;;) {
      const auto got = co_await tunnel->read(bytes);
      if (!got || *got == 0) break;
      if (!co_await tunnel->write(bytes)) co_return;
    }
    static_cast<void>(co_await tunnel->shutdown_write());
    co_return;
  }
  if (request.path() == "/slow") static_cast<void>(co_await sleep_for(10ms));
  if (request.path() == "/hints")
    static_cast<void>(co_await response.send_interim(http::Status::early_hints));
  for (;;) {
    auto piece = co_await request.body().read();
    if (!piece) co_return;
    if (piece->empty()) break;
    const auto written = co_await response.write(std::move(*piece));
    if (!written) co_return;
  }
  const Result<> written = co_await response.write(std::string(request.path()));
  http::Fields trailers;
  for (const http::Field field : request.body().trailers())
    static_cast<void>(trailers.add(field.name, field.value));
  if (written) static_cast<void>(response.end(trailers));
}

class Pieces final : public http::BodySource {
 public:
  Task<Result<>> read(Buffer& into) override {
    if (left_-- > 0) into.append(std::string(50'000, 'p'));
    co_return {};
  }
  const http::Fields& trailers() const noexcept override { return trailers_; }
  Pieces() { static_cast<void>(trailers_.add("X-Sum", "7")); }

 private:
  int left_ = 20;
  http::Fields trailers_;
};

class Http2Client : public test::Serving {
 public:
  [[nodiscard]] std::string url(std::string_view path) const {
    return "http://" + server_->endpoint().to_string() + std::string(path);
  }
  /// For the method CONNECT, the result of an extended CONNECT.
  static Task<std::string> text_of(Client& client, ClientRequest request) {
    if (request.method == Method::connect) {
      auto opened = co_await client.extended_connect(std::move(request), "echo");
      co_return opened ? "opened" : "error: " + opened.error().message();
    }
    auto response = co_await client.send(std::move(request));
    if (!response) co_return "error: " + response.error().message();
    auto text = co_await response->read_text();
    co_return text ? *text : "error in body: " + text.error().message();
  }
  std::string got(Client& client, ClientRequest request) {
    return run(text_of(client, std::move(request)));
  }
};

TEST_F(Http2Client, requests_share_one_connection) {
  serve(echo);
  Client client(loop_, http_2_only());
  EXPECT_EQ(got(client, ClientRequest(url("/first"))), "/first");
  run([](Http2Client& test, Client& by) -> Task<> {
    std::vector<std::string> texts(50);
    TaskScope scope(test.loop_);
    for (std::size_t i = 0; i < texts.size(); ++i)
      scope.spawn([](Http2Client& of, Client& with, std::size_t n, std::string& into) -> Task<> {
        into = co_await text_of(with, ClientRequest(of.url("/slow?" + std::to_string(n))));
      }(test, by, i, texts[i]));
    EXPECT_EQ(by.connections(), 1U);
    co_await scope.join();
    for (const std::string& text : texts) EXPECT_EQ(text, "/slow");
  }(*this, client));
  EXPECT_EQ(client.connections(), 1U);
  EXPECT_EQ(client.idle_connections(), 1U);
  EXPECT_EQ(client.http_2_stats().connections, 1U);
  EXPECT_EQ(client.http_2_stats().streams, 51U);
}

TEST_F(Http2Client, other_connections_are_opened_when_the_streams_are_used_up) {
  http::ServerOptions options;
  options.http_2.streams_max = 3;
  serve(echo, options);
  Client client(loop_, http_2_only());
  EXPECT_EQ(got(client, ClientRequest(url("/first"))), "/first");
  run([](Http2Client& test, Client& by) -> Task<> {
    std::vector<std::string> texts(10);
    TaskScope scope(test.loop_);
    for (std::string& text : texts)
      scope.spawn([](Http2Client& of, Client& with, std::string& into) -> Task<> {
        into = co_await text_of(with, ClientRequest(of.url("/slow")));
      }(test, by, text));
    co_await scope.join();
    for (const std::string& text : texts) EXPECT_EQ(text, "/slow");
  }(*this, client));
  EXPECT_GT(client.http_2_stats().connections, 1U);
  EXPECT_LE(client.http_2_stats().connections, 4U);
}

TEST_F(Http2Client, bodies_and_trailers_pass_both_ways) {
  serve(echo);
  Client client(loop_, http_2_only());
  run([](Http2Client& test, Client& by) -> Task<> {
    ClientRequest request(Method::post, test.url("/x"));
    request.source = std::make_unique<Pieces>();
    auto response = co_await by.send(std::move(request));
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_EQ(response->head().version, http::Version::http_2);
    auto text = co_await response->read_text();
    EXPECT_TRUE(text);
    EXPECT_EQ(text.value_or("").size(), 1'000'002U);
    EXPECT_EQ(response->trailers().get("X-Sum"), "7");
    EXPECT_TRUE(response->is_complete());
  }(*this, client));
  ClientRequest large(Method::put, url("/l"), Buffer(std::string(3'000'000, 'b')));
  large.expect_continue = true;
  EXPECT_EQ(got(client, std::move(large)).size(), 3'000'002U);
  EXPECT_EQ(got(client, ClientRequest(Method::head, url("/h"))), "");
  EXPECT_EQ(client.connections(), 1U);
}

TEST_F(Http2Client, a_response_that_is_dropped_resets_only_its_stream) {
  serve(echo);
  Client client(loop_, http_2_only());
  run([](Http2Client& test, Client& by) -> Task<> {
    ClientRequest request(Method::post, test.url("/x"), Buffer(std::string(2'000'000, 'b')));
    auto response = co_await by.send(std::move(request));
    EXPECT_TRUE(response);
  }(*this, client));
  EXPECT_EQ(client.http_2_stats().streams_cancelled, 1U);
  EXPECT_EQ(got(client, ClientRequest(url("/next"))), "/next");
  EXPECT_EQ(client.http_2_stats().connections, 1U);
}

TEST_F(Http2Client, connect_opens_a_tunnel_on_a_stream) {
  serve(echo);
  Client client(loop_, http_2_only());
  run([](Http2Client& test, Client& by) -> Task<> {
    auto opened = co_await by.open_tunnel(test.url("/"), "other:1");
    EXPECT_TRUE(opened);
    if (!opened) co_return;
    EXPECT_TRUE(opened->stream.is_open());
    if (!opened->stream.is_open()) co_return;
    static_cast<void>(co_await opened->stream.write("hello"));
    Buffer bytes;
    static_cast<void>(co_await opened->stream.read(bytes));
    EXPECT_EQ(bytes.to_string(), "hello");
    EXPECT_EQ(co_await text_of(by, ClientRequest(test.url("/beside"))), "/beside");
    static_cast<void>(co_await opened->stream.shutdown_write());
    const auto end = co_await opened->stream.read(bytes);
    EXPECT_EQ(end.value_or(99), 0U);
  }(*this, client));
  EXPECT_EQ(client.http_2_stats().connections, 1U);
}

/// Nothing else finds out that the server of an idle tunnel has disappeared.
TEST_F(Http2Client, an_idle_tunnel_asks_whether_its_server_is_alive) {
  serve(echo);
  Client client(loop_, http_2_only());
  run([](Http2Client& test, Client& by) -> Task<> {
    auto opened = co_await by.open_tunnel(test.url("/"), "other:1");
    EXPECT_TRUE(opened);
    if (!opened) co_return;
    Buffer bytes;
    const auto silent = co_await timeout(10min, opened->stream.read(bytes));
    EXPECT_EQ(silent.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(by.http_2_stats().peers_lost, 0U);
    test.simulation_.partition(test.host_, test.client_host_);
    const auto lost = co_await opened->stream.read(bytes);
    EXPECT_EQ(lost ? Error() : lost.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(by.http_2_stats().peers_lost, 1U);
  }(*this, client));
}

TEST_F(Http2Client, interim_responses_are_reported) {
  serve(echo);
  Client client(loop_, http_2_only());
  std::vector<int> interim;
  ClientRequest request(url("/hints"));
  request.on_interim = [&](const http::ResponseHead& head) {
    interim.push_back(http::code_of(head.status));
  };
  EXPECT_EQ(got(client, std::move(request)), "/hints");
  EXPECT_EQ(interim, std::vector<int>{103});
}

TEST_F(Http2Client, windows_grow_with_the_bytes_of_a_round_trip) {
  simulation_.options().delay_min = simulation_.options().delay_max = 50ms;
  serve([](Request&, Response& response) { response.send(std::string(20'000'000, 'd')); });
  const auto download = [this](std::uint32_t window_max, Duration& elapsed) {
    ClientOptions options = http_2_only();
    options.http_2.stream_window_bytes = options.http_2.connection_window_bytes = 65'535;
    options.http_2.stream_window_bytes_max = window_max;
    options.http_2.connection_window_bytes_max = window_max;
    Client client(loop_, std::move(options));
    run([](Http2Client& test, Client& by, Duration& into) -> Task<> {
      const TimePoint begun = test.loop_.now();
      auto response = co_await by.get(test.url("/"));
      EXPECT_TRUE(response);
      if (!response) co_return;
      std::size_t bytes = 0;
      Buffer piece;
      for (;;) {
        const auto got = co_await response->read(piece);
        EXPECT_TRUE(got);
        if (!got || *got == 0) break;
        bytes += *got;
        piece.clear();
      }
      EXPECT_EQ(bytes, 20'000'000U);
      into = test.loop_.now() - begun;
    }(*this, client, elapsed));
    return client.http_2_stats().windows_grown;
  };
  Duration fixed{};
  EXPECT_EQ(download(65'535, fixed), 0U);
  Duration growing{};
  EXPECT_GE(download(1024 * 1024, growing), 1U);
  // 64 KiB in a round trip of 100 ms, and up to 1 MiB.
  EXPECT_LT(growing * 3, fixed) << growing.count() << ' ' << fixed.count();
  RecordProperty("growing_ms", std::to_string(growing / 1ms));
  RecordProperty("fixed_ms", std::to_string(fixed / 1ms));
}

TEST_F(Http2Client, requests_in_progress_end_before_the_connection_of_a_server_that_drains) {
  serve(echo);
  Client client(loop_, http_2_only());
  run([](Http2Client& test, Client& by) -> Task<> {
    std::vector<std::string> texts(5);
    TaskScope scope(test.loop_);
    for (std::string& text : texts)
      scope.spawn([](Http2Client& of, Client& with, std::string& into) -> Task<> {
        into = co_await text_of(with, ClientRequest(of.url("/slow")));
      }(test, by, text));
    // The requests have arrived.
    static_cast<void>(co_await sleep_for(5ms));
    test.server_loop_.post([&test] {
      spawn(test.server_loop_, [](http::Server& server) -> Task<> {
        static_cast<void>(co_await server.shut_down(1s));
      }(*test.server_));
    });
    co_await scope.join();
    for (const std::string& text : texts) EXPECT_EQ(text, "/slow");
    static_cast<void>(co_await sleep_for(1s));
  }(*this, client));
  EXPECT_GE(client.http_2_stats().goaways, 1U);
  EXPECT_EQ(client.connections(), 0U);
}

/// Sends the frames of a script for each stream that is opened.
class ScriptedHttp2 : public Http2Client {
 public:
  using Script = std::function<void(Buffer& out, std::uint32_t stream, int request)>;

  Task<> answer(TcpStream stream, Script& script, int& requests) {
    h2::FrameParser parser(h2::FrameParser::Role::server);
    Buffer in;
    Buffer out;
    h2::append_settings(out, {});
    for (;;) {
      h2::Frame frame;
      for (;;) {
        const auto parsed = parser.next(in, frame);
        if (!parsed) co_return;
        if (!*parsed) break;
        if (frame.kind == h2::FrameKind::settings && !frame.is_ack) h2::append_settings_ack(out);
        if (frame.kind == h2::FrameKind::headers) script(out, frame.stream_id, requests++);
        if (frame.kind == h2::FrameKind::rst_stream) resets_.push_back(frame.error);
        if (frame.kind == h2::FrameKind::data && frame.end_stream && on_end_)
          on_end_(out, frame.stream_id, requests);
        if (frame.kind == h2::FrameKind::data && closes_at_data_) co_return;
      }
      if (!co_await stream.write(out)) co_return;
      out.clear();
      const auto got = co_await stream.read(in);
      if (!got || *got == 0) co_return;
    }
  }

  /// `script` and `requests` must outlive the server.
  TcpServer serve_script(Script& script, int& requests) {
    const sockaddr_in address = host_.endpoint(81);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    TcpServer server = or_throw(TcpServer::listen(server_loop_, at));
    server.serve([this, &script, &requests](TcpStream stream) {
      return answer(std::move(stream), script, requests);
    });
    return server;
  }
  static std::string url_of(const TcpServer& server) {
    return "http://" + server.endpoint().to_string() + "/";
  }

  /// Returns what the client gets, and how many requests have arrived.
  std::string ask_script(Script script, Method method = Method::get,
                         ClientOptions options = http_2_only()) {
    int requests = 0;
    const TcpServer server = serve_script(script, requests);
    Client client(loop_, std::move(options));
    const std::string text = got(client, ClientRequest(method, url_of(server)));
    stats_ = client.http_2_stats();
    return text + " " + std::to_string(requests);
  }

  http::Http2ClientStats stats_;       ///< Of the client of ask_script().
  Script on_end_;                      ///< When DATA has ended a stream.
  std::vector<h2::ErrorCode> resets_;  ///< Of streams, by the client.
  bool closes_at_data_ = false;        ///< When the first DATA arrives.

  static void respond(Buffer& out, std::uint32_t stream, std::string_view body,
                      http::Status status = http::Status::ok) {
    h2::HpackEncoder encoder(0);
    const http::ResponseHead head{.status = status};
    or_throw(h2::append_head(out, encoder, head, {.stream_id = stream}));
    h2::append_data(out, stream, Buffer(body), true);
  }
};

TEST_F(ScriptedHttp2, refused_requests_are_repeated_even_if_they_are_not_idempotent) {
  EXPECT_EQ(ask_script(
                [](Buffer& out, std::uint32_t stream, int request) {
                  if (request < 2) {
                    h2::append_rst_stream(out, stream, h2::ErrorCode::refused_stream);
                  } else {
                    respond(out, stream, "ok");
                  }
                },
                Method::post),
            "ok 3");
}

TEST_F(ScriptedHttp2, requests_above_the_last_stream_are_repeated) {
  EXPECT_EQ(ask_script(
                [](Buffer& out, std::uint32_t stream, int request) {
                  if (request == 0) {
                    h2::append_goaway(out, 0, h2::ErrorCode::no_error, "");
                  } else {
                    respond(out, stream, "ok");
                  }
                },
                Method::post),
            "ok 2");
}

/// Over HTTP/1, a response with the status 408 may have crossed with the request.
TEST_F(ScriptedHttp2, responses_408_are_not_repeated) {
  int requests = 0;
  Script script = [](Buffer& out, std::uint32_t stream, int request) {
    respond(out, stream, request == 0 ? "ok" : "late",
            request == 0 ? http::Status::ok : http::Status::request_timeout);
  };
  const TcpServer server = serve_script(script, requests);
  Client client(loop_, http_2_only());
  EXPECT_EQ(got(client, ClientRequest(url_of(server))), "ok");
  EXPECT_EQ(got(client, ClientRequest(url_of(server))), "late");
  EXPECT_EQ(requests, 2);
}

TEST_F(ScriptedHttp2, http_1_cannot_replace_the_only_version) {
  EXPECT_EQ(ask_script([](Buffer& out, std::uint32_t stream, int) {
              h2::append_rst_stream(out, stream, h2::ErrorCode::http_1_1_required);
            }),
            "error: The server requires HTTP/1.1 (HTTP_1_1_REQUIRED) 1");
}

TEST_F(ScriptedHttp2, a_server_that_does_not_offer_extended_connect_gets_no_request) {
  EXPECT_EQ(ask_script([](Buffer&, std::uint32_t, int) {}, Method::connect),
            "error: " + make_error_code(http::ErrorCode::no_extended_connect).message() + " 0");
}

TEST_F(ScriptedHttp2, other_resets_are_errors) {
  EXPECT_EQ(ask_script([](Buffer& out, std::uint32_t stream, int) {
              h2::append_rst_stream(out, stream, h2::ErrorCode::internal_error);
            }),
            "error: The server has reset the stream of the request (HTTP/2) 1");
}

TEST_F(ScriptedHttp2, a_server_that_refuses_everything_is_given_up) {
  EXPECT_EQ(ask_script([](Buffer& out, std::uint32_t stream, int) {
              h2::append_rst_stream(out, stream, h2::ErrorCode::refused_stream);
            }),
            "error: The server has not processed the request (HTTP/2) 9");
}

TEST_F(ScriptedHttp2, a_server_that_is_silent_is_detected_by_ping) {
  ClientOptions options = http_2_only();
  options.timeout = 0s;
  options.read_timeout = 0s;
  EXPECT_EQ(ask_script([](Buffer&, std::uint32_t, int) {}, Method::get, std::move(options)),
            "error: Connection timed out 1");
  EXPECT_EQ(stats_.peers_lost, 1U);
}

TEST_F(ScriptedHttp2, a_server_that_drains_gets_no_more_requests) {
  int requests = 0;
  Script script = [](Buffer& out, std::uint32_t stream, int request) {
    respond(out, stream, "ok");
    if (request == 0) h2::append_goaway(out, stream, h2::ErrorCode::no_error, "");
  };
  const TcpServer server = serve_script(script, requests);
  Client client(loop_, http_2_only());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got(client, ClientRequest(url_of(server))), "ok");
  EXPECT_EQ(client.http_2_stats().connections, 2U);
  EXPECT_EQ(client.http_2_stats().goaways, 1U);
  EXPECT_EQ(client.http_2_stats().requests_repeated, 0U);
  EXPECT_EQ(requests, 3);
}

/// While no request is open, too. The next request uses another connection.
TEST_F(ScriptedHttp2, idle_connections_have_a_budget_of_pings) {
  for (const bool is_ack : {false, true}) {
    int requests = 0;
    Script script = [is_ack](Buffer& out, std::uint32_t stream, int request) {
      respond(out, stream, "ok");
      for (int i = 0; i < 1100 && request == 0; ++i) h2::append_ping(out, "12345678", is_ack);
    };
    const TcpServer server = serve_script(script, requests);
    Client client(loop_, http_2_only());
    EXPECT_EQ(got(client, ClientRequest(url_of(server))), "ok");
    simulation_.run_for(1s);
    EXPECT_EQ(client.http_2_stats().violations, 1U) << is_ack;
    EXPECT_EQ(got(client, ClientRequest(url_of(server))), "ok");
    EXPECT_EQ(client.http_2_stats().connections, 2U) << is_ack;
  }
}

/// The source is asked for no further piece.
TEST_F(ScriptedHttp2, a_body_from_a_source_ends_with_its_connection) {
  closes_at_data_ = true;
  int requests = 0;
  Script script = [](Buffer&, std::uint32_t, int) {};
  const TcpServer server = serve_script(script, requests);
  Client client(loop_, http_2_only());
  ClientRequest request(Method::post, url_of(server));
  request.source = std::make_unique<Pieces>();
  EXPECT_TRUE(got(client, std::move(request)).starts_with("error: "));
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(client.connections(), 0U);
}

TEST_F(ScriptedHttp2, a_half_closed_tunnel_notices_that_the_server_resets_it) {
  on_end_ = [](Buffer& out, std::uint32_t stream, int) {
    h2::append_rst_stream(out, stream, h2::ErrorCode::connect_error);
  };
  int requests = 0;
  Script script = [](Buffer& out, std::uint32_t stream, int) {
    h2::HpackEncoder encoder(0);
    or_throw(h2::append_head(out, encoder, http::ResponseHead(), {.stream_id = stream}));
  };
  const TcpServer server = serve_script(script, requests);
  Client client(loop_, http_2_only());
  run([](Client& by, std::string to) -> Task<> {
    auto opened = co_await by.open_tunnel(to, "other:1");
    EXPECT_TRUE(opened && opened->stream.is_open());
    if (!opened || !opened->stream.is_open()) co_return;
    EXPECT_TRUE(co_await opened->stream.shutdown_write());
    Buffer bytes;
    const auto got = co_await opened->stream.read(bytes);
    EXPECT_EQ(got ? Error() : got.error(), http::ErrorCode::stream_reset);
  }(client, url_of(server)));
  EXPECT_EQ(client.http_2_stats().streams_reset, 1U);
}

/// How a program leaves a tunnel.
enum class Leaving : std::uint8_t { at_once, after_its_end, after_both_ends, while_it_writes };

Task<> leave_tunnel(EventLoop& loop, Client& client, std::string url, Leaving leaving) {
  auto opened = co_await client.open_tunnel(std::move(url), "other:1");
  EXPECT_TRUE(opened && opened->stream.is_open());
  if (!opened || !opened->stream.is_open()) co_return;
  ByteStream& tunnel = opened->stream;
  Buffer bytes;
  if (leaving == Leaving::while_it_writes) {
    TaskScope writing(loop);
    writing.spawn([](ByteStream& to) -> Task<> {
      Buffer more_than_the_windows(std::string(1'000'000, 'w'));
      EXPECT_FALSE(co_await to.write(more_than_the_windows));
    }(tunnel));
    static_cast<void>(co_await sleep_for(10ms));
    tunnel.close();
    co_await writing.join();
    co_return;
  }
  if (leaving == Leaving::at_once) co_return;
  EXPECT_TRUE(co_await tunnel.shutdown_write());
  if (leaving == Leaving::after_its_end) co_return;
  const auto end = co_await tunnel.read(bytes);
  EXPECT_EQ(end.value_or(9), 0U);
}

/// The stream of a tunnel is the connection of a proxy, which must notice that it is incomplete:
/// RFC 9113, section 8.5.
TEST_F(ScriptedHttp2, a_tunnel_that_is_destroyed_before_both_ends_is_cancelled) {
  int requests = 0;
  Script script = [](Buffer& out, std::uint32_t stream, int) {
    h2::HpackEncoder encoder(0);
    or_throw(h2::append_head(out, encoder, http::ResponseHead(), {.stream_id = stream}));
  };
  const TcpServer server = serve_script(script, requests);
  const auto resets_of = [&](Leaving leaving) {
    resets_.clear();
    on_end_ = [leaving](Buffer& out, std::uint32_t stream, int) {
      if (leaving == Leaving::after_both_ends) h2::append_data(out, stream, Buffer(), true);
    };
    Client client(loop_, http_2_only());
    run(leave_tunnel(loop_, client, url_of(server), leaving));
    run([]() -> Task<> { static_cast<void>(co_await sleep_for(100ms)); }());
    const std::uint64_t cancelled = client.http_2_stats().streams_cancelled;
    EXPECT_EQ(cancelled, resets_.size());
    return resets_;
  };
  const std::vector<h2::ErrorCode> cancel{h2::ErrorCode::cancel};
  EXPECT_EQ(resets_of(Leaving::at_once), cancel);
  EXPECT_EQ(resets_of(Leaving::after_its_end), cancel);
  EXPECT_EQ(resets_of(Leaving::while_it_writes), cancel);
  EXPECT_TRUE(resets_of(Leaving::after_both_ends).empty());
}

/// More than the window, of which no byte reaches the program.
TEST_F(ScriptedHttp2, padding_renews_the_window) {
  ClientOptions options = http_2_only();
  options.http_2.stream_window_bytes = 65'535;
  options.http_2.stream_window_bytes_max = 65'535;
  const Script script = [](Buffer& out, std::uint32_t stream, int) {
    h2::HpackEncoder encoder(0);
    or_throw(h2::append_head(out, encoder, http::ResponseHead(), {.stream_id = stream}));
    test::Http2Client::append_padding(out, stream, 300);
    h2::append_data(out, stream, Buffer("ok"), true);
  };
  EXPECT_EQ(ask_script(script, Method::get, std::move(options)), "ok 1");
}

TEST_F(ScriptedHttp2, no_streams_count_as_one) {
  ClientOptions options = http_2_only();
  options.http_2.streams_max = 0;
  options.connections_per_origin_max = 1;
  int requests = 0;
  Script script = [](Buffer& out, std::uint32_t stream, int) { respond(out, stream, "ok"); };
  const TcpServer server = serve_script(script, requests);
  Client client(loop_, std::move(options));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(got(client, ClientRequest(url_of(server))), "ok");
}

TEST_F(ScriptedHttp2, a_dead_server_is_detected_although_each_request_ends_sooner) {
  ClientOptions options = http_2_only();
  options.timeout = 3s;
  int requests = 0;
  Script script = [](Buffer&, std::uint32_t, int) {};
  const TcpServer server = serve_script(script, requests);
  Client client(loop_, std::move(options));
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(got(client, ClientRequest(url_of(server))).starts_with("error"));
  EXPECT_GE(client.http_2_stats().peers_lost, 1U);
  EXPECT_GE(client.http_2_stats().connections, 2U);
}

const std::string violation = "error: The server has broken a rule of HTTP/2 or exceeded a limit 1";
const std::string violation_in_body =
    "error in body: The server has broken a rule of HTTP/2 or exceeded a limit 1";

/// Gets more than the windows allow, which the program does not read. Returns the error of the
/// body.
Error error_of_unread_body(ScriptedHttp2& on, ClientOptions options) {
  int requests = 0;
  ScriptedHttp2::Script script = [](Buffer& out, std::uint32_t stream, int) {
    h2::HpackEncoder encoder(0);
    or_throw(h2::append_head(out, encoder, http::ResponseHead(), {.stream_id = stream}));
    for (int i = 0; i < 80; ++i)
      h2::append_data(out, stream, Buffer(std::string(16384, 'x')), false);
  };
  const TcpServer server = on.serve_script(script, requests);
  Client client(on.loop_, std::move(options));
  Error error;
  on.run([](Client& by, std::string to, Error& into) -> Task<> {
    auto response = co_await by.get(std::move(to));
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_TRUE(co_await sleep_for(1s));
    const auto read = co_await response->read_text();
    EXPECT_FALSE(read);
    if (!read) into = read.error();
  }(client, ScriptedHttp2::url_of(server), error));
  on.stats_ = client.http_2_stats();
  return error;
}

TEST_F(ScriptedHttp2, data_beyond_the_window_resets_the_stream) {
  ClientOptions options = http_2_only();
  options.http_2.connection_window_bytes = 4'000'000;
  EXPECT_EQ(error_of_unread_body(*this, std::move(options)), http::ErrorCode::http_2_violation);
  EXPECT_EQ(stats_.streams_cancelled, 1U);
  EXPECT_EQ(stats_.violations, 0U);
}

TEST_F(ScriptedHttp2, data_beyond_the_window_of_the_connection_ends_it) {
  ClientOptions options = http_2_only();
  options.http_2.stream_window_bytes = 4'000'000;
  EXPECT_EQ(error_of_unread_body(*this, std::move(options)), http::ErrorCode::http_2_violation);
  EXPECT_EQ(stats_.violations, 1U);
}

TEST_F(ScriptedHttp2, data_before_a_head_resets_the_stream) {
  EXPECT_EQ(ask_script([](Buffer& out, std::uint32_t stream, int) {
              h2::append_data(out, stream, Buffer("x"), true);
            }),
            violation);
  EXPECT_EQ(stats_.violations, 0U);
}

/// What a hostile server sends, and how the request fails.
TEST_F(ScriptedHttp2, hostile_servers_end_their_connection) {
  const std::vector<std::pair<const char*, Script>> scripts = {
      {"PING without end",
       [](Buffer& out, std::uint32_t, int) {
         for (int i = 0; i < 2000; ++i) h2::append_ping(out, "12345678", false);
       }},
      {"SETTINGS without end",
       [](Buffer& out, std::uint32_t, int) {
         for (int i = 0; i < 2000; ++i) h2::append_settings(out, {});
       }},
      {"empty DATA without end",
       [](Buffer& out, std::uint32_t stream, int) {
         h2::HpackEncoder encoder(0);
         or_throw(h2::append_head(out, encoder, http::ResponseHead(), {.stream_id = stream}));
         for (int i = 0; i < 2000; ++i) h2::append_data_head(out, stream, 0, false);
       }},
      {"a pushed stream",
       [](Buffer& out, std::uint32_t stream, int) {
         out.append(std::string("\0\0\4\5\4\0\0\0", 8));
         out.append(std::string(1, static_cast<char>(stream)));
         out.append(std::string("\0\0\0\2", 4));
       }},
      {"a stream that was not opened",
       [](Buffer& out, std::uint32_t stream, int) {
         h2::append_rst_stream(out, stream + 2, h2::ErrorCode::cancel);
       }},
      {"a window that is too large",
       [](Buffer& out, std::uint32_t, int) {
         h2::append_window_update(out, 0, h2::window_size_max);
       }},
  };
  for (const auto& [name, script] : scripts) {
    const std::string result = ask_script(script);
    EXPECT_TRUE(result == violation || result == violation_in_body) << name << ": " << result;
    EXPECT_EQ(stats_.violations, 1U) << name;
  }
}

}  // namespace
}  // namespace tambour::http2_client_test
