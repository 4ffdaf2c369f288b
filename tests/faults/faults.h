// Injected kernel failures: the n-th call of a kind fails, once or several times, with an errno
// value; the n-th completion of a ring is rewritten.
//
// To try every occurrence, increment `nth` until a run ends without hit(). A process has at most
// one plan at a time. Create and clear it while no other thread uses the library. Calls are counted
// from its construction, on all threads and in signal handlers.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/system_call.h"

namespace tambour::test {

using detail::base::Call;

class Faults {
 public:
  /// Creates a plan without failures, which only counts.
  Faults() noexcept;
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults();

  /// Makes the `nth` call of this kind (from 1) and the `times` - 1 after it fail with `error`. For
  /// Call::ring_completion, the completion is rewritten to report the error and the end of its
  /// poll.
  void fail(Call call, unsigned nth, int error, unsigned times = 1) noexcept;

  /// Like fail(), but the calls fail until a call of the kind `until` has been made.
  void fail_until(Call until, Call call, unsigned nth, int error) noexcept;

  /// The `nth` time that entries are submitted to a ring, it accepts only `count` of them.
  void take_only(unsigned count, unsigned nth) noexcept;

  /// The `nth` completion of a multishot poll is reported as its last.
  void end_multishot(unsigned nth) noexcept;

  /// The `nth` completion is lost, and the next io_uring_enter(2) reports that (EBADR).
  void lose_completion(unsigned nth) noexcept;

  /// From now on, nothing fails.
  void clear() noexcept { outcome_ = 0; }

  [[nodiscard]] unsigned count(Call call) const noexcept { return counts_[index(call)]; }
  [[nodiscard]] bool hit() const noexcept { return hits_ != 0; }

 private:
  friend std::optional<int> detail::base::planned_outcome(Call call, io_uring* ring) noexcept;
  friend void detail::base::rewrite_completion(io_uring_cqe& completion) noexcept;

  static constexpr std::size_t index(Call call) noexcept { return static_cast<std::size_t>(call); }
  /// Counts a call and returns whether it fails.
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
  std::uint64_t ended_ = 0;  ///< The poll that was reported as ended, until it has been removed.
  unsigned first_ = 0;
  unsigned times_ = 0;
  std::atomic<int> outcome_{0};  ///< 0: nothing fails.
  std::atomic<unsigned> hits_{0};
  std::atomic<unsigned> counts_[detail::base::call_count]{};
};

}  // namespace tambour::test
