// The process-wide table of watched children.
//
// waitid(2) returns the status of a child once. The thread that takes a status stores it in every
// Child that waits for that process, under the mutex under which it was taken. So a status is
// neither lost nor reported twice to one Child, and a reused pid is not mistaken for the former
// process.
//
// No wakeup is needed: each loop is notified by its own pidfd, or by SIGCHLD, which is delivered to
// all loops, and then finds the status already stored.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/events/child.h>

namespace tambour::detail::events {

class ChildTable {
 public:
  using InTable = detail::HlistHook<Child, ChildTable>;
  using Bucket = detail::Hlist<Child, ChildTable>;

  /// Held while a new process has no Child yet. Meanwhile an `any_child` watcher takes no status,
  /// because it might be that of the new process. Does not block: the watcher polls again when the
  /// last instance is destroyed.
  class Launching {
   public:
    Launching() noexcept;
    Launching(const Launching&) = delete;
    Launching& operator=(const Launching&) = delete;
    ~Launching();
  };

  /// A child that leads a process group. While it is in the table, no Child reaps it: after it has
  /// ended it stays a zombie, so the id of the group, which is its pid, cannot become the id of
  /// another process, and the rest of the group can be signalled. Exception: an `any_child` watcher
  /// has to reap it, because waitid(2) would return the same zombie again and again.
  /// Thread: several instances may be used concurrently, as may the functions of the table.
  class GroupLeader final : private detail::HlistHook<GroupLeader, ChildTable> {
   public:
    enum class AtExit : unsigned char { keep_group, kill_group };

    GroupLeader() noexcept = default;
    GroupLeader(const GroupLeader&) = delete;
    GroupLeader& operator=(const GroupLeader&) = delete;
    ~GroupLeader() { leave(); }

    /// Call it before the first Child of the process starts, while Launching exists. `pidfd` may be
    /// -1. With `kill_group`, the group gets SIGKILL when the status of its leader is taken, and
    /// the leader is reaped then.
    void enter(pid_t pid, int pidfd, AtExit at_exit) noexcept;
    void leave() noexcept;
    /// Like leave(), and reaps the process if it has ended.
    void reap() noexcept;

    /// Sends a signal to the group. Fails with ESRCH if the leader has been reaped, unless the
    /// kernel can signal a group through a pidfd (Linux 6.9); or with EPERM or EINVAL from kill(2).
    Result<> send_signal(int number) const noexcept;

   private:
    friend class ChildTable;
    using InTable = detail::HlistHook<GroupLeader, ChildTable>;
    friend class detail::Hlist<GroupLeader, ChildTable>;

    [[nodiscard]] bool in_table() const noexcept;
    void leave_locked() noexcept;
    int wait(siginfo_t& info, int flags) const noexcept;

    pid_t pid_ = 0;
    int pidfd_ = -1;
    AtExit at_exit_ = AtExit::keep_group;
    std::uint64_t epoch_ = 0;  ///< The epoch of the table in which it was entered.
  };

  /// Sends a signal to the child if it has not been reaped and its pid therefore cannot be another
  /// process's. Fails with ESRCH otherwise, or with EPERM or EINVAL from kill(2).
  static Result<> send_signal(const Child& child, int number) noexcept;

  /// Fails with ECHILD, EINVAL or EBUSY: see Child::start().
  static Result<> enter(Child& child) noexcept;
  static void leave(Child& child) noexcept;

  /// `to` takes over the table entry and the status of `from`.
  static void move(Child& from, Child& to) noexcept;

  /// Returns true if a status is available; calls waitid(2) if none is stored.
  static bool poll(Child& child) noexcept;

  /// Like poll(), and moves the status to `status`.
  static bool take_status(Child& child, ChildStatus& status) noexcept;

  /// In the child after fork(2): a named process is not a child of this process. Returns true if a
  /// status is now available.
  static bool enter_after_fork(Child& child) noexcept;

 private:
  static void register_fork_handlers() noexcept;
  static void clear_all() noexcept;
  static Bucket& bucket_of(pid_t pid) noexcept;
  static void insert(Child& child) noexcept;
  static bool poll_locked(Child& child) noexcept;
  static bool poll_named(Child& child) noexcept;
  static bool poll_any(Child& child) noexcept;
  static void store(Child& child, const ChildStatus& status) noexcept;
  static bool store_for_named(const ChildStatus& status) noexcept;
  static GroupLeader* leader_of(pid_t pid) noexcept;
  static void take_from_leader(GroupLeader& leader, siginfo_t& info) noexcept;
};

}  // namespace tambour::detail::events
