// Tasks from any thread to the loop's: many producers, one consumer, first in first out.
//
// A producer claims the next place with one atomic addition, and puts its task there; that is all
// that producers share. Places lie in segments, which a directory finds by number. So nobody holds
// on to a segment but those who have claimed a place in it, and once all of its places have been
// run, it is free to be used again: tasks allocate nothing, and lie side by side.
//
// The trap: a place may be claimed, and its task still be on the way there. The consumer does not
// sleep then (see Core::rouse), but comes back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tambour/callback.h>
#include <tambour/result.h>

namespace tambour::loop {

class PostQueue {
 public:
  PostQueue() = default;
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;
  ~PostQueue();

  /// How many tasks may wait, nearly.
  static constexpr std::uint64_t tasks_max = std::uint64_t{1} << 23;

  /// Any thread. Throws std::bad_alloc, also beyond tasks_max, and then `task` is the caller's.
  void push(Callback<void()>&& task);

  /// The consumer: whether no place is claimed.
  [[nodiscard]] bool empty() const noexcept {
    // Sequentially consistent, as is the addition: of a producer that claims a place and then looks
    // whether the consumer sleeps, and the consumer, one sees the other.
    return tail_.load(std::memory_order_seq_cst) == head_;
  }

  /// The consumer: takes what was posted before this call, unless some of what was taken before has
  /// still to be run.
  void take() noexcept {
    if (head_ == taken_) taken_ = tail_.load(std::memory_order_acquire);
  }

  /// The consumer: runs what was taken, as far as it is there. A task that throws is gone; those
  /// behind it are run by the next call. Returns how many were run.
  std::size_t run();

  /// The consumer: destroys what was posted, unrun.
  void clear() noexcept;

  /// In the child after fork(2): the tasks that other threads were about to put here will never
  /// come. ENOMEM.
  Result<> reopen() noexcept;

 private:
  static constexpr std::uint64_t segment_size = 256;
  static constexpr std::uint64_t segments_max = tasks_max / segment_size;
  /// So far ahead of what is claimed there are segments: where there is no memory for them, it is
  /// told before a place is claimed. Enough, unless more threads than that claim at one moment.
  static constexpr std::uint64_t ahead = 64;
  /// So far ahead the consumer asks for what it is about to run.
  static constexpr std::uint64_t fetched_ahead = 8;

  struct Place {
    std::atomic<bool> is_there{false};
    Callback<void()> task;
  };
  struct Segment {
    std::array<Place, segment_size> places;
  };
  using Slot = std::atomic<Segment*>;

  static std::size_t slot_of(std::uint64_t index) noexcept {
    return static_cast<std::size_t>(index / segment_size % segments_max);
  }
  [[nodiscard]] bool is_full(std::uint64_t tail) const noexcept {
    // A tail that was read a while ago may have been passed by what is free since.
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

  // What producers write, and what they and the consumer seldom do: a line each.
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< The next place that can be claimed.
  alignas(64) std::atomic<Slot*> directory_{nullptr};
  std::atomic<std::uint64_t> ended_{0};  ///< The segments of all places before this are free again.
  std::atomic<std::size_t> segment_count_{0};       ///< In the directory.
  std::array<std::atomic<Segment*>, 64> spares_{};  ///< Half a megabyte, for bursts.
  // The consumer's from here on.
  alignas(64) std::uint64_t head_ = 0;  ///< The next place to be run.
  std::uint64_t taken_ = 0;             ///< The first that was not taken.
  Segment* segment_ = nullptr;          ///< That of head_, once it was looked for.
};

}  // namespace tambour::loop
