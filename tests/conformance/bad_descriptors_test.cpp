// An invalid descriptor is reported once, as an error, and does not affect other watchers.
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::bad_descriptors_test {
namespace {

using namespace std::chrono_literals;

/// A descriptor number that is not open and is low enough for select(2).
int closed_number() {
  auto pipe = test::open_pipe();
  const auto high = test::duplicate_above(pipe.near, 800);
  return high.get();
}

class BadDescriptors : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  int calls = 0;
  std::vector<Events> events_seen;
  Error error;

  /// Watches `fd` and records the events and the error.
  FdWatcher& watch(int fd, Events interest) {
    watcher_.emplace(loop(), fd, interest, [this](Events events) {
      events_seen.push_back(events);
      error = watcher_->error();
      if (error) {
        EXPECT_FALSE(watcher_->is_started());
      }
    });
    return *watcher_;
  }

  void expect_reported_once(int errno_value) {
    EXPECT_EQ(events_seen, std::vector{Events::error});
    EXPECT_EQ(error, system_error(errno_value)) << error.message();
    events_seen.clear();
  }

 private:
  std::optional<FdWatcher> watcher_;
};

TAMBOUR_ON_EVERY_BACKEND(BadDescriptors);

TEST_P(BadDescriptors, start_fails_for_a_negative_descriptor) {
  for (const int fd : {-1, -2, std::numeric_limits<int>::min()}) {
    FdWatcher& watcher = watch(fd, Events::read);
    const auto started = watcher.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error(), system_error(EBADF));
    EXPECT_FALSE(watcher.is_started());
    run_iterations();
    EXPECT_TRUE(events_seen.empty()) << "must not be reported by both";
    // The watcher can be reused with a valid descriptor.
    watcher.set(pipe.far.get(), Events::write);
    ASSERT_TRUE(watcher.start());
    run_iterations(1);
    EXPECT_EQ(events_seen, std::vector{Events::write});
    events_seen.clear();
    // Setting a negative descriptor stops a started watcher.
    watcher.set(fd, Events::write);
    EXPECT_FALSE(watcher.is_started());
    run_iterations();
    EXPECT_TRUE(events_seen.empty());
    loop().run();
  }
}

TEST_P(BadDescriptors, a_closed_descriptor_is_reported_once) {
  FdWatcher& watcher = watch(closed_number(), Events::read);
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.is_started());
  // The loop reports the failure and then has nothing left to wait for.
  loop().run();
  expect_reported_once(EBADF);
  EXPECT_TRUE(watcher.error());
  run_iterations();
  EXPECT_TRUE(events_seen.empty());
}

TEST_P(BadDescriptors, the_largest_descriptor_number_is_reported_like_any_other) {
  FdWatcher& watcher = watch(std::numeric_limits<int>::max(), Events::read);
  ASSERT_TRUE(watcher.start());
  loop().run();
  ASSERT_EQ(events_seen, std::vector{Events::error});
  const bool beyond_select = is(BackendKind::select) && error == system_error(ERANGE);
  EXPECT_TRUE(error == system_error(EBADF) || beyond_select) << error.message();
}

TEST_P(BadDescriptors, every_watcher_of_a_closed_descriptor_is_invoked) {
  const int fd = closed_number();
  std::vector<FdWatcher> watchers;
  for (int i = 0; i < 10; ++i) {
    watchers.emplace_back(loop(), fd, Events::read, [this](Events events) {
      ++calls;
      EXPECT_EQ(events, Events::error);
    });
  }
  for (FdWatcher& watcher : watchers) ASSERT_TRUE(watcher.start());
  loop().run();
  EXPECT_EQ(calls, 10);
  for (const FdWatcher& watcher : watchers) EXPECT_EQ(watcher.error(), system_error(EBADF));
}

TEST_P(BadDescriptors, watchers_of_other_descriptors_receive_their_events) {
  FdWatcher good(loop(), pipe.far.get(), Events::write, [this](Events) { ++calls; });
  ASSERT_TRUE(good.start());
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(watch(closed_number(), Events::read).start());
    run_iterations();
    expect_reported_once(EBADF);
    EXPECT_GT(calls, i);
  }
}

TEST_P(BadDescriptors, a_watcher_that_failed_can_be_started_again) {
  const int fd = closed_number();
  FdWatcher& watcher = watch(fd, Events::read);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(watcher.start());
    EXPECT_FALSE(watcher.error());
    run_iterations();
    expect_reported_once(EBADF);
  }
  watcher.set(pipe.near.get(), Events::read);
  ASSERT_TRUE(watcher.start());
  EXPECT_FALSE(watcher.error());
  test::write_to(pipe.far);
  run_iterations(2);
  EXPECT_EQ(events_seen, (std::vector{Events::read, Events::read}));
}

TEST_P(BadDescriptors, a_watcher_that_failed_starts_again_in_its_callback) {
  FdWatcher watcher(loop(), closed_number(), Events::read, [&](Events events) {
    if (++calls == 1) {
      EXPECT_EQ(events, Events::error);
      watcher.set(pipe.near.get(), Events::read);
      EXPECT_TRUE(watcher.start());
    } else {
      EXPECT_EQ(events, Events::read);
    }
  });
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_iterations();
  EXPECT_GE(calls, 2);
}

