// sd-event inside a loop, and a loop inside sd-event.
#include <tambour/adapters/sd_event.h>

#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/hosts/host_scenario.h"
#include "support/files.h"

namespace tambour::sd_event_test {
namespace {

using namespace std::chrono_literals;
using adapters::SdEvent;
using adapters::SdEventHost;

using Event = std::unique_ptr<sd_event, decltype(&sd_event_unref)>;
Event open_event() {
  sd_event* event = nullptr;
  EXPECT_EQ(sd_event_new(&event), 0);
  return {event, &sd_event_unref};
}

bool run_until(EventLoop& loop, const std::function<bool()>& done) {
  return test::run_until(loop, done, 1min);
}

TEST(SdEventHosts, run_a_loop) {
  const Event event = open_event();
  EventLoop loop;
  SdEventHost host(loop, event.get());
  ASSERT_TRUE(host.start());
  test::expect_works_in_host(loop, [&](const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + 60s;
    while (!done()) {
      if (Clock::now() > limit || sd_event_run(event.get(), 10'000'000) < 0) return false;
    }
    return true;
  });
  host.stop();
  EXPECT_EQ(sd_event_run(event.get(), 0), 0);
}

TEST(SdEvents, timers_descriptors_and_deferred_sources_are_dispatched) {
  const Event event = open_event();
  EventLoop loop;
  SdEvent systemd(loop, event.get());
  ASSERT_TRUE(systemd.start());
  int calls = 0;
  const auto count_time = [](sd_event_source*, std::uint64_t, void* data) {
    return ++*static_cast<int*>(data), 0;
  };
  const auto began = Clock::now();
  sd_event_add_time_relative(event.get(), nullptr, CLOCK_MONOTONIC, 20'000, 1, count_time, &calls);
  EXPECT_TRUE(run_until(loop, [&] { return calls == 1; }));
  EXPECT_GE(Clock::now() - began, 20ms);
  const auto pipe = test::open_pipe();
  struct Reader {
    const UniqueFd& fd;
    int& count;
  } reader{pipe.near, calls};
  sd_event_add_io(
      event.get(), nullptr, pipe.near.get(), EPOLLIN,
      [](sd_event_source*, int, std::uint32_t, void* data) {
        auto& self = *static_cast<Reader*>(data);
        test::drain(self.fd);
        return ++self.count, 0;
      },
      &reader);
  for (int round = 2; round <= 4; ++round) {
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until(loop, [&] { return calls == round; }));
  }
  const auto count_call = [](sd_event_source*, void* data) {
    return ++*static_cast<int*>(data), 0;
  };
  sd_event_add_defer(event.get(), nullptr, count_call, &calls);
  EXPECT_TRUE(run_until(loop, [&] { return calls == 5; }));
  EXPECT_TRUE(test::host_sleeps(
      loop, [&](const std::function<bool()>& done) { return run_until(loop, done); }));
}

using SdEventsDeathTest = ::testing::Test;

TEST(SdEventsDeathTest, are_not_started_in_a_forked_process) {
  const Event event = open_event();
  const auto start_in_child = [&] {
    EventLoop loop;
    SdEvent systemd(loop, event.get());
    const auto started = systemd.start();
    ::_exit(!started && !systemd.is_started() ? 0 : 1);
  };
  EXPECT_EXIT(start_in_child(), testing::ExitedWithCode(0), "");
}

TEST(SdEvents, an_exit_ends_the_loop) {
  const Event event = open_event();
  EventLoop loop;
  SdEvent systemd(loop, event.get());
  ASSERT_TRUE(systemd.start());
  int exits = 0;
  sd_event_add_exit(
      event.get(), nullptr,
      [](sd_event_source*, void* data) { return ++*static_cast<int*>(data), 0; }, &exits);
  Timer timer(loop, [&] { sd_event_exit(event.get(), 3); });
  timer.start(2ms);
  loop.run();
  EXPECT_EQ(exits, 1);
  EXPECT_FALSE(systemd.is_started());
  int code = 0;
  EXPECT_GE(sd_event_get_exit_code(event.get(), &code), 0);
  EXPECT_EQ(code, 3);
  EXPECT_EQ(systemd.start().error(), system_error(ESTALE));
}

}  // namespace
}  // namespace tambour::sd_event_test
