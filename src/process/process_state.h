// A child process, its timers and the tasks that wait for it. Owned by a Process; if the Process is
// destroyed before the child ends, the loop owns the state until the child has been reaped.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tambour/base/unique_fd.h>
#include <tambour/loop/timer.h>
#include <tambour/process/process.h>

#include "events/group_leader.h"
#include "loop/core.h"
#include "process/launch.h"

namespace tambour::detail::process {

class ProcessState final : public detail::LoopOwned {
 public:
  /// See Process::spawn().
  static Result<ProcessState*> spawn(EventLoop& loop, const ProcessOptions& options,
                                     std::source_location created_at);
  ~ProcessState() override;

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }
  [[nodiscard]] const std::optional<ChildStatus>& status() const noexcept { return status_; }
  [[nodiscard]] bool has_timed_out() const noexcept { return timed_out_; }

  Result<> send_signal(int number) noexcept;
  Result<> send_signal_to_group(int number) noexcept;
  void terminate(Duration grace) noexcept;
  void on_exit(Process::Function function) noexcept;

  void add(Process::Wait& wait) noexcept { waits_.push_back(wait); }
  /// No effect after the loop was destroyed: the task is never resumed.
  void queue(Process::Wait& wait) noexcept {
    if (!core_->closed()) core_->queue(wait);
  }

  /// Aborts with a message that names the calling function if the loop exists and belongs to
  /// another thread.
  void check_thread(
      std::source_location function = std::source_location::current()) const noexcept {
    core_->check_thread_unless_closed(created_at_, function);
  }

  /// Called when the Process is destroyed; it must not use the state afterwards.
  void abandon() noexcept;
  /// Like abandon(), but leaves the child running.
  pid_t release() noexcept;

  PipeStream input;
  PipeStream output;
  PipeStream error_output;

 private:
  /// The strings and descriptors that Launch refers to.
  struct Preparation;
  struct ExitCall final : detail::ReadyNode {
    explicit ExitCall(ProcessState& owner) noexcept : detail::ReadyNode(&run), state(owner) {}
    static void run(detail::ReadyNode& ready);
    ProcessState& state;
  };

  ProcessState(EventLoop& loop, const ProcessOptions& options, std::source_location created_at);
  Result<> launch(EventLoop& loop, const ProcessOptions& options);
  static Result<> check(const ProcessOptions& options) noexcept;
  static Result<> open_cgroup(const ProcessOptions& options, Preparation& preparation);
  Result<> open_streams(EventLoop& loop, const ProcessOptions& options, Preparation& preparation);
  Result<> open_stream(EventLoop& loop, Stdio stdio, int as, PipeStream& stream,
                       Preparation& preparation);
  void send_to_all(int number) noexcept;
  void start_deadline(Duration delay) noexcept;
  void stop_deadline() noexcept;
  void ended(const ChildStatus& status);
  void end_waits() noexcept;
  void deadline_passed() noexcept;

  loop::Core* core_;
  pid_t parent_;  ///< After fork(2), the new process is not the parent of the child.
  bool leads_group_;
  bool is_terminating_ = false;
  bool timed_out_ = false;
  bool is_abandoned_ = false;
  bool is_unreferenced_ = false;  ///< The deadline does not keep the loop running.
  Duration grace_;
  UniqueFd pidfd_;
  events::GroupLeader leader_;  ///< In the table only if `leads_group_`.
  Child child_;
  Timer deadline_;
  std::optional<ChildStatus> status_;
  Process::Function on_exit_;
  ExitCall exit_call_;
  detail::IntrusiveList<detail::ReadyNode> waits_;
  std::source_location created_at_;
};

}  // namespace tambour::detail::process
