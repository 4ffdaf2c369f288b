// evconnlistener: accepts until the kernel has no more connections, and pauses while descriptors or
// memory are short.
#include "libevent/bufferevent/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include <event2/util.h>

#include "base/system_call.h"
#include "libevent/event/core.h"
#include "libevent/event/observed.h"

using tambour::detail::base::Call;
namespace base = tambour::detail::base;

namespace {

constexpr int backlog_default = 128;
// While the process has no descriptors left, the socket stays readable. Without a pause, the loop
// would spin.
constexpr timeval retry_after{0, 100'000};

/// Whether the next accept(2) would fail in the same way.
bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void on_readable(evutil_socket_t fd, short /*events*/, void* argument) {
  static_cast<evconnlistener*>(argument)->accept_all(fd);
}

void on_retry(evutil_socket_t /*fd*/, short /*events*/, void* argument) {
  auto& listener = *static_cast<evconnlistener*>(argument);
  tambour::libevent::lock(listener.lock);
  if (listener.enabled && listener.callback != nullptr) event_add(&listener.readable, nullptr);
  tambour::libevent::unlock(listener.lock);
}

class ListenerLocked {
 public:
  explicit ListenerLocked(const evconnlistener& listener) noexcept : lock_(listener.lock) {
    tambour::libevent::lock(lock_);
  }
  ListenerLocked(const ListenerLocked&) = delete;
  ListenerLocked& operator=(const ListenerLocked&) = delete;
  ~ListenerLocked() { tambour::libevent::unlock(lock_); }

 private:
  void* lock_;
};

bool set_options(int fd, unsigned flags) noexcept {
  const int enabled = 1;
  if (base::system_call(Call::setsockopt, ::setsockopt, fd, SOL_SOCKET, SO_KEEPALIVE,
                        static_cast<const void*>(&enabled),
                        static_cast<socklen_t>(sizeof enabled)) != 0)
    return false;
  struct Option {
    unsigned flag;
    int (*set)(evutil_socket_t);
  };
  constexpr Option options[] = {{LEV_OPT_REUSEABLE, &evutil_make_listen_socket_reuseable},
                                {LEV_OPT_REUSEABLE_PORT, &evutil_make_listen_socket_reuseable_port},
                                {LEV_OPT_DEFERRED_ACCEPT, &evutil_make_tcp_listen_socket_deferred},
                                {LEV_OPT_BIND_IPV6ONLY, &evutil_make_listen_socket_ipv6only}};
  for (const Option& option : options)
    if ((flags & option.flag) != 0 && option.set(fd) < 0) return false;
  return true;
}

}  // namespace

int evconnlistener::start() noexcept { return event_add(&readable, nullptr); }

int evconnlistener::stop() noexcept {
  event_del(&retry);
  return event_del(&readable);
}

void evconnlistener::accept_all(int fd) noexcept {
  tambour::libevent::lock(lock);
  for (;;) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    auto* const peer = reinterpret_cast<sockaddr*>(&address);
    const int accepted = base::system_call(Call::accept, ::accept4, fd, peer, &size, accept_flags);
    if (accepted < 0) return fail(fd, errno);
    if (callback == nullptr) {
      ::close(accepted);
      return tambour::libevent::unlock(lock);
    }
    if (!report(accepted, peer, static_cast<int>(size))) return;
  }
}

bool evconnlistener::report(int fd, sockaddr* address, int size) noexcept {
  const auto invoked = callback;
  void* const user = argument;
  ++references;
  tambour::libevent::unlock(lock);
  invoked(this, fd, address, size, user);
  tambour::libevent::lock(lock);
  if (references > 1 && enabled) {
    --references;
    return true;
  }
  release();
  return false;
}

void evconnlistener::fail(int fd, int error) noexcept {
  if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
    return tambour::libevent::unlock(lock);
  if (is_shortage(error) && enabled) {
    event_del(&readable);
    event_add(&retry, &retry_after);
  }
  if (error_callback == nullptr) {
    event_warnx("accept() on fd %d failed: %s", fd, std::strerror(error));
    return tambour::libevent::unlock(lock);
  }
  const auto invoked = error_callback;
  void* const user = argument;
  ++references;
  tambour::libevent::unlock(lock);
  errno = error;
  invoked(this, user);
  tambour::libevent::lock(lock);
  release();
}

