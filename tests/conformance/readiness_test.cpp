// Each kind of file is reported ready exactly when poll(2) reports it, for the requested events
// only.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::readiness_test {
namespace {

constexpr Events all = Events::read | Events::write | Events::closed;

class Readiness : public test::OnEveryBackend {
 protected:
  /// Returns the events that a watcher of `fd` reports in the first iterations.
  Events reported_events(const test::UniqueFd& fd, Events interest) {
    Events seen = Events::none;
    FdWatcher watcher(loop(), fd.get(), interest, [&seen](Events events) { seen |= events; });
    EXPECT_TRUE(watcher.start());
    run_iterations();
    EXPECT_TRUE(watcher.is_started());
    EXPECT_FALSE(watcher.error());
    return seen;
  }
};

TAMBOUR_ON_EVERY_BACKEND(Readiness);

TEST_P(Readiness, a_pipe_is_readable_when_it_holds_data) {
  const auto pipe = test::open_pipe();
  EXPECT_EQ(reported_events(pipe.near, Events::read), Events::none);
  test::write_to(pipe.far);
  EXPECT_EQ(reported_events(pipe.near, Events::read), Events::read);
}

TEST_P(Readiness, a_pipe_is_writable_until_it_is_full) {
  const auto pipe = test::open_pipe();
  EXPECT_EQ(reported_events(pipe.far, Events::write), Events::write);
  test::fill(pipe.far);
  EXPECT_EQ(reported_events(pipe.far, Events::write), Events::none);
  test::drain(pipe.near);
  EXPECT_EQ(reported_events(pipe.far, Events::write), Events::write);
}

TEST_P(Readiness, a_pipe_is_readable_when_its_writers_are_closed) {
  auto pipe = test::open_pipe();
  pipe.far.reset(-1);
  EXPECT_EQ(reported_events(pipe.near, Events::read), Events::read);
}

TEST_P(Readiness, a_pipe_without_readers_is_writable_with_an_error) {
  auto pipe = test::open_pipe();
  pipe.near.reset(-1);
  const Events seen = reported_events(pipe.far, Events::write);
  // select(2) cannot report errors: a descriptor that would not block is ready.
  const bool has_errors = !is(BackendKind::select);
  EXPECT_EQ(seen, has_errors ? Events::write | Events::error : Events::write);
}

TEST_P(Readiness, socket_watchers_receive_only_requested_events) {
  for (const auto open : {&test::open_socketpair, &test::open_tcp}) {
    const auto sockets = open();
    EXPECT_EQ(reported_events(sockets.near, Events::read | Events::write), Events::write);
    test::write_to(sockets.far);
    test::await(sockets.near, Events::read);
    EXPECT_EQ(reported_events(sockets.near, Events::read), Events::read);
    EXPECT_EQ(reported_events(sockets.near, Events::write), Events::write);
    EXPECT_EQ(reported_events(sockets.near, Events::read | Events::write),
              Events::read | Events::write);
  }
}

TEST_P(Readiness, closed_is_reported_when_the_peer_has_shut_down_its_write_side) {
  for (const auto open : {&test::open_socketpair, &test::open_tcp}) {
    const auto sockets = open();
    EXPECT_EQ(reported_events(sockets.near, Events::read | Events::closed), Events::none);
    ASSERT_EQ(::shutdown(sockets.far.get(), SHUT_WR), 0);
    test::await(sockets.near, Events::closed);
    EXPECT_EQ(reported_events(sockets.near, Events::read | Events::closed),
              Events::read | Events::closed);
    EXPECT_EQ(reported_events(sockets.near, all), all);
    EXPECT_EQ(reported_events(sockets.near, Events::read), Events::read);
    if (traits().reports_peer_closed) {
      EXPECT_EQ(reported_events(sockets.near, Events::closed), Events::closed);
    }
  }
}

TEST_P(Readiness, closed_is_reported_when_the_peer_has_closed_its_socket) {
  for (const auto open : {&test::open_socketpair, &test::open_tcp}) {
    auto sockets = open();
    sockets.far.reset(-1);
    test::await(sockets.near, Events::closed);
    EXPECT_EQ(reported_events(sockets.near, all), all);
    if (traits().reports_peer_closed) {
      EXPECT_EQ(reported_events(sockets.near, Events::closed), Events::closed);
    }
  }
}

TEST_P(Readiness, closed_is_reported_before_the_remaining_bytes_are_read) {
  const auto sockets = test::open_socketpair();
  test::write_to(sockets.far);
  EXPECT_EQ(reported_events(sockets.near, Events::read | Events::closed), Events::read);
  ASSERT_EQ(::shutdown(sockets.far.get(), SHUT_WR), 0);
  EXPECT_EQ(reported_events(sockets.near, Events::read | Events::closed),
            Events::read | Events::closed);
}

TEST_P(Readiness, out_of_band_data_is_urgent) {
  const auto sockets = test::open_tcp();
  EXPECT_EQ(reported_events(sockets.near, Events::urgent), Events::none);
  ASSERT_EQ(::send(sockets.far.get(), "!", 1, MSG_OOB), 1);
  test::await(sockets.near, Events::urgent);
  EXPECT_EQ(reported_events(sockets.near, Events::urgent), Events::urgent);
  EXPECT_EQ(reported_events(sockets.near, Events::urgent | Events::write),
            Events::urgent | Events::write);
  char byte = 0;
  ASSERT_EQ(::recv(sockets.near.get(), &byte, 1, MSG_OOB), 1);
  EXPECT_EQ(reported_events(sockets.near, Events::urgent), Events::none);
}

TEST_P(Readiness, plain_data_is_not_urgent) {
  const auto sockets = test::open_tcp();
  test::write_to(sockets.far);
  test::await(sockets.near, Events::read);
  EXPECT_EQ(reported_events(sockets.near, Events::urgent), Events::none);
  EXPECT_EQ(reported_events(sockets.near, Events::urgent | Events::read), Events::read);
}

// The data arrives while the watcher waits: the kernel wakes waiters for any kind of data.
TEST_P(Readiness, data_that_arrives_during_the_wait_is_reported_as_urgent_or_plain) {
  for (const Trigger trigger : {Trigger::level, Trigger::edge}) {
    const auto sockets = test::open_tcp();
    Events seen = Events::none;
    FdWatcher both(
        loop(), sockets.near.get(), Events::read | Events::urgent,
        [&seen](Events events) { seen |= events; }, trigger);
    ASSERT_TRUE(both.start());
    run_iterations();
    EXPECT_EQ(seen, Events::none);
    test::write_to(sockets.far);
    test::await(sockets.near, Events::read);
    run_iterations();
    EXPECT_EQ(seen, Events::read);
    test::drain(sockets.near);
    seen = Events::none;
    ASSERT_EQ(::send(sockets.far.get(), "!", 1, MSG_OOB), 1);
    test::await(sockets.near, Events::urgent);
    run_iterations();
    EXPECT_EQ(seen, Events::urgent);
  }
}

TEST_P(Readiness, plain_data_that_arrives_during_the_wait_is_not_urgent) {
  for (const Trigger trigger : {Trigger::level, Trigger::edge}) {
    const auto sockets = test::open_tcp();
    Events seen = Events::none;
    FdWatcher urgent(
        loop(), sockets.near.get(), Events::urgent, [&seen](Events events) { seen |= events; },
        trigger);
    ASSERT_TRUE(urgent.start());
    run_iterations();
    for (int round = 0; round < 3; ++round) {
      test::write_to(sockets.far);
      test::await(sockets.near, Events::read);
      run_iterations();
      EXPECT_EQ(seen, Events::none);
    }
    ASSERT_EQ(::send(sockets.far.get(), "!", 1, MSG_OOB), 1);
    ASSERT_TRUE(run_until([&seen] { return seen != Events::none; }));
    EXPECT_EQ(seen, Events::urgent);
  }
}

TEST_P(Readiness, a_refused_connection_is_reported_with_its_error) {
  const auto refused = test::open_refused();
  Events seen = Events::none;
  FdWatcher watcher(loop(), refused.get(), Events::write, [&](Events events) {
    seen |= events;
    // SO_ERROR is the socket's error; the watcher itself has not failed.
    EXPECT_TRUE(watcher.is_started());
    EXPECT_FALSE(watcher.error());
  });
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(run_until([&seen] { return seen != Events::none; }));
  EXPECT_TRUE(has(seen, Events::write));
  EXPECT_TRUE(has(seen, Events::error) || is(BackendKind::select));
  int error = 0;
  socklen_t size = sizeof error;
  ASSERT_EQ(::getsockopt(refused.get(), SOL_SOCKET, SO_ERROR, &error, &size), 0);
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST_P(Readiness, an_eventfd_is_readable_when_its_counter_is_positive) {
  const auto counter = test::open_eventfd();
  EXPECT_EQ(reported_events(counter, Events::read | Events::write), Events::write);
  test::write_to(counter, std::string_view("\1\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(reported_events(counter, Events::read), Events::read);
}

TEST_P(Readiness, a_regular_file_is_always_ready) {
  const auto file = test::open_regular_file();
  EXPECT_EQ(reported_events(file, Events::read), Events::read);
  EXPECT_EQ(reported_events(file, Events::write), Events::write);
  EXPECT_EQ(reported_events(file, Events::read | Events::write), Events::read | Events::write);
}

TEST_P(Readiness, a_regular_file_is_ready_in_each_iteration_while_watched) {
  const auto file = test::open_regular_file();
  int calls = 0;
  FdWatcher watcher(loop(), file.get(), Events::read, [&calls](Events) { ++calls; });
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(watcher.start());
    run_iterations(4);
    EXPECT_GE(calls, 4 * round - 1);
    watcher.stop();
    const int before = calls;
    run_iterations(4);
    EXPECT_EQ(calls, before);
    calls = 4 * round;
  }
}

TEST_P(Readiness, a_regular_file_is_never_urgent_and_never_closed) {
  const auto file = test::open_regular_file();
  EXPECT_EQ(reported_events(file, Events::urgent), Events::none);
  if (traits().reports_peer_closed) {
    EXPECT_EQ(reported_events(file, Events::closed), Events::none);
  }
}

TEST_P(Readiness, a_regular_file_serves_watchers_with_different_interests) {
  const auto file = test::open_regular_file();
  Events seen_read = Events::none;
  Events seen_write = Events::none;
  FdWatcher reader(loop(), file.get(), Events::read, [&](Events events) { seen_read |= events; });
  FdWatcher writer(loop(), file.get(), Events::write, [&](Events events) { seen_write |= events; });
  ASSERT_TRUE(reader.start());
  run_iterations();
  ASSERT_TRUE(writer.start());
  run_iterations();
  EXPECT_EQ(seen_read, Events::read);
  EXPECT_EQ(seen_write, Events::write);
}

TEST_P(Readiness, is_still_reported_after_the_watcher_of_a_higher_descriptor_stopped) {
  const auto pipe = test::open_pipe();
  for (const Events interest : {Events::read, Events::write, Events::urgent}) {
    // The simulator has no urgent data.
    if (interest == Events::urgent && is(BackendKind::simulated)) continue;
    const auto sockets = test::open_tcp();
    const auto higher = test::duplicate_above(pipe.near, sockets.near.get() + 50);
    Events seen = Events::none;
    FdWatcher watcher(loop(), sockets.near.get(), interest, [&](Events events) { seen |= events; });
    FdWatcher beside(loop(), higher.get(), Events::read, [](Events) { FAIL(); });
    ASSERT_TRUE(watcher.start());
    ASSERT_TRUE(beside.start());
    run_iterations();
    beside.stop();
    run_iterations();
    seen = Events::none;
    ASSERT_EQ(::send(sockets.far.get(), "!", 1, interest == Events::urgent ? MSG_OOB : 0), 1);
    test::await(sockets.near, interest);
    run_iterations();
    EXPECT_EQ(seen, interest);
  }
}

// A hang-up is reported even if not requested. It must not make the loop spin if the watcher
// requested no event that a hang-up makes ready.
TEST_P(Readiness, a_hang_up_does_not_spin_a_watcher_of_urgent_data) {
  auto sockets = test::open_socketpair();
  int calls = 0;
  FdWatcher watcher(loop(), sockets.near.get(), Events::urgent, [&](Events) {
    ++calls;
    watcher.stop();
  });
  ASSERT_TRUE(watcher.start());
  run_iterations();
  EXPECT_EQ(calls, 0);
  sockets.far.reset(-1);
  using namespace std::chrono_literals;
  EXPECT_TRUE(sleeps_through(50ms));
  EXPECT_LE(calls, 1);
}

TEST_P(Readiness, a_watcher_without_interest_is_not_invoked) {
  const auto pipe = test::open_pipe();
  test::write_to(pipe.far);
  EXPECT_EQ(reported_events(pipe.near, Events::none), Events::none);
}

// set(Events::none) withdraws the registration from the kernel although the watcher stays started.
TEST_P(Readiness, a_watcher_whose_interest_was_cleared_does_not_make_the_loop_spin) {
  using namespace std::chrono_literals;
  const auto full = test::open_pipe();
  auto broken = test::open_pipe();
  test::write_to(full.far);
  broken.near.reset(-1);
  const std::pair<int, Events> cases[] = {{full.near.get(), Events::read},
                                          {broken.far.get(), Events::write}};
  for (const auto& [fd, interest] : cases) {
    int calls = 0;
    FdWatcher watcher(loop(), fd, interest, [&calls](Events) { ++calls; });
    ASSERT_TRUE(watcher.start());
    run_iterations();
    EXPECT_GT(calls, 0);
    watcher.set(Events::none);
    calls = 0;
    EXPECT_TRUE(sleeps_through(50ms));
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(watcher.is_started());
    watcher.set(interest);
    run_iterations();
    EXPECT_GT(calls, 0);
  }
}

}  // namespace
}  // namespace tambour::readiness_test
