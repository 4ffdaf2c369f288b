// Combines the events of a descriptor into one operation of the backend, and activates those that
// are ready.
#include "libevent/event/fd_map.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"

namespace tambour::libevent {
namespace {

constexpr int closed_bit = static_cast<int>(Events::closed);

/// EV_READ is 2, EV_WRITE is 4, as Events::write.
short from_events(std::int32_t events) noexcept {
  static_assert(int(Events::read) == EV_READ >> 1 && int(Events::write) == EV_WRITE);
  int result = (events << 1 & EV_READ) | (events & EV_WRITE);
  if ((events & closed_bit) != 0) result |= EV_CLOSED;
  return static_cast<short>(result);
}

void on_ready(detail::ReadyNode& ready) {
  auto& record = static_cast<FdRecord&>(ready);
  const std::int32_t result = std::exchange(record.result, 0);
  record.came = result < 0 ? result : record.came | result;
  record.base.fds.note_ready(record);
}

void put_first(FdRecord& record, event& ev) noexcept {
  auto& link = ev.ev_.ev_io.ev_io_next;
  link.le_next = record.first;
  link.le_prev = &record.first;
  if (record.first != nullptr) record.first->ev_.ev_io.ev_io_next.le_prev = &link.le_next;
  record.first = &ev;
}

void take_out(event& ev) noexcept {
  const auto& link = ev.ev_.ev_io.ev_io_next;
  if (link.le_next != nullptr) link.le_next->ev_.ev_io.ev_io_next.le_prev = link.le_prev;
  *link.le_prev = link.le_next;
}

/// The errors that epoll_ctl(2) reports, for a descriptor that the backend does not know yet.
int error_of(int fd) noexcept {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errno;
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ? EPERM : 0;
}

}  // namespace

FdRecord::FdRecord(event_base& owner, int number) noexcept
    : detail::Operation(detail::OperationKind::poll, &on_ready), base(owner) {
  fd = number;
  run_at_once();
}

FdRecord* FdMap::make(int fd) noexcept {
  // From here on, the table is large, and must not be made for a number that no descriptor has.
  constexpr int unchecked_end = 65536;
  if (fd >= records_.end() && fd >= unchecked_end && error_of(fd) == EBADF) {
    errno = EBADF;
    return nullptr;
  }
  return records_.make(base_, fd);
}

Events FdMap::wanted_by(const FdRecord& record) const noexcept {
  Events wanted = Events::none;
  if (record.readers != 0) wanted |= Events::read;
  if (record.writers != 0) wanted |= Events::write;
  // With select, EV_CLOSED is never reported.
  if (record.closers != 0 && (base_.method->features & EV_FEATURE_EARLY_CLOSE) != 0)
    wanted |= Events::closed;
  return wanted;
}

void FdMap::note_change(FdRecord& record) noexcept {
  if (record.changed) return;
  // In order, because the kernel reports descriptors in the order in which they were added.
  record.changed = true;
  record.next_changed = nullptr;
  *changed_last_ = &record;
  changed_last_ = &record.next_changed;
}

int FdMap::add(event& ev) noexcept {
  const int fd = ev.ev_fd;
  if (fd < 0) return 0;
  FdRecord* const found = find(fd);
  const bool is_known = found != nullptr && (found->submitted() || found->changed);
  if (!is_known && base_.method->kind == BackendKind::epoll) {
    if (const int error = error_of(fd)) {
      errno = error;
      event_warn("Epoll ADD on fd %d failed", fd);
      return -1;
    }
  }
  FdRecord* const record = found != nullptr ? found : make(fd);
  if (record == nullptr) return -1;
  constexpr int limit = 0xffff;
  if (record->readers == limit || record->writers == limit || record->closers == limit) {
    event_warnx("Too many events reading or writing on fd %d", fd);
    return -1;
  }
  if (event_debug_mode_on_ != 0 && record->first != nullptr &&
      (record->first->ev_events & EV_ET) != (ev.ev_events & EV_ET)) {
    event_warnx("Tried to mix edge-triggered and non-edge-triggered events on fd %d", fd);
    return -1;
  }
  const bool was_unwatched = record->first == nullptr;
  const Events before = wanted_by(*record);
  if ((ev.ev_events & EV_READ) != 0) ++record->readers;
  if ((ev.ev_events & EV_WRITE) != 0) ++record->writers;
  if ((ev.ev_events & EV_CLOSED) != 0) ++record->closers;
  put_first(*record, ev);
  // It may have been closed while it had no event.
  if (was_unwatched) record->renewed = true;
  if (!was_unwatched && wanted_by(*record) == before) return 0;
  note_change(*record);
  return 1;
}

int FdMap::remove(event& ev) noexcept {
  const int fd = ev.ev_fd;
  FdRecord* const record = find(fd);
  if (record == nullptr) return fd < 0 ? 0 : -1;
  const Events before = wanted_by(*record);
  if ((ev.ev_events & EV_READ) != 0) --record->readers;
  if ((ev.ev_events & EV_WRITE) != 0) --record->writers;
  if ((ev.ev_events & EV_CLOSED) != 0) --record->closers;
  take_out(ev);
  if (wanted_by(*record) == before && record->first != nullptr) return 0;
  note_change(*record);
  if (!base_.running && !base_.polling && record->first == nullptr &&
      !base_.runs_in_other_thread()) {
    // Nothing may run the loop again before the caller closes the descriptor.
    submit_changes();
    base_.poller->release_unwatched_fd(fd);
  }
  return 1;
}

void FdMap::submit_changes() noexcept {
  while (FdRecord* const record = changed_) {
    changed_ = record->next_changed;
    if (changed_ == nullptr) changed_last_ = &changed_;
    record->changed = false;
    const bool renewed = std::exchange(record->renewed, false);
    const Events wanted = wanted_by(*record);
    const Trigger trigger = record->first != nullptr && (record->first->ev_events & EV_ET) != 0
                                ? Trigger::edge
                                : Trigger::level;
    if (!record->submitted()) {
      record->unlink();
      record->result = 0;
      if (wanted == Events::none) continue;
    } else if (record->events == wanted && record->trigger == trigger && !renewed) {
      continue;
    }
    const bool was_submitted = record->submitted();
    record->events = wanted;
    record->trigger = trigger;
    base_.poller->submit(*record);
    if (renewed && was_submitted) base_.poller->revalidate(record->fd);
  }
}

void FdMap::fail(FdRecord& record, int error) noexcept {
  errno = error;
  event_warn("Descriptor %d cannot be watched", record.fd);
  activate(record.fd, EV_READ | EV_WRITE);
}

void FdMap::activate_ready() noexcept {
  const int edge = base_.method->kind == BackendKind::epoll ? EV_ET : 0;
  FdRecord* fd_record = std::exchange(ready_, nullptr);
  ready_last_ = &ready_;
  while (fd_record != nullptr) {
    FdRecord& record = *fd_record;
    fd_record = record.next_ready;
    record.is_ready = false;
    const std::int32_t came = std::exchange(record.came, 0);
    if (came < 0) {
      fail(record, -came);
      continue;
    }
    const short events = from_events(came);
    for (event* ev = record.first; ev != nullptr; ev = ev->ev_.ev_io.ev_io_next.le_next) {
      if (const int hit = ev->ev_events & events)
        event_active_nolock_(ev, hit | (ev->ev_events & edge), 1);
    }
  }
}

void FdMap::activate(int fd, short events) noexcept {
  const FdRecord* const record = find(fd);
  if (record == nullptr) return;
  for (event* ev = record->first; ev != nullptr; ev = ev->ev_.ev_io.ev_io_next.le_next) {
    if ((ev->ev_events & (events & ~EV_ET)) != 0)
      event_active_nolock_(ev, ev->ev_events & events, 1);
  }
}

void FdMap::clear() noexcept {
  for_each([](FdRecord& record) {
    while (event* const ev = record.first) {
      event_del(ev);
      if (record.first == ev) take_out(*ev);
    }
    return 0;
  });
}

}  // namespace tambour::libevent
