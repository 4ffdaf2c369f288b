// A bounded queue between tasks of one loop.
//
// Between loops, and with plain threads, use ConcurrentChannel of <tambour/threads/channel.h>.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/task_wait.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// A double-ended queue in a circular array.
template <class T>
class RingQueue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Makes room for `more` items. Throws std::bad_alloc.
  void reserve(std::size_t more) {
    if (size_ + more <= slots_.size()) return;
    const std::size_t twice = 2 * slots_.size();
    std::vector<std::optional<T>> larger(size_ + more > twice ? size_ + more : twice);
    for (std::size_t i = 0; i < size_; ++i) larger[i].emplace(std::move(*slots_[index_of(i)]));
    slots_ = std::move(larger);
    first_ = 0;
  }

  // The functions below do not allocate: there must be room.

  void push_back(T item) noexcept { slots_[index_of(size_++)].emplace(std::move(item)); }
  void push_front(T item) noexcept {
    first_ = index_of(slots_.size() - 1);
    slots_[first_].emplace(std::move(item));
    ++size_;
  }
  /// The queue must not be empty.
  T pop_front() noexcept {
    std::optional<T>& slot = slots_[first_];
    T item = std::move(*slot);
    slot.reset();
    first_ = index_of(1);
    --size_;
    return item;
  }

 private:
  [[nodiscard]] std::size_t index_of(std::size_t position) const noexcept {
    return (first_ + position) % slots_.size();
  }

  std::vector<std::optional<T>> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace detail

/// The part of a channel that does not depend on the type of its items.
class TaskChannelBase {
 public:
  TaskChannelBase(const TaskChannelBase&) = delete;
  TaskChannelBase& operator=(const TaskChannelBase&) = delete;

  /// The number of items that the channel holds before senders wait.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// True after close().
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  /// Ends the stream of items: further and waiting sends fail with EPIPE. The items in the channel
  /// can still be received; after the last one, receive() fails with EPIPE. While an item is
  /// assigned to a task that has not resumed yet, the others wait: the task may leave the item to
  /// them. May be called more than once.
  void close() noexcept;

 protected:
  TaskChannelBase(EventLoop& loop, std::size_t capacity,
                  const std::source_location& created_at) noexcept;
  ~TaskChannelBase();

  [[nodiscard]] detail::loop::Core& core() const noexcept { return *core_; }
  [[nodiscard]] const std::source_location& created_at() const noexcept { return created_at_; }
  void check_thread(std::source_location function = std::source_location::current()) const noexcept;

  /// No item can come any more.
  [[nodiscard]] bool has_ended() const noexcept { return closed_ && assigned_count_ == 0; }
  /// If the channel has ended, ends the waits of the receivers.
  void end_receivers() noexcept;

  detail::TaskWaits senders_;
  detail::TaskWaits receivers_;  ///< Not empty only while there are no items.
  std::size_t assigned_count_ = 0;

 private:
  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  std::size_t capacity_;
  bool closed_ = false;
  std::source_location created_at_;
};

