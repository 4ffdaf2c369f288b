// Pipes as streams, on every backend.
#include <tambour/net/pipe.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/connection.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>

#include "support/on_every_backend.h"

namespace tambour::pipe_test {
namespace {

Task<> write_all(PipeStream to, std::string text) {
  Buffer half(text.substr(0, text.size() / 2));
  half.append(std::string(1, text[text.size() / 2]));
  EXPECT_TRUE(co_await to.write(half));
  EXPECT_TRUE(half.empty());
  EXPECT_TRUE(co_await to.write(std::string_view(text).substr(text.size() / 2 + 1)));
}

Task<> read_all(PipeStream from, Buffer& into) {
  for (;;) {
    const auto got = co_await from.read(into);
    EXPECT_TRUE(got);
    if (!got || *got == 0) co_return;
  }
}

std::string long_text() {
  std::string text(300'001, 'x');
  for (std::size_t i = 0; i < text.size(); i += 7) text[i] = char('a' + i % 26);
  return text;
}

class Pipes : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Pipes);

TEST_P(Pipes, carry_more_than_their_capacity) {
  auto ends = PipeStream::open(loop());
  ASSERT_TRUE(ends);
  const std::string text = long_text();
  Buffer received;
  TaskScope scope(loop());
  scope.spawn(write_all(std::move(ends->writer), text));
  scope.spawn(read_all(std::move(ends->reader), received));
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  EXPECT_EQ(received.size(), text.size());
  EXPECT_TRUE(received == text);
}

TEST_P(Pipes, without_a_reader_fail_with_epipe_and_raise_no_signal) {
  auto ends = PipeStream::open(loop());
  ASSERT_TRUE(ends);
  ends->reader.close();
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  ASSERT_EQ(sigismember(&before, SIGPIPE), 0);
  TaskScope scope(loop());
  scope.spawn([](PipeStream& to) -> Task<> {
    EXPECT_EQ((co_await to.write("x")).error(), system_error(EPIPE));
    Buffer more("y");
    EXPECT_EQ((co_await to.write(more)).error(), system_error(EPIPE));
    EXPECT_EQ(more, "y");
  }(ends->writer));
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  sigset_t after;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  EXPECT_EQ(sigismember(&after, SIGPIPE), 0);
  ASSERT_EQ(sigpending(&after), 0);
  EXPECT_EQ(sigismember(&after, SIGPIPE), 0);
}

TEST_P(Pipes, that_block_are_set_to_non_blocking_mode) {
  std::array<int, 2> fds;
  ASSERT_EQ(::pipe(fds.data()), 0);
  PipeStream reader(loop(), fds[0]);
  const PipeStream writer(loop(), fds[1]);
  EXPECT_NE(::fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
  TaskScope scope(loop());
  Result<std::size_t> got = 0;
  scope.spawn([](PipeStream& from, Result<std::size_t>& result) -> Task<> {
    std::array<std::byte, 8> place;
    result = co_await from.read(place);
  }(reader, got));
  run_iterations();
  scope.request_stop();
  run_iterations();
  EXPECT_TRUE(scope.empty());
  EXPECT_EQ(got.error(), system_error(ECANCELED));
  run([](PipeStream& end) -> Task<> {
    EXPECT_EQ((co_await end.shutdown_write()).error(), system_error(ENOTSOCK));
  }(reader));
}

bool is_nonblocking(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

/// As inetd starts a program: two descriptors of one socket, which cannot be opened again.
struct InheritedSocket {
  InheritedSocket() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    for (int& copy : copies) copy = ::fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
  }
  ~InheritedSocket() {
    for (const int end : ends) ::close(end);
  }

  std::array<int, 2> ends{};
  std::array<int, 2> copies{};  ///< Of ends[0]. The streams own them.
};

TEST_P(Pipes, that_share_an_open_file_stay_non_blocking_until_the_last_is_closed) {
  for (const std::size_t first : {0, 1}) {
    const InheritedSocket inherited;
    std::array<PipeStream, 2> streams{PipeStream(loop(), inherited.copies[0]),
                                      PipeStream(loop(), inherited.copies[1])};
    EXPECT_TRUE(is_nonblocking(inherited.ends[0]));
    streams[first].close();
    EXPECT_TRUE(is_nonblocking(inherited.ends[0]));
    PipeStream moved(std::move(streams[1 - first]));
    EXPECT_TRUE(is_nonblocking(inherited.ends[0]));
    moved.close();
    EXPECT_FALSE(is_nonblocking(inherited.ends[0]));
  }
}

TEST_P(Pipes, whose_open_file_was_non_blocking_stay_non_blocking) {
  const InheritedSocket inherited;
  ASSERT_EQ(::fcntl(inherited.ends[0], F_SETFL, O_RDWR | O_NONBLOCK), 0);
  PipeStream(loop(), inherited.copies[0]).close();
  PipeStream(loop(), inherited.copies[1]).close();
  EXPECT_TRUE(is_nonblocking(inherited.ends[0]));
}

TEST_P(Pipes, over_different_files_clear_only_the_flag_of_their_own) {
  const InheritedSocket one;
  const InheritedSocket two;
  PipeStream of_one(loop(), one.copies[0]);
  PipeStream of_two(loop(), two.copies[0]);
  of_one.close();
  EXPECT_FALSE(is_nonblocking(one.ends[0]));
  EXPECT_TRUE(is_nonblocking(two.ends[0]));
  ::close(one.copies[1]);
  ::close(two.copies[1]);
}

/// Sends `text` through a pipe with two connections and returns what arrived, after EOF.
std::string text_through_connections(EventLoop& loop, const std::string& text,
                                     const std::function<void()>& run) {
  auto ends = PipeStream::open(loop);
  if (!ends) return {};
  std::string received;
  bool reader_closed = false;
  Connection::start(std::move(ends->reader),
                    std::make_shared<const ConnectionCallbacks>(
                        ConnectionCallbacks{.on_message =
                                                [&](Connection&, Buffer& input) {
                                                  received += input.coalesce();
                                                  input.clear();
                                                },
                                            .on_close =
                                                [&](Connection&, Error error) {
                                                  EXPECT_FALSE(error) << error.message();
                                                  reader_closed = true;
                                                }}));
  Connection& writer = Connection::start(
      std::move(ends->writer),
      std::make_shared<const ConnectionCallbacks>(ConnectionCallbacks{
          .on_close = [](Connection&, Error error) { EXPECT_FALSE(error) << error.message(); }}));
  EXPECT_TRUE(writer.send(text));
  EXPECT_GT(writer.unsent(), 0U);
  writer.close_after_write();
  run();
  EXPECT_TRUE(reader_closed);
  return received;
}

TEST_P(Pipes, are_read_and_written_by_connections) {
  const std::string text = long_text();
  EXPECT_TRUE(text_through_connections(loop(), text, [&] { loop().run(); }) == text);
}

TEST_P(Pipes, end_the_connection_of_the_writer_with_epipe_without_a_reader) {
  auto ends = PipeStream::open(loop());
  ASSERT_TRUE(ends);
  Error ended;
  Connection::start(std::move(ends->writer),
                    std::make_shared<const ConnectionCallbacks>(ConnectionCallbacks{
                        .on_close = [&](Connection&, Error error) { ended = error; }}));
  run_iterations();
  ends->reader.close();
  loop().run();
  EXPECT_EQ(ended, system_error(EPIPE));
}

// A terminal that the process shares with others must not stay non-blocking.
TEST_P(Pipes, of_connections_are_restored_to_blocking_mode) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd kept(::dup(ends[0]));
  const UniqueFd far(ends[1]);
  const auto is_blocking = [&] { return (::fcntl(kept.get(), F_GETFL) & O_NONBLOCK) == 0; };
  Connection& connection =
      Connection::start(PipeStream(loop(), ends[0]), std::make_shared<const ConnectionCallbacks>());
  EXPECT_FALSE(is_blocking());
  connection.close();
  loop().run();
  EXPECT_TRUE(is_blocking());
}

TEST(SimulatedPipes, are_read_and_written_by_connections) {
  sim::Simulation simulation(7);
  EventLoop loop(simulation.add_host("one").loop_options());
  const std::string text = long_text();
  EXPECT_TRUE(text_through_connections(loop, text, [&] { simulation.run(); }) == text);
}

TEST(SimulatedPipes, carry_more_than_their_capacity) {
  sim::Simulation simulation(1);
  EventLoop loop(simulation.add_host("one").loop_options());
  auto ends = PipeStream::open(loop);
  ASSERT_TRUE(ends);
  const std::string text = long_text();
  Buffer received;
  spawn(loop, write_all(std::move(ends->writer), text));
  spawn(loop, read_all(std::move(ends->reader), received));
  simulation.run();
  EXPECT_TRUE(received == text);
}

}  // namespace
}  // namespace tambour::pipe_test
