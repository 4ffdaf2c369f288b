// A loop inside the loop of another library: fd(), next_deadline() and run_ready(). The host is a
// poll(2) on one descriptor.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::hosting_test {
namespace {

using namespace std::chrono_literals;

class Hosting : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    const auto opened = loop().fd();
    ASSERT_TRUE(opened) << opened.error().message();
    fd = *opened;
  }

  /// One iteration of the host, which waits for at most `limit`. Returns false if it waited to the
  /// end.
  bool iterate(Duration limit) {
    const TimePoint deadline = loop().next_deadline();
    const TimePoint now = Clock::now();
    const bool is_limited = deadline > now && deadline - now > limit;
    const Duration wait = deadline <= now ? 0ns : is_limited ? limit : Duration(deadline - now);
    pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
    const timespec timeout{.tv_sec = wait / 1s, .tv_nsec = (wait % 1s).count()};
    const int count = ::ppoll(&polled, 1, &timeout, nullptr);
    loop().run_ready();
    ++iterations;
    return count != 0 || !is_limited;
  }

  /// Runs until `done()` returns true. Returns false after a minute without an event.
  bool host_until(const std::function<bool()>& done) {
    for (int i = 0; i < 100'000; ++i) {
      if (done()) return true;
      if (!iterate(1min)) return false;
    }
    return false;
  }

  /// Returns whether the host soon waits to the end: nothing is readable.
  bool becomes_idle() {
    for (int i = 0; i < 10; ++i) {
      if (!iterate(20ms)) return true;
    }
    return false;
  }

  auto count() {
    return [this] { ++calls; };
  }

  int fd = -1;
  int calls = 0;
  int iterations = 0;
};

TAMBOUR_ON_EVERY_BACKEND(Hosting);

TEST_P(Hosting, an_idle_loop_does_not_wake_the_host) {
  EXPECT_TRUE(becomes_idle());
  EXPECT_EQ(loop().next_deadline(), never);
}

