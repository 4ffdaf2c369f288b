// Zero-downtime restarts of HTTP servers under load, with and without TLS, over HTTP/1.1 and
// HTTP/2: a server hands its listener to a new process again and again, while clients with
// persistent connections send requests, and clients with WebSockets connect again. No request
// fails, and each WebSocket is closed with 1012.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "support/scale.h"
#include "tls/support/certificates.h"

namespace tambour::https_restart_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

// What a new process reads: whether it is one, and its certificate, which is empty without TLS.
constexpr const char* role = "TAMBOUR_TEST_HTTP_RESTART";
constexpr const char* certificate = "TAMBOUR_TEST_HTTP_CERTIFICATE";
constexpr const char* private_key = "TAMBOUR_TEST_HTTP_KEY";

NewProcessOptions this_test() {
  return {.arguments = {"/proc/self/exe", "--gtest_filter=HttpRestart.server", "--gtest_brief=1"}};
}

http::ServerOptions server_options() {
  http::ServerOptions options;
  // On a busy machine, a client may need more than a second for its next request.
  options.drain_timeout = 20s;
  if (std::string(std::getenv(certificate)).empty()) return options;
  tls::ServerOptions tls;
  tls.alpn = {"h2", "http/1.1"};
  tls.identities.push_back({.certificate = tls::Pem::memory(std::getenv(certificate)),
                            .key = tls::Pem::memory(std::getenv(private_key))});
  options.listen.tls = or_throw(tls::ServerContext::create(tls));
  return options;
}

/// Sends back the process id and the body; for some requests after a while.
Task<> answer(Request& request, Response& response) {
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  if (body->size() % 3 == 0) static_cast<void>(co_await sleep_for(2ms));
  Buffer text(std::to_string(::getpid()) + " ");
  text.append(std::move(*body));
  response.send(std::move(text));
}

/// Sends the process id to each client, and waits until it closes, or the server ends.
Task<> send_process_id(http::WebSocket& socket, Request&) {
  const Result<> sent = co_await socket.send_text(std::to_string(::getpid()));
  if (sent) static_cast<void>(co_await socket.receive());
}

http::Handler handler() {
  http::WebSocketOptions options;
  options.shutdown_code = http::CloseCode::service_restart;
  http::Router router;
  router.post("/", answer);
  router.get("/socket", http::serve_websocket(send_process_id, options));
  return std::move(router).handler();
}

Task<> end_after(Task<> first, EventLoop& loop, http::Server& server) {
  co_await std::move(first);
  co_await server.shut_down(30s);
  loop.stop();
}
Task<> renew(http::Server& server) {
  const std::vector<PassedListener> listeners{{&server, "web"}};
  const NewProcessOptions options = this_test();
  const auto successor = co_await start_new_process(listeners, options);
  if (!successor) std::_Exit(3);
}
Task<> nothing() { co_return; }

// The processes that the tests below start.
TEST(HttpRestart, server) {
  if (std::getenv(role) == nullptr) GTEST_SKIP() << "is started by another test";
  auto inherited = InheritedListeners::from_environment();
  ASSERT_TRUE(inherited) << inherited.error().message();
  EventLoop loop;
  auto server = http::Server::adopt(loop, inherited->take("web"), handler(), server_options());
  ASSERT_TRUE(server) << server.error().message();
  Signal again(loop, SIGUSR1, [&](int) { spawn(loop, end_after(renew(*server), loop, *server)); });
  Signal finish(loop, SIGTERM, [&](int) { spawn(loop, end_after(nothing(), loop, *server)); });
  ASSERT_TRUE(again.start());
  ASSERT_TRUE(finish.start());
  notify_ready();
  loop.run();
}

struct Tally {
  std::map<int, int> answers;  ///< By process id.
  std::map<std::string, int> failures;
  int connections = 0;
  bool over = false;
};

/// Requests follow each other on a connection until a response says that it ends.
class Client {
 public:
  Client(Endpoint to, const tls::ClientContext* tls, Tally& tally)
      : to_(to), tls_(tls), tally_(tally) {}

