// Creating a loop, reopening it after fork(2), and destroying it.

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.h"
#include "common/observation.h"
#include "loop.h"

namespace tambour::libev {
namespace {

struct Kind {
  unsigned flag;
  BackendKind kind;
};

/// In order of preference.
constexpr Kind kinds[] = {{EVBACKEND_IOURING, BackendKind::io_uring},
                          {EVBACKEND_EPOLL, BackendKind::epoll},
                          {EVBACKEND_POLL, BackendKind::poll},
                          {EVBACKEND_SELECT, BackendKind::select}};

std::unique_ptr<detail::backend::Backend> open_kind(BackendKind kind) noexcept {
  try {
    auto opened = detail::backend::open_backend_without_wake_up({.backend = kind});
    // io_uring falls back to epoll, but the caller asked for io_uring only.
    if (!opened || (*opened)->traits().kind != kind) return nullptr;
    if (!(*opened)->share()) return nullptr;
    return std::move(*opened);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// The backend of a destroyed default loop. Watchers can be started and stopped without effect;
/// running the loop is an error.
class NoBackend final : public detail::backend::Backend {
 public:
  void submit(detail::Operation& /*operation*/) noexcept override {}
  void cancel(detail::Operation& /*operation*/) noexcept override {}
  void poll(std::int64_t /*timeout_ns*/, detail::base::ReadyQueue& /*ready*/) noexcept override {
    detail::base::check(false,
                        "ev_run: this default loop was destroyed; call ev_default_loop() first");
  }
  void wake() noexcept override {}
  void invalidate(int /*fd*/) noexcept override {}
  void feed(int /*fd*/, Events /*events*/, detail::base::ReadyQueue& /*ready*/) noexcept override {}
  Result<> reopen() noexcept override { return {}; }
  void abandon() noexcept override {}
};

unsigned with_environment(unsigned flags) noexcept {
  if ((flags & EVFLAG_NOENV) == 0 && ::getuid() == ::geteuid() && ::getgid() == ::getegid()) {
    if (const char* words = std::getenv("LIBEV_FLAGS"))
      flags = static_cast<unsigned>(std::strtol(words, nullptr, 10));
  }
  if ((flags & EVBACKEND_MASK) == 0) flags |= ev_recommended_backends();
  return flags;
}

}  // namespace

Loop::Parts Loop::open(unsigned asked) noexcept {
  const unsigned flags = with_environment(asked);
  for (const Kind& kind : kinds) {
    if ((flags & kind.flag) == 0) continue;
    auto opened = open_kind(kind.kind);
    if (opened == nullptr) continue;
    // These two flags are not taken from LIBEV_FLAGS.
    constexpr unsigned fixed = EVFLAG_FORKCHECK | EVFLAG_NOSIGMASK;
    return {.poller = std::move(opened),
            .flags = (flags & ~fixed) | (asked & fixed),
            .backend_kind = kind.flag};
  }
  return {};
}

Loop::Loop(Parts parts) noexcept
    : poller(std::move(parts.poller)),
      flags(parts.flags),
      backend_kind(parts.backend_kind),
      process(::getpid()),
      signals(*this, (flags & EVFLAG_SIGNALFD) != 0),
      stats(*this, (flags & EVFLAG_NOINOTIFY) == 0),
      use_timerfd_((flags & EVFLAG_NOTIMERFD) == 0) {
  ev_init(&messenger_, &on_message);
  ev_set_priority(&messenger_, EV_MAXPRI);
}

Loop::~Loop() {
  end_observation();
  poller->abandon();
}

void Loop::reopen() noexcept {
  forked = false;
  const bool had_waker = waker_.is_open();
  const bool had_timerfd = timerfd_.is_open();
  // Before any descriptor is opened, which could get the number of a former one.
  const bool has_all = poller->disown_if_lost();
  signals.disown_if_lost(has_all);
  if (!has_all) {
    stats.disown();
    static_cast<void>(waker_.release());
    static_cast<void>(timerfd_.release());
  }
  // If there are no descriptors for a new backend, the old one, shared with the parent, stays in
  // use.
  if (auto reopened = poller->reopen(); !reopened) system_error_occurred("(libev) fork");
  if (had_waker) prepare_to_be_released();
  signals.reopen();
  stats.reopen();
  if (had_timerfd) {
    stop_own(timerfd_io_);
    open_timerfd();
    periodics.reschedule();
  }
  // libev does so whenever it has opened its pipe; therefore no idle watcher is invoked in this
  // iteration.
  if (accepts_messages_) pendings.feed(base_of(&messenger_), EV_CUSTOM);
  if (observed != nullptr) compat::observer()->after_fork(observed);
}

}  // namespace tambour::libev

using tambour::libev::Loop;

struct ev_loop* ev_default_loop_ptr = nullptr;

namespace {

ev_signal sigchld_watcher;

/// The default loop is in static memory, like libev's: programs use its address after
/// ev_loop_destroy() and get the same address for the next default loop. After the first
/// ev_default_loop() the memory always contains a loop object; a destroyed loop has no backend.
alignas(struct ev_loop) constinit std::byte default_loop_memory[sizeof(struct ev_loop)];
bool default_loop_was_made = false;

struct ev_loop* default_loop() noexcept {
  return std::launder(reinterpret_cast<struct ev_loop*>(default_loop_memory));
}

/// Replaces the object in the static memory, keeping the fields that libev keeps.
struct ev_loop* renew_default_loop(Loop::Parts parts) noexcept {
  void* userdata = nullptr;
  unsigned iterations = 0;
  void (*release_cb)(struct ev_loop*) noexcept = nullptr;
  void (*acquire_cb)(struct ev_loop*) noexcept = nullptr;
  if (std::exchange(default_loop_was_made, true)) {
    struct ev_loop* const former = default_loop();
    userdata = former->userdata;
    iterations = former->iterations;
    release_cb = former->release_cb;
    acquire_cb = former->acquire_cb;
    former->~ev_loop();
  }
  auto* const loop = new (default_loop_memory) struct ev_loop(std::move(parts));
  loop->userdata = userdata;
  loop->iterations = iterations;
  if (loop->backend_kind != 0) {
    ev_set_loop_release_cb(loop, release_cb, acquire_cb);
  } else {
    loop->release_cb = release_cb;
    loop->acquire_cb = acquire_cb;
  }
  return loop;
}

}  // namespace

struct ev_loop* ev_loop_new(unsigned flags) noexcept {
  Loop::Parts parts = Loop::open(flags);
  if (parts.poller == nullptr) return nullptr;
  void* const memory = tambour::libev::reallocate(nullptr, sizeof(struct ev_loop));
  auto* const loop = new (memory) struct ev_loop(std::move(parts));
  loop->begin_observation();
  return loop;
}

struct ev_loop* ev_default_loop(unsigned flags) noexcept {
  if (ev_default_loop_ptr != nullptr) return ev_default_loop_ptr;
  Loop::Parts parts = Loop::open(flags);
  if (parts.poller == nullptr) return nullptr;
  ev_default_loop_ptr = renew_default_loop(std::move(parts));
  tambour::libev::start_reaping(*ev_default_loop_ptr, sigchld_watcher);
  ev_default_loop_ptr->begin_observation();
  return ev_default_loop_ptr;
}

void ev_loop_destroy(struct ev_loop* loop) {
  if (loop == nullptr) return;
  if (loop->cleanups.count() != 0) {
    loop->cleanups.feed_all(loop->pendings, EV_CLEANUP);
    loop->invoke_pending();
  }
  if (loop != default_loop()) {
    loop->~ev_loop();
    tambour::libev::reallocate(loop, 0);
    return;
  }
  if (ev_default_loop_ptr == nullptr) return;  // It was already destroyed.
  if (sigchld_watcher.active != 0) {
    ev_ref(loop);
    ev_signal_stop(loop, &sigchld_watcher);
  }
  ev_default_loop_ptr = nullptr;
  renew_default_loop(
      {.poller = std::make_unique<tambour::libev::NoBackend>(), .flags = 0, .backend_kind = 0});
}

void ev_loop_fork(struct ev_loop* loop) noexcept { loop->forked = true; }
