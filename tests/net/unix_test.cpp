// Unix-domain streams and servers, on every backend: paths, credentials, descriptors.
#include <tambour/net/unix.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/streams.h"
#include "support/temporary_folder.h"

namespace tambour::unix_test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class UnixStreams : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  [[nodiscard]] Endpoint path() const {
    return Endpoint::unix_name(folder_.path() + "/socket").value();
  }
  [[nodiscard]] Endpoint abstract_name() const {
    return Endpoint::unix_name("@" + folder_.path()).value();
  }
  [[nodiscard]] bool path_exists() const { return ::access(path().address().c_str(), F_OK) == 0; }

 private:
  test::TemporaryFolder folder_;
};

TAMBOUR_ON_EVERY_BACKEND(UnixStreams);

TEST_P(UnixStreams, echo_over_paths_and_abstract_names) {
  for (const Endpoint& at : {path(), abstract_name()}) {
    auto server = UnixServer::listen(loop(), at);
    ASSERT_TRUE(server) << server.error().message();
    server->serve(test::echo<UnixStream>);
    EXPECT_EQ(server->endpoint(), at);
    run(test::expect_echo_from<UnixStream>(at));
    EXPECT_TRUE(run_until([&] { return server->connections() == 0; }));
  }
}

TEST_P(UnixStreams, the_name_of_a_dead_server_is_reused) {
  {
    auto dead = Socket::open(loop(), AF_UNIX, SOCK_STREAM);
    ASSERT_TRUE(dead);
    ASSERT_EQ(::bind(dead->fd(), path().data(), path().size()), 0);
  }
  ASSERT_TRUE(path_exists());
  {
    auto server = UnixServer::listen(loop(), path());
    ASSERT_TRUE(server);
    // The server still listens.
    EXPECT_EQ(UnixServer::listen(loop(), path()).error(), system_error(EADDRINUSE));
  }
  EXPECT_FALSE(path_exists());
}

TEST_P(UnixStreams, reports_why_connect_or_listen_failed) {
  EXPECT_EQ(UnixServer::listen(loop(), Endpoint::loopback_v4(0)).error(),
            system_error(EAFNOSUPPORT));
  run([](Endpoint unbound) -> Task<> {
    const Endpoint nowhere = Endpoint::unix_name("/no/such/socket").value();
    EXPECT_EQ((co_await UnixStream::connect(nowhere)).error(), system_error(ENOENT));
    EXPECT_EQ((co_await UnixStream::connect(unbound)).error(), system_error(ECONNREFUSED));
    EXPECT_EQ((co_await UnixStream::connect(Endpoint::loopback_v4(1))).error(),
              system_error(EAFNOSUPPORT));
  }(abstract_name()));
  UnixStream none;
  EXPECT_EQ(none.peer_credentials().error(), system_error(EBADF));
}

TEST_P(UnixStreams, reports_the_credentials_of_the_peer) {
  auto server = UnixServer::listen(loop(), abstract_name());
  ASSERT_TRUE(server);
  const PeerCredentials mine{.process = ::getpid(), .user = ::geteuid(), .group = ::getegid()};
  Result<PeerCredentials> seen;
  server->serve([&seen](UnixStream peer) -> Task<> {
    seen = peer.peer_credentials();
    co_return;
  });
  run([](Endpoint to, PeerCredentials expected) -> Task<> {
    auto stream = co_await UnixStream::connect(to);
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    EXPECT_EQ(stream->peer_credentials(), expected);
  }(abstract_name(), mine));
  EXPECT_TRUE(run_until([&] { return server->accepted() == 1 && server->connections() == 0; }));
  EXPECT_EQ(seen, mine);
}

TEST_P(UnixStreams, passes_descriptors) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  std::array<int, 2> pipe_ends;
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);
  const UniqueFd out(pipe_ends[0]);
  UniqueFd in(pipe_ends[1]);
  run([](UnixStream& near, UnixStream& far, int fd) -> Task<> {
    EXPECT_TRUE(co_await near.send(bytes_of("take this"), std::array{fd, fd}));
    std::array<std::byte, 64> place;
    auto received = co_await far.receive(place);
    EXPECT_TRUE(received);
    if (!received) co_return;
    EXPECT_EQ(received->size, 9U);
    EXPECT_FALSE(received->are_descriptors_truncated);
    EXPECT_EQ(received->descriptors.size(), 2U);
    for (const UniqueFd& come : received->descriptors) {
      EXPECT_NE(come.get(), fd);
      EXPECT_EQ(::fcntl(come.get(), F_GETFD), FD_CLOEXEC);
      EXPECT_EQ(::write(come.get(), "x", 1), 1);
    }
  }(ends->first, ends->second, in.get()));
  in.reset(-1);
  // No process has the write end open any more: two bytes and EOF.
  std::array<char, 8> bytes;
  EXPECT_EQ(::read(out.get(), bytes.data(), bytes.size()), 2);
  EXPECT_EQ(::read(out.get(), bytes.data(), bytes.size()), 0);
}

