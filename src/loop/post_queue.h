// Tasks posted from any thread to the loop's thread: a multi-producer, single-consumer FIFO queue.
//
// A producer claims the next cell (Place) with one atomic addition and stores its task there;
// producers share nothing else. Cells are grouped in segments, which a directory finds by index.
// Only producers that have claimed a cell refer to its segment, so a segment can be reused once all
// of its cells have been run. Posting does not allocate per task, and tasks are contiguous in
// memory.
//
// A claimed cell may not contain its task yet. In that case the loop must not block; it polls
// again (see Core::wake_if_waiting()).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>

namespace tambour::detail::loop {

class PostQueue {
 public:
  PostQueue() = default;
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;
  ~PostQueue();

  /// Approximate maximum number of queued tasks.
  static constexpr std::uint64_t tasks_max = std::uint64_t{1} << 23;

  /// Callable from any thread. Throws std::bad_alloc if out of memory, and std::system_error with
  /// EAGAIN beyond tasks_max; the caller then keeps `task`.
  void push(Callback<void()>&& task,
            const std::source_location& posted_at = std::source_location::current());

  /// Consumer only: true if no cell is claimed.
  [[nodiscard]] bool empty() const noexcept {
    // Sequentially consistent, like the addition in push(): of a producer that claims a cell and
    // then checks whether the consumer waits, and the consumer, at least one sees the other.
    return tail_.load(std::memory_order_seq_cst) == head_;
  }

  /// Consumer only: the number of tasks that have not run.
  [[nodiscard]] std::uint64_t size() const noexcept {
    return tail_.load(std::memory_order_acquire) - head_;
  }

  /// Consumer only: takes the tasks posted before this call, unless tasks taken earlier have not
  /// run yet.
  void take() noexcept {
    if (head_ == taken_) taken_ = tail_.load(std::memory_order_acquire);
  }

  /// Consumer only: runs the tasks taken, up to the first one that is not stored yet. If a task
  /// throws, it has been removed, and the next call continues with the task after it. Returns the
  /// number of tasks run.
  std::size_t run();

  struct Posted {
    Callback<void()> task;
    std::source_location posted_at;
  };
  /// Consumer only: takes the next of the tasks taken, for callers that run it themselves. Returns
  /// false if there is none, or if it is not stored yet.
  [[nodiscard]] bool take_next(Posted& into) noexcept;

  /// Consumer only: destroys all posted tasks without running them.
  void clear() noexcept;

  /// In the child after fork(2): stores empty tasks in the cells claimed by threads that do not
  /// exist in the child. Fails with ENOMEM.
  Result<> reopen() noexcept;

 private:
  static constexpr std::uint64_t segment_size = 256;
  static constexpr std::uint64_t segments_max = tasks_max / segment_size;
  /// Segments exist this many cells ahead of the tail, so that push() reports ENOMEM before it
  /// claims a cell. Sufficient unless more threads than this claim a cell at the same moment.
  static constexpr std::uint64_t ahead = 64;
  /// The consumer prefetches this many cells ahead.
  static constexpr std::uint64_t fetched_ahead = 8;

  struct Place {
    std::atomic<bool> is_there{false};
    Callback<void()> task;
    std::source_location posted_at;
  };
  struct Segment {
    std::array<Place, segment_size> places;
  };
  using Slot = std::atomic<Segment*>;

  static std::size_t slot_of(std::uint64_t index) noexcept {
    return static_cast<std::size_t>(index / segment_size % segments_max);
  }
  [[nodiscard]] bool is_full(std::uint64_t tail) const noexcept {
    // Signed: a tail read some time ago may be behind `ended_` by now.
    return static_cast<std::int64_t>(tail - ended_.load(std::memory_order_acquire)) >=
           static_cast<std::int64_t>(tasks_max - 2 * segment_size);
  }
  [[nodiscard]] Slot* prepare();
  Slot* prepare_slowly(std::uint64_t tail);
  void add_segment(Slot& slot);
  Place& wait_for_place(Slot& slot, std::uint64_t index) noexcept;
  [[nodiscard]] Place* place_at_head() noexcept;
  [[nodiscard]] Callback<void()> take_from(Place& place) noexcept;
  void end_segment() noexcept;
  [[nodiscard]] Segment* take_spare() noexcept;
  void keep_spare(Segment* segment) noexcept;

  // A cache line each: what producers write, what is rarely written, and what the consumer uses.
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< The next cell to claim.
  alignas(64) std::atomic<Slot*> directory_{nullptr};
  std::atomic<std::uint64_t> ended_{0};  ///< The segments of all cells before this index are free.
  std::atomic<std::size_t> segment_count_{0};       ///< Number of segments in the directory.
  std::array<std::atomic<Segment*>, 64> spares_{};  ///< Half a megabyte, for bursts.
  // Consumer only, from here on.
  alignas(64) std::uint64_t head_ = 0;  ///< The next cell to run.
  std::uint64_t taken_ = 0;             ///< The first cell not taken.
  Segment* segment_ = nullptr;          ///< The segment of head_, if already looked up.
};

}  // namespace tambour::detail::loop
