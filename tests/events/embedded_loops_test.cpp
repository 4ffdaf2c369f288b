// A loop embedded in another: the outer loop runs everything that is due in the inner one.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::embedded_loops_test {
namespace {

using namespace std::chrono_literals;

/// The outer loop runs on every backend, the inner one on each backend that can be embedded.
class EmbeddedLoops : public test::OnEveryBackend {
 protected:
  template <class F>
  void with_each_inner(F&& f) {
    for (const BackendKind kind :
         {BackendKind::epoll, BackendKind::io_uring, BackendKind::poll, BackendKind::select}) {
      EventLoop local({.backend = kind});
      if (local.backend().kind != kind) continue;
      SCOPED_TRACE(local.backend().name);
      EmbeddedLoop embedded(loop(), local);
      const auto started = embedded.start();
      ASSERT_TRUE(started) << started.error().message();
      ASSERT_TRUE(embedded.is_started());
      calls = 0;
      f(local, embedded);
    }
  }

  auto count() {
    return [this] { ++calls; };
  }

  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(EmbeddedLoops);

TEST_P(EmbeddedLoops, a_function_replaces_the_iteration_of_the_inner_loop) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop& embedded) {
    int posted = 0;
    inner.post([&posted] { ++posted; });
    embedded.set_function([this, &posted] {
      ++calls;
      EXPECT_EQ(posted, 0);
    });
    run_iterations();
    EXPECT_GT(calls, 0);
    EXPECT_EQ(posted, 0);
    embedded.set_function({});
    run_iterations();
    EXPECT_EQ(posted, 1);
  });
}

TEST_P(EmbeddedLoops, events_of_the_inner_loop_are_reported) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    const auto pipe = test::open_pipe();
    FdWatcher reader(inner, pipe.near.get(), Events::read, [&](Events) {
      ++calls;
      test::drain(pipe.near);
    });
    ASSERT_TRUE(reader.start());
    EXPECT_TRUE(sleeps_through(10ms));
    for (int round = 1; round <= 3; ++round) {
      test::write_to(pipe.far);
      EXPECT_TRUE(run_until([&] { return calls == round; }));
    }
    reader.stop();
    test::write_to(pipe.far);
    run_iterations();
    EXPECT_EQ(calls, 3);
    // Started while the outer loop runs.
    Timer later(loop(), [&reader] { ASSERT_TRUE(reader.start()); });
    later.start(1ms);
    EXPECT_TRUE(run_until([&] { return calls == 4; }));
    EXPECT_TRUE(sleeps_through(20ms));
  });
}

TEST_P(EmbeddedLoops, levels_are_reported_in_each_iteration) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    const auto pipe = test::open_pipe();
    FdWatcher reader(inner, pipe.near.get(), Events::read, [this](Events) { ++calls; });
    ASSERT_TRUE(reader.start());
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until([this] { return calls == 10; }));
  });
}

TEST_P(EmbeddedLoops, timers_of_the_inner_loop_expire_on_time) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    const auto began = Clock::now();
    Timer timer(inner, count());
    timer.start(20ms);
    EXPECT_TRUE(run_until([this] { return calls == 1; }));
    EXPECT_GE(Clock::now() - began, 20ms);
    timer.start(1ms, 2ms);
    EXPECT_TRUE(run_until([this] { return calls == 5; }));
    timer.stop();
    EXPECT_TRUE(sleeps_through(20ms));
    EXPECT_EQ(calls, 5);
    WallTimer wall(inner, count());
    ASSERT_TRUE(wall.start_at(WallTime::clock::now() + 2ms));
    EXPECT_TRUE(run_until([this] { return calls == 6; }));
  });
}

TEST_P(EmbeddedLoops, posts_to_the_inner_loop_wake_the_outer_loop) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    Async async(inner, count());
    async.start();
    for (int round = 0; round < 20; ++round) {
      std::jthread poster([&] { inner.post([this] { ++calls; }); });
      EXPECT_TRUE(run_until([&] { return calls == round + 1; }));
    }
    std::jthread sender([&] { async.send(); });
    EXPECT_TRUE(run_until([&] { return calls == 21; }));
    inner.post(count());
    EXPECT_TRUE(run_until([&] { return calls == 22; }));
  });
}

