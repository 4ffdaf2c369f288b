// How a loop begins, what becomes of it after fork(2), and how it ends.

#include <unistd.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "loop.h"

namespace tambour::libev {
namespace {

struct Kind {
  unsigned flag;
  BackendKind kind;
};

/// The best first.
constexpr Kind kinds[] = {{EVBACKEND_IOURING, BackendKind::io_uring},
                          {EVBACKEND_EPOLL, BackendKind::epoll},
                          {EVBACKEND_POLL, BackendKind::poll},
                          {EVBACKEND_SELECT, BackendKind::select}};

std::unique_ptr<backend::Backend> open_kind(BackendKind kind) noexcept {
  try {
    auto opened = backend::open_backend_without_wake_up({.backend = kind});
    // io_uring falls back to epoll in silence; whoever asked for io_uring here did not ask for
    // that.
    if (!opened || (*opened)->traits().kind != kind) return nullptr;
    if (!(*opened)->share()) return nullptr;
    return std::move(*opened);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

unsigned with_environment(unsigned flags) noexcept {
  if ((flags & EVFLAG_NOENV) == 0 && ::getuid() == ::geteuid() && ::getgid() == ::getegid()) {
    if (const char* words = std::getenv("LIBEV_FLAGS"))
      flags = static_cast<unsigned>(std::strtol(words, nullptr, 10));
  }
  if ((flags & EVBACKEND_MASK) == 0) flags |= ev_recommended_backends();
  return flags;
}

}  // namespace

struct ev_loop* Loop::open(unsigned asked) noexcept {
  const unsigned flags = with_environment(asked);
  for (const Kind& each : kinds) {
    if ((flags & each.flag) == 0) continue;
    auto opened = open_kind(each.kind);
    if (opened == nullptr) continue;
    void* const memory = reallocate(nullptr, sizeof(struct ev_loop));
    // These two are no matter of the environment.
    constexpr unsigned fixed = EVFLAG_FORKCHECK | EVFLAG_NOSIGMASK;
    return new (memory) struct ev_loop(std::move(opened), (flags & ~fixed) | (asked & fixed),
                                       each.flag);
  }
  return nullptr;
}

Loop::Loop(std::unique_ptr<backend::Backend> opened, unsigned flag_bits, unsigned kind) noexcept
    : poller(std::move(opened)),
      flags(flag_bits),
      backend_kind(kind),
      process(::getpid()),
      signals(*this, (flag_bits & EVFLAG_SIGNALFD) != 0),
      stats(*this, (flag_bits & EVFLAG_NOINOTIFY) == 0),
      use_timerfd_((flag_bits & EVFLAG_NOTIMERFD) == 0) {
  ev_init(&messenger_, &on_message);
  ev_set_priority(&messenger_, EV_MAXPRI);
}

Loop::~Loop() { poller->abandon(); }

void Loop::destroy() noexcept {
  this->~Loop();
  reallocate(this, 0);
}

void Loop::reopen() noexcept {
  forked = false;
  // Without descriptors for a new one, the old backend, which is the parent's too, is all there is.
  if (auto reopened = poller->reopen(); !reopened) system_error_occurred("(libev) fork");
  if (waker_.is_open()) prepare_to_be_released();
  signals.reopen();
  stats.reopen();
  if (timerfd_.is_open()) {
    stop_own(timerfd_io_);
    open_timerfd();
    periodics.reschedule();
  }
  // libev does so whenever it has opened its pipe, and no callback of an idle watcher runs then.
  if (accepts_messages_) pendings.feed(base_of(&messenger_), EV_CUSTOM);
}

}  // namespace tambour::libev

using tambour::libev::Loop;

struct ev_loop* ev_default_loop_ptr = nullptr;

struct ev_loop* ev_loop_new(unsigned flags) noexcept { return Loop::open(flags); }

namespace {

ev_signal sigchld_watcher;

}  // namespace

struct ev_loop* ev_default_loop(unsigned flags) noexcept {
  if (ev_default_loop_ptr != nullptr) return ev_default_loop_ptr;
  struct ev_loop* const loop = Loop::open(flags);
  if (loop == nullptr) return nullptr;
  ev_default_loop_ptr = loop;
  tambour::libev::start_reaping(*loop, sigchld_watcher);
  return loop;
}

void ev_loop_destroy(struct ev_loop* loop) {
  if (loop == nullptr) return;
  if (loop->cleanups.count() != 0) {
    loop->cleanups.feed_all(loop->pendings, EV_CLEANUP);
    loop->invoke_pending();
  }
  if (loop == ev_default_loop_ptr) {
    if (sigchld_watcher.active != 0) {
      ev_ref(loop);
      ev_signal_stop(loop, &sigchld_watcher);
    }
    ev_default_loop_ptr = nullptr;
  }
  loop->destroy();
}

void ev_loop_fork(struct ev_loop* loop) noexcept { loop->forked = true; }