// Another callback runs after the loop has detected the failure but before it is reported.
TEST_P(BadDescriptors, a_change_to_the_watcher_discards_a_pending_failure) {
  enum class Change : std::uint8_t { stop, start, other_descriptor, destroy };
  for (const Change change :
       {Change::stop, Change::start, Change::other_descriptor, Change::destroy}) {
    calls = 0;
    Error last;
    std::optional<FdWatcher> failing;
    failing.emplace(loop(), closed_number(), Events::read, [&](Events) {
      ++calls;
      last = failing->error();
    });
    Timer changer(loop(), [&] {
      if (change == Change::stop) failing->stop();
      if (change == Change::start) {
        EXPECT_TRUE(failing->start());
      }
      if (change == Change::other_descriptor) failing->set(pipe.near.get(), Events::read);
      if (change == Change::destroy) failing.reset();
    });
    changer.set_priority(priority_max);
    changer.start_at(TimePoint());
    test::write_to(pipe.far);
    ASSERT_TRUE(failing->start());
    run_iterations(2);
    switch (change) {
      case Change::stop:
      case Change::destroy:
        EXPECT_EQ(calls, 0);
        break;
      case Change::start:
        EXPECT_EQ(calls, 1);
        EXPECT_EQ(last, system_error(EBADF));
        break;
      case Change::other_descriptor:
        // Until the failure is reported, the watcher counts as started.
        EXPECT_GE(calls, 1);
        EXPECT_TRUE(failing->is_started());
        failing->stop();
    }
    failing.reset();
    loop().run();
  }
}

TEST_P(BadDescriptors, a_descriptor_closed_while_watched_does_not_make_the_loop_spin) {
  FdWatcher& watcher = watch(pipe.near.get(), Events::read);
  ASSERT_TRUE(watcher.start());
  run_iterations();
  pipe.near.reset(-1);
  EXPECT_TRUE(sleeps_through(50ms));
  // poll(2) and select(2) are passed the descriptor for each wait and detect that it is closed. The
  // other backends still hold the file, or have dropped it without an event.
  if (is(BackendKind::poll) || is(BackendKind::select)) {
    expect_reported_once(EBADF);
    EXPECT_FALSE(watcher.is_started());
  } else {
    EXPECT_TRUE(events_seen.empty());
    watcher.stop();
  }
  loop().run();
  // A new file with the same number can be watched.
  pipe = test::open_pipe();
  test::write_to(pipe.far);
  watcher.set(pipe.near.get(), Events::read);
  ASSERT_TRUE(watcher.start());
  run_iterations(1);
  EXPECT_EQ(events_seen, std::vector{Events::read});
}

TEST_P(BadDescriptors, only_select_rejects_descriptors_above_its_limit) {
  const auto high = test::duplicate_above(pipe.near, FD_SETSIZE);
  if (!high.is_open()) GTEST_SKIP() << "the limit of open files is too low";
  FdWatcher& watcher = watch(high.get(), Events::read);
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_iterations(2);
  if (!is(BackendKind::select)) {
    EXPECT_EQ(events_seen, (std::vector{Events::read, Events::read}));
    return;
  }
  expect_reported_once(ERANGE);
  // The highest descriptor that select(2) can watch.
  const auto highest = test::duplicate_above(pipe.near, FD_SETSIZE - 1);
  ASSERT_EQ(highest.get(), FD_SETSIZE - 1);
  watcher.set(highest.get(), Events::read);
  ASSERT_TRUE(watcher.start());
  run_iterations(1);
  EXPECT_EQ(events_seen, std::vector{Events::read});
}

TEST_P(BadDescriptors, closed_without_read_fails_if_the_backend_cannot_report_it) {
  const auto sockets = test::open_socketpair();
  FdWatcher& watcher = watch(sockets.near.get(), Events::closed);
  ASSERT_TRUE(watcher.start());
  run_iterations();
  if (traits().reports_peer_closed) {
    EXPECT_TRUE(events_seen.empty());
    return;
  }
  expect_reported_once(EOPNOTSUPP);
  watcher.set(Events::closed | Events::read);
  ASSERT_TRUE(watcher.start());
  ASSERT_EQ(::shutdown(sockets.far.get(), SHUT_WR), 0);
  run_iterations(1);
  EXPECT_EQ(events_seen, std::vector{Events::closed | Events::read});
}

TEST_P(BadDescriptors, a_rejected_interest_does_not_affect_other_watchers_of_the_descriptor) {
  const auto sockets = test::open_socketpair();
  FdWatcher writer(loop(), sockets.near.get(), Events::write, [this](Events events) {
    ++calls;
    EXPECT_EQ(events, Events::write);
  });
  ASSERT_TRUE(writer.start());
  run_iterations(1);
  ASSERT_TRUE(watch(sockets.near.get(), Events::closed).start());
  run_iterations(3);
  EXPECT_GE(calls, 3);
  EXPECT_TRUE(writer.is_started());
}

TEST_P(BadDescriptors, a_loop_with_high_descriptors_of_its_own_fails_to_open_or_works) {
  // Occupy every number below FD_SETSIZE.
  destroy_loop();
  std::vector<test::UniqueFd> filler;
  while (filler.empty() || (filler.back().is_open() && filler.back().get() < FD_SETSIZE))
    filler.push_back(test::duplicate_above(pipe.near, 3));
  if (!filler.back().is_open()) GTEST_SKIP() << "the limit of open files is too low";
  const auto opened = EventLoop::open(options());
  if (!opened) {
    EXPECT_TRUE(is(BackendKind::select)) << opened.error().message();
    return;
  }
  // A loop that was created can be woken.
  Timer limit(**opened, [&opened] { (*opened)->stop(); });
  limit.start(1min);
  (*opened)->run_ready();
  (*opened)->run_ready();
  (*opened)->wake();
  (*opened)->run_once();
  EXPECT_TRUE(limit.is_started());
}

}  // namespace
}  // namespace tambour::bad_descriptors_test
