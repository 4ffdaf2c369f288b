#include "loop/post_queue.h"

#include <memory>
#include <utility>

namespace tambour::loop {

void PostQueue::clear() noexcept {
  destroy(std::exchange(taken_, nullptr));
  destroy(posted_.exchange(nullptr, std::memory_order_acquire));
}

void PostQueue::destroy(Task* first) noexcept {
  while (first != nullptr) delete std::exchange(first, first->next);
}

void PostQueue::push(Callback<void()> task) {
  auto* pushed = new Task{.next = nullptr, .function = std::move(task)};
  pushed->next = posted_.load(std::memory_order_relaxed);
  // Sequentially consistent, as is the consumer's look before it sleeps: one of the two sees the
  // other (see Core::post).
  while (!posted_.compare_exchange_weak(pushed->next, pushed, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
  }
}

void PostQueue::take() noexcept {
  if (empty() || taken_ != nullptr) return;
  Task* newest = posted_.exchange(nullptr, std::memory_order_acquire);
  while (newest != nullptr) {
    Task* older = std::exchange(newest->next, taken_);
    taken_ = std::exchange(newest, older);
  }
}

std::size_t PostQueue::run() {
  std::size_t count = 0;
  while (taken_ != nullptr) {
    const std::unique_ptr<Task> task(std::exchange(taken_, taken_->next));
    ++count;
    task->function();
  }
  return count;
}

}  // namespace tambour::loop