TEST_P(EmbeddedLoops, hooks_and_signals_of_the_inner_loop_run) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    std::optional<Idle> idle;
    idle.emplace(inner, [&] {
      if (++calls == 5) idle.reset();
    });
    idle->start();
    EXPECT_TRUE(run_until([&] { return calls == 5; }));
    Signal signal(inner, SIGUSR1, [this](int) { ++calls; });
    ASSERT_TRUE(signal.start());
    run_iterations();
    ::raise(SIGUSR1);
    EXPECT_TRUE(run_until([&] { return calls == 6; }));
    EXPECT_TRUE(sleeps_through(10ms));
  });
}

TEST_P(EmbeddedLoops, loops_may_be_embedded_in_each_other_but_not_in_circles) {
  EventLoop middle({.backend = BackendKind::epoll});
  EventLoop innermost({.backend = BackendKind::epoll});
  EmbeddedLoop outer_link(loop(), middle);
  EmbeddedLoop inner_link(middle, innermost);
  ASSERT_TRUE(outer_link.start());
  ASSERT_TRUE(inner_link.start());
  EmbeddedLoop circle(innermost, middle);
  EXPECT_EQ(circle.start().error(), system_error(ELOOP));
  EmbeddedLoop itself(middle, middle);
  EXPECT_EQ(itself.start().error(), system_error(ELOOP));
  EmbeddedLoop again(loop(), innermost);
  EXPECT_EQ(again.start().error(), system_error(EBUSY));
  Timer timer(innermost, count());
  timer.start(5ms);
  EXPECT_TRUE(run_until([this] { return calls == 1; }));
  std::jthread poster([&] { innermost.post(count()); });
  EXPECT_TRUE(run_until([this] { return calls == 2; }));
}

TEST_P(EmbeddedLoops, a_simulated_loop_cannot_be_embedded) {
  sim::Simulation simulation(1);
  EventLoop inner(simulation.add_host("host").loop_options());
  EXPECT_FALSE(EmbeddedLoop::possible(inner));
  EmbeddedLoop embedded(loop(), inner);
  EXPECT_EQ(embedded.start().error(), system_error(EOPNOTSUPP));
  EXPECT_FALSE(embedded.is_started());
  EXPECT_EQ(inner.fd().error(), system_error(EOPNOTSUPP));
  EXPECT_TRUE(EmbeddedLoop::possible(loop()));
}

TEST_P(EmbeddedLoops, a_custom_callback_decides_when_to_run_the_inner_loop) {
  EventLoop inner({.backend = BackendKind::epoll});
  int asked = 0;
  std::optional<EmbeddedLoop> embedded;
  embedded.emplace(loop(), inner, [&] {
    if (++asked % 3 == 0) embedded->run_inner();
  });
  ASSERT_TRUE(embedded->start());
  const auto pipe = test::open_pipe();
  FdWatcher reader(inner, pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  test::write_to(pipe.far);
  EXPECT_TRUE(run_until([this] { return calls == 1; }));
  EXPECT_GE(asked, 3);
}

TEST_P(EmbeddedLoops, a_stopped_embedded_loop_is_not_run) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop& embedded) {
    inner.post(count());
    run_iterations(1);
    EXPECT_EQ(calls, 1);
    inner.post(count());
    embedded.stop();
    EXPECT_FALSE(embedded.is_started());
    EXPECT_EQ(loop().stats().references, 0);
    run_iterations();
    EXPECT_EQ(calls, 1);
    inner.run_ready();
    EXPECT_EQ(calls, 2);
    ASSERT_TRUE(embedded.start());
    inner.post(count());
    EXPECT_TRUE(run_until([this] { return calls == 3; }));
  });
}

TEST_P(EmbeddedLoops, the_inner_loop_can_also_be_run_directly) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    Timer timer(inner, count());
    timer.start(2ms);
    run_iterations(1);
    inner.run();
    EXPECT_EQ(calls, 1);
    timer.start(2ms);
    EXPECT_TRUE(run_until([this] { return calls == 2; }));
  });
}

TEST_P(EmbeddedLoops, an_embedded_loop_is_moved_and_destroyed_in_callbacks_of_both_loops) {
  for (const bool in_inner : {true, false}) {
    EventLoop inner({.backend = BackendKind::epoll});
    std::optional<EmbeddedLoop> embedded;
    embedded.emplace(loop(), inner);
    ASSERT_TRUE(embedded->start());
    EmbeddedLoop elsewhere(std::move(*embedded));
    embedded.emplace(std::move(elsewhere));
    EXPECT_TRUE(embedded->is_started());
    calls = 0;
    Timer other(inner, [this] { calls += 10; });
    Timer timer(in_inner ? inner : loop(), [&] {
      ++calls;
      embedded.reset();
      other.start(1ms);
    });
    timer.start(1ms);
    EXPECT_TRUE(run_until([this] { return calls == 1; }));
    run_for(20ms);
    EXPECT_EQ(calls, 1);
  }
}

