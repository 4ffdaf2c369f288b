// The loops of an unmodified program, and the thread that serves its inspector.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tambour/base/callback.h>

#include "common/observation.h"
#include "loop/observation/call_times.h"

namespace tambour::inspect {

using detail::loop::CallTimes;
using detail::loop::LagHistogram;
using detail::loop::PublishedValue;

struct Functions {
  static bool is_same(const void* a, const void* b) noexcept { return a == b; }
  static std::size_t hash(const void* function) noexcept {
    return std::hash<const void*>()(function) / 16;
  }
};

/// A loop of a drop-in. Thread: the functions that begin with `note`, answer(), read() and list()
/// are called on the thread of the loop, the others on any.
class ProgramLoop final : public compat::LoopRecord {
 public:
  ProgramLoop(std::mutex& mutex, const compat::LoopCalls& calls, void* loop, std::string name)
      : mutex_(mutex), calls_(calls), loop_(loop), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const char* library() const noexcept { return calls_.library; }

  /// Returns false if the loop was closed. Throws std::bad_alloc.
  bool post(Callback<void()> question);
  void answer() noexcept;
  /// After fork(2): the questions of the parent are not destroyed, because their objects belong to
  /// a thread that does not exist.
  void forget_questions() noexcept;
  void note_close() noexcept;

  void read(compat::LoopFigures& figures) const noexcept { calls_.read(loop_, figures); }
  void list(void (*add)(void* list, const compat::ObservedEvent& event) noexcept,
            void* list) const noexcept {
    calls_.list(loop_, add, list);
  }

  void note_call(const void* function, std::int64_t took_ns) noexcept {
    call_times.note(function, took_ns);
    callbacks.add(1);
  }
  void note_iteration(std::int64_t took_ns) noexcept {
    lags.note(took_ns);
    iterations.add(1);
    callback_ns.add(took_ns);
    if (took_ns > lag_max_ns.get()) lag_max_ns.set(took_ns);
  }

  CallTimes<const void*, Functions> call_times;
  LagHistogram lags;
  PublishedValue<std::uint64_t> iterations;  ///< Those that have invoked callbacks.
  PublishedValue<std::uint64_t> callbacks;
  PublishedValue<std::int64_t> callback_ns;
  PublishedValue<std::int64_t> lag_max_ns;

 private:
  using Questions = std::vector<Callback<void()>>;

  std::mutex& mutex_;
  const compat::LoopCalls& calls_;
  void* loop_;  ///< Null after note_close(). Guarded by the mutex.
  const std::string name_;
  std::unique_ptr<Questions> questions_;  ///< Guarded by the mutex.
};

using ProgramLoops = std::vector<std::shared_ptr<ProgramLoop>>;

/// The program. There is one, which is never destroyed: its thread runs until the process ends.
class Program {
 public:
  static Program& get();

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() = delete;

  // On the threads of loops.
  compat::LoopRecord* open(const compat::LoopCalls& calls, void* loop);
  void close(ProgramLoop& loop) noexcept;
  /// Starts the inspector, unless it runs in this process.
  void start();

  /// Callable on any thread.
  [[nodiscard]] ProgramLoops loops() const;

 private:
  Program();

  void serve(const std::string& address, const std::function<void(bool)>& done);
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  mutable std::mutex mutex_;  ///< Held while the process forks.
  bool is_started_ = false;
  int libev_loops_ = 0;
  int libevent_loops_ = 0;
  ProgramLoops loops_;
  ProgramLoops closed_in_callbacks_;
};

}  // namespace tambour::inspect
