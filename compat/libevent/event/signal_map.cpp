// Installs the handlers of signals while events wait for them, and activates the events of signals
// that have arrived.
#include "libevent/event/signal_map.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <utility>

#include "libevent/event/base.h"

namespace tambour::libevent {

std::atomic<const SignalMap*> SignalMap::receiver_{nullptr};

SignalMap::Readable::Readable(SignalMap& owner) noexcept
    : detail::Operation(detail::OperationKind::poll,
                        [](detail::ReadyNode& ready) {
                          auto& self = static_cast<Readable&>(ready);
                          self.result = 0;
                          self.map.is_readable_ = true;
                        }),
      map(owner) {
  events = Events::read;
  run_at_once();
}

SignalMap::SignalMap(event_base& base) noexcept : base_(base), readable_(*this) {
  arrived_.evcb_flags = EVLIST_INTERNAL;
  arrived_.evcb_closure = closure_self;
  arrived_.evcb_cb_union.evcb_selfcb = [](event_callback* /*callback*/, void* self) {
    static_cast<SignalMap*>(self)->activate_arrived();
  };
  arrived_.evcb_arg = this;
}

SignalMap::~SignalMap() {
  const SignalMap* self = this;
  receiver_.compare_exchange_strong(self, nullptr);
  if (slot_ == nullptr) return;
  for (int number = 1; number <= Slot::number_max; ++number) {
    if (entries_[number].first != nullptr) slot_->unwatch(number);
  }
  slot_->release();
}

int SignalMap::add(event& ev) noexcept {
  const int number = ev.ev_fd;
  if (number <= 0 || number > Slot::number_max) return -1;
  Entry& entry = entries_[number];
  const bool is_first = entry.first == nullptr;
  if (is_first) {
    if (slot_ == nullptr) {
      const auto acquired = Slot::acquire();
      if (!acquired) {
        errno = acquired.error().value();
        event_warn("evsignal: no descriptor");
        return -1;
      }
      slot_ = *acquired;
      must_submit_ = true;
    }
    if (const auto watched = slot_->watch(number); !watched) {
      errno = watched.error().value();
      event_warn("sigaction");
      return -1;
    }
  }
  receive();
  auto& link = ev.ev_.ev_signal.ev_signal_next;
  link.le_next = entry.first;
  link.le_prev = &entry.first;
  if (entry.first != nullptr) entry.first->ev_.ev_signal.ev_signal_next.le_prev = &link.le_next;
  entry.first = &ev;
  return is_first ? 1 : 0;
}

int SignalMap::remove(event& ev) noexcept {
  const int number = ev.ev_fd;
  if (number <= 0 || number > Slot::number_max) return -1;
  const auto& link = ev.ev_.ev_signal.ev_signal_next;
  if (link.le_next != nullptr) link.le_next->ev_.ev_signal.ev_signal_next.le_prev = link.le_prev;
  *link.le_prev = link.le_next;
  if (entries_[number].first != nullptr) return 0;
  slot_->unwatch(number);
  return 1;
}

void SignalMap::submit_changes() noexcept {
  if (!std::exchange(must_submit_, false)) return;
  readable_.fd = slot_->fd();
  base_.poller->submit(readable_);
  base_.poller->invalidate(readable_.fd);
}

void SignalMap::receive() noexcept {
  if (slot_ == nullptr || receiver_.exchange(this) == this) return;
  // Those were for another base.
  for (std::uint64_t come = slot_->take_pending(); come != 0; come &= come - 1)
    slot_->take_count(std::countr_zero(come) + 1);
}

void SignalMap::queue_arrived() noexcept {
  const bool has_arrived = std::exchange(is_readable_, false) || was_pending_;
  if (slot_ != nullptr && has_arrived) base_.insert_active(arrived_);
}

void SignalMap::activate_arrived() noexcept {
  const BaseLock locked(base_);
  const bool receives = receiver_.load() == this;
  for (std::uint64_t come = slot_->take_pending(); come != 0; come &= come - 1) {
    const int number = std::countr_zero(come) + 1;
    // Zero if all were counted with an earlier one.
    constexpr std::uint32_t limit = SHRT_MAX;
    const std::uint32_t calls = slot_->take_count(number);
    if (calls != 0 && receives) activate(number, static_cast<int>(std::min(calls, limit)));
  }
}

void SignalMap::activate(int number, int calls) noexcept {
  if (number <= 0 || number > Slot::number_max) return;
  for (event* ev = entries_[number].first; ev != nullptr;
       ev = ev->ev_.ev_signal.ev_signal_next.le_next)
    event_active_nolock_(ev, EV_SIGNAL, static_cast<short>(calls));
}

void SignalMap::clear() noexcept {
  for (Entry& entry : entries_) {
    while (event* const ev = entry.first) {
      event_del(ev);
      if (entry.first == ev) remove(*ev);
    }
  }
}

void SignalMap::reopen() noexcept {
  if (slot_ == nullptr) return;
  if (readable_.submitted()) base_.poller->cancel(readable_);
  static_cast<void>(slot_->reopen());
  must_submit_ = true;
}

}  // namespace tambour::libevent
