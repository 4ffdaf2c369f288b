// A contract violation aborts with a message, in every build type.
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"

namespace tambour::contracts_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* wrong_thread =
    "EventLoop .created in .*:[0-9]+. used from thread [0-9]+, but it "
    "belongs to thread [0-9]+; (use post|destroy the object on that thread)";

/// The message for a call of `function`.
std::string wrong_thread_in(const std::string& function) {
  return "tambour: " + function + ".. called: " + wrong_thread;
}
/// The message for a call of the member function `function` of an object created in this file.
std::string wrong_thread_of(const std::string& function) {
  return "tambour: " + function +
         ".. called on an object created in .*contracts_test.cpp:[0-9]+: " + wrong_thread;
}
constexpr const char* after_the_end = "after its EventLoop .created in .*[0-9]+. was destroyed";
constexpr const char* in_its_callback =
    "EventLoop .created in .*destroyed inside one of its own callbacks";

/// Use inside EXPECT_DEATH: the thread exists only in the child that the macro creates.
void in_another_thread(const std::function<void()>& body) { std::thread(body).join(); }

class Contracts : public testing::Test {
 protected:
  // Threadsafe style: the dying child is created by fork and exec, so it has no other threads.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  EventLoop loop;
  test::Ends pipe = test::open_pipe();
  FdWatcher watcher{loop, pipe.near.get(), Events::read, [](Events) {}};
  Timer timer{loop, [] {}};
};

TEST_F(Contracts, a_loop_is_run_by_its_own_thread) {
  EXPECT_DEATH(in_another_thread([this] { loop.run(); }), wrong_thread_in("EventLoop::run"));
  EXPECT_DEATH(in_another_thread([this] { loop.run_once(); }),
               wrong_thread_in("EventLoop::run_once"));
  EXPECT_DEATH(in_another_thread([this] { loop.run_ready(); }),
               wrong_thread_in("EventLoop::run_ready"));
  EXPECT_DEATH(in_another_thread([this] { run_pending(loop); }), wrong_thread_in("run_pending"));
}

TEST_F(Contracts, the_internals_of_a_loop_are_controlled_by_its_own_thread) {
  EXPECT_DEATH(in_another_thread([this] { suspend_timers(loop); }),
               wrong_thread_in("suspend_timers"));
  EXPECT_DEATH(in_another_thread([this] { feed_fd(loop, 0, Events::read); }),
               wrong_thread_in("feed_fd"));
  EXPECT_DEATH(in_another_thread([this] { static_cast<void>(pending_count(loop)); }),
               wrong_thread_in("pending_count"));
}

TEST_F(Contracts, a_loop_is_changed_by_its_own_thread) {
  EXPECT_DEATH(in_another_thread([this] { loop.ref(); }), wrong_thread_in("EventLoop::ref"));
  EXPECT_DEATH(in_another_thread([this] { loop.update_now(); }),
               wrong_thread_in("EventLoop::update_now"));
  EXPECT_DEATH(in_another_thread([this] { static_cast<void>(loop.after_fork()); }),
               wrong_thread_in("EventLoop::after_fork"));
}

TEST_F(Contracts, watchers_belong_to_the_thread_of_their_loop) {
  EXPECT_DEATH(in_another_thread([this] { static_cast<void>(watcher.start()); }),
               wrong_thread_of("FdWatcher::start"));
  EXPECT_DEATH(in_another_thread([this] { watcher.set(Events::write); }),
               wrong_thread_of("FdWatcher::set"));
  EXPECT_DEATH(in_another_thread([this] { watcher.set_function([](Events) {}); }),
               wrong_thread_of("FdWatcher::set_function"));
  EXPECT_DEATH(in_another_thread(
                   [this] { FdWatcher other(loop, pipe.near.get(), Events::read, [](Events) {}); }),
               wrong_thread_of("FdWatcher::FdWatcher"));
  ASSERT_TRUE(watcher.start());
  EXPECT_DEATH(in_another_thread([this] { watcher.stop(); }), wrong_thread_of("FdWatcher::stop"));
  EXPECT_DEATH(in_another_thread([this] { FdWatcher moved(std::move(watcher)); }), wrong_thread);
}

