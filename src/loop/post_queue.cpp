// PostQueue: the paths that are not taken by each task: new segments, waiting for a slow producer,
// and closing.
#include "loop/post_queue.h"

#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/failure.h"

namespace tambour::detail::loop {

PostQueue::~PostQueue() {
  clear();
  for (auto& spare : spares_) delete spare.load(std::memory_order_acquire);
  Slot* const directory = directory_.load(std::memory_order_acquire);
  // The remaining segments are mostly those that follow head_.
  std::uint64_t at = head_;
  for (std::size_t left = segment_count_.load(std::memory_order_acquire); left > 0;) {
    if (Segment* segment = directory[slot_of(at)].load(std::memory_order_acquire)) {
      delete segment;
      --left;
    }
    at += segment_size;
  }
  std::free(directory);
}

inline PostQueue::Slot* PostQueue::prepare() {
  Slot* const directory = directory_.load(std::memory_order_acquire);
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (directory != nullptr && !is_full(tail) &&
      directory[slot_of(tail + ahead)].load(std::memory_order_relaxed) != nullptr) [[likely]]
    return directory;
  return prepare_slowly(tail);
}

PostQueue::Slot* PostQueue::prepare_slowly(std::uint64_t tail) {
  Slot* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) {
    // calloc(3) maps zeroed pages; the kernel allocates a page only when it is touched.
    auto* const created = static_cast<Slot*>(std::calloc(segments_max, sizeof(Slot)));
    if (created == nullptr) throw std::bad_alloc();
    if (directory_.compare_exchange_strong(directory, created, std::memory_order_acq_rel)) {
      directory = created;
    } else {
      std::free(created);
    }
  }
  if (is_full(tail)) [[unlikely]]
    throw std::system_error(system_error(EAGAIN), "tambour: the queue of posted tasks is full");
  for (const std::uint64_t index : {tail, tail + ahead}) {
    Slot& slot = directory[slot_of(index)];
    if (slot.load(std::memory_order_acquire) == nullptr) add_segment(slot);
  }
  return directory;
}

void PostQueue::add_segment(Slot& slot) {
  Segment* segment = take_spare();
  if (segment == nullptr) segment = new Segment;
  Segment* none = nullptr;
  // If another producer installed a segment first, even one that has been used up and freed since,
  // the new one is unused: keep it for later.
  if (slot.compare_exchange_strong(none, segment, std::memory_order_acq_rel)) {
    segment_count_.fetch_add(1, std::memory_order_relaxed);
  } else {
    keep_spare(segment);
  }
}

PostQueue::Segment* PostQueue::take_spare() noexcept {
  for (auto& spare : spares_) {
    if (spare.load(std::memory_order_relaxed) == nullptr) continue;
    if (Segment* taken = spare.exchange(nullptr, std::memory_order_acquire)) return taken;
  }
  return nullptr;
}

void PostQueue::keep_spare(Segment* segment) noexcept {
  for (auto& spare : spares_) {
    Segment* none = nullptr;
    if (spare.compare_exchange_strong(none, segment, std::memory_order_release,
                                      std::memory_order_relaxed))
      return;
  }
  delete segment;
}

void PostQueue::push(Callback<void()>&& task, const std::source_location& posted_at) {
  Slot* const directory = prepare();
  const std::uint64_t index = tail_.fetch_add(1, std::memory_order_seq_cst);
  Slot& slot = directory[slot_of(index)];
  Segment* const segment = slot.load(std::memory_order_acquire);
  // The segment is almost always there already.
  Place& place =
      segment != nullptr ? segment->places[index % segment_size] : wait_for_place(slot, index);
  place.task.swap(task);
  place.posted_at = posted_at;
  place.is_there.store(true, std::memory_order_release);
}

PostQueue::Place& PostQueue::wait_for_place(Slot& slot, std::uint64_t index) noexcept {
  // A claimed cell must be filled, so retry until memory is available.
  for (;;) {
    if (Segment* segment = slot.load(std::memory_order_acquire))
      return segment->places[index % segment_size];
    try {
      add_segment(slot);
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}

PostQueue::Place* PostQueue::place_at_head() noexcept {
  if (segment_ == nullptr)
    segment_ =
        directory_.load(std::memory_order_acquire)[slot_of(head_)].load(std::memory_order_acquire);
  if (segment_ == nullptr) return nullptr;
  Place* const place = &segment_->places[head_ % segment_size];
  // Prefetch: the cell's cache line was last written by the producer's CPU.
  if (taken_ - head_ > fetched_ahead && head_ % segment_size < segment_size - fetched_ahead)
    __builtin_prefetch(place + fetched_ahead, 1);
  return place->is_there.load(std::memory_order_acquire) ? place : nullptr;
}

Callback<void()> PostQueue::take_from(Place& place) noexcept {
  Callback<void()> task(std::move(place.task));
  place.is_there.store(false, std::memory_order_relaxed);
  if (++head_ % segment_size == 0) end_segment();
  return task;
}

void PostQueue::end_segment() noexcept {
  const std::uint64_t last = head_ - 1;
  directory_.load(std::memory_order_relaxed)[slot_of(last)].store(nullptr,
                                                                  std::memory_order_release);
  segment_count_.fetch_sub(1, std::memory_order_relaxed);
  keep_spare(std::exchange(segment_, nullptr));
  ended_.store(head_, std::memory_order_release);
}

std::size_t PostQueue::run() {
  std::size_t count = 0;
  while (head_ != taken_) {
    Place* const place = place_at_head();
    if (place == nullptr) {
      // The producer was preempted between claiming and storing, possibly on this CPU.
      if (count == 0) std::this_thread::yield();
      break;
    }
    const Callback<void()> task = take_from(*place);
    ++count;
    if (task) task();
  }
  return count;
}

bool PostQueue::take_next(Posted& into) noexcept {
  Place* const place = head_ != taken_ ? place_at_head() : nullptr;
  if (place == nullptr) return false;
  into.posted_at = place->posted_at;
  into.task = take_from(*place);
  return true;
}

void PostQueue::clear() noexcept {
  while (!empty()) {
    taken_ = tail_.load(std::memory_order_acquire);
    while (head_ != taken_) {
      if (Place* place = place_at_head()) {
        static_cast<void>(take_from(*place));
      } else {
        std::this_thread::yield();
      }
    }
  }
}

Result<> PostQueue::reopen() noexcept {
  Slot* const directory = directory_.load(std::memory_order_acquire);
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  for (std::uint64_t index = head_; index != tail; ++index) {
    Slot& slot = directory[slot_of(index)];
    if (slot.load(std::memory_order_acquire) == nullptr) {
      try {
        add_segment(slot);
      } catch (const std::bad_alloc&) {
        return base::failure(ENOMEM);
      }
    }
    Place& place = slot.load(std::memory_order_acquire)->places[index % segment_size];
    if (place.is_there.load(std::memory_order_acquire)) continue;
    // The thread that claimed the cell may have written half of a task.
    new (&place.task) Callback<void()>();
    place.is_there.store(true, std::memory_order_release);
  }
  return {};
}

}  // namespace tambour::detail::loop
