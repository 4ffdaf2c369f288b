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

#include <cstdint>
#include <mutex>

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

  // For GroupLeader, whose table this one is emptied with.

  [[nodiscard]] static std::mutex& mutex() noexcept;
  /// Incremented when a fork empties the table: the entries may lie on the stacks of threads that
  /// do not exist in the child, and that memory may be reused. The lock must be held.
  [[nodiscard]] static std::uint64_t epoch() noexcept;
  static void register_fork_handlers() noexcept;

 private:
  static void clear_all() noexcept;
  static Bucket& bucket_of(pid_t pid) noexcept;
  static void insert(Child& child) noexcept;
  static bool poll_locked(Child& child) noexcept;
  static bool poll_named(Child& child) noexcept;
  static bool poll_any(Child& child) noexcept;
  static void store(Child& child, const ChildStatus& status) noexcept;
  static bool store_for_named(const ChildStatus& status) noexcept;
};

}  // namespace tambour::detail::events