TEST_F(Contracts, timers_belong_to_the_thread_of_their_loop) {
  EXPECT_DEATH(in_another_thread([this] { timer.start(1ms); }), wrong_thread_of("Timer::start"));
  EXPECT_DEATH(in_another_thread([this] { timer.start_at(TimePoint()); }),
               wrong_thread_of("Timer::start_at"));
  EXPECT_DEATH(in_another_thread([this] { timer.reset(1ms); }), wrong_thread_of("Timer::reset"));
  EXPECT_DEATH(in_another_thread([this] { timer.reset(); }), wrong_thread_of("Timer::reset"));
  EXPECT_DEATH(in_another_thread([this] { timer.set_function([] {}); }),
               wrong_thread_of("Timer::set_function"));
  EXPECT_DEATH(in_another_thread([this] { Timer other(loop, [] {}); }),
               wrong_thread_of("Timer::Timer"));
  timer.start(1h);
  EXPECT_DEATH(in_another_thread([this] { timer.stop(); }), wrong_thread_of("Timer::stop"));
}

TEST_F(Contracts, tasks_are_spawned_on_the_thread_of_their_loop) {
  const auto nothing = []() -> Task<> { co_return; };
  TaskScope scope(loop);
  EXPECT_DEATH(in_another_thread([&] { scope.spawn(nothing()); }),
               wrong_thread_of("TaskScope::spawn"));
  EXPECT_DEATH(in_another_thread([&] { spawn(loop, nothing()); }), wrong_thread_in("spawn"));
}

TEST_F(Contracts, servers_belong_to_the_thread_of_their_loop) {
  const Endpoint at = Endpoint::loopback_v4(0);
  EXPECT_DEATH(in_another_thread([&] { static_cast<void>(TcpServer::listen(loop, at)); }),
               wrong_thread_in(".*StreamServer<.*>::listen"));
  EXPECT_DEATH(in_another_thread([&] { static_cast<void>(TcpServer::adopt(loop, UniqueFd())); }),
               wrong_thread_in(".*StreamServer<.*>::adopt"));
  auto server = TcpServer::listen(loop, at);
  ASSERT_TRUE(server);
  const auto wrong = [](const char* function) {
    return std::string("tambour: TcpServer::") + function +
           ".. was called on another thread than that of its event loop on the server listening at "
           "127.0.0.1:[0-9]+; post";
  };
  EXPECT_DEATH(in_another_thread([&] { server->stop(); }), wrong("stop"));
  EXPECT_DEATH(in_another_thread([&] { server->serve(ConnectionCallbacks{}); }), wrong("serve"));
  EXPECT_DEATH(in_another_thread([&] { const TcpServer moved(std::move(*server)); }),
               wrong("~TcpServer"));
}

TEST_F(Contracts, a_loop_is_not_destroyed_by_another_thread) {
  auto loop = std::make_unique<EventLoop>();
  EXPECT_DEATH(in_another_thread([&loop] { loop.reset(); }),
               "EventLoop::~EventLoop.. called: EventLoop .created in .*belongs to thread [0-9]+; "
               "destroy the object on that thread");
}

// The C library reuses the stack of a thread that has ended, and with it the thread pointer.
TEST_F(Contracts, a_loop_belongs_to_its_thread_also_after_the_thread_has_ended) {
  std::unique_ptr<EventLoop> loop;
  const auto open_in_another_thread = [&loop] {
    in_another_thread([&loop] { loop = std::make_unique<EventLoop>(); });
  };
  EXPECT_DEATH(
      {
        open_in_another_thread();
        in_another_thread([&loop] { loop.reset(); });
      },
      wrong_thread);
  EXPECT_DEATH(
      {
        open_in_another_thread();
        in_another_thread([&loop] {
          const EventLoop loop_of_this_thread;
          loop->run();
        });
      },
      wrong_thread);
}

TEST_F(Contracts, processes_belong_to_the_thread_of_their_loop) {
  // cat(1) ends when the write end of its input is closed.
  auto process =
      Process::spawn(loop, {.arguments = {"cat"}, .input = Stdio::pipe(), .output = Stdio::null()});
  ASSERT_TRUE(process);
  const auto wrong = [&](const char* function) {
    return std::string("Process::") + function +
           ".. called on an object created in .*contracts_test.*: " + wrong_thread;
  };
  EXPECT_DEATH(in_another_thread([&] { process->terminate(); }), wrong("terminate"));
  EXPECT_DEATH(in_another_thread([&] { static_cast<void>(process->send_signal(SIGTERM)); }),
               wrong("send_signal"));
  EXPECT_DEATH(
      in_another_thread([&] { static_cast<void>(process->send_signal_to_group(SIGTERM)); }),
      wrong("send_signal_to_group"));
  EXPECT_DEATH(in_another_thread([&] { process->on_exit([](const ChildStatus&) {}); }),
               wrong("on_exit"));
  EXPECT_DEATH(in_another_thread([&] { process->release(); }), wrong("release"));
  EXPECT_DEATH(in_another_thread([&] { const Process moved(std::move(*process)); }),
               wrong("~Process"));
  EXPECT_DEATH(in_another_thread([&] { *process = Process(); }), wrong("operator="));
}

