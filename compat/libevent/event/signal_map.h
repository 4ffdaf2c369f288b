// The events of each signal of one base.
//
// The handler is that of the loop library (events/signal_slot.h).
#pragma once

#include <atomic>
#include <cstdint>

#include <event2/event_struct.h>

#include <tambour/detail/operation.h>

#include "events/signal_slot.h"

struct event_base;

namespace tambour::libevent {

class SignalMap {
 public:
  explicit SignalMap(event_base& base) noexcept;
  SignalMap(const SignalMap&) = delete;
  SignalMap& operator=(const SignalMap&) = delete;
  ~SignalMap();

  /// As FdMap::add() and remove().
  int add(event& ev) noexcept;
  int remove(event& ev) noexcept;
  void submit_changes() noexcept;

  /// Makes this the base that receives the signals of the process: the one that added an event or
  /// began to run last.
  void receive() noexcept;

  void before_wait() noexcept {
    if (slot_ == nullptr) return;
    slot_->claim();
    was_pending_ = slot_->any_pending();
  }
  [[nodiscard]] bool any_pending() const noexcept {
    return slot_ != nullptr && slot_->any_pending();
  }
  /// Queues a callback that activates the events of the signals that have arrived, unless all of
  /// them came after the wait: what has become readable before such a signal was not reported
  /// either, and has to be read first.
  ///
  /// The callback runs after those that are active already. One of them may be that of an event of
  /// the signal, by event_active(); it then runs again for the signal.
  void queue_arrived() noexcept;
  void activate(int number, int calls) noexcept;

  template <class F>
  int for_each(F&& f) {
    for (Entry& entry : entries_) {
      if (const int result = f(entry.first)) return result;
    }
    return 0;
  }
  void clear() noexcept;

  // After fork(2).
  void disown_if_lost() noexcept {
    if (slot_ != nullptr) slot_->disown_if_lost();
  }
  void reopen() noexcept;

 private:
  using Slot = tambour::detail::events::SignalSlot;
  struct Entry {
    event* first = nullptr;
  };
  struct Readable final : detail::Operation {
    explicit Readable(SignalMap& owner) noexcept;
    SignalMap& map;
  };

  void activate_arrived() noexcept;

  static std::atomic<const SignalMap*> receiver_;

  event_base& base_;
  Slot* slot_ = nullptr;
  Readable readable_;
  event_callback arrived_{};
  bool must_submit_ = false;
  bool is_readable_ = false;
  bool was_pending_ = false;  ///< A signal had arrived before the wait.
  Entry entries_[Slot::number_max + 1];
};

}  // namespace tambour::libevent
