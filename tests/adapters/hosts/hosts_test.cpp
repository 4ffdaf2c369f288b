// A loop inside the loops of libuv and asio, as their users write it: fd(), next_deadline() and
// run_ready().
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include <asio.hpp>
#include <gtest/gtest.h>
#include <uv.h>

#include <tambour/adapters/libev.h>
#include <tambour/adapters/libevent.h>
#include <tambour/tambour.h>

#include "adapters/hosts/host_scenario.h"

namespace tambour::hosts_test {
namespace {

using namespace std::chrono_literals;

/// asio has no hook before its wait. Its handlers use the loop in tasks that they give to post().
class AsioHost {
 public:
  AsioHost(EventLoop& loop, asio::io_context& context)
      : loop_(loop), events_(context, *loop.fd()), timer_(context) {
    wait();
  }
  // The descriptor belongs to the loop.
  ~AsioHost() { events_.release(); }
  AsioHost(const AsioHost&) = delete;
  AsioHost& operator=(const AsioHost&) = delete;

 private:
  void wait() {
    const TimePoint deadline = loop_.next_deadline();
    timer_.expires_at(deadline);
    timer_.async_wait([this](const asio::error_code& error) {
      // The next wait cancels this one.
      if (!error) run();
    });
    if (is_waiting_) return;
    is_waiting_ = true;
    events_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this](const asio::error_code& error) {
                         // The host may have been destroyed.
                         if (error) return;
                         is_waiting_ = false;
                         run();
                       });
  }
  void run() {
    loop_.run_ready();
    wait();
  }

  EventLoop& loop_;
  asio::posix::stream_descriptor events_;
  asio::steady_timer timer_;
  bool is_waiting_ = false;
};

TEST(Hosts, asio_runs_a_loop) {
  EventLoop loop;
  asio::io_context context(1);
  {
    AsioHost host(loop, context);
    const auto run = [&](const std::function<bool()>& done) {
      // What the test has started outside of the loop's callbacks.
      loop.wake();
      while (!done()) {
        if (context.run_one_for(10s) == 0) return false;
      }
      return true;
    };
    test::expect_works_in_host(loop, run);
    // Handlers of asio and timers of the loop alternate.
    std::string order;
    asio::steady_timer first(context, 5ms);
    first.async_wait([&](const asio::error_code&) { order += 'a'; });
    asio::post(context, [&] {
      loop.post([&] {
        spawn(loop, [&]() -> Task<> {
          static_cast<void>(co_await sleep_for(20ms));
          order += 'b';
        });
      });
    });
    EXPECT_TRUE(run([&] { return order.size() == 2; }));
    EXPECT_EQ(order, "ab");
  }
  context.run_for(10ms);
}

/// Before libuv waits, it asks for the deadline.
struct UvHost {
  UvHost(EventLoop& hosted, uv_loop_t* outer) : loop(hosted) {
    uv_poll_init(outer, &events, *loop.fd());
    uv_timer_init(outer, &timer);
    uv_prepare_init(outer, &prepare);
    events.data = timer.data = prepare.data = this;
    uv_poll_start(&events, UV_READABLE, [](uv_poll_t* handle, int, int) {
      static_cast<UvHost*>(handle->data)->loop.run_ready();
    });
    uv_prepare_start(&prepare,
                     [](uv_prepare_t* handle) { static_cast<UvHost*>(handle->data)->set_timer(); });
  }
  void set_timer() {
    const TimePoint deadline = loop.next_deadline();
    if (deadline == never) {
      uv_timer_stop(&timer);
      return;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    uv_update_time(timer.loop);
    uv_timer_start(
        &timer, [](uv_timer_t* handle) { static_cast<UvHost*>(handle->data)->loop.run_ready(); },
        static_cast<std::uint64_t>(std::max<std::int64_t>(left.count(), 0)), 0);
  }

  EventLoop& loop;
  uv_poll_t events{};
  uv_timer_t timer{};
  uv_prepare_t prepare{};
};

TEST(Hosts, libuv_runs_a_loop) {
  EventLoop loop;
  uv_loop_t outer;
  ASSERT_EQ(uv_loop_init(&outer), 0);
  UvHost host(loop, &outer);
  const TimePoint limit = Clock::now() + 60s;
  test::expect_works_in_host(loop, [&](const std::function<bool()>& done) {
    while (!done()) {
      uv_run(&outer, UV_RUN_ONCE);
      if (Clock::now() > limit) return false;
    }
    return true;
  });
  for (auto* handle :
       {reinterpret_cast<uv_handle_t*>(&host.events), reinterpret_cast<uv_handle_t*>(&host.timer),
        reinterpret_cast<uv_handle_t*>(&host.prepare)})
    uv_close(handle, nullptr);
  uv_run(&outer, UV_RUN_DEFAULT);
  EXPECT_EQ(uv_loop_close(&outer), 0);
}

TEST(Hosts, loops_of_drop_ins_need_the_drop_ins) {
  EventLoop loop;
  adapters::LibevLoop ev(loop);
  EXPECT_EQ(ev.start().error(), system_error(ENOSYS));
  EXPECT_EQ(ev.get(), nullptr);
  adapters::LibeventBase base(loop);
  EXPECT_EQ(base.start().error(), system_error(ENOSYS));
  EXPECT_EQ(base.get(), nullptr);
}

}  // namespace
}  // namespace tambour::hosts_test
