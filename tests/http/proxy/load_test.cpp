// A reverse proxy between processes: a server that is killed, a slow one, large uploads, and
// thousands of slow clients. Servers count each request by its id.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "support/scale.h"

namespace tambour::load_test {
namespace {

using namespace std::chrono_literals;
using http::Method;
using http::Request;
using http::Response;
using http::Status;

constexpr std::size_t ids_max = 50'000;
/// Of the proxy, without what it shares with this process. Without optimization, the frames of
/// coroutines are larger.
#ifdef NDEBUG
constexpr std::size_t memory_max = std::size_t{32} << 20U;
#else
constexpr std::size_t memory_max = std::size_t{48} << 20U;
#endif

/// How often each request was executed, in memory that the processes share.
class Executions {
 public:
  Executions()
      : counts_(static_cast<std::atomic<unsigned char>*>(
            ::mmap(nullptr, ids_max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Executions(const Executions&) = delete;
  Executions& operator=(const Executions&) = delete;
  ~Executions() { ::munmap(static_cast<void*>(counts_), ids_max); }

  void count(std::size_t id) { ++counts_[id % ids_max]; }
  [[nodiscard]] int of(std::size_t id) const { return counts_[id].load(); }

 private:
  std::atomic<unsigned char>* counts_;
};

/// A process that serves on a free port. Destroying it kills the process.
class Child {
 public:
  using Listen = std::function<http::Server(EventLoop&)>;

  explicit Child(const Listen& listen) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::alarm(300);
      EventLoop loop;
      const http::Server server = listen(loop);
      const std::uint16_t port = server.endpoint().port();
      static_cast<void>(!::write(ends[1], &port, sizeof port));
      loop.run();
      ::_exit(0);
    }
    ::close(ends[1]);
    static_cast<void>(!::read(ends[0], &port_, sizeof port_));
    ::close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { kill(); }

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Endpoint endpoint() const { return Endpoint::loopback_v4(port_); }
  [[nodiscard]] std::string url() const { return "http://" + endpoint().to_string(); }
  /// Memory that only this process has.
  [[nodiscard]] std::size_t private_bytes() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/smaps_rollup");
    std::size_t total = 0;
    for (std::string name; file >> name;) {
      std::size_t kilobytes = 0;
      if (name != "Private_Clean:" && name != "Private_Dirty:") continue;
      if (file >> kilobytes) total += kilobytes * 1024;
    }
    return total;
  }

 private:
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

/// "/ID" is counted. "/ID/BYTES" is answered with that many.
Task<> answer(Executions& executions, Duration delay, Request& request, Response& response) {
  const std::string path(request.path().substr(1));
  std::uint64_t received = 0;
  request.body().set_bytes_max(UINT64_MAX);
  while (!request.body().is_complete()) {
    const auto piece = co_await request.body().read();
    if (!piece) co_return;
    received += piece->size();
  }
  executions.count(std::stoul(path));
  if (delay > Duration::zero()) static_cast<void>(co_await sleep_for(delay));
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) {
    response.send(path + " " + std::to_string(received));
    co_return;
  }
  response.send(std::string(std::stoul(path.substr(slash + 1)), 'x'));
}

http::Server serve_answers(EventLoop& loop, Executions& executions, Duration delay) {
  http::ServerOptions options;
  options.header_timeout = 200s;
  options.body_timeout = 200s;
  options.write_timeout = 200s;
  return or_throw(http::Server::listen(
      loop, Endpoint::loopback_v4(0),
      [&executions, delay](Request& request, Response& response) {
        return answer(executions, delay, request, response);
      },
      std::move(options)));
}

http::Server serve_proxy(EventLoop& loop, std::vector<http::Upstream> upstreams) {
  http::ReverseProxyOptions options;
  options.upstreams = std::move(upstreams);
  options.connections_max = 2048;
  options.body_bytes_max = UINT64_MAX;
  static std::optional<http::ReverseProxy> proxy;
  proxy.emplace(or_throw(http::ReverseProxy::create(loop, std::move(options))));
  http::ServerOptions mode;
  mode.header_timeout = 200s;
  mode.body_timeout = 200s;
  mode.write_timeout = 200s;
  return or_throw(
      http::Server::listen(loop, Endpoint::loopback_v4(0), proxy->handler(), std::move(mode)));
}

class ProxyLoad : public testing::Test {
 public:
  ProxyLoad() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    descriptors_max_ = limit.rlim_cur;
  }