/// A bounded FIFO queue of items, with any number of sending and receiving tasks. Tasks that wait
/// are served in the order of waiting, and get the items in the order of sending.
///
///   TaskChannel<Job> jobs(loop, 16);
///   scope.spawn(produce, std::ref(jobs));                        // co_await jobs.send(job)
///   while (auto job = co_await jobs.receive()) run(*job);        // until jobs.close()
///
/// Capacity: the number of items that wait for a receiver. With capacity 0, a send() waits until a
/// task receives the item. Items that were assigned to receivers which have not resumed yet do not
/// count; if such a receiver is stopped or destroyed, the channel may hold more items than its
/// capacity.
/// Cancellation: no item is lost. A send() that fails has not put its item into the channel, and
/// destroys the item; a send() whose item was accepted succeeds. A receive() that fails has not
/// taken an item. A receiver that is stopped or destroyed before it resumes leaves its item to the
/// next receiver.
/// Memory: allocated when an item is sent, and kept until the channel is destroyed. T must be
/// movable without exceptions.
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: if the channel is destroyed while tasks wait, their waits fail with ECANCELED, and the
/// items in the channel are destroyed.
template <class T>
class TaskChannel final : public TaskChannelBase {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>,
                "an item must be movable without exceptions: put it into a std::unique_ptr");

 public:
  /// `capacity`: the items that wait for a receiver; 0: each sender waits for one.
  explicit TaskChannel(EventLoop& loop, std::size_t capacity,
                       std::source_location created_at = std::source_location::current()) noexcept
      : TaskChannelBase(loop, capacity, created_at) {}
  ~TaskChannel() {
    // These receivers resume later, with their items.
    while (detail::AssignedTaskWait* const first = assigned_.front()) {
      auto* const receive = static_cast<Receive*>(first);
      unassign(*receive);
      receive->complete(0);
    }
  }

  class Send;
  class Receive;

  /// Waits until the item is in the channel or received by another task. Fails with EPIPE if the
  /// channel is closed, and with ECANCELED. Throws std::bad_alloc. With GCC 12, an item that is an
  /// aggregate must have a name: `co_await channel.send(std::move(item))`; see docs/tasks.md.
  [[nodiscard]] Send send(T item) { return Send(*this, std::move(item)); }

  /// Waits for an item. Fails with EPIPE if the channel is closed and empty, and with ECANCELED.
  [[nodiscard]] Receive receive() noexcept { return Receive(*this); }

  /// Sends without waiting. Fails with EAGAIN if the channel is full, and with EPIPE if it is
  /// closed. `item` is moved from only on success. Throws std::bad_alloc.
  Result<> try_send(T&& item) {
    check_thread();
    if (is_closed()) return std::unexpected(system_error(EPIPE));
    if (!put(item)) return std::unexpected(system_error(EAGAIN));
    return {};
  }
  Result<> try_send(const T& item)
    requires std::copy_constructible<T>
  {
    return try_send(T(item));
  }
  /// Receives without waiting. Fails with EAGAIN if the channel is empty, and with EPIPE if it is
  /// also closed and has assigned no item to a task that has not resumed yet.
  Result<T> try_receive() noexcept {
    check_thread();
    if (std::optional<T> item = take()) return *std::move(item);
    return std::unexpected(system_error(has_ended() ? EPIPE : EAGAIN));
  }

  /// The number of items that can be received at once.
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

 private:
  /// Returns false if the channel is full; `item` is then unchanged.
  bool put(T& item) {
    if (size() >= capacity() && receivers_.front() == nullptr) return false;
    // Assigned items may return.
    items_.reserve(assigned_count_ + 1);
    items_.push_back(std::move(item));
    assign();
    return true;
  }

  /// Returns the next item, if there is one.
  std::optional<T> take() noexcept {
    if (!empty()) {
      std::optional<T> item = items_.pop_front();
      // This uses the slot of `item`.
      while (size() < capacity() && senders_.front() != nullptr)
        items_.push_back(static_cast<Send*>(senders_.front())->accept());
      return item;
    }
    if (senders_.front() == nullptr) return std::nullopt;
    return static_cast<Send*>(senders_.front())->accept();  // Of a channel with capacity 0.
  }

  /// Assigns items to waiting receivers, and resumes them in the next iteration.
  void assign() noexcept {
    while (!empty() && receivers_.front() != nullptr) {
      auto& receive = *static_cast<Receive*>(receivers_.front());
      receive.item_.emplace(items_.pop_front());
      assigned_.push_back(receive);
      ++assigned_count_;
      receive.resume_later();
    }
  }
  void unassign(Receive& receive) noexcept {
    receive.AssignedTaskWait::unassign();
    --assigned_count_;
  }
  /// `receive` does not take its item: each receiver after it gets the item of the one before it,
  /// and the last item returns to the front of the queue, so the order is as if it had never
  /// waited.
  void give_back(Receive& receive) noexcept {
    T item = *std::move(receive.item_);
    receive.item_.reset();
    for (auto* next = assigned_.after(receive); next != nullptr; next = assigned_.after(*next))
      std::swap(item, *static_cast<Receive*>(next)->item_);
    unassign(receive);
    items_.push_front(std::move(item));
    assign();
  }

  detail::RingQueue<T> items_;
  /// Receivers that resume in the next iteration, each with one item, in order.
  detail::AssignedTaskWait::List assigned_;
};

/// The awaitable of send(). May be moved until it is awaited.
template <class T>
class [[nodiscard]] TaskChannel<T>::Send final : private detail::TaskWait {
 public:
  Send(Send&& other) noexcept
      : TaskWait(static_cast<TaskWait&&>(other), "TaskChannel::send()"),
        channel_(other.channel_),
        item_(std::move(other.item_)) {}
  Send& operator=(Send&&) = delete;
  ~Send() = default;

  [[nodiscard]] bool await_ready() {
    channel_.check_thread();
    if (channel_.is_closed()) set_error(EPIPE);
    return error() != 0 || channel_.put(item_);
  }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    wait_in(channel_.senders_, awaiting, WaitNote(WaitKind::send, &channel_), at);
  }
  Result<> await_resume() const noexcept {
    if (error() != 0) return std::unexpected(system_error(error()));
    return {};
  }

 private:
  friend class TaskChannel;
  Send(TaskChannel& channel, T item) noexcept
      : TaskWait(channel.core(), channel.created_at()), channel_(channel), item_(std::move(item)) {}

  T accept() noexcept {
    complete(0);
    return std::move(item_);
  }

  TaskChannel& channel_;  ///< May be destroyed during the wait.
  T item_;
};

/// The awaitable of receive(). May be moved until it is awaited.
template <class T>
class [[nodiscard]] TaskChannel<T>::Receive final : private detail::AssignedTaskWait {
 public:
  static constexpr bool is_cancel_safe = true;

  Receive(Receive&& other) noexcept
      : AssignedTaskWait(static_cast<TaskWait&&>(other), "TaskChannel::receive()"),
        channel_(other.channel_) {}
  Receive& operator=(Receive&&) = delete;
  ~Receive() {
    if (is_assigned()) channel_.give_back(*this);
  }

  [[nodiscard]] bool await_ready() noexcept {
    channel_.check_thread();
    if (std::optional<T> item = channel_.take()) item_.emplace(*std::move(item));
    if (!item_ && channel_.has_ended()) set_error(EPIPE);
    return item_ || error() != 0;
  }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    wait_in(channel_.receivers_, awaiting, WaitNote(WaitKind::receive, &channel_), at);
  }
  Result<T> await_resume() noexcept {
    if (is_assigned()) {
      channel_.unassign(*this);
      channel_.end_receivers();
    }
    if (item_) return *std::move(item_);
    return std::unexpected(system_error(error()));
  }

 private:
  friend class TaskChannel;
  explicit Receive(TaskChannel& channel) noexcept
      : AssignedTaskWait(channel.core(), channel.created_at()), channel_(channel) {}

  void resume_later() noexcept { complete_unless_stopped(); }
  void cancelled() noexcept override {
    if (is_assigned()) channel_.give_back(*this);
  }

  TaskChannel& channel_;  ///< May be destroyed during the wait.
  std::optional<T> item_;
};

}  // namespace tambour

#pragma GCC visibility pop
