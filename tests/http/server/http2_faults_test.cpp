// http::Server over HTTP/2 in simulations with resets, delays, short reads and writes, failing
// system calls, small windows, and streams that the client resets: no response is wrong, none
// belongs to another request, and nothing is left.
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/message.h"
#include "support/scale.h"

namespace tambour::http2_faults_test {
namespace {

using namespace std::chrono_literals;
using namespace http::detail::h2;
using http::Request;
using http::Response;

constexpr int requests_of_client = 12;

Task<> answer(Request& request, Response& response) {
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  const std::string text = std::string(request.path()) + " " + body->to_string();
  if (text.size() % 3 == 0) static_cast<void>(co_await sleep_for(10ms));
  if (text.size() % 2 == 0) {
    response.send(text);
    co_return;
  }
  for (std::size_t at = 0; at < text.size(); at += 100) {
    const auto written = co_await response.write(std::string_view(text).substr(at, 100));
    if (!written) co_return;
  }
}

/// A request that has been sent on the current connection.
struct Sent {
  int number = 0;
  std::string expected{};
  std::string received{};
  bool is_refused = false;
};

class Asker {
 public:
  Asker(sim::Simulation& simulation, Endpoint to, int client)
      : simulation_(simulation), to_(to), client_(client) {
    for (int i = 0; i < requests_of_client; ++i) open_.push_back(i);
  }

  [[nodiscard]] std::size_t unanswered() const noexcept { return open_.size(); }

  /// Repeats each request until it is answered.
  Task<> run() {
    while (!open_.empty()) {
      auto connected = co_await TcpStream::connect(to_);
      if (connected) {
        TcpStream stream = std::move(*connected);
        co_await use(stream);
      }
      const Result<> slept = co_await sleep_for(100ms);
      if (!slept) co_return;
    }
  }

 private:
  Task<> use(TcpStream& stream) {
    FrameParser parser(FrameParser::Role::client);
    HpackDecoder decoder;
    Buffer in;
    sent_.clear();
    Buffer out = requests();
    for (;;) {
      const Result<> written = co_await timeout(100s, stream.write(out));
      if (!written) co_return;
      out.clear();
      const auto got = co_await timeout(100s, stream.read(in));
      if (!got || *got == 0) co_return;
      Frame frame;
      for (;;) {
        const auto parsed = parser.next(in, frame);
        if (!parsed)
          co_return simulation_.fail("a wrong frame: " + std::string(text_of(parsed.error())));
        if (!*parsed) break;
        if (!handle(frame, decoder, out)) co_return;
      }
      if (sent_.empty()) co_return;
    }
  }

  Buffer requests() {
    Buffer out(client_preface);
    HpackEncoder encoder;
    const auto window = static_cast<std::uint32_t>(200 + simulation_.random(5000));
    append_settings(out, std::vector{Setting{SettingId::initial_window_size, window}});
    std::uint32_t id = 1;
    for (const int number : open_) {
      const std::string body(simulation_.random(3000), 'x');
      http::RequestHead head{.method = http::Method::post};
      head.target = "/" + std::to_string(client_) + "/" + std::to_string(number);
      head.authority = "a";
      Sent& sent = sent_[id];
      sent.number = number;
      sent.expected = head.target + " " + body;
      or_throw(append_head(out, encoder, head, {.stream_id = id, .end_stream = false}));
      append_data(out, id, Buffer(body), true);
      if (simulation_.random(8) == 0) {
        append_rst_stream(out, id, ErrorCode::cancel);
        sent_.erase(id);
      }
      id += 2;
    }
    return out;
  }

  /// Returns false if the connection is not to be used any more.
  bool handle(Frame& frame, HpackDecoder& decoder, Buffer& out) {
    const auto found = sent_.find(frame.stream_id);
    switch (frame.kind) {
      case FrameKind::headers: {
        const FieldLimits limits;
        FieldSection section(limits);
        http::ResponseHead head;
        if (!decoder.decode(frame.text, section) ||
            !make_response(section, frame.end_stream, head)) {
          simulation_.fail("a wrong head");
          return false;
        }
        // A server without memory may answer 500, and a slow network 408.
        if (found != sent_.end()) found->second.is_refused = !http::is_success(head.status);
        break;
      }
      case FrameKind::data:
        if (frame.flow_bytes > 0) {
          append_window_update(out, 0, frame.flow_bytes);
          if (!frame.end_stream) append_window_update(out, frame.stream_id, frame.flow_bytes);
        }
        if (found != sent_.end()) found->second.received += frame.data.to_string();
        break;
      case FrameKind::rst_stream:
        if (found != sent_.end()) sent_.erase(found);
        return true;
      case FrameKind::goaway:
        return false;
      default:
        return true;
    }
    if (found == sent_.end() || !frame.end_stream) return true;
    const Sent& sent = found->second;
    if (!sent.is_refused) {
      if (sent.received != sent.expected) simulation_.fail("a wrong response to " + sent.expected);
      std::erase(open_, sent.number);
    }
    sent_.erase(found);
    return true;
  }

  sim::Simulation& simulation_;
  Endpoint to_;
  int client_;
  std::vector<int> open_;  ///< Requests that have not been answered.
  std::map<std::uint32_t, Sent> sent_;
};

TEST(Http2ServerFaults, no_response_is_wrong_or_lost) {
  const auto scenario = [](sim::Simulation& simulation) {
    sim::Host& host = simulation.add_host("server");
    sim::Host& client_host = simulation.add_host("client");
    EventLoop server_loop(host.loop_options());
    EventLoop loop(client_host.loop_options());
    const sockaddr_in address = host.endpoint(80);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    http::ServerOptions options;
    options.listen.on_error = [](const std::exception_ptr&) {};
    Result<http::Server> server = http::Server::listen(server_loop, at, answer, options);
    while (!server) server = http::Server::listen(server_loop, at, answer, options);
    std::vector<std::unique_ptr<Asker>> askers;
    TaskScope clients(loop);
    for (int i = 0; i < 3; ++i) {
      askers.push_back(std::make_unique<Asker>(simulation, at, i));
      clients.spawn(askers.back()->run());
    }
    simulation.run_for(60s);
    const sim::Options calm;
    simulation.options() = calm;
    simulation.run_for(30min);
    for (const auto& asker : askers) {
      if (asker->unanswered() > 0)
        simulation.fail("unanswered: " + std::to_string(asker->unanswered()));
    }
    if (server->connections() != 0) simulation.fail("connections are left");
  };
  const auto failure = sim::simulate({.count = test::sanitized ? 20U : 500U}, scenario);
  ASSERT_FALSE(failure) << failure->report();
}

}  // namespace
}  // namespace tambour::http2_faults_test
