// Failures of the kernel on demand: the n-th call of a kind fails, once or several times, with an
// errno value; the n-th completion of a ring is rewritten.
//
// To try every occurrence, count up `nth` until a run ends without hit(). One plan for the process
// at a time, made and cleared while no other thread uses the library; calls are counted from its
// beginning on, on all threads, and in signal handlers.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/system_call.h"

namespace tambour::test {

using base::Call;

class Faults {
 public:
  /// A plan in which nothing fails: it only counts.
  Faults() noexcept;
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults();

  /// The `nth` call of this kind, from 1 on, and those after it up to so many, fail with `error`.
  /// Call::ring_completion: it is rewritten to say so, and that its poll has ended.
  void fail(Call call, unsigned nth, int error, unsigned times = 1) noexcept;

  /// The same, and then on until a call of the kind `until` has been made.
  void fail_until(Call until, Call call, unsigned nth, int error) noexcept;

  /// The `nth` time that a ring is handed entries, it takes only `count` of them.
  void take_only(unsigned count, unsigned nth) noexcept;

  /// The `nth` completion that says that there is more to come says that there is not.
  void end_multishot(unsigned nth) noexcept;

  /// The `nth` completion gets lost, and the ring says so when it is entered next (EBADR).
  void lose_completion(unsigned nth) noexcept;

  /// Lets everything through from now on.
  void clear() noexcept { outcome_ = 0; }

  [[nodiscard]] unsigned count(Call call) const noexcept { return counts_[index(call)]; }
  [[nodiscard]] bool hit() const noexcept { return hits_ != 0; }

 private:
  friend std::optional<int> base::planned_outcome(Call call, io_uring* ring) noexcept;
  friend void base::rewrite_completion(io_uring_cqe& completion) noexcept;

  static constexpr std::size_t index(Call call) noexcept { return static_cast<std::size_t>(call); }
  /// Counts a call, and says whether it is one that fails.
  bool fails(Call call) noexcept;
  std::optional<int> outcome_of(Call call, io_uring* ring) noexcept;
  void rewrite(io_uring_cqe& completion) noexcept;

  enum class Kind : unsigned char { error, short_count, no_more, lost };
  static constexpr unsigned no_end = ~0U;

  Kind kind_ = Kind::error;
  Call call_{};
  Call until_{};
  bool has_until_ = false;
  std::atomic<bool> has_lost_{false};
  std::uint64_t ended_ = 0;  ///< The poll that was said to have ended, until it has.
  unsigned first_ = 0;
  unsigned times_ = 0;
  std::atomic<int> outcome_{0};  ///< 0: nothing fails.
  std::atomic<unsigned> hits_{0};
  std::atomic<unsigned> counts_[base::call_count]{};
};

}  // namespace tambour::test