  Task<> run(EventLoop& loop, int number) {
    for (int i = number; !tally_.over; ++i) {
      if (!stream_.is_open()) co_await open(loop);
      if (!stream_.is_open()) continue;
      const std::string body(static_cast<std::size_t>(i % 50) * 100, 'x');
      const std::string request =
          "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n\r\n" + body;
      const auto written = co_await stream_.write(std::string_view(request));
      if (!written) note("write: ", written.error());
      if (!written) continue;
      const auto reply = co_await test::read_reply(stream_, in_);
      if (!reply) note("read: ", reply.error());
      if (!reply) continue;
      const std::size_t space = reply->body.find(' ');
      if (reply->status == http::Status::ok && reply->body.substr(space + 1) == body)
        ++tally_.answers[std::atoi(reply->body.c_str())];
      else
        ++tally_.failures["a wrong response"];
      if (!reply->is_persistent) stream_.close();
    }
  }

 private:
  Task<> open(EventLoop&) {
    in_.clear();
    ++tally_.connections;
    auto opened = Result<SocketStream>(std::unexpected(Error()));
    if (tls_ != nullptr)
      opened = co_await connect("localhost", to_.port(), *tls_);
    else
      opened = co_await connect("127.0.0.1", to_.port());
    if (!opened) note("connect: ", opened.error());
    if (opened) stream_ = std::move(*opened);
  }
  void note(const std::string& text, const Error& error) {
    ++tally_.failures[text + error.message()];
    stream_.close();
  }

  Endpoint to_;
  const tls::ClientContext* tls_;
  Tally& tally_;
  SocketStream stream_;
  Buffer in_;
};

Task<> run_client(EventLoop& loop, Endpoint to, const tls::ClientContext* tls, Tally& tally,
                  int number) {
  Client client(to, tls, tally);
  co_await client.run(loop, number);
}

/// The method is not idempotent: a request is sent again only if its stream was above the last one
/// of GOAWAY. If another one fails, the request does.
Task<> post_until_the_end(http::Client& client, std::string url, Tally& tally, int number) {
  for (int i = number; !tally.over; ++i) {
    const std::string body(static_cast<std::size_t>(i % 50) * 100, 'x');
    http::ClientRequest request(http::Method::post, url, Buffer(body));
    auto response = co_await client.send(std::move(request));
    if (!response) ++tally.failures["request: " + response.error().message()];
    if (!response) continue;
    const auto text = co_await response->read_text();
    if (!text) ++tally.failures["response: " + text.error().message()];
    if (!text) continue;
    const bool is_right = response->head().version == http::Version::http_2 &&
                          text->substr(text->find(' ') + 1) == body;
    if (is_right)
      ++tally.answers[std::atoi(text->c_str())];
    else
      ++tally.failures["a wrong response"];
  }
}

Task<> run_http_2_client(EventLoop& loop, Endpoint to, const tls::ClientContext* tls, Tally& tally,
                         int number) {
  http::ClientOptions options;
  options.connect.tls = *tls;
  http::Client client(loop, std::move(options));
  const std::string url = "https://localhost:" + std::to_string(to.port()) + "/";
  TaskScope requests(loop);
  for (int i = 0; i < 3; ++i)
    requests.spawn(post_until_the_end(client, url, tally, number + 10 * i));
  co_await requests.join();
  tally.connections += static_cast<int>(client.http_2_stats().connections);
}

/// A WebSocket to each process. `tls` is null.
Task<> run_websocket(EventLoop& loop, Endpoint to, const tls::ClientContext* /*tls*/, Tally& tally,
                     int /*number*/) {
  http::Client client(loop);
  http::WebSocketClientOptions options;
  options.retry.delay = 1ms;
  options.retry.delay_max = 10ms;
  options.on_failure = [&tally](const http::WebSocketFailure& failure) {
    if (failure.close_code != http::CloseCode::service_restart)
      ++tally.failures[failure.error.message() + " instead of 1012"];
  };
  http::WebSocketClient socket(client, "ws://" + to.to_string() + "/socket", std::move(options));
  while (!tally.over) {
    // The last process is asked to end after the clients.
    const Result<http::WebSocketMessage> message = co_await timeout(100ms, socket.receive());
    if (message) ++tally.answers[std::atoi(message->to_string().c_str())];
    if (!message && message.error() != system_error(ETIMEDOUT)) break;
  }
  tally.connections += static_cast<int>(socket.connections());
  EXPECT_TRUE(co_await socket.close());
}

/// Waits until a process that is not in `before` has answered.
Task<int> next_process(const Tally& tally, std::map<int, int> before, TimePoint give_up) {
  while (Clock::now() < give_up) {
    for (const auto& [process, count] : tally.answers) {
      if (!before.contains(process)) co_return process;
    }
    static_cast<void>(co_await sleep_for(1ms));
  }
  co_return 0;
}