void evconnlistener::release() noexcept {
  if (--references != 0) return tambour::libevent::unlock(lock);
  stop();
  if ((flags & LEV_OPT_CLOSE_ON_FREE) != 0) ::close(event_get_fd(&readable));
  event_debug_unassign(&readable);
  event_debug_unassign(&retry);
  tambour::libevent::unlock(lock);
  tambour::libevent::free_lock(lock, EVTHREAD_LOCKTYPE_RECURSIVE);
  event_mm_free_(this);
}

evconnlistener* evconnlistener_new(event_base* base, evconnlistener_cb cb, void* ptr,
                                   unsigned flags, int backlog, evutil_socket_t fd) {
  // Without a backlog, the socket listens already.
  if (backlog != 0 &&
      base::system_call(Call::listen, ::listen, fd, backlog > 0 ? backlog : backlog_default) < 0)
    return nullptr;
  void* const memory = event_mm_calloc_(1, sizeof(evconnlistener));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) evconnlistener{};
  created->callback = cb;
  created->argument = ptr;
  created->flags = flags;
  created->references = 1;
  if ((flags & LEV_OPT_LEAVE_SOCKETS_BLOCKING) == 0) created->accept_flags |= SOCK_NONBLOCK;
  if ((flags & LEV_OPT_CLOSE_ON_EXEC) != 0) created->accept_flags |= SOCK_CLOEXEC;
  if ((flags & LEV_OPT_THREADSAFE) != 0)
    created->lock = tambour::libevent::make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
  event_assign(&created->readable, base, fd, EV_READ | EV_PERSIST, &on_readable, created);
  event_assign(&created->retry, base, -1, 0, &on_retry, created);
  if ((flags & LEV_OPT_DISABLED) == 0) evconnlistener_enable(created);
  return created;
}

evconnlistener* evconnlistener_new_bind(event_base* base, evconnlistener_cb cb, void* ptr,
                                        unsigned flags, int backlog, const sockaddr* sa,
                                        int socklen) {
  if (backlog == 0) return nullptr;
  const int family = sa != nullptr ? sa->sa_family : AF_UNSPEC;
  const int exec_flag = (flags & LEV_OPT_CLOSE_ON_EXEC) != 0 ? SOCK_CLOEXEC : 0;
  const int fd =
      base::system_call(Call::socket, ::socket, family, SOCK_STREAM | SOCK_NONBLOCK | exec_flag, 0);
  if (fd < 0) return nullptr;
  const bool bound = set_options(fd, flags) &&
                     (sa == nullptr || base::system_call(Call::bind, ::bind, fd, sa,
                                                         static_cast<socklen_t>(socklen)) == 0);
  evconnlistener* const created =
      bound ? evconnlistener_new(base, cb, ptr, flags, backlog, fd) : nullptr;
  if (created == nullptr) {
    const int error = errno;
    ::close(fd);
    errno = error;
  }
  return created;
}

void evconnlistener_free(evconnlistener* lev) {
  tambour::libevent::lock(lev->lock);
  lev->callback = nullptr;
  lev->error_callback = nullptr;
  lev->release();
}

int evconnlistener_enable(evconnlistener* lev) {
  const ListenerLocked locked(*lev);
  lev->enabled = true;
  return lev->callback != nullptr ? lev->start() : 0;
}

int evconnlistener_disable(evconnlistener* lev) {
  const ListenerLocked locked(*lev);
  lev->enabled = false;
  return lev->stop();
}

evutil_socket_t evconnlistener_get_fd(evconnlistener* lev) {
  const ListenerLocked locked(*lev);
  return event_get_fd(&lev->readable);
}

event_base* evconnlistener_get_base(evconnlistener* lev) {
  const ListenerLocked locked(*lev);
  return event_get_base(&lev->readable);
}

void evconnlistener_set_cb(evconnlistener* lev, evconnlistener_cb cb, void* arg) {
  const ListenerLocked locked(*lev);
  const bool waited = lev->enabled && lev->callback == nullptr;
  lev->callback = cb;
  lev->argument = arg;
  if (waited) evconnlistener_enable(lev);
}

void evconnlistener_set_error_cb(evconnlistener* lev, evconnlistener_errorcb errorcb) {
  const ListenerLocked locked(*lev);
  lev->error_callback = errorcb;
}

evconnlistener* tambour::libevent::listener_of(const event_callback& callback) noexcept {
  if ((callback.evcb_flags & EVLIST_INIT) == 0) return nullptr;
  const auto function = callback.evcb_cb_union.evcb_callback;
  if (function != &on_readable && function != &on_retry) return nullptr;
  return static_cast<evconnlistener*>(callback.evcb_arg);
}

const void* tambour::libevent::function_of(const evconnlistener& listener) noexcept {
  return reinterpret_cast<const void*>(listener.callback);
}