TEST_P(EmbeddedLoops, either_loop_may_be_destroyed_first) {
  {
    std::optional<EventLoop> inner;
    inner.emplace(LoopOptions{.backend = BackendKind::epoll});
    EmbeddedLoop embedded(loop(), *inner);
    ASSERT_TRUE(embedded.start());
    inner->post(count());
    run_iterations();
    EXPECT_EQ(calls, 1);
    inner.reset();
    EXPECT_FALSE(embedded.is_started());
    run_iterations();
    embedded.run_inner();
    EXPECT_EQ(loop().stats().references, 0);
  }
  EventLoop inner({.backend = BackendKind::epoll});
  EmbeddedLoop embedded(loop(), inner);
  ASSERT_TRUE(embedded.start());
  run_iterations();
  destroy_loop();
  EXPECT_FALSE(embedded.is_started());
  inner.post(count());
  inner.run();
  EXPECT_EQ(calls, 2);
}

TEST_P(EmbeddedLoops, an_exception_of_the_inner_loop_propagates_through_the_outer_loop) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    inner.post([] { throw std::runtime_error("from within"); });
    EXPECT_THROW(run_iterations(), std::runtime_error);
    inner.post(count());
    EXPECT_TRUE(run_until([this] { return calls == 1; }));
  });
}

TEST_P(EmbeddedLoops, a_recreated_epoll_instance_is_watched) {
  EventLoop inner({.backend = BackendKind::epoll});
  EmbeddedLoop embedded(loop(), inner);
  ASSERT_TRUE(embedded.start());
  // A registration kept alive by a duplicate can only be dropped by recreating the epoll instance.
  auto duplicated = test::open_pipe();
  test::UniqueFd duplicate;
  {
    FdWatcher brief(inner, duplicated.near.get(), Events::read, [](Events) {});
    ASSERT_TRUE(brief.start());
    run_iterations();
    duplicate = test::UniqueFd(::dup(duplicated.near.get()));
    duplicated.near.reset(-1);
  }
  const auto pipe = test::open_pipe();
  FdWatcher reader(inner, pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  run_iterations();
  for (int round = 1; round <= 3; ++round) {
    test::write_to(duplicated.far);
    run_iterations();
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until([&] { return calls == round; }));
  }
  EXPECT_TRUE(sleeps_through(20ms));
}

/// The second time, the new instance has the number of the first one.
TEST_P(EmbeddedLoops, an_epoll_instance_that_is_recreated_twice_is_watched) {
  EventLoop inner({.backend = BackendKind::epoll});
  EmbeddedLoop embedded(loop(), inner);
  ASSERT_TRUE(embedded.start());
  const auto pipe = test::open_pipe();
  FdWatcher reader(inner, pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  run_iterations();
  const auto recreate = [&inner] {
    auto duplicated = test::open_pipe();
    test::UniqueFd duplicate;
    {
      FdWatcher brief(inner, duplicated.near.get(), Events::read, [](Events) {});
      ASSERT_TRUE(brief.start());
      inner.run_ready();
      duplicate = test::UniqueFd(::dup(duplicated.near.get()));
      duplicated.near.reset(-1);
    }
    test::write_to(duplicated.far);
    for (int i = 0; i < 3; ++i) inner.run_ready();
  };
  for (int times = 1; times <= 4; ++times) {
    for (int i = 0; i < times; ++i) recreate();
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until([&] { return calls == times; })) << times;
  }
}

TEST_P(EmbeddedLoops, both_work_after_a_fork) {
  with_each_inner([this](EventLoop& inner, EmbeddedLoop&) {
    const auto pipe = test::open_pipe();
    FdWatcher reader(inner, pipe.near.get(), Events::read, [&](Events) {
      ++calls;
      test::drain(pipe.near);
    });
    ASSERT_TRUE(reader.start());
    run_iterations();
    EXPECT_EQ(test::in_child([&] {
                if (!loop().after_fork() || !inner.after_fork()) return 1;
                test::write_to(pipe.far);
                if (!run_until([this] { return calls == 1; })) return 2;
                std::jthread poster([&] { inner.post(count()); });
                return run_until([this] { return calls == 2; }) ? 0 : 3;
              }),
              0);
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until([this] { return calls == 1; }));
  });
}

}  // namespace
}  // namespace tambour::embedded_loops_test
