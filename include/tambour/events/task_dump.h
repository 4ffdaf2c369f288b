// Dumps of tasks on a signal, such as SIGQUIT: see <tambour/task/dump.h>.
#pragma once

#include <csignal>  // IWYU pragma: export
#include <source_location>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/events/signal.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Writes a dump of the tasks of one loop to standard error whenever the process receives the
/// signal, until it is destroyed or moved from. Does not keep the loop running.
///
/// Thread: must be used on the loop's thread.
/// Lifetime: may outlive the loop.
class TaskDumpSignal {
 public:
  TaskDumpSignal(TaskDumpSignal&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), signal_(std::move(other.signal_)) {}
  TaskDumpSignal& operator=(TaskDumpSignal&& other) noexcept;
  ~TaskDumpSignal() { stop(); }

 private:
  friend Result<TaskDumpSignal> dump_tasks_on(EventLoop& loop, int number, std::source_location at);
  TaskDumpSignal(detail::loop::Core& core, Signal signal) noexcept;
  void stop() noexcept;

  detail::loop::Core* core_;  ///< Reference-counted. Null: moved from.
  Signal signal_;
};

/// Makes a signal write what each task of `loop` awaits to standard error:
///
///   const auto dumps = or_throw(dump_tasks_on(loop, SIGQUIT));    // kill -QUIT, or Ctrl-\.
///
/// The dump is made by the loop, so it shows nothing while a callback or a task blocks the loop;
/// gdb shows these (see docs/observing.md). A program with several loops calls it in each of them;
/// they write their dumps one after another, each with one write(2) where the kernel takes it. A
/// reader of standard error that does not read blocks the loop. Fails like Signal::start().
[[nodiscard]] Result<TaskDumpSignal> dump_tasks_on(
    EventLoop& loop, int number, std::source_location at = std::source_location::current());

}  // namespace tambour

#pragma GCC visibility pop