TEST_P(Hosting, events_of_descriptors_make_fd_readable) {
  const auto pipe = test::open_pipe();
  FdWatcher reader(loop(), pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  EXPECT_TRUE(becomes_idle());
  for (int round = 1; round <= 3; ++round) {
    test::write_to(pipe.far);
    EXPECT_TRUE(host_until([&] { return calls == round; }));
    EXPECT_TRUE(becomes_idle());
  }
  reader.stop();
  test::write_to(pipe.far);
  EXPECT_TRUE(becomes_idle());
  EXPECT_EQ(calls, 3);
  ASSERT_TRUE(reader.start());
  EXPECT_TRUE(host_until([&] { return calls == 4; }));
}

TEST_P(Hosting, levels_are_reported_in_each_iteration) {
  const auto pipe = test::open_pipe();
  FdWatcher reader(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(reader.start());
  test::write_to(pipe.far);
  EXPECT_TRUE(host_until([this] { return calls == 10; }));
}

TEST_P(Hosting, timers_expire_at_the_deadline) {
  TimePoint expired;
  Timer timer(loop(), [&] {
    expired = Clock::now();
    ++calls;
  });
  EXPECT_TRUE(becomes_idle());
  const TimePoint began = Clock::now();
  timer.start(20ms);
  EXPECT_EQ(loop().next_deadline(), timer.deadline());
  EXPECT_TRUE(host_until([this] { return calls == 1; }));
  EXPECT_GE(expired - began, 20ms);
  timer.start(1ms, 2ms);
  EXPECT_TRUE(host_until([this] { return calls == 5; }));
  timer.stop();
  EXPECT_TRUE(becomes_idle());
  timer.start(0ms);
  EXPECT_LE(loop().next_deadline(), Clock::now());
  EXPECT_TRUE(host_until([this] { return calls == 6; }));
}

TEST_P(Hosting, posted_tasks_and_wakeups_make_fd_readable) {
  EXPECT_TRUE(becomes_idle());
  for (int round = 1; round <= 20; ++round) {
    std::jthread poster([this] { loop().post(count()); });
    EXPECT_TRUE(host_until([&] { return calls == round; }));
  }
  EXPECT_TRUE(becomes_idle());
  // A callback of the host posts what uses the loop, after next_deadline().
  static_cast<void>(loop().next_deadline());
  loop().post(count());
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 60'000), 1);
  EXPECT_TRUE(host_until([this] { return calls == 21; }));
  loop().wake();
  EXPECT_EQ(::poll(&polled, 1, 60'000), 1);
  EXPECT_TRUE(becomes_idle());
  // Nothing is lost if run() waits in between.
  static_cast<void>(loop().next_deadline());
  loop().post(count());
  loop().run();
  EXPECT_EQ(calls, 22);
}

TEST_P(Hosting, hooks_signals_and_tasks_of_the_loop_run) {
  Idle idle(loop(), count());
  idle.start();
  EXPECT_LE(loop().next_deadline(), Clock::now());
  EXPECT_TRUE(host_until([this] { return calls >= 3; }));
  idle.stop();
  EXPECT_TRUE(becomes_idle());
  int signals = 0;
  Signal signal(loop(), SIGUSR1, [&](int) { ++signals; });
  ASSERT_TRUE(signal.start());
  EXPECT_TRUE(becomes_idle());
  ::kill(::getpid(), SIGUSR1);
  EXPECT_TRUE(host_until([&] { return signals == 1; }));
  bool is_done = false;
  spawn(loop(), [&]() -> Task<> {
    static_cast<void>(co_await sleep_for(2ms));
    is_done = true;
  });
  EXPECT_TRUE(host_until([&] { return is_done; }));
  EXPECT_TRUE(becomes_idle());
}

TEST_P(Hosting, files_are_read) {
  bool is_done = false;
  spawn(loop(), [&]() -> Task<> {
    auto file = co_await File::open("/proc/self/stat", FileMode::read);
    std::byte bytes[16];
    if (file) is_done = (co_await file->read_at(bytes, 0)).has_value();
  });
  EXPECT_TRUE(host_until([&] { return is_done; }));
  EXPECT_TRUE(becomes_idle());
}

TEST_P(Hosting, regular_files_are_always_ready) {
  const UniqueFd file = test::open_regular_file();
  FdWatcher reader(loop(), file.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(reader.start());
  if (is(BackendKind::io_uring)) {
    run_iterations(5);  // The descriptor of the loop may not become readable.
  } else {
    EXPECT_TRUE(host_until([this] { return calls >= 5; }));
  }
  reader.stop();
  EXPECT_TRUE(becomes_idle());
}

TEST_P(Hosting, fd_stays_the_same_when_registrations_are_lost) {
  // The duplicate keeps the file of the closed descriptor open, and so its registration.
  const auto pipe = test::open_pipe();
  const UniqueFd duplicate(::dup(pipe.near.get()));
  std::optional<FdWatcher> reader(std::in_place, loop(), pipe.near.get(), Events::read,
                                  [this](Events) { ++calls; });
  ASSERT_TRUE(reader->start());
  EXPECT_TRUE(becomes_idle());
  reader.reset();
  // The number means another file from now on.
  const auto other = test::open_socketpair();
  ASSERT_EQ(::dup2(other.near.get(), pipe.near.get()), pipe.near.get());
  test::write_to(pipe.far);
  EXPECT_TRUE(becomes_idle());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(loop().fd(), fd);
  FdWatcher next(loop(), pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(other.near);
  });
  ASSERT_TRUE(next.start());
  EXPECT_TRUE(becomes_idle());
  test::write_to(other.far);
  EXPECT_TRUE(host_until([this] { return calls == 1; }));
  EXPECT_TRUE(becomes_idle());
  EXPECT_EQ(loop().fd(), fd);
}

TEST_P(Hosting, works_in_a_child_after_fork) {
  const auto pipe = test::open_pipe();
  FdWatcher reader(loop(), pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  EXPECT_TRUE(becomes_idle());
  const int status = test::in_child([&] {
    if (!loop().after_fork()) return 1;
    const auto reopened = loop().fd();
    if (!reopened) return 2;
    fd = *reopened;
    test::write_to(pipe.far);
    return host_until([this] { return calls == 1; }) && becomes_idle() ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
  test::write_to(pipe.far);
  EXPECT_TRUE(host_until([this] { return calls == 1; }));
}

TEST_P(Hosting, exceptions_reach_the_host) {
  loop().post([] { throw 7; });
  loop().post(count());
  EXPECT_THROW(loop().run_ready(), int);
  EXPECT_TRUE(host_until([this] { return calls == 1; }));
}

TEST_P(Hosting, fd_fails_without_a_free_descriptor) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  EventLoop other(options());
  {
    const int lowest_free = UniqueFd(::dup(fd)).get();
    const test::OpenFilesLimit limit(static_cast<rlim_t>(lowest_free));
    EXPECT_EQ(other.fd().error(), system_error(EMFILE));
    EXPECT_EQ(other.fd().error(), system_error(EMFILE));
    // The loop works as if fd() had not been called.
    other.post(count());
    other.run();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_TRUE(other.fd());
}

TEST_P(Hosting, loops_can_be_nested_twice) {
  // The host of `loop()` waits for a loop in which a third one is embedded.
  EventLoop inner(options());
  EmbeddedLoop embedded(loop(), inner);
  ASSERT_TRUE(embedded.start());
  const auto pipe = test::open_pipe();
  FdWatcher reader(inner, pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  Timer timer(inner, count());
  timer.start(5ms);
  EXPECT_TRUE(host_until([this] { return calls == 1; }));
  EXPECT_TRUE(becomes_idle());
  test::write_to(pipe.far);
  EXPECT_TRUE(host_until([this] { return calls == 2; }));
}

}  // namespace
}  // namespace tambour::hosting_test
