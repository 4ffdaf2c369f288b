// Signals that arrive at critical moments, and descriptors that signal handlers must not write to.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/heartbeat.h"
#include "events/signal_slot.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::signal_safety_test {
namespace {

using detail::events::SignalSlot;

/// A loop that counts the SIGUSR1 that it receives.
struct Receiver {
  Receiver() : heartbeat(loop), signal(loop, SIGUSR1, [this](int) { ++received; }) {
    if (!signal.start()) std::abort();
  }
  /// Runs until the count is reached; the time limit of the test bounds it.
  void run_until(int count) {
    while (received < count) loop.run_once();
  }

  EventLoop loop;
  test::Heartbeat heartbeat;
  int received = 0;
  Signal signal;
};

/// A socket pair; no handler may write to its untouched end.
class UntouchedSocket {
 public:
  explicit UntouchedSocket(int at = -1) {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) != 0) std::abort();
    ends_[0].reset(fds[0]);
    ends_[1].reset(fds[1]);
    if (at >= 0 && ::dup2(fds[0], at) != at) std::abort();
  }
  /// Returns true if no byte was written to the untouched end or its duplicate.
  [[nodiscard]] bool untouched() const {
    std::array<char, 16> bytes;
    return ::read(ends_[1].get(), bytes.data(), bytes.size()) < 0 &&
           ::read(ends_[0].get(), bytes.data(), bytes.size()) < 0;
  }

 private:
  std::array<UniqueFd, 2> ends_;
};

bool is_socket(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

TEST(SignalSafety, signal_in_vfork_child_does_not_disable_signals_of_the_parent) {
  Receiver receiver;
  for (int round = 1; round <= 3; ++round) {
    const pid_t child = ::vfork();
    if (child == 0) {
      ::syscall(SYS_kill, ::getpid(), SIGUSR1);
      ::_exit(0);
    }
    ASSERT_GT(child, 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    receiver.loop.run_ready();
    EXPECT_EQ(receiver.received, round - 1) << "the child's signal is not the parent's";
    ::raise(SIGUSR1);
    receiver.run_until(round);
  }
}

TEST(SignalSafety, descriptor_is_closed_with_its_loop) {
  const std::size_t before = test::open_descriptors();
  for (int round = 0; round < 3; ++round) {
    const Receiver receiver;
    EXPECT_GT(test::open_descriptors(), before);
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(SignalSafety, loop_that_follows_closed_descriptors_writes_to_none_of_the_program) {
  EXPECT_EQ(test::in_child([] {
              {
                const Receiver former;
              }
              for (int fd = 3; fd < 64; ++fd) ::close(fd);
              std::vector<UntouchedSocket> sockets(10);
              Receiver receiver;
              ::raise(SIGUSR1);
              receiver.run_until(1);
              for (const UntouchedSocket& socket : sockets) {
                if (!socket.untouched()) return 1;
              }
              return 0;
            }),
            0);
}

TEST(SignalSafety, reopening_after_fork_replaces_no_foreign_descriptor) {
  SignalSlot* const slot = SignalSlot::acquire().value();
  ASSERT_TRUE(slot->watch(SIGUSR1));
  const int number = slot->fd();
  EXPECT_EQ(test::in_child([&] {
              const UntouchedSocket socket(number);
              // Not reopened, as after daemon(3): the slot must not write to the reused number.
              slot->claim();
              ::raise(SIGUSR1);
              if (!socket.untouched()) return 1;
              if (!slot->reopen() || slot->fd() == number) return 2;
              if (!is_socket(number)) return 3;
              const auto come = slot->take_pending();
              if (come != SignalSlot::bit_of(SIGUSR1)) return 4;
              ::close(slot->fd());
              const UntouchedSocket second(slot->fd());
              const int second_number = slot->fd();
              slot->release();
              return is_socket(second_number) ? 0 : 5;
            }),
            0);
  slot->unwatch(SIGUSR1);
  slot->release();
}

TEST(SignalSafety, handlers_on_another_thread_never_write_after_the_loop_is_destroyed) {
  const int rounds = test::sanitized ? 30 : 100;
  Receiver keeps_handler_installed;
  std::atomic<bool> over{false};
  std::jthread sender([&] {
    while (!over) Signal::feed(SIGUSR1);
  });
  for (int round = 0; round < rounds; ++round) {
    std::optional<Receiver> receiver(std::in_place);
    receiver.reset();
    // Probably reuses the number of the loop's eventfd.
    const std::vector<UntouchedSocket> sockets(3);
    std::this_thread::yield();
    for (const UntouchedSocket& socket : sockets) ASSERT_TRUE(socket.untouched());
  }
  over = true;
}

TEST(SignalSafety, handler_blocks_all_signals_and_uses_alternate_stack) {
  const Receiver receiver;
  struct sigaction installed{};
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &installed), 0);
  EXPECT_NE(installed.sa_flags & SA_ONSTACK, 0);
  for (const int number : {SIGHUP, SIGINT, SIGUSR2, SIGCHLD, SIGTERM})
    EXPECT_EQ(sigismember(&installed.sa_mask, number), 1) << number;
}

TEST(SignalSafety, unwatch_returns_whether_the_signal_was_pending) {
  SignalSlot* const slot = SignalSlot::acquire().value();
  ASSERT_TRUE(slot->watch(SIGUSR1));
  SignalSlot::raise(SIGUSR1);
  EXPECT_TRUE(slot->unwatch(SIGUSR1));
  EXPECT_FALSE(slot->any_pending());
  ASSERT_TRUE(slot->watch(SIGUSR1));
  EXPECT_EQ(slot->take_pending(), 0U);
  EXPECT_FALSE(slot->unwatch(SIGUSR1));
  slot->release();
}

TEST(SignalSafety, stopped_signal_is_not_delivered_after_restart) {
  Receiver receiver;
  ::raise(SIGUSR1);
  receiver.signal.stop();
  ASSERT_TRUE(receiver.signal.start());
  receiver.loop.run_ready();
  receiver.loop.run_ready();
  EXPECT_EQ(receiver.received, 0);
}

}  // namespace
}  // namespace tambour::signal_safety_test
