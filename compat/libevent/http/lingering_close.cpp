// Reads and discards what the peer still sends, until it closes, sends too much, or the time is
// over.
#include "libevent/http/lingering_close.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/system_call.h"
#include "libevent/event/core.h"

namespace tambour::libevent {
namespace {

bool is_full(const LingeringList& list) noexcept {
  int count = 0;
  LingeringClose* lingering_close = nullptr;
  TAILQ_FOREACH(lingering_close, &list, next)++ count;
  return count >= LingeringClose::count_max;
}

}  // namespace

void LingeringClose::start(event_base* base, LingeringList& list, int fd) noexcept {
  ::shutdown(fd, SHUT_WR);
  void* const memory = is_full(list) ? nullptr : event_mm_calloc_(1, sizeof(LingeringClose));
  if (memory == nullptr) {
    ::close(fd);
    return;
  }
  auto* const created = new (memory) LingeringClose{};
  created->list = &list;
  created->fd = fd;
  event_base_gettimeofday_cached(base, &created->begin);
  event_assign(&created->readable, base, fd, EV_READ | EV_PERSIST, &on_readable, created);
  TAILQ_INSERT_TAIL(&list, created, next);
  if (event_add(&created->readable, &idle_max) != 0) created->close();
}

void LingeringClose::stop_all(LingeringList& list) noexcept {
  while (LingeringClose* const first = TAILQ_FIRST(&list)) first->close();
}

void LingeringClose::close() noexcept {
  event_del(&readable);
  event_debug_unassign(&readable);
  ::close(fd);
  TAILQ_REMOVE(list, this, next);
  event_mm_free_(this);
}

void LingeringClose::discard(short kind) noexcept {
  char discarded[16384];
  timeval now{};
  event_base_gettimeofday_cached(event_get_base(&readable), &now);
  if ((kind & EV_TIMEOUT) != 0 || now.tv_sec - begin.tv_sec > seconds_max) return close();
  const ssize_t n = detail::base::system_call(detail::base::Call::recv, ::recv, fd,
                                              static_cast<void*>(discarded), sizeof discarded, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close();
}

void LingeringClose::on_readable(evutil_socket_t /*fd*/, short kind, void* self) {
  static_cast<LingeringClose*>(self)->discard(kind);
}

}  // namespace tambour::libevent
