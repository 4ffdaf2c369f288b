// For every pair of watcher types, both due: the callback invoked first destroys both watchers, and
// no further callback is invoked.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/child_processes.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::pairs_test {
namespace {

/// A started watcher of some type.
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;
  /// Makes the watcher due.
  virtual void trigger() {}
};

using Called = std::function<void()>;

struct FdSubject final : Subject {
  FdSubject(EventLoop& loop, Called called)
      : watcher(loop, pipe.near.get(), Events::read, [called](Events) { called(); }) {
    EXPECT_TRUE(watcher.start());
  }
  void trigger() override { test::write_to(pipe.far); }
  test::Ends pipe = test::open_pipe();
  FdWatcher watcher;
};

struct TimerSubject final : Subject {
  TimerSubject(EventLoop& loop, Called called) : timer(loop, std::move(called)) {
    timer.start(Duration::zero(), Duration(1));
  }
  Timer timer;
};

struct WallTimerSubject final : Subject {
  WallTimerSubject(EventLoop& loop, Called called) : timer(loop, std::move(called)) {
    EXPECT_TRUE(timer.start_at(WallTime::clock::now()));
  }
  WallTimer timer;
};

struct SignalSubject final : Subject {
  SignalSubject(EventLoop& loop, Called called)
      : watcher(loop, SIGUSR1, [called](int) { called(); }) {
    EXPECT_TRUE(watcher.start());
  }
  void trigger() override { ::raise(SIGUSR1); }
  Signal watcher;
};

template <ChildChanges changes>
struct ChildSubject final : Subject {
  ChildSubject(EventLoop& loop, Called called)
      : pid(fork_or_abort()),
        child(loop, exit_if_child(pid), [called](const ChildStatus&) { called(); }, changes) {
    EXPECT_TRUE(child.start());
  }
  ~ChildSubject() override { ::waitpid(pid, nullptr, 0); }
  void trigger() override {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  }
  static pid_t exit_if_child(pid_t forked) {
    if (forked == 0) ::_exit(0);
    return forked;
  }
  pid_t pid;
  Child child;
};

struct FileStatusSubject final : Subject {
  FileStatusSubject(EventLoop& loop, Called called)
      : watcher(loop, path, [called](const FileState&, const FileState&) { called(); }) {
    std::ofstream{path};
    EXPECT_TRUE(watcher.start());
  }
  void trigger() override { ::chmod(path.c_str(), 0400); }
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  FileStatus watcher;
};

template <HookPoint point>
struct HookSubject final : Subject {
  HookSubject(EventLoop& loop, Called called) : own_loop(loop), hook(loop, std::move(called)) {
    // Idle hooks run only if no item of at least their priority is due.
    hook.set_priority(1);
    hook.start();
  }
  void trigger() override {
    if (point != HookPoint::fork) return;
    EXPECT_TRUE(own_loop.after_fork());
  }
  EventLoop& own_loop;
  HookAt<point> hook;
};

struct AsyncSubject final : Subject {
  AsyncSubject(EventLoop& loop, Called called) : async(loop, std::move(called)) { async.start(); }
  void trigger() override { async.send(); }
  Async async;
};

struct EmbeddedSubject final : Subject {
  EmbeddedSubject(EventLoop& loop, Called called)
      : inner({.backend = BackendKind::epoll}), embedded(loop, inner, std::move(called)) {
    EXPECT_TRUE(embedded.start());
  }
  void trigger() override {
    inner.post([] {});
  }
  EventLoop inner;
  EmbeddedLoop embedded;
};

struct Type {
  const char* name;
  std::unique_ptr<Subject> (*make)(EventLoop& loop, Called called);
};

template <class T>
std::unique_ptr<Subject> make(EventLoop& loop, Called called) {
  return std::make_unique<T>(loop, std::move(called));
}

constexpr Type types[] = {
    {"FdWatcher", &make<FdSubject>},
    {"Timer", &make<TimerSubject>},
    {"WallTimer", &make<WallTimerSubject>},
    {"Signal", &make<SignalSubject>},
    {"Child by pidfd", &make<ChildSubject<ChildChanges::end>>},
    {"Child by SIGCHLD", &make<ChildSubject<ChildChanges::all>>},
    {"FileStatus", &make<FileStatusSubject>},
    {"Prepare", &make<HookSubject<HookPoint::prepare>>},
    {"Check", &make<HookSubject<HookPoint::check>>},
    {"Idle", &make<HookSubject<HookPoint::idle>>},
    {"ForkHook", &make<HookSubject<HookPoint::fork>>},
    {"CleanupHook", &make<HookSubject<HookPoint::cleanup>>},
    {"Async", &make<AsyncSubject>},
    {"EmbeddedLoop", &make<EmbeddedSubject>},
};

class Pairs : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Pairs);

TEST_P(Pairs, the_first_invoked_callback_destroys_both) {
  for (const Type& first : types) {
    for (const Type& second : types) {
      SCOPED_TRACE(std::string(first.name) + " and " + second.name);
      std::unique_ptr<Subject> one;
      std::unique_ptr<Subject> other;
      int calls = 0;
      const Called destroy_both = [&] {
        ++calls;
        one.reset();
        other.reset();
      };
      {
        EventLoop loop(options());
        one = first.make(loop, destroy_both);
        other = second.make(loop, destroy_both);
        one->trigger();
        other->trigger();
        // Several iterations: some backends do not report everything in the first.
        for (int iteration = 0; iteration < 4; ++iteration) loop.run_ready();
        EXPECT_LE(loop.stats().references, 0);
      }
      EXPECT_EQ(calls, 1);
    }
  }
}

TEST_P(Pairs, one_callback_destroys_the_other_handle_and_continues) {
  for (const Type& first : types) {
    for (const Type& second : types) {
      SCOPED_TRACE(std::string(first.name) + " and " + second.name);
      std::unique_ptr<Subject> one;
      std::unique_ptr<Subject> other;
      bool other_is_destroyed = false;
      int calls = 0;
      {
        EventLoop loop(options());
        one = first.make(loop, [&] {
          ++calls;
          other.reset();
          other_is_destroyed = true;
        });
        other = second.make(loop, [&] { EXPECT_FALSE(other_is_destroyed); });
        one->trigger();
        other->trigger();
        for (int iteration = 0; iteration < 4; ++iteration) loop.run_ready();
      }
      EXPECT_GE(calls, 1);
      EXPECT_EQ(other, nullptr);
    }
  }
}

}  // namespace
}  // namespace tambour::pairs_test
