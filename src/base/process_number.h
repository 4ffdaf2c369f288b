// Distinguishes a process from its forked children without a system call.
#pragma once

#include <atomic>

namespace tambour::detail::base {

/// Incremented in each child of fork(2), but not of vfork(2) or a bare clone(2), whose children may
/// only call exec. Use process_number() instead.
extern std::atomic<unsigned> forks_survived;

/// Makes fork(2) increment forks_survived. Call it before storing a process number; later calls
/// have no effect.
void count_forks() noexcept;

/// Differs between a process and each child that it forks after count_forks().
inline unsigned process_number() noexcept { return forks_survived.load(std::memory_order_relaxed); }

/// The process that an object belongs to. A copy of the object in a forked child must not use the
/// kernel objects, threads and locks of the parent.
class OwningProcess {
 public:
  OwningProcess() noexcept {
    count_forks();
    number_ = process_number();
  }
  /// False in a child that was forked later.
  [[nodiscard]] bool is_current() const noexcept { return number_ == process_number(); }

 private:
  unsigned number_;
};

}  // namespace tambour::detail::base