TEST_P(UnixStreams, bytes_and_eof_arrive_without_descriptors) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  run([](UnixStream& near, UnixStream& far) -> Task<> {
    EXPECT_TRUE(co_await near.send(bytes_of("plain"), {}));
    std::array<std::byte, 3> place;
    auto received = co_await far.receive(place);
    EXPECT_TRUE(received && received->size == 3 && received->descriptors.empty());
    received = co_await far.receive(place);
    EXPECT_TRUE(received && received->size == 2);
    EXPECT_TRUE(co_await near.shutdown_write());
    received = co_await far.receive(place);
    EXPECT_TRUE(received && received->size == 0);
  }(ends->first, ends->second));
}

TEST_P(UnixStreams, passes_at_most_the_descriptors_that_fit_one_message) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  const std::vector<int> limit(UnixStream::descriptors_max, STDIN_FILENO);
  const std::vector<int> more(UnixStream::descriptors_max + 1, STDIN_FILENO);
  run([](UnixStream& near, UnixStream& far, std::span<const int> all,
         std::span<const int> too_many) -> Task<> {
    EXPECT_EQ((co_await near.send(bytes_of("x"), too_many)).error(), system_error(EINVAL));
    EXPECT_EQ((co_await near.send({}, all)).error(), system_error(EINVAL));
    EXPECT_EQ((co_await near.send(bytes_of("x"), std::array{-1})).error(), system_error(EBADF));
    EXPECT_TRUE(co_await near.send(bytes_of("x"), all));
    std::array<std::byte, 1> place;
    const auto received = co_await far.receive(place, UnixStream::descriptors_max);
    EXPECT_TRUE(received && received->descriptors.size() == all.size());
  }(ends->first, ends->second, limit, more));
}

TEST_P(UnixStreams, a_message_larger_than_the_send_buffer_carries_descriptors) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  const std::string large(3'000'000, 'x');
  TaskScope sender(loop());
  sender.spawn([](UnixStream stream, const std::string& text) -> Task<> {
    EXPECT_TRUE(co_await stream.send(bytes_of(text), std::array{STDIN_FILENO}));
  }(std::move(ends->first), large));
  run([](UnixStream stream, std::size_t expected) -> Task<> {
    std::vector<std::byte> place(100'000);
    std::size_t bytes = 0;
    std::size_t descriptors = 0;
    for (;;) {
      const auto received = co_await stream.receive(place);
      EXPECT_TRUE(received);
      if (!received || received->size == 0) break;
      bytes += received->size;
      descriptors += received->descriptors.size();
    }
    EXPECT_EQ(bytes, expected);
    EXPECT_EQ(descriptors, 1U);
  }(std::move(ends->second), large.size()));
}

TEST_P(UnixStreams, a_stream_may_be_moved_while_it_sends) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  std::array<char, 4096> filling{};
  std::size_t filled = 0;
  for (;;) {
    const ssize_t sent = ::send(ends->first.fd(), filling.data(), filling.size(), 0);
    if (sent < 0) break;
    filled += static_cast<std::size_t>(sent);
  }
  ASSERT_EQ(errno, EAGAIN);

  const std::string large(3'000'000, 'x');
  auto stream = std::make_unique<UnixStream>(std::move(ends->first));
  TaskScope sender(loop());
  bool sent = false;
  sender.spawn([](UnixStream& near, const std::string& text, bool& done) -> Task<> {
    done = (co_await near.send(bytes_of(text), std::array{STDIN_FILENO})).has_value();
  }(*stream, large, sent));
  run_iterations();
  UnixStream moved = std::move(*stream);
  stream.reset();

  run([](UnixStream& far, std::size_t expected) -> Task<> {
    std::vector<std::byte> place(100'000);
    std::size_t bytes = 0;
    std::size_t descriptors = 0;
    while (bytes < expected) {
      const auto received = co_await far.receive(place);
      EXPECT_TRUE(received);
      if (!received || received->size == 0) break;
      bytes += received->size;
      descriptors += received->descriptors.size();
    }
    EXPECT_EQ(bytes, expected);
    EXPECT_EQ(descriptors, 1U);
  }(ends->second, filled + large.size()));
  EXPECT_TRUE(run_until([&] { return sent; }));
}