using RunClient = Task<>(EventLoop&, Endpoint, const tls::ClientContext*, Tally&, int);

Task<> restart_many_times(EventLoop& loop, http::Server& first, RunClient& run,
                          const tls::ClientContext* tls, int times, Tally& tally) {
  const std::vector<PassedListener> passed{{&first, "web"}};
  const NewProcessOptions options = this_test();
  const auto started = co_await start_new_process(passed, options);
  EXPECT_TRUE(started) << started.error().message();
  if (!started) co_return;
  const Endpoint at = first.endpoint();
  co_await first.shut_down(10s);
  TaskScope clients(loop);
  for (int i = 0; i < 8; ++i) clients.spawn(run(loop, at, tls, tally, i));
  const TimePoint give_up = Clock::now() + 90s;
  const std::map<int, int> none;
  int current = co_await next_process(tally, none, give_up);
  EXPECT_EQ(current, *started);
  for (int i = 0; i < times && current != 0; ++i) {
    const int previous = current;
    ::kill(previous, SIGUSR1);
    current = co_await next_process(tally, tally.answers, give_up);
    int status = -1;
    while (::waitpid(previous, &status, WNOHANG) == 0 && Clock::now() < give_up)
      static_cast<void>(co_await sleep_for(1ms));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (current == 0) ::kill(previous, SIGKILL);
  }
  tally.over = true;
  co_await clients.join();
  EXPECT_NE(current, 0) << "a new process did not answer in time";
  if (current == 0) co_return;
  ::kill(current, SIGTERM);
  int status = 0;
  EXPECT_EQ(::waitpid(current, &status, 0), current);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

enum class Kind : std::uint8_t { http, https, http_2, websocket };

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::http:
      return "http";
    case Kind::https:
      return "https";
    case Kind::http_2:
      return "http_2";
    case Kind::websocket:
      return "websocket";
  }
  return "";
}

RunClient& client_of(Kind kind) {
  if (kind == Kind::http_2) return run_http_2_client;
  return kind == Kind::websocket ? run_websocket : run_client;
}

class HttpRestarts : public testing::TestWithParam<Kind> {};

TEST_P(HttpRestarts, under_load_fail_no_request) {
  // Orphans are reparented to this process; each server is a child of the one before it.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const bool is_http_2 = GetParam() == Kind::http_2;
  const bool with_tls = GetParam() == Kind::https || is_http_2;
  const bool is_websocket = GetParam() == Kind::websocket;
  tls::ClientOptions for_client;
  if (is_http_2) for_client.alpn = {"h2", "http/1.1"};
  const test::Contexts contexts({}, std::move(for_client));
  const test::Certified& certified = test::Contexts::localhost();
  ::setenv(certificate, with_tls ? certified.certificate.c_str() : "", 1);
  ::setenv(private_key, with_tls ? certified.key.c_str() : "", 1);
  ::setenv(role, "server", 1);
  EventLoop loop;
  auto first = http::Server::listen(loop, Endpoint::loopback_v4(0), handler(), server_options());
  ASSERT_TRUE(first) << first.error().message();
  Tally tally;
  const int times = test::sanitized ? 5 : 20;
  const tls::ClientContext* const tls = with_tls ? &contexts.client : nullptr;
  spawn(loop, restart_many_times(loop, *first, client_of(GetParam()), tls, times, tally));
  loop.run();
  for (const char* name : {role, certificate, private_key}) ::unsetenv(name);
  EXPECT_EQ(tally.answers.size(), std::size_t(times) + 1);
  for (const auto& [subject, count] : tally.failures)
    ADD_FAILURE() << count << " times " << subject;
  int answers = 0;
  for (const auto& [process, count] : tally.answers) answers += count;
  // A client with a WebSocket gets one answer from each process, and may miss a short-lived one.
  EXPECT_GT(answers, is_websocket ? times * 4 : times * 8);
  // Connections persist: there are far fewer of them than requests. The three requests that a
  // client of HTTP/2 makes at a time may each open one, while the process that ends is still
  // listening.
  EXPECT_LE(tally.connections, (times + 1) * (is_http_2 ? 3 : 1) * 8);
  RecordProperty("answers", answers);
}

INSTANTIATE_TEST_SUITE_P(Every, HttpRestarts,
                         testing::Values(Kind::http, Kind::https, Kind::http_2, Kind::websocket),
                         [](const auto& entry) { return name_of(entry.param); });

}  // namespace
}  // namespace tambour::https_restart_test
