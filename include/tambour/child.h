// The end of child processes, and what else becomes of them: libev's ev_child.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <source_location>

#include <tambour/callback.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class Children;
class ChildTable;
class Core;
}  // namespace loop

/// What has become of a child (waitid(2)). A status is lost, mostly with ECHILD, where other code
/// has waited for the child, SIGCHLD is ignored, or this process is a fork of the child's parent.
struct ChildStatus {
  enum class Event : std::uint8_t {
    exited,     ///< `code` is its exit status, 0 to 255.
    signaled,   ///< A signal, `code`, ended it.
    stopped,    ///< A signal, `code`, stopped it. Only where asked for, as the next one.
    continued,  ///< Goes on; `code` is SIGCONT.
    lost,       ///< It has ended, and its status went elsewhere: `code` is an errno value.
  };

  pid_t pid = 0;
  Event event = Event::lost;
  int code = 0;
  bool dumped_core = false;

  /// It exited with status 0.
  [[nodiscard]] bool succeeded() const noexcept { return event == Event::exited && code == 0; }

  /// The process no longer exists: no further status follows.
  [[nodiscard]] bool ended() const noexcept {
    return event != Event::stopped && event != Event::continued;
  }
};

/// Which changes a Child reports.
enum class ChildChanges : std::uint8_t {
  end,  ///< That it has ended.
  all,  ///< Also that it was stopped, or goes on.
};

struct AnyChild {};
inline constexpr AnyChild any_child{};

/// Waits for one child, and takes its status: reports once how it ended, and has then stopped.
/// Several may wait for the same child, in several loops; all are told. Children that nobody named
/// are left alone: other code may wait for its own.
///
/// With `any_child` it takes the status of every child of the process that no started Child names,
/// also of those that other code has made and means to wait for; at most one of the process can be
/// started at a time. For programs that are the parent of everything, as init(1).
///
/// One child is watched through a pidfd (pidfd_open(2)), which costs a descriptor each; where there
/// is none to be had, through SIGCHLD, as are stops and `any_child` (see Signal for what that means
/// to the process). SIGCHLD must not be ignored, nor set with SA_NOCLDWAIT: the kernel then keeps
/// no status (`lost`). Stopping or destroying a Child leaves the process as it is; unless somebody
/// waits for it later, it stays a zombie.
///
/// Owns its callback. A started one keeps the loop running. Moves and is destroyed freely, inside
/// its own callback too, and falls silent at once. Belongs to the thread of its loop, which it may
/// outlive, silently. After fork(2) and EventLoop::reopen_after_fork() in the child, what is named
/// is reported as `lost`, being the parent's.
class Child final : private Operation,
                    private Listed<Child>,
                    private Listed<Child, loop::ChildTable> {
 public:
  using Function = Callback<void(const ChildStatus&)>;

  Child(EventLoop& loop, pid_t pid, Function function, ChildChanges changes = ChildChanges::end,
        std::source_location created_at = std::source_location::current()) noexcept;
  Child(EventLoop& loop, AnyChild any, Function function, ChildChanges changes = ChildChanges::end,
        std::source_location created_at = std::source_location::current()) noexcept;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  /// The child may have ended already. ECHILD: no child of this process, or its status was taken.
  /// EINVAL: not a pid. EBUSY: another any_child is started. EMFILE, ENFILE, ENOMEM, ERANGE: as
  /// Signal::start(), where SIGCHLD is needed. No effect on a started one.
  Result<> start() noexcept;

  /// A status that was taken and not yet reported is dropped.
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return OfLoop::listed(); }

  /// 0 for any_child.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  using Ready::priority;
  using Ready::set_priority;

  /// Replaces what is called; allowed inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class loop::Children;
  friend class loop::ChildTable;
  using OfLoop = Listed<Child>;                     ///< The loop's list of its children.
  using OfTable = Listed<Child, loop::ChildTable>;  ///< The table's, of a few pids.
  friend OfLoop;
  friend OfTable;
  static void run(Ready& ready);

  pid_t pid_;
  bool any_;
  ChildChanges changes_;
  bool has_status_ = false;  ///< Taken and not yet reported. Other loops may set it: ChildTable.
  ChildStatus status_;
  std::uint64_t epoch_ = 0;  ///< Of the table that it stands in.
  loop::Core* core_;
  Function function_;
};

}  // namespace tambour
