// The messages that wait for one loop, in a fan-out to the members of a group.
//
// Any thread adds a message without a lock, and posts one task that takes all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <tambour/loop/event_loop.h>

namespace tambour::detail::server {

/// A list of messages, the oldest first. `Message` has a member `Message* next`, and a function
/// `memory_bytes()`, whose value does not change while the message is in the queue.
template <class Message>
struct DeleteMessages {
  void operator()(Message* first) const noexcept {
    while (first != nullptr) delete std::exchange(first, first->next);
  }
};

template <class Message>
class FanOutQueue {
 public:
  using Messages = std::unique_ptr<Message, DeleteMessages<Message>>;

  FanOutQueue() = default;
  FanOutQueue(const FanOutQueue&) = delete;
  FanOutQueue& operator=(const FanOutQueue&) = delete;
  ~FanOutQueue() { static_cast<void>(take()); }

  // On any thread.

  /// The memory of the messages.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }
  void push(std::unique_ptr<Message> message) noexcept {
    bytes_.fetch_add(message->memory_bytes(), std::memory_order_relaxed);
    Message* const added = message.release();
    added->next = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(added->next, added, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
  }
  /// Posts what `make_task()` returns, which calls begin_delivery(), unless such a task is posted
  /// already. Throws like EventLoop::post().
  template <class MakeTask>
  void post(EventLoop& loop, MakeTask&& make_task) {
    if (posted_.exchange(true, std::memory_order_acq_rel)) return;
    try {
      loop.post(std::forward<MakeTask>(make_task)());
    } catch (...) {
      posted_.store(false, std::memory_order_release);
      throw;
    }
  }

  // On the thread of the loop.

  /// Must be called before take(): a message that is added later posts again.
  void begin_delivery() noexcept { posted_.exchange(false, std::memory_order_acq_rel); }
  [[nodiscard]] Messages take() noexcept {
    Message* newest = newest_.exchange(nullptr, std::memory_order_acquire);
    Message* oldest = nullptr;
    std::size_t bytes = 0;
    while (newest != nullptr) {
      bytes += newest->memory_bytes();
      Message* const before = newest->next;
      newest->next = oldest;
      oldest = std::exchange(newest, before);
    }
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return Messages(oldest);
  }

 private:
  std::atomic<Message*> newest_{nullptr};  ///< Each message points to the one before it.
  std::atomic<std::size_t> bytes_{0};
  std::atomic<bool> posted_{false};  ///< A task that calls begin_delivery() is posted.
};

}  // namespace tambour::detail::server
