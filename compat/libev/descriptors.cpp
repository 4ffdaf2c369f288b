#include "descriptors.h"

#include <memory>
#include <new>
#include <utility>

#include "base/check.h"
#include "loop.h"

namespace tambour::libev {
namespace {

Events to_events(int events) noexcept {
  return ((events & EV_READ) != 0 ? Events::read : Events::none) |
         ((events & EV_WRITE) != 0 ? Events::write : Events::none);
}

int from_events(std::int32_t events) noexcept {
  static_assert(int(Events::read) == EV_READ && int(Events::write) == EV_WRITE << 1);
  return (events & EV_READ) | (events >> 1 & EV_WRITE);
}

ev_io* after(const ev_io* io) noexcept { return reinterpret_cast<ev_io*>(io->next); }

void feed_list(Pendings& pendings, ev_io* first, int events) noexcept {
  for (ev_io* io = first; io != nullptr; io = after(io)) {
    if (const int hit = io->events & events) pendings.feed(base_of(io), hit);
  }
}

/// The backend gives up a descriptor: its watchers are told so, and stopped.
void fail(FdRecord& record) noexcept {
  Loop& loop = record.loop;
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

void on_ready(Ready& ready) {
  auto& record = static_cast<FdRecord&>(ready);
  const std::int32_t result = std::exchange(record.result, 0);
  ev_io* const io = record.first;
  // Nearly always one watcher, and nothing that has failed.
  if (result < 0 || io == nullptr || io->next != nullptr) [[unlikely]]
    return tell_all(record, result);
  const int hit = io->events & from_events(result);
  if (hit != 0) record.loop.pendings.feed(base_of(io), hit);
}

}  // namespace

FdRecord::FdRecord(Loop& owner, int number) noexcept
    : Operation(OperationKind::poll, &on_ready), loop(owner) {
  fd = number;
  run_at_once();
}

Descriptors::~Descriptors() {
  for (int chunk = 0; chunk < chunk_count_; ++chunk) {
    if (chunks_[chunk] == nullptr) continue;
    std::destroy_n(chunks_[chunk], chunk_size);
    reallocate(chunks_[chunk], 0);
  }
}

FdRecord& Descriptors::make(int fd) noexcept {
  const int chunk = fd / chunk_size;
  if (chunk >= chunk_count_) {
    chunks_.need(chunk + 1);
    while (chunk_count_ <= chunk) chunks_[chunk_count_++] = nullptr;
  }
  if (chunks_[chunk] == nullptr) {
    auto* records = static_cast<FdRecord*>(reallocate(nullptr, chunk_size * sizeof(FdRecord)));
    for (int i = 0; i < chunk_size; ++i) new (records + i) FdRecord(loop_, chunk * chunk_size + i);
    chunks_[chunk] = records;
  }
  return chunks_[chunk][fd % chunk_size];
}

/// Tells the backend what the watchers of a descriptor ask for by now.
void Descriptors::tell(FdRecord& record) noexcept {
  int events = EV_NONE;
  for (const ev_io* io = record.first; io != nullptr; io = after(io)) events |= io->events;
  record.events = to_events(events);
  if (record.link_on_fd == nullptr) {
    record.unlink();  // From failures that nobody waits for any more.
    record.result = 0;
  }
  loop_.poller->submit(record);
}

void Descriptors::add(ev_io& io) noexcept {
  FdRecord* found = find(io.fd);
  FdRecord& record = found != nullptr ? *found : make(io.fd);
  io.next = reinterpret_cast<ev_watcher_list*>(record.first);
  record.first = &io;
  if ((io.events & EV__IOFDSET) != 0) {
    // The number was set, and may mean another file than before. Not so, most likely, where the
    // watcher was only stopped to be set anew.
    io.events &= ~EV__IOFDSET;
    if (record.stopped == &io && record.stopped_in == loop_.turns) {
      loop_.poller->doubt(io.fd);
    } else {
      loop_.poller->forget(io.fd);
    }
  } else if (record.stopped_in != loop_.turns && io.next == nullptr) {
    // An iteration has passed in which the descriptor had no watcher. The kernel may still hold
    // its registration, or the descriptor was closed and the registration with it.
    loop_.poller->doubt(io.fd);
  }
  tell(record);
}

void Descriptors::remove(ev_io& io) noexcept {
  FdRecord* const record = find(io.fd);
  base::check(record != nullptr, "ev_io_stop: fd was changed while the watcher was active");
  ev_io* before = nullptr;
  ev_io* each = record->first;
  while (each != nullptr && each != &io) each = after(before = each);
  if (each == nullptr) return;  // It was stopped when its descriptor failed.
  if (before == nullptr) {
    record->first = after(&io);
  } else {
    before->next = io.next;
  }
  record->stopped = &io;
  record->stopped_in = loop_.turns;
  if (record->first != nullptr) {
    tell(*record);
  } else if (record->link_on_fd != nullptr) {
    loop_.poller->cancel(*record);
    record->result = 0;
  } else {
    record->unlink();
    record->result = 0;
  }
}

void Descriptors::feed(int fd, int events) noexcept {
  if (const FdRecord* record = find(fd)) feed_list(loop_.pendings, record->first, events);
}

}  // namespace tambour::libev

void ev_io_start(struct ev_loop* loop, ev_io* w) noexcept {
  using tambour::base::check;
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
}

void ev_feed_fd_event(struct ev_loop* loop, int fd, int revents) noexcept {
  loop->descriptors.feed(fd, revents);
}