TEST_P(UnixStreams, reports_lost_descriptors) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  // However many descriptors this process had open before, the table is full afterwards.
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> filling;
  for (int fd; (fd = ::dup(STDIN_FILENO)) >= 0;) filling.emplace_back(fd);
  ASSERT_EQ(errno, EMFILE);
  run([](UnixStream& near, UnixStream& far) -> Task<> {
    EXPECT_TRUE(co_await near.send(bytes_of("x"), std::array{STDIN_FILENO}));
    std::array<std::byte, 1> place;
    const auto received = co_await far.receive(place);
    EXPECT_TRUE(received);
    if (!received) co_return;
    EXPECT_EQ(received->size, 1U);
    EXPECT_TRUE(received->descriptors.empty());
    EXPECT_TRUE(received->are_descriptors_truncated);
  }(ends->first, ends->second));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_P(UnixStreams, receives_at_most_the_configured_number_of_descriptors) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  const auto take = [](UnixStream& near, UnixStream& far, std::size_t sent,
                       std::size_t limit) -> Task<> {
    const std::size_t before = test::open_descriptors();
    const std::vector<int> copies(sent, STDIN_FILENO);
    EXPECT_TRUE(co_await near.send(bytes_of("x"), copies));
    std::array<std::byte, 1> place;
    const auto received = co_await far.receive(place, limit);
    EXPECT_TRUE(received);
    if (!received) co_return;
    const std::size_t expected = std::min(sent, limit);
    EXPECT_EQ(received->size, 1U);
    EXPECT_EQ(received->descriptors.size(), expected);
    EXPECT_EQ(received->are_descriptors_truncated, sent > limit) << sent << " of " << limit;
    EXPECT_EQ(test::open_descriptors(), before + expected);
  };
  for (const std::size_t limit : {0, 1, 2, 3, 252, 253, 1000}) {
    for (const std::size_t sent : {1, 2, 3, 253}) run(take(ends->first, ends->second, sent, limit));
  }
}

TEST_P(UnixStreams, receives_no_more_descriptors_than_the_default_limit) {
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  run([](UnixStream& near, UnixStream& far) -> Task<> {
    const std::vector<int> copies(UnixStream::descriptors_max, STDIN_FILENO);
    EXPECT_TRUE(co_await near.send(bytes_of("x"), copies));
    std::array<std::byte, 1> place;
    const auto received = co_await far.receive(place);
    EXPECT_TRUE(received);
    if (!received) co_return;
    EXPECT_EQ(received->descriptors.size(), 32U);
    EXPECT_TRUE(received->are_descriptors_truncated);
  }(ends->first, ends->second));
}

TEST_P(UnixStreams, closes_descriptors_of_other_control_messages) {
  constexpr int so_passpidfd = 76;  // SO_PASSPIDFD, which older headers lack.
  auto ends = UnixStream::pair(loop());
  ASSERT_TRUE(ends);
  if (!ends->second.set_option(SOL_SOCKET, so_passpidfd, 1))
    GTEST_SKIP() << "the kernel has no SO_PASSPIDFD";
  ASSERT_TRUE(ends->second.set_option(SOL_SOCKET, SO_PASSCRED, 1));
  run([](UnixStream& near, UnixStream& far) -> Task<> {
    for (const std::size_t sent : {0U, 1U}) {
      const std::size_t before = test::open_descriptors();
      const std::vector<int> copies(sent, STDIN_FILENO);
      EXPECT_TRUE(co_await near.send(bytes_of("x"), copies));
      std::array<std::byte, 1> place;
      const auto received = co_await far.receive(place);
      EXPECT_TRUE(received);
      if (!received) co_return;
      EXPECT_EQ(received->descriptors.size(), sent);
      EXPECT_EQ(test::open_descriptors(), before + sent);
    }
  }(ends->first, ends->second));
}

TEST(SimulatedUnixStreams, transfer_bytes_and_reject_unsupported_calls) {
  sim::Simulation simulation(1);
  sim::Host& host = simulation.add_host("one");
  EventLoop loop(host.loop_options());
  auto ends = UnixStream::pair(loop);
  ASSERT_TRUE(ends);
  bool done = false;
  spawn(loop, [](UnixStream near, UnixStream far, bool& ended) -> Task<> {
    EXPECT_TRUE(co_await near.write("hello"));
    std::array<std::byte, 8> place;
    const auto received = co_await far.receive(place);
    EXPECT_TRUE(received && received->size == 5);
    EXPECT_EQ((co_await near.send(bytes_of("x"), std::array{0})).error(), system_error(EOPNOTSUPP));
    ended = true;
  }(std::move(ends->first), std::move(ends->second), done));
  simulation.run();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tambour::unix_test
