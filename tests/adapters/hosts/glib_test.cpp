// GLib inside a loop, a loop inside GLib, and both at once.
#include <glib.h>

#include <glib-unix.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/adapters/glib.h>
#include <tambour/tambour.h>

#include "adapters/hosts/host_scenario.h"
#include "adapters/hosts/http_in_host.h"
#include "support/files.h"

namespace tambour::glib_test {
namespace {

using namespace std::chrono_literals;
using adapters::GlibContext;
using adapters::GlibHost;

using Context = std::unique_ptr<GMainContext, decltype(&g_main_context_unref)>;
Context open_context() { return {g_main_context_new(), &g_main_context_unref}; }

/// A source of `context` that invokes `function` after each interval until it returns false.
void add_timeout(GMainContext* context, guint interval_ms, std::function<bool()> function) {
  GSource* const source = g_timeout_source_new(interval_ms);
  g_source_set_callback(
      source,
      [](gpointer data) -> gboolean { return (*static_cast<std::function<bool()>*>(data))(); },
      new std::function<bool()>(std::move(function)),
      [](gpointer data) { delete static_cast<std::function<bool()>*>(data); });
  g_source_attach(source, context);
  g_source_unref(source);
}

/// A source that counts what it reads.
GSource* add_reader(GMainContext* context, const UniqueFd& fd, int& count) {
  struct Reader {
    const UniqueFd& fd;
    int& count;
  };
  GSource* const source = g_unix_fd_source_new(fd.get(), G_IO_IN);
  const GUnixFDSourceFunc read = [](gint, GIOCondition, gpointer data) -> gboolean {
    auto& reader = *static_cast<Reader*>(data);
    ++reader.count;
    test::drain(reader.fd);
    return G_SOURCE_CONTINUE;
  };
  g_source_set_callback(source, G_SOURCE_FUNC(read), new Reader{fd, count},
                        [](gpointer data) { delete static_cast<Reader*>(data); });
  g_source_attach(source, context);
  g_source_unref(source);
  return source;
}

/// Runs `loop` until `done()`. Returns false after a minute.
bool run_until(EventLoop& loop, const std::function<bool()>& done) {
  return test::run_until(loop, done, 1min);
}

test::RunHost runner(GMainContext* context) {
  return [context](const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + 60s;
    while (!done()) {
      if (Clock::now() > limit) return false;
      g_main_context_iteration(context, TRUE);
    }
    return true;
  };
}

TEST(GlibHosts, run_a_loop) {
  const Context context = open_context();
  EventLoop loop;
  GlibHost host(loop, context.get());
  ASSERT_TRUE(host.start());
  ASSERT_TRUE(host.start());
  test::expect_works_in_host(loop, runner(context.get()));
  // Sources of GLib start timers of the loop.
  bool is_done = false;
  Timer timer(loop, [&] { is_done = true; });
  add_timeout(context.get(), 2, [&] { return timer.start(3ms), false; });
  EXPECT_TRUE(runner(context.get())([&] { return is_done; }));
  host.stop();
  EXPECT_EQ(g_main_context_iteration(context.get(), FALSE), FALSE);
}

TEST(GlibHosts, stay_responsive_and_idle_with_an_http_client_inside) {
  const Context context = open_context();
  EventLoop loop;
  GlibHost host(loop, context.get());
  ASSERT_TRUE(host.start());
  int ticks = 0;
  add_timeout(context.get(), 50, [&] { return ++ticks, true; });
  test::expect_http_client_in_host(loop, runner(context.get()), ticks);
}

TEST(GlibContexts, timeouts_idle_functions_and_descriptors_are_dispatched) {
  const Context context = open_context();
  EventLoop loop;
  GlibContext glib(loop, context.get());
  ASSERT_TRUE(glib.start());
  int ticks = 0;
  add_timeout(context.get(), 2, [&] { return ++ticks < 5; });
  EXPECT_TRUE(run_until(loop, [&] { return ticks == 5; }));
  const auto pipe = test::open_pipe();
  int reads = 0;
  GSource* const source = add_reader(context.get(), pipe.near, reads);
  for (int round = 1; round <= 3; ++round) {
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until(loop, [&] { return reads == round; }));
  }
  g_source_destroy(source);
  test::write_to(pipe.far);
  // Attached by another thread, which wakes the context.
  int idle_calls = 0;
  std::jthread other([&] {
    g_main_context_invoke(
        context.get(), [](gpointer data) -> gboolean { return ++*static_cast<int*>(data) < 3; },
        &idle_calls);
  });
  EXPECT_TRUE(run_until(loop, [&] { return idle_calls == 3; }));
  EXPECT_EQ(reads, 3);
}

TEST(GlibContexts, an_idle_context_does_not_wake_the_loop) {
  const Context context = open_context();
  EventLoop loop;
  GlibContext glib(loop, context.get());
  ASSERT_TRUE(glib.start());
  const auto pipe = test::open_pipe();
  int reads = 0;
  add_reader(context.get(), pipe.near, reads);
  EXPECT_TRUE(test::host_sleeps(
      loop, [&](const std::function<bool()>& done) { return run_until(loop, done); }));
}

TEST(GlibContexts, a_descriptor_number_may_be_reused_by_another_source) {
  const Context context = open_context();
  EventLoop loop;
  GlibContext glib(loop, context.get());
  ASSERT_TRUE(glib.start());
  const auto pipe = test::open_pipe();
  const auto other = test::open_pipe();
  int reads = 0;
  GSource* source = add_reader(context.get(), pipe.near, reads);
  test::write_to(pipe.far);
  EXPECT_TRUE(run_until(loop, [&] { return reads == 1; }));
  bool is_replaced = false;
  add_timeout(context.get(), 1, [&] {
    g_source_destroy(source);
    ::dup2(other.near.get(), pipe.near.get());
    source = add_reader(context.get(), pipe.near, reads);
    is_replaced = true;
    return false;
  });
  EXPECT_TRUE(run_until(loop, [&] { return is_replaced; }));
  test::write_to(other.far);
  EXPECT_TRUE(run_until(loop, [&] { return reads == 2; }));
}

TEST(GlibContexts, can_be_stopped_and_belong_to_one_thread) {
  const Context context = open_context();
  EventLoop loop;
  GlibContext glib(loop, context.get());
  ASSERT_TRUE(glib.start());
  std::jthread([&] {
    EventLoop other;
    GlibContext second(other, context.get());
    EXPECT_EQ(second.start().error(), system_error(EBUSY));
  }).join();
  glib.stop();
  loop.run();  // Nothing is left.
  int ticks = 0;
  add_timeout(context.get(), 1, [&] { return ++ticks < 2; });
  ASSERT_TRUE(glib.start());
  EXPECT_TRUE(run_until(loop, [&] { return ticks == 2; }));
}

TEST(GlibContexts, a_loop_in_glib_in_a_loop_runs_the_timers_of_all_three_in_order) {
  const Context context = open_context();
  EventLoop outer;
  EventLoop inner;
  GlibContext glib(outer, context.get());
  GlibHost host(inner, context.get());
  ASSERT_TRUE(glib.start());
  ASSERT_TRUE(host.start());
  // Each timer starts the next one, in another loop: a busy machine may delay them.
  std::string order;
  const TimePoint began = Clock::now();
  Timer fourth(outer, [&] { order += 'd'; });
  Timer third(inner, [&] {
    order += 'c';
    fourth.start(5ms);
  });
  Timer first(outer, [&] {
    order += 'a';
    add_timeout(context.get(), 5, [&] {
      order += 'b';
      third.start(5ms);
      return false;
    });
  });
  first.start(5ms);
  EXPECT_TRUE(run_until(outer, [&] { return order.size() == 4; }));
  EXPECT_EQ(order, "abcd");
  EXPECT_GE(Clock::now() - began, 20ms);
  test::expect_works_in_host(
      inner, [&](const std::function<bool()>& done) { return run_until(outer, done); });
}

TEST(GlibContexts, repeating_timers_of_nested_loops_do_not_drift) {
  const Context context = open_context();
  EventLoop outer;
  EventLoop inner;
  GlibContext glib(outer, context.get());
  GlibHost host(inner, context.get());
  ASSERT_TRUE(glib.start());
  ASSERT_TRUE(host.start());
  // A day of timers with an interval of a minute, a minute lasting 200 us. A busy machine skips
  // expiries; the others are where they would be without a delay.
  constexpr auto interval = 200us;
  constexpr int minutes = 24 * 60;
  int late_deadlines = 0;
  int ticks = 0;
  add_timeout(context.get(), 1, [&] { return ++ticks, true; });
  const auto watch = [&](Timer& timer, TimePoint first) {
    if ((timer.deadline() - first) % interval != Duration::zero()) ++late_deadlines;
  };
  TimePoint inner_first;
  TimePoint outer_first;
  Timer inner_timer(inner, [&] { watch(inner_timer, inner_first); });
  Timer outer_timer(outer, [&] { watch(outer_timer, outer_first); });
  inner_timer.start(interval, interval);
  outer_timer.start(interval, interval);
  inner_first = inner_timer.deadline();
  outer_first = outer_timer.deadline();
  EXPECT_TRUE(run_until(outer, [&] {
    return inner_timer.deadline() - inner_first >= minutes * interval &&
           outer_timer.deadline() - outer_first >= minutes * interval;
  }));
  EXPECT_EQ(late_deadlines, 0);
  EXPECT_GT(ticks, 10);
  // Neither has expired early.
  EXPECT_LE(inner_timer.deadline() - interval, Clock::now());
  EXPECT_LE(outer_timer.deadline() - interval, Clock::now());
}

TEST(GlibContexts, work_in_a_loop_that_is_hosted) {
  const Context inside = open_context();
  const Context outside = open_context();
  EventLoop loop;
  GlibHost host(loop, outside.get());
  GlibContext glib(loop, inside.get());
  ASSERT_TRUE(host.start());
  ASSERT_TRUE(glib.start());
  int ticks = 0;
  add_timeout(inside.get(), 2, [&] {
    // A source that a source attaches.
    if (++ticks == 3) add_timeout(inside.get(), 2, [&] { return ++ticks < 6; });
    return ticks < 3;
  });
  EXPECT_TRUE(runner(outside.get())([&] { return ticks == 6; }));
}

}  // namespace
}  // namespace tambour::glib_test