  std::size_t descriptors_max_ = 0;
  Executions executions_;
};

struct Results {
  std::map<int, int> statuses{};  ///< By request.
  int wrong = 0;
  int unanswered = 0;
};

/// Sends requests one after the other: every second one is a POST with a body.
Task<> send_requests(EventLoop& loop, Endpoint to, std::size_t first, std::size_t count,
                     Results& results, int& done) {
  http::Client client(loop);
  const std::string url = "http://" + to.to_string() + "/";
  for (std::size_t id = first; id < first + count; ++id) {
    http::ClientRequest request(url + std::to_string(id));
    if (id % 2 == 1) {
      request.method = Method::post;
      request.body = Buffer(std::string(id % 100, 'b'));
    }
    auto response = co_await client.send(std::move(request));
    std::string text;
    if (response) text = (co_await response->read_text()).value_or("");
    ++done;
    if (!response) {
      ++results.unanswered;
      continue;
    }
    results.statuses[int(id)] = http::code_of(response->status());
    const std::string expected =
        std::to_string(id) + " " + std::to_string(id % 2 == 1 ? id % 100 : 0);
    if (response->status() == Status::ok && text != expected) ++results.wrong;
  }
}

TEST_F(ProxyLoad, no_request_is_lost_or_doubled_when_a_server_is_killed) {
  Child killed([&](EventLoop& loop) { return serve_answers(loop, executions_, 0s); });
  const Child slow([&](EventLoop& loop) { return serve_answers(loop, executions_, 20ms); });
  const Child proxy(
      [&](EventLoop& loop) { return serve_proxy(loop, {{killed.url()}, {slow.url()}}); });
  constexpr std::size_t clients = 50;
  const std::size_t count = test::sanitized ? 20 : 100;
  Results results;
  int done = 0;
  EventLoop loop;
  TaskScope tasks(loop);
  for (std::size_t i = 0; i < clients; ++i)
    tasks.spawn(send_requests(loop, proxy.endpoint(), i * count, count, results, done));
  Timer kill(loop, [&] {
    if (done >= int(clients * count / 2)) killed.kill();
  });
  kill.start(1ms, 1ms);
  while (!tasks.empty()) loop.run_once();
  EXPECT_EQ(results.unanswered, 0);
  EXPECT_EQ(results.wrong, 0);
  int failed = 0;
  for (std::size_t id = 0; id < clients * count; ++id) {
    const int status = results.statuses[int(id)];
    const bool is_post = id % 2 == 1;
    failed += status != 200 ? 1 : 0;
    if (!is_post) {
      EXPECT_EQ(status, 200) << id << " could be repeated";
    } else {
      EXPECT_TRUE(status == 200 || status == 502) << id << ": " << status;
      EXPECT_LE(executions_.of(id), 1) << id << " was executed twice";
    }
    if (status == 200) {
      EXPECT_GE(executions_.of(id), 1) << id;
    }
  }
  // Those that were being executed.
  EXPECT_LE(failed, int(clients));
  EXPECT_LT(proxy.private_bytes(), memory_max);
}

TEST_F(ProxyLoad, large_uploads_use_little_memory) {
  const char* const gigabytes = std::getenv("TAMBOUR_TEST_BODY_GIB");
  const std::size_t pieces = gigabytes != nullptr ? std::size_t(std::atoi(gigabytes)) << 14U
                             : test::sanitized    ? 64
                                                  : 1024;
  const Child server([&](EventLoop& loop) { return serve_answers(loop, executions_, 0s); });
  const Child proxy([&](EventLoop& loop) { return serve_proxy(loop, {{server.url()}}); });
  EventLoop loop;
  std::string answer;
  std::size_t peak = 0;
  spawn(loop, [](Endpoint to, std::size_t count, std::string& text) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    const std::string piece(std::size_t{64} * 1024, 'x');
    EXPECT_TRUE(co_await stream->write("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                                       std::to_string(count * piece.size()) + "\r\n\r\n"));
    for (std::size_t i = 0; i < count; ++i) {
      const auto written = co_await stream->write(std::string_view(piece));
      EXPECT_TRUE(written);
      if (!written) co_return;
    }
    Buffer in;
    auto reply = co_await test::read_reply(*stream, in, Method::post);
    text = reply ? reply->body : reply.error().message();
    const TaskContext& context = co_await this_task;
    context.loop->stop();
  }(proxy.endpoint(), pieces, answer));
  Timer look(loop, [&] { peak = std::max(peak, proxy.private_bytes()); });
  look.start(50ms, 50ms);
  loop.run();
  EXPECT_EQ(answer, "1 " + std::to_string(pieces * 64 * 1024));
  EXPECT_LT(std::max(peak, proxy.private_bytes()), memory_max);
}

/// Sends its request in pieces, and reads the response in pieces, with pauses.
Task<> be_slow(Endpoint to, std::size_t id, int& succeeded, int& connected) {
  constexpr int pieces = 8;
  constexpr Duration pause = 300ms;
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  ++connected;
  const bool uploads = id % 2 == 1;
  std::string request = uploads ? "POST /" : "GET /";
  request += std::to_string(id) + "/20000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
  request += uploads ? "Content-Length: 8000\r\n\r\n" + std::string(8000, 'x') : "\r\n";
  const std::size_t size = request.size() / pieces + 1;
  for (std::size_t at = 0; at < request.size(); at += size) {
    const auto written = co_await stream->write(std::string_view(request).substr(at, size));
    if (!written) co_return;
    static_cast<void>(co_await sleep_for(pause));
  }
  std::vector<std::byte> into(4096);
  std::size_t total = 0;
  for (;;) {
    const auto got = co_await stream->read(into);
    if (!got) co_return;
    if (*got == 0) break;
    total += *got;
    static_cast<void>(co_await sleep_for(pause));
  }
  succeeded += total > 10'000 ? 1 : 0;
}

TEST_F(ProxyLoad, thousands_of_slow_clients) {
  const std::size_t clients =
      std::min<std::size_t>(test::sanitized ? 200 : 2000, (descriptors_max_ - 200) / 2);
  const Child first([&](EventLoop& loop) { return serve_answers(loop, executions_, 0s); });
  const Child second([&](EventLoop& loop) { return serve_answers(loop, executions_, 0s); });
  const Child proxy(
      [&](EventLoop& loop) { return serve_proxy(loop, {{first.url()}, {second.url()}}); });
  EventLoop loop;
  TaskScope tasks(loop);
  int succeeded = 0;
  int connected = 0;
  for (std::size_t id = 0; id < clients; ++id)
    tasks.spawn(be_slow(proxy.endpoint(), id, succeeded, connected));
  std::size_t peak = 0;
  Timer look(loop, [&] { peak = std::max(peak, proxy.private_bytes()); });
  look.start(100ms, 100ms);
  while (!tasks.empty()) loop.run_once();
  EXPECT_EQ(connected, int(clients));
  EXPECT_EQ(succeeded, int(clients));
  for (std::size_t id = 0; id < clients; ++id) EXPECT_EQ(executions_.of(id), 1) << id;
  EXPECT_LT(peak, memory_max);
  std::printf("peak: %zu KiB\n", peak / 1024);
}

}  // namespace
}  // namespace tambour::load_test
