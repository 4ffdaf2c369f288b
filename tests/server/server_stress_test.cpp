// A server under load from real processes: ten thousand peers, peers that are killed, slow peers,
// and more peers than the process can have descriptors.
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/timer.h>
#include <tambour/net/tcp.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::server_stress_test {
namespace {

using namespace std::chrono_literals;

/// A process that opens `count` connections, sends a byte on each, and keeps them open. It never
/// reads.
class Peers {
 public:
  Peers(const Endpoint& server, std::size_t count) : pid_(::fork()) {
    if (pid_ < 0) throw std::system_error(system_error(errno));
    if (pid_ == 0) connect_and_wait(server, count);
  }
  Peers(Peers&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Peers& operator=(Peers&&) = delete;
  ~Peers() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// Returns whether all peers have connected and sent their byte.
  [[nodiscard]] bool have_connected() const {
    siginfo_t info{};
    constexpr int changes = WSTOPPED | WEXITED | WNOHANG | WNOWAIT;
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, changes) == 0 &&
           info.si_code == CLD_STOPPED;
  }

 private:
  [[noreturn]] static void connect_and_wait(const Endpoint& server, std::size_t count) {
    // The peers must not keep the server's descriptors open.
    ::close_range(3, ~0U, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const int fd = ::socket(server.family(), SOCK_STREAM, 0);
      if (::connect(fd, server.data(), server.size()) != 0 || ::write(fd, "x", 1) != 1) ::_exit(1);
    }
    for (;;) ::raise(SIGSTOP);
  }

  pid_t pid_;
};

/// A server that checks that each connection is closed once.
class ServerStress : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    if (is(BackendKind::select) || options().spin > Duration::zero())
      GTEST_SKIP() << "needs a backend with many connections";
  }

  TcpServer serve(ConnectionCallbacks callbacks = {}) {
    auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
    callbacks.on_connection = [this, also = std::move(callbacks.on_connection)](Connection& peer) {
      EXPECT_TRUE(open_.insert(&peer).second);
      if (also) also(peer);
    };
    callbacks.on_message = [this](Connection&, Buffer& bytes) {
      bytes_received_ += bytes.size();
      bytes.clear();
    };
    callbacks.on_close = [this](Connection& peer, Error) {
      EXPECT_EQ(open_.erase(&peer), 1U) << "closed twice";
      ++closed_;
    };
    server.serve(std::move(callbacks));
    return server;
  }

  [[nodiscard]] bool run_until_open(std::size_t count) {
    return run_until([this, count] { return open_.size() == count; });
  }

  std::set<const Connection*> open_;
  std::size_t bytes_received_ = 0;
  std::size_t closed_ = 0;
};

TAMBOUR_ON_EVERY_BACKEND(ServerStress);

TEST_P(ServerStress, killed_peers_leak_nothing) {
  const std::size_t crowd = test::scaled(9000);
  const std::size_t value = test::scaled(1000);
  auto server = serve();
  std::size_t memory = 0;
  const std::size_t descriptors = test::open_descriptors();
  for (int round = 0; round < 3; ++round) {
    {
      std::vector<Peers> holding;
      for (int i = 0; i < 3; ++i) holding.emplace_back(server.endpoint(), crowd / 3);
      ASSERT_TRUE(run_until_open(crowd));
      for (int i = 0; i < 2; ++i) {
        const std::size_t closed_before = closed_;
        {
          const Peers victims(server.endpoint(), value);
          ASSERT_TRUE(run_until_open(crowd + value));
        }
        ASSERT_TRUE(run_until_open(crowd));
        EXPECT_EQ(closed_, closed_before + value);
      }
    }
    ASSERT_TRUE(run_until_open(0));
    EXPECT_EQ(server.connections(), 0U);
    EXPECT_EQ(test::open_descriptors(), descriptors);
    // Memory that remains after the first round is kept by the loop and the allocator for reuse.
    const std::size_t now = ::mallinfo2().uordblks;
    EXPECT_LE(now, round > 0 ? memory + 4096 : SIZE_MAX);
    memory = now;
  }
  EXPECT_EQ(server.accepted(), 3 * (crowd + 2 * value));
  EXPECT_EQ(closed_, server.accepted());
  EXPECT_GT(bytes_received_,
            server.accepted() / 2);  // Some are killed between connecting and sending.
}

TEST_P(ServerStress, a_server_without_descriptors_waits_and_then_serves_all_clients) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  auto server = serve();
  constexpr std::size_t served = 50;
  constexpr std::size_t wanted = 150;  // Those that wait fit into a backlog of 128.
  {
    const Peers peers(server.endpoint(), wanted);  // Not subject to the limit below.
    const test::OpenFilesLimit limit(test::open_descriptors() + served);
    ASSERT_TRUE(eventually([&peers] { return peers.have_connected(); }));
    ASSERT_TRUE(eventually([&server] { return server.accept_pauses() > 0; }));
    const std::size_t reached = open_.size();
    EXPECT_GE(reached, served / 2);
    EXPECT_LT(reached, wanted);
    // At most 10 ms of CPU time in one second: the server does not spin on connections that it
    // cannot accept.
    const Duration before = test::processor_time();
    run_for(1s);
    EXPECT_LT(test::processor_time() - before, test::sanitized ? 100ms : 10ms);
    EXPECT_EQ(open_.size(), reached);
  }
  // The peers have exited. The connections that were waiting in the backlog are accepted now, and
  // have ended.
  ASSERT_TRUE(run_until([&] { return server.accepted() == wanted && open_.empty(); }))
      << server.accepted() << " accepted, " << open_.size() << " open";
  EXPECT_EQ(closed_, wanted);
}

TEST_P(ServerStress, only_peers_that_do_not_read_are_closed) {
  std::size_t too_slow = 0;
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [](Connection& peer) {
    // More than the kernel accepts for a peer that does not read.
    for (int i = 0; i < 64; ++i) peer.send(std::string(256 * 1024, 'x'));
  };
  callbacks.high_water_bytes = 64 * 1024;
  callbacks.on_high_water = [&too_slow](Connection& peer, std::size_t bytes) {
    EXPECT_GE(bytes, 64U * 1024);
    ++too_slow;
    peer.close();
  };
  auto server = serve(std::move(callbacks));
  constexpr std::size_t count = 20;
  const Peers peers(server.endpoint(), count);
  ASSERT_TRUE(run_until([this] { return closed_ == count; }));
  EXPECT_EQ(too_slow, count);
  EXPECT_EQ(server.connections(), 0U);
}

}  // namespace
}  // namespace tambour::server_stress_test
