// Children that lead process groups: signals for the whole group.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/detail/intrusive_list.h>

namespace tambour::detail::events {

class ChildTable;

/// A child that leads a process group. While it is in the table of leaders, no Child reaps it:
/// after it has ended it stays a zombie, so the id of the group, which is its pid, cannot become
/// the id of another process, and the rest of the group can be signalled. Exception: an `any_child`
/// watcher has to reap it, because waitid(2) would return the same zombie again and again.
/// Thread: several instances may be used concurrently, as may the functions of ChildTable.
class GroupLeader final : private detail::HlistHook<GroupLeader, ChildTable> {
 public:
  enum class AtExit : unsigned char { keep_group, kill_group };

  GroupLeader() noexcept = default;
  GroupLeader(const GroupLeader&) = delete;
  GroupLeader& operator=(const GroupLeader&) = delete;
  ~GroupLeader() { leave(); }

  /// Call it before the first Child of the process starts, while ChildTable::Launching exists.
  /// `pidfd` may be -1. With `kill_group`, the group gets SIGKILL when the status of its leader is
  /// taken, and the leader is reaped then.
  void enter(pid_t pid, int pidfd, AtExit at_exit) noexcept;
  void leave() noexcept;
  /// Like leave(), and reaps the process if it has ended.
  void reap() noexcept;

  /// Sends a signal to the group. Fails with ESRCH if the leader has been reaped, unless the kernel
  /// can signal a group through a pidfd (Linux 6.9); or with EPERM or EINVAL from kill(2).
  Result<> send_signal(int number) const noexcept;

 private:
  friend class ChildTable;
  using InTable = detail::HlistHook<GroupLeader, ChildTable>;
  friend class detail::Hlist<GroupLeader, ChildTable>;

  // The lock of ChildTable must be held for the functions below.

  /// Null if no leader with this pid is in the table.
  [[nodiscard]] static GroupLeader* find(pid_t pid) noexcept;
  [[nodiscard]] static bool has_any() noexcept;
  static void clear_all() noexcept;

  /// Completes a wait with WNOWAIT that has returned `info`. A leader that has ended stays a
  /// zombie.
  void take(siginfo_t& info, bool has_ended) noexcept;
  /// The leader has ended: sends SIGKILL to the group if that was asked for.
  void kill_group_at_exit() const noexcept;
  [[nodiscard]] bool in_table() const noexcept;
  void leave_locked() noexcept;
  int wait(siginfo_t& info, int flags) const noexcept;

  pid_t pid_ = 0;
  int pidfd_ = -1;
  AtExit at_exit_ = AtExit::keep_group;
  std::uint64_t epoch_ = 0;  ///< ChildTable::epoch() when it was entered.
};

}  // namespace tambour::detail::events
