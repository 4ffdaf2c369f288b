// The functions of ev.h that are not specific to a watcher type.

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/check.h"
#include "loop.h"

namespace tambour::libev {
namespace {

Allocator allocator = nullptr;
void (*syserr_cb)(const char*) noexcept = nullptr;

}  // namespace

void set_allocator(Allocator wanted) noexcept { allocator = wanted; }

void* reallocate(void* memory, std::size_t bytes) noexcept {
  if (allocator == nullptr && bytes == 0) {
    std::free(memory);
    return nullptr;
  }
  void* const moved = allocator != nullptr ? allocator(memory, static_cast<long>(bytes))
                                           : std::realloc(memory, bytes);
  if (moved == nullptr && bytes != 0) {
    std::fprintf(stderr, "(libev) cannot allocate %zu bytes, aborting.", bytes);
    std::abort();
  }
  return moved;
}

void system_error_occurred(const char* text) noexcept {
  if (syserr_cb != nullptr) return syserr_cb(text);
  std::perror(text);
  std::abort();
}

void Loop::verify() {
  using detail::base::check;
  descriptors.for_each([](int fd, FdRecord& record) {
    const ev_io* slow = record.first;
    int steps = 0;
    for (const ev_io* io = record.first; io != nullptr;
         io = reinterpret_cast<const ev_io*>(io->next)) {
      // Cycle detection: a second pointer follows at half the speed and is met only in a cycle.
      check(steps == 0 || io != slow, "ev_verify: an io watcher list contains a loop");
      if ((++steps & 1) == 0) slow = reinterpret_cast<const ev_io*>(slow->next);
      check(io->active != 0, "ev_verify: an inactive watcher stands on a descriptor");
      check(io->fd == fd, "ev_verify: a watcher stands on another descriptor than its own");
    }
  });
  timers.verify();
  periodics.verify();
  const auto verify_places = [](const auto& those) {
    for (int i = 0; i < those.count(); ++i)
      check(those[i]->active == i + 1, "ev_verify: a watcher's place is wrong");
  };
  for (const auto& those : idles) verify_places(those);
  verify_places(prepares);
  verify_places(checks);
  verify_places(forks);
  verify_places(cleanups);
  verify_places(asyncs);
  pendings.for_each([](const ev_watcher& watcher, int index, int priority) {
    check(watcher.priority == priority, "ev_verify: a pending watcher's priority was changed");
    check(watcher.pending == index + 1, "ev_verify: a pending watcher's place is wrong");
  });
}

}  // namespace tambour::libev

int ev_version_major() noexcept { return EV_VERSION_MAJOR; }
int ev_version_minor() noexcept { return EV_VERSION_MINOR; }

unsigned ev_supported_backends() noexcept {
  return EVBACKEND_SELECT | EVBACKEND_POLL | EVBACKEND_EPOLL | EVBACKEND_IOURING;
}
unsigned ev_recommended_backends() noexcept {
  return EVBACKEND_SELECT | EVBACKEND_POLL | EVBACKEND_EPOLL;
}
// As in libev, this includes backends of other systems. Of the backends supported here, it includes
// those with a descriptor.
unsigned ev_embeddable_backends() noexcept {
  return EVBACKEND_EPOLL | EVBACKEND_KQUEUE | EVBACKEND_PORT | EVBACKEND_IOURING;
}

ev_tstamp ev_time() noexcept { return tambour::libev::Clock::wall_now(); }

void ev_sleep(ev_tstamp delay) noexcept {
  constexpr ev_tstamp longest = 1e9;
  if (!(delay > 0.)) return;
  if (delay > longest) delay = longest;
  const auto whole = static_cast<std::time_t>(delay);
  timespec rest{.tv_sec = whole,
                .tv_nsec = static_cast<long>((delay - static_cast<ev_tstamp>(whole)) * 1e9)};
  ::nanosleep(&rest, nullptr);
}

void ev_set_allocator(void* (*cb)(void*, long) noexcept) noexcept {
  tambour::libev::set_allocator(cb);
}
void ev_set_syserr_cb(void (*cb)(const char*) noexcept) noexcept { tambour::libev::syserr_cb = cb; }

int ev_run(struct ev_loop* loop, int flags) { return loop->run(flags); }
void ev_break(struct ev_loop* loop, int mode) noexcept { loop->break_how = mode; }
void ev_ref(struct ev_loop* loop) noexcept { ++loop->references; }
void ev_unref(struct ev_loop* loop) noexcept { --loop->references; }

unsigned ev_backend(struct ev_loop* loop) noexcept { return loop->backend_kind; }
unsigned ev_iteration(struct ev_loop* loop) noexcept { return loop->iterations; }
unsigned ev_depth(struct ev_loop* loop) noexcept { return static_cast<unsigned>(loop->depth); }
void ev_verify(struct ev_loop* loop) noexcept { loop->verify(); }

ev_tstamp ev_now(struct ev_loop* loop) noexcept { return loop->clock.wall; }
void ev_now_update(struct ev_loop* loop) noexcept { loop->update_time(); }
void ev_suspend(struct ev_loop* loop) noexcept { loop->update_time(); }
void ev_resume(struct ev_loop* loop) noexcept {
  const ev_tstamp before = loop->clock.monotonic;
  loop->update_time();
  loop->timers.shift(loop->clock.monotonic - before);
  loop->periodics.reschedule();
}

void ev_set_io_collect_interval(struct ev_loop* loop, ev_tstamp interval) noexcept {
  loop->io_interval = interval;
}
void ev_set_timeout_collect_interval(struct ev_loop* loop, ev_tstamp interval) noexcept {
  loop->timeout_interval = interval;
}
void ev_set_userdata(struct ev_loop* loop, void* data) noexcept { loop->userdata = data; }
void* ev_userdata(struct ev_loop* loop) noexcept { return loop->userdata; }
void ev_set_invoke_pending_cb(struct ev_loop* loop, ev_loop_callback cb) noexcept {
  auto& chosen = loop->observed != nullptr ? loop->user_invoke_pending_cb : loop->invoke_pending_cb;
  chosen = cb == &ev_invoke_pending ? nullptr : cb;
}
void ev_set_loop_release_cb(struct ev_loop* loop, void (*release)(struct ev_loop*) noexcept,
                            void (*acquire)(struct ev_loop*) noexcept) noexcept {
  if (release != nullptr || acquire != nullptr) loop->prepare_to_be_released();
  loop->release_cb = release;
  loop->acquire_cb = acquire;
}

unsigned ev_pending_count(struct ev_loop* loop) noexcept { return loop->pendings.count(); }
void ev_invoke_pending(struct ev_loop* loop) {
  if (loop->observed != nullptr) return loop->invoke_observed();
  loop->pendings.invoke(loop);
}
void ev_feed_event(struct ev_loop* loop, void* w, int revents) noexcept {
  loop->pendings.feed(static_cast<ev_watcher*>(w), revents);
}
void ev_invoke(struct ev_loop* loop, void* w, int revents) {
  auto* const watcher = static_cast<ev_watcher*>(w);
  watcher->cb(loop, watcher, revents);
}
int ev_clear_pending(struct ev_loop* loop, void* w) noexcept {
  return loop->pendings.take_back(static_cast<ev_watcher*>(w));
}
