// Streams over descriptors whose open file description other processes share: terminals and
// inherited pipes.
#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/base/unique_fd.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/pipe.h>
#include <tambour/task/scope.h>

namespace tambour::terminal_test {
namespace {

bool is_non_blocking(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

struct Pty {
  Pty() {
    int ends[2];
    if (::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0) return;
    master = UniqueFd(ends[0]);
    terminal = UniqueFd(ends[1]);
  }
  UniqueFd master;
  UniqueFd terminal;  ///< The shell's.
};

/// Returns the next line.
std::string read_some(EventLoop& loop, PipeStream& stream) {
  std::string text;
  spawn(loop, [](PipeStream& from, std::string& into) -> Task<> {
    Buffer buffer;
    EXPECT_TRUE(co_await from.read(buffer));
    into = buffer.to_string();
  }(stream, text));
  loop.run();
  return text;
}

TEST(SharedTerminals, stay_blocking_for_the_shell) {
  Pty pty;
  if (!pty.terminal.is_open()) GTEST_SKIP() << "no pseudoterminals here";
  EventLoop loop;
  {
    const int inherited = ::dup(pty.terminal.get());
    PipeStream stream(loop, inherited);
    EXPECT_EQ(stream.fd(), inherited);
    EXPECT_TRUE(is_non_blocking(inherited));
    EXPECT_FALSE(is_non_blocking(pty.terminal.get()));
    EXPECT_EQ(::isatty(inherited), 1);
    ASSERT_EQ(::write(pty.master.get(), "hello\n", 6), 6);
    EXPECT_EQ(read_some(loop, stream), "hello\n");
  }
  EXPECT_FALSE(is_non_blocking(pty.terminal.get()));
}

TEST(SharedTerminals, standard_descriptors_of_one_open_file_are_streams_side_by_side) {
  Pty pty;
  if (!pty.terminal.is_open()) GTEST_SKIP() << "no pseudoterminals here";
  EventLoop loop;
  PipeStream output(loop, ::dup(pty.terminal.get()));
  {
    const PipeStream input(loop, ::dup(pty.terminal.get()));
    EXPECT_TRUE(is_non_blocking(input.fd()));
  }
  EXPECT_TRUE(is_non_blocking(output.fd()));
  EXPECT_FALSE(is_non_blocking(pty.terminal.get()));
}

TEST(SharedTerminals, the_master_of_a_pseudoterminal_is_not_opened_again) {
  Pty pty;
  if (!pty.terminal.is_open()) GTEST_SKIP() << "no pseudoterminals here";
  EventLoop loop;
  {
    PipeStream stream(loop, ::dup(pty.master.get()));
    EXPECT_TRUE(is_non_blocking(stream.fd()));
    ASSERT_EQ(::write(pty.terminal.get(), "hello", 5), 5);
    EXPECT_EQ(read_some(loop, stream), "hello");
  }
  // The flag was shared in the meantime, and was restored when the stream ended.
  EXPECT_FALSE(is_non_blocking(pty.master.get()));
}

TEST(SharedTerminals, stay_blocking_where_there_is_no_descriptor_to_open_them_again) {
  Pty pty;
  if (!pty.terminal.is_open()) GTEST_SKIP() << "no pseudoterminals here";
  EventLoop loop;
  const int inherited = ::dup(pty.terminal.get());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  PipeStream stream(loop, inherited);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_non_blocking(inherited));
  PipeStream moved(std::move(stream));
  EXPECT_TRUE(is_non_blocking(inherited));
  moved.close();
  EXPECT_FALSE(is_non_blocking(pty.terminal.get()));
}

TEST(SharedPipes, stay_blocking_for_other_processes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  EventLoop loop;
  PipeStream in(loop, ::dup(reader.get()));
  PipeStream out(loop, ::dup(writer.get()));
  EXPECT_TRUE(is_non_blocking(in.fd()) && is_non_blocking(out.fd()));
  EXPECT_FALSE(is_non_blocking(reader.get()) || is_non_blocking(writer.get()));
  ASSERT_EQ(::write(out.fd(), "hello", 5), 5);
  EXPECT_EQ(read_some(loop, in), "hello");
}

}  // namespace
}  // namespace tambour::terminal_test
