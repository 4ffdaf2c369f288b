// ev_io: the watchers of each descriptor, and the one operation of the backend that serves them.
#include "descriptors.h"

#include <utility>

#include "base/check.h"
#include "loop.h"

namespace tambour::libev {
namespace {

int from_events(std::int32_t events) noexcept {
  return (events & EV_READ) | (events >> 1 & EV_WRITE);
}

ev_io* after(const ev_io* io) noexcept { return reinterpret_cast<ev_io*>(io->next); }

void feed_list(Pendings& pendings, ev_io* first, int events) noexcept {
  for (ev_io* io = first; io != nullptr; io = after(io)) {
    if (const int hit = io->events & events) pendings.feed(base_of(io), hit);
  }
}

/// The backend cannot watch a descriptor: stops its watchers and feeds them EV_ERROR.
void fail(FdRecord& record) noexcept {
  Loop& loop = record.loop;
  record.events = Events::none;
  record.noted_at = FdRecord::never;
  while (ev_io* io = record.first) {
    record.first = after(io);
    loop.take_back(io);
    if (io->active == active_own) ++loop.references;  // It was not counted.
    loop.stop(io);
    loop.pendings.feed(base_of(io), EV_ERROR | EV_READ | EV_WRITE);
  }
}

[[gnu::noinline]] void tell_all(FdRecord& record, std::int32_t result) noexcept {
  if (result < 0) return fail(record);
  feed_list(record.loop.pendings, record.first, from_events(result));
}

void on_ready(detail::ReadyNode& ready) {
  auto& record = static_cast<FdRecord&>(ready);
  const std::int32_t result = std::exchange(record.result, 0);
  ev_io* const io = record.first;
  // Nearly always there is one watcher and no failure.
  if (result < 0 || io == nullptr || io->next != nullptr) [[unlikely]]
    return tell_all(record, result);
  const int hit = io->events & from_events(result);
  if (hit != 0) record.loop.pendings.feed(base_of(io), hit);
}

}  // namespace

FdRecord::FdRecord(Loop& owner, int number) noexcept
    : detail::Operation(detail::OperationKind::poll, &on_ready), loop(owner) {
  fd = number;
  run_at_once();
}

/// Notifies the backend, once between two polls, that the events of a descriptor change.
void Descriptors::note(FdRecord& record) noexcept {
  if (record.noted_at == polls_) return;
  record.stopped = nullptr;
  record.unverified = false;
  if (!record.submitted()) {
    // It may be queued with a failure, which was for stopped watchers or will occur again.
    record.unlink();
    record.result = 0;
    if (record.first == nullptr) return;
  }
  loop_.poller->submit(record);
  if (record.submitted()) record.noted_at = polls_;
}

/// The descriptor may refer to a different file than the registered one. Most likely it does not if
/// the watcher was only stopped to be modified, or if the descriptor had no watcher for a while.
void Descriptors::named_again(FdRecord& record, ev_io& io) noexcept {
  const bool was_set = (io.events & EV__IOFDSET) != 0;
  io.events &= ~EV__IOFDSET;
  if (was_set && record.stopped != &io) return loop_.poller->invalidate(io.fd);
  record.unverified = true;
  loop_.poller->revalidate(io.fd);
}

void Descriptors::add_and_note(ev_io& io) noexcept {
  FdRecord* const found = find(io.fd);
  FdRecord& record = found != nullptr ? *found : *records_.make(loop_, io.fd);
  // If a poll has passed since the last watcher was stopped, the descriptor may have been closed
  // and the kernel may have removed its registration.
  const bool was_unwatched = record.first == nullptr;
  put_first(record, io);
  note(record);
  if (was_unwatched || (io.events & EV__IOFDSET) != 0) named_again(record, io);
}

void Descriptors::remove_and_note(ev_io& io) noexcept {
  FdRecord* const record = find(io.fd);
  detail::base::check(record != nullptr, "ev_io_stop: fd was changed while the watcher was active");
  ev_io* before = nullptr;
  ev_io* entry = record->first;
  while (entry != nullptr && entry != &io) entry = after(before = entry);
  if (entry == nullptr) return;  // It was stopped by fail().
  if (before == nullptr) {
    record->first = after(&io);
  } else {
    before->next = io.next;
  }
  int events = EV_NONE;
  for (entry = record->first; entry != nullptr; entry = after(entry)) events |= entry->events;
  record->events = to_events(events);
  note(*record);
  record->stopped = &io;
}

void Descriptors::feed(int fd, int events) noexcept {
  if (const FdRecord* record = find(fd)) feed_list(loop_.pendings, record->first, events);
}

}  // namespace tambour::libev

void ev_io_start(struct ev_loop* loop, ev_io* w) noexcept {
  using tambour::detail::base::check;
  if (w->active != 0) return;
  check(w->fd >= 0, "ev_io_start: negative fd");
  check((w->events & ~(EV__IOFDSET | EV_READ | EV_WRITE)) == 0, "ev_io_start: illegal event mask");
  loop->start(w, 1);
  loop->descriptors.add(*w);
}

void ev_io_stop(struct ev_loop* loop, ev_io* w) noexcept {
  loop->take_back(w);
  if (w->active == 0) return;
  loop->descriptors.remove(*w);
  loop->stop(w);
  // At its end, ev_run() settles all descriptors.
  if (loop->depth == 0) loop->poller->release_unwatched_fd(w->fd);
}

void ev_feed_fd_event(struct ev_loop* loop, int fd, int revents) noexcept {
  loop->descriptors.feed(fd, revents);
}
