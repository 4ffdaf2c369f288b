// Timeouts compared with the real clock: none expires before its time, and a loop that waits for
// short timeouts does not spin. Only lower limits of times are checked, so that the tests do not
// depend on how busy the machine is.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

timeval to_timeval(microseconds time) {
  return {.tv_sec = time.count() / 1'000'000, .tv_usec = time.count() % 1'000'000};
}

struct FreeBase {
  void operator()(event_base* base) const { event_base_free(base); }
};
using Base = std::unique_ptr<event_base, FreeBase>;

Base new_base(int flags) {
  event_config* const config = event_config_new();
  event_config_set_flag(config, flags);
  Base base(event_base_new_with_config(config));
  event_config_free(config);
  return base;
}

/// A timeout that records how early it expired.
struct Timeout {
  Timeout(event_base* base, microseconds after)
      : handle(evtimer_new(base, &Timeout::expired, this)), delay(after) {}
  Timeout(const Timeout&) = delete;
  Timeout& operator=(const Timeout&) = delete;
  ~Timeout() { event_free(handle); }

  void start(const timeval* common = nullptr) {
    const timeval time = to_timeval(delay);
    started = Clock::now();
    ASSERT_EQ(event_add(handle, common != nullptr ? common : &time), 0);
  }
  static void expired(evutil_socket_t, short, void* argument) {
    auto& timeout = *static_cast<Timeout*>(argument);
    timeout.elapsed = Clock::now() - timeout.started;
    ++timeout.count;
  }
  [[nodiscard]] bool is_early() const { return elapsed < delay; }

  event* handle;
  microseconds delay;
  Clock::time_point started;
  Clock::duration elapsed{};
  int count = 0;
};

class Timeouts : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(evthread_use_pthreads(), 0); }

  Base base = new_base(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Flags, Timeouts,
                         testing::Values(0, EVENT_BASE_FLAG_PRECISE_TIMER,
                                         EVENT_BASE_FLAG_NO_CACHE_TIME));

int count_early(const std::vector<std::unique_ptr<Timeout>>& timeouts) {
  int early = 0;
  for (const auto& timeout : timeouts) {
    EXPECT_EQ(timeout->count, 1);
    if (timeout->is_early()) ++early;
  }
  return early;
}

TEST_P(Timeouts, added_outside_of_a_callback_do_not_expire_early) {
  std::vector<std::unique_ptr<Timeout>> timeouts;
  for (int i = 1; i <= 40; ++i) {
    timeouts.push_back(std::make_unique<Timeout>(base.get(), i * 500us));
    timeouts.back()->start();
    // The next one begins at another part of a tick of the kernel.
    event_base_loop(base.get(), EVLOOP_ONCE);
  }
  event_base_dispatch(base.get());
  EXPECT_EQ(count_early(timeouts), 0);
}

TEST_P(Timeouts, added_together_do_not_expire_early) {
  std::vector<std::unique_ptr<Timeout>> timeouts;
  for (int i = 1; i <= 40; ++i)
    timeouts.push_back(std::make_unique<Timeout>(base.get(), i * 500us));
  for (const auto& timeout : timeouts) timeout->start();
  event_base_dispatch(base.get());
  EXPECT_EQ(count_early(timeouts), 0);
}

TEST_P(Timeouts, added_by_another_thread_do_not_expire_early) {
  std::vector<std::unique_ptr<Timeout>> timeouts;
  for (int i = 0; i < 40; ++i)
    timeouts.push_back(std::make_unique<Timeout>(base.get(), (i % 4 + 1) * 500us));
  std::thread loop([&] { event_base_loop(base.get(), EVLOOP_NO_EXIT_ON_EMPTY); });
  for (const auto& timeout : timeouts) {
    timeout->start();
    std::this_thread::sleep_for(300us);
  }
  Timeout last(base.get(), 20ms);
  last.start();
  const timeval end = to_timeval(40ms);
  event_base_loopexit(base.get(), &end);
  loop.join();
  EXPECT_EQ(count_early(timeouts), 0);
  EXPECT_FALSE(last.is_early());
}

