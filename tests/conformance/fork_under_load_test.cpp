// A thousand forks of a busy loop: each child reopens it and works, and the parent, which keeps
// running, loses nothing.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/scale.h"

namespace tambour::fork_under_load_test {
namespace {

using namespace std::chrono_literals;

/// A pipe and the number of bytes read from it.
struct Source {
  Source(EventLoop& loop, Trigger trigger)
      : watcher(loop, pipe.near.get(), Events::read, [this](Events) { read_all(); }, trigger) {
    EXPECT_TRUE(watcher.start());
  }
  void read_all() {
    char bytes[64];
    for (;;) {
      const ssize_t got = ::read(pipe.near.get(), bytes, sizeof bytes);
      if (got <= 0) return;
      count += static_cast<std::size_t>(got);
    }
  }
  test::Ends pipe = test::open_pipe();
  std::atomic<std::size_t> count{0};
  FdWatcher watcher;
};

class ForkUnderLoad : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 6; ++i)
      sources.push_back(std::make_unique<Source>(loop(), i % 2 ? Trigger::edge : Trigger::level));
    timer.emplace(loop(), [this] {
      ++expired;
      arm();
    });
  }

  void TearDown() override {
    sources.clear();
    timer.reset();
    OnEveryBackend::TearDown();
  }

  void arm() {
    ++armed;
    timer->start(100us);
  }

  /// Runs on its own thread: posts and writes, bounded relative to what the loop has processed.
  void make_load(const std::stop_token& stop) {
    constexpr std::size_t far_ahead = 500;
    for (std::size_t i = 0; !stop.stop_requested(); ++i) {
      loop().post([this] { ++tasks_run; });
      ++tasks_posted;
      Source& source = *sources[i % sources.size()];
      test::write_to(source.pipe.far);
      ++written[i % sources.size()];
      while (tasks_posted - tasks_run > far_ahead && !stop.stop_requested())
        std::this_thread::yield();
    }
  }

  /// Runs in the child. Returns 0 if everything that it starts is reported.
  int live_as_child() {
    if (!loop().after_fork()) return 1;
    // Reading from a shared pipe would take data from the parent.
    sources.clear();
    timer->stop();
    Source level(loop(), Trigger::level);
    Source edge(loop(), Trigger::edge);
    bool expired_here = false;
    bool task_ran = false;
    Timer local(loop(), [&expired_here] { expired_here = true; });
    local.start(100us);
    loop().post([&task_ran] { task_ran = true; });
    test::write_to(level.pipe.far);
    test::write_to(edge.pipe.far);
    if (!run_until([&] { return level.count == 1 && edge.count == 1; })) return 2;
    if (!run_until([&] { return expired_here && task_ran; })) return 3;
    return 0;
  }

  void fork_once() {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      int status = 127;
      try {
        status = live_as_child();
      } catch (const std::exception&) {
        status = 126;
      }
      ::_exit(status);
    }
    std::optional<ChildStatus> end;
    Child child(loop(), pid, [&end](const ChildStatus& status) {
      EXPECT_FALSE(end) << "reported twice";
      end = status;
    });
    ASSERT_TRUE(child.start());
    ASSERT_TRUE(run_until([&end] { return end.has_value(); }));
    ASSERT_EQ(end->event, ChildStatus::Event::exited);
    ASSERT_EQ(end->code, 0);
  }

  [[nodiscard]] bool all_reported() const {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i]->count != written[i]) return false;
    }
    return tasks_run == tasks_posted;
  }

  std::vector<std::unique_ptr<Source>> sources;
  std::optional<Timer> timer;
  std::size_t armed = 0;
  std::size_t expired = 0;
  std::size_t written[6] = {};  // Accessed by the thread until it has ended.
  std::atomic<std::size_t> tasks_posted{0};
  std::atomic<std::size_t> tasks_run{0};
};

TAMBOUR_ON_EVERY_BACKEND(ForkUnderLoad);

TEST_P(ForkUnderLoad, each_child_works_and_the_parent_loses_nothing) {
  arm();
  {
    std::jthread load([this](const std::stop_token& stop) { make_load(stop); });
    const std::size_t forks = test::scaled(1000);
    // On a busy machine, the thread may have posted too few tasks: continue until it has.
    for (std::size_t i = 0; (i < forks || tasks_posted <= forks) && !HasFatalFailure(); ++i)
      fork_once();
  }
  EXPECT_TRUE(run_until([this] { return all_reported(); }));
  // Nothing is reported twice.
  run_iterations();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(sources[i]->count, written[i]);
    bytes += written[i];
  }
  EXPECT_EQ(tasks_run, tasks_posted);
  EXPECT_EQ(bytes, tasks_posted);
  EXPECT_GT(bytes, test::scaled(1000)) << "there was no load";
  const std::size_t before = expired;
  EXPECT_TRUE(run_until([&] { return expired > before; }));
  EXPECT_EQ(armed, expired + 1);
}

}  // namespace
}  // namespace tambour::fork_under_load_test