TEST_F(Contracts, a_loop_is_not_destroyed_in_its_own_callback) {
  EXPECT_DEATH(
      {
        auto local = std::make_unique<EventLoop>();
        Timer destroyer(*local, [&local] { local.reset(); });
        destroyer.start(0ms);
        local->run();
      },
      in_its_callback);
  EXPECT_DEATH(
      {
        auto loop = std::make_unique<EventLoop>();
        loop->post([&loop] { loop.reset(); });
        loop->run_ready();
      },
      in_its_callback);
}

TEST_F(Contracts, a_server_is_not_destroyed_by_its_own_handlers) {
  auto server =
      std::make_unique<TcpServer>(TcpServer::listen(loop, Endpoint::loopback_v4(0)).value());
  server->serve([&](TcpStream) -> Task<> {
    server.reset();
    co_return;
  });
  const auto connect = [](Endpoint to) -> Task<> {
    static_cast<void>(co_await TcpStream::connect(to));
  };
  EXPECT_DEATH(
      {
        spawn(loop, connect(server->endpoint()));
        loop.run();
      },
      "the server listening at .* was destroyed by a task that it runs; destroy it in");
  EXPECT_DEATH(
      {
        LoopGroup group({.threads = 1});
        auto placement = std::make_unique<TcpServerGroup>(
            TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value());
        placement->serve({.on_connection = [&](Connection&) { placement.reset(); }});
        spawn(loop, connect(placement->endpoint()));
        timer.start(1min);
        loop.run();
      },
      "by a thread of the LoopGroup .created in .*contracts_test.*destroy the server");
}

TEST_F(Contracts, nothing_starts_after_its_loop_is_destroyed) {
  std::optional<EventLoop> loop(std::in_place);
  FdWatcher late_watcher(*loop, pipe.near.get(), Events::read, [](Events) {});
  Timer late_timer(*loop, [] {});
  loop.reset();
  EXPECT_DEATH(static_cast<void>(late_watcher.start()), after_the_end);
  EXPECT_DEATH(late_watcher.set(Events::write), after_the_end);
  EXPECT_DEATH(late_timer.start(1ms), after_the_end);
  EXPECT_DEATH(late_timer.reset(), after_the_end);
}

TEST_F(Contracts, post_and_wake_may_be_called_on_any_thread) {
  int calls = 0;
  in_another_thread([&] {
    loop.post([&calls] { ++calls; });
    loop.wake();
  });
  loop.run();
  EXPECT_EQ(calls, 1);
}

/// Runs `body` in a child and expects what it writes to standard error.
void expect_output(const std::function<void()>& body, const std::string& pattern) {
  const auto run = [&] {
    body();
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), pattern);
}

Task<> sleep_long() { static_cast<void>(co_await sleep_for(1h)); }

class LoopThatNeverRan : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LoopThatNeverRan, is_reported_once_if_it_had_tasks) {
  const auto leave_tasks = [] {
    EventLoop loop;
    loop.post([] {});
    loop.post([] {});
    spawn(loop, sleep_long());
  };
  expect_output(
      [&] {
        leave_tasks();
        leave_tasks();
      },
      "^tambour: EventLoop .created in .*contracts_test.cpp:[0-9]+. destroyed with 1 spawned and 2 "
      "posted tasks, which have not ended: run.. was not called, or nothing kept the loop "
      "running\n$");
}

TEST_F(LoopThatNeverRan, is_not_reported_without_tasks_and_after_run) {
  expect_output([] { const EventLoop loop; }, "^$");
  expect_output(
      [] {
        EventLoop loop;
        loop.run_ready();
        loop.post([] {});
        spawn(loop, sleep_long());
      },
      "^$");
}

TEST_F(LoopThatNeverRan, is_not_reported_if_an_exception_ends_the_program) {
  const auto fail = [] {
    EventLoop loop;
    loop.post([] {});
    throw std::runtime_error("before run()");
  };
  expect_output([&] { EXPECT_THROW(fail(), std::runtime_error); }, "^$");
}

}  // namespace
}  // namespace tambour::contracts_test
