// Who waits for which child: one table for the process.
//
// waitid(2) gives the status of a child once. Whoever takes it, on whichever thread, hands it to
// all who wait for that child, under the mutex under which it was taken. So a status is neither
// lost nor told twice, and a pid that the kernel gives away again is not mixed up with the former.
//
// Nobody has to be woken for that: each who waits hears of the end of the child by its own pidfd or
// by SIGCHLD, which goes to all loops, and then finds the status taken already.
#pragma once

#include <tambour/child.h>
#include <tambour/result.h>

namespace tambour::loop {

class ChildTable {
 public:
  /// While a new process has no Child yet: no `any_child` takes the status of a process meanwhile,
  /// which might be that one's. Does not block: `any_child` looks again when the last of these has
  /// ended.
  class Launching {
   public:
    Launching() noexcept;
    Launching(const Launching&) = delete;
    Launching& operator=(const Launching&) = delete;
    ~Launching();
  };

  /// Sends a signal to `target`, the child or its process group, if the child has not been reaped:
  /// its pid is not another process's. ESRCH otherwise; EPERM, EINVAL of kill(2).
  static Result<> send_signal(const Child& child, pid_t target, int number) noexcept;

  /// ECHILD, EINVAL, EBUSY: see Child::start().
  static Result<> enter(Child& child) noexcept;
  static void leave(Child& child) noexcept;

  /// `to` takes the place, and the status, of `from`.
  static void move(Child& from, Child& to) noexcept;

  /// True where there is something to tell; asks the kernel if need be.
  static bool look(Child& child) noexcept;

  /// The same, and hands it over.
  static bool take(Child& child, ChildStatus& status) noexcept;

  /// In a forked child: what is named is not a child of this process. True where there is now
  /// something to tell.
  static bool enter_after_fork(Child& child) noexcept;

 private:
  static void register_fork_handlers() noexcept;
  static void forget_all() noexcept;
  static Child*& bucket_of(pid_t pid) noexcept;
  static void insert(Child& child) noexcept;
  static bool look_locked(Child& child) noexcept;
  static bool look_at_named(Child& child) noexcept;
  static bool look_at_any(Child& child) noexcept;
  static void give(Child& child, const ChildStatus& status) noexcept;
  static bool give_to_named(const ChildStatus& status) noexcept;
};

}  // namespace tambour::loop