TEST_P(Timeouts, of_common_length_do_not_expire_early) {
  const timeval length = to_timeval(3ms);
  const timeval* const common = event_base_init_common_timeout(base.get(), &length);
  ASSERT_NE(common, nullptr);
  std::vector<std::unique_ptr<Timeout>> timeouts;
  for (int i = 0; i < 10; ++i) {
    timeouts.push_back(std::make_unique<Timeout>(base.get(), 3ms));
    timeouts.back()->start(common);
    event_base_dispatch(base.get());
  }
  EXPECT_EQ(count_early(timeouts), 0);
}

TEST_P(Timeouts, of_a_polling_loop_do_not_spin) {
  for (const auto period : {1ms, 2ms, 4ms}) {
    const auto started = Clock::now();
    int iterations = 0;
    for (; iterations < 50; ++iterations) {
      const timeval time = to_timeval(period);
      ASSERT_EQ(event_base_loopexit(base.get(), &time), 0);
      event_base_loop(base.get(), EVLOOP_NO_EXIT_ON_EMPTY);
    }
    EXPECT_GE(Clock::now() - started, iterations * period);
  }
}

/// A persistent event is added again with its timeout, which may be near the largest time_t.
TEST_P(Timeouts, of_any_length_are_renewed) {
  constexpr auto longest = std::numeric_limits<time_t>::max();
  constexpr auto usec_max = std::numeric_limits<suseconds_t>::max();
  for (const timeval time :
       {timeval{.tv_sec = longest, .tv_usec = 0}, timeval{.tv_sec = longest, .tv_usec = usec_max},
        timeval{.tv_sec = longest / 2, .tv_usec = 999'999},
        timeval{.tv_sec = 0, .tv_usec = usec_max}}) {
    Timeout timeout(base.get(), 0us);
    event_assign(timeout.handle, base.get(), -1, EV_PERSIST, &Timeout::expired, &timeout);
    ASSERT_EQ(event_add(timeout.handle, &time), 0);
    for (int i = 1; i <= 3; ++i) {
      event_active(timeout.handle, EV_TIMEOUT, 1);
      event_base_loop(base.get(), EVLOOP_NONBLOCK);
      EXPECT_EQ(timeout.count, i) << "invoked once for each activation";
      timeval due{};
      EXPECT_NE(event_pending(timeout.handle, EV_TIMEOUT, &due), 0);
      timeval now{};
      event_base_gettimeofday_cached(base.get(), &now);
      EXPECT_GT(due.tv_sec, now.tv_sec + 1'000'000) << "still in the far future";
    }
  }
}

TEST_P(Timeouts, of_bufferevents_do_not_expire_early) {
  for (int round = 0; round < 10; ++round) {
    std::array<evutil_socket_t, 2> fds{};
    ASSERT_EQ(evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
    evutil_make_socket_nonblocking(fds[0]);
    bufferevent* const stream = bufferevent_socket_new(base.get(), fds[0], BEV_OPT_CLOSE_ON_FREE);
    Clock::time_point expired;
    bufferevent_setcb(
        stream, nullptr, nullptr,
        [](bufferevent*, short, void* at) { *static_cast<Clock::time_point*>(at) = Clock::now(); },
        &expired);
    const timeval time = to_timeval(5ms);
    const auto started = Clock::now();
    bufferevent_set_timeouts(stream, &time, nullptr);
    bufferevent_enable(stream, EV_READ);
    while (expired == Clock::time_point{}) event_base_loop(base.get(), EVLOOP_ONCE);
    EXPECT_GE(expired - started, 5ms);
    bufferevent_free(stream);
    ::close(fds[1]);
  }
}

}  // namespace
