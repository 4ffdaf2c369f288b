// Status changes of child processes: libev's ev_child.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <source_location>
#include <string>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/handle.h>
#include <tambour/detail/operation.h>

namespace tambour::detail::events {
class ChildTable;
class Children;
}  // namespace tambour::detail::events
namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The status of a child (waitid(2)). A status is lost, usually with ECHILD, if other code has
/// waited for the child, SIGCHLD is ignored, or this process is a fork of the child's parent.
struct ChildStatus {
  /// What happened to the child: `si_code` of waitid(2).
  enum class Event : std::uint8_t {
    exited,    ///< `code` is the exit status, 0 to 255.
    signaled,  ///< Terminated by the signal `code`.
    /// Stopped by the signal `code`. Like `continued`, reported only with ChildChanges::all.
    stopped,
    continued,  ///< Continued; `code` is SIGCONT.
    lost,       ///< It has ended, but its status was consumed elsewhere: `code` is an errno value.
  };

  pid_t pid = 0;
  Event event = Event::lost;
  int code = 0;
  bool dumped_core = false;

  /// True if it exited with status 0.
  [[nodiscard]] bool succeeded() const noexcept { return event == Event::exited && code == 0; }

  /// For messages: "exited with status 3", "killed by SIGSEGV (core dumped)", "stopped by SIGTSTP",
  /// "continued", or "status lost: No child processes". Throws std::bad_alloc.
  [[nodiscard]] std::string to_string() const;

  /// True if the process no longer exists and no further status follows.
  [[nodiscard]] bool has_ended() const noexcept {
    return event != Event::stopped && event != Event::continued;
  }
};

/// The status changes that a Child reports.
enum class ChildChanges : std::uint8_t {
  end,  ///< The child has ended.
  all,  ///< Also that it was stopped or continued.
};

/// Passed to Child in place of a pid, to wait for children that the program has not named.
struct AnyChild {};
inline constexpr AnyChild any_child{};

/// Waits for a child process and reports its status once it has ended; the Child is then stopped.
/// Several Childs, in several loops, may wait for the same child; each is notified. Children that
/// no Child names are not waited for, so that other code can wait for its own.
///
/// With `any_child` it consumes the status of every child process that no started Child names,
/// including those that other code created and intends to wait for. At most one per process can be
/// started at a time. Intended for processes that reap all children, such as init(1).
///
/// A single child is watched through a pidfd (pidfd_open(2)), which costs one file descriptor. If
/// no pidfd is available, and for stops and `any_child`, SIGCHLD is used (see Signal for the effect
/// on the process). SIGCHLD must not be ignored or set with SA_NOCLDWAIT, because the kernel then
/// discards the status (`lost`). Stopping or destroying a Child does not affect the process; if no
/// code waits for the process later, it stays a zombie.
///
/// Ownership: owns its callback.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback; the callback
/// is not invoked afterwards. It may outlive its loop.
/// Thread: must be used on the loop's thread.
/// Loop: a started Child keeps the loop running.
/// Fork: after fork(2) and EventLoop::after_fork() in the child process, named children are
/// reported as `lost`, because they are the parent's.
class Child final : private detail::Handle<Child, Callback<void(const ChildStatus&)>,
                                           detail::Operation, detail::events::ChildTable> {
 public:
  /// The callback, which gets the status.
  using Function = Callback<void(const ChildStatus&)>;

  /// The Child is not started.
  Child(EventLoop& loop, pid_t pid, Function function, ChildChanges changes = ChildChanges::end,
        std::source_location created_at = std::source_location::current()) noexcept;
  /// Waits for all children that no other Child names, one status per iteration of the loop.
  Child(EventLoop& loop, AnyChild any, Function function, ChildChanges changes = ChildChanges::end,
        std::source_location created_at = std::source_location::current()) noexcept;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  /// Starts waiting. The child may have ended already. Fails with ECHILD if it is not a child of
  /// this process or its status was consumed; EINVAL if `pid` is not a pid; EBUSY if another
  /// any_child is started; EMFILE, ENFILE, ENOMEM or ERANGE as Signal::start() if SIGCHLD is
  /// needed. No effect on a started Child.
  [[nodiscard]] Result<> start() noexcept;

  /// Stops waiting. A status that was consumed but not reported yet is dropped.
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return listed(); }

  /// 0 for any_child.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// From -2, invoked last, to 2, among the callbacks that are due in an iteration; default: 0.
  /// Other values are clamped.
  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class detail::events::Children;
  friend class detail::events::ChildTable;
  static void run(ReadyNode& ready);

  pid_t pid_;
  bool any_;
  ChildChanges changes_;
  bool has_status_ = false;  ///< Consumed but not reported yet. Other loops may set it: ChildTable.
  ChildStatus status_;
  std::uint64_t epoch_ = 0;  ///< The epoch of the table that contains it.
};

}  // namespace tambour

#pragma GCC visibility pop
