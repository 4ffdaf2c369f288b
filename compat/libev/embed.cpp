// ev_embed: embeds a loop in another loop, which waits for it through its backend's descriptor.

#include <cstddef>

#include "base/check.h"
#include "loop.h"

namespace {

int descriptor_of(struct ev_loop* other) noexcept {
  const auto descriptor = other->poller->fd();
  return descriptor ? *descriptor : -1;
}

/// A backend may replace its descriptor when it is polled.
void follow_descriptor(struct ev_loop* loop, ev_embed* embed) noexcept {
  const int descriptor = descriptor_of(embed->other);
  if (embed->active == 0 || descriptor == embed->io.fd || descriptor < 0) return;
  ev_io_stop(loop, &embed->io);
  ev_io_set(&embed->io, descriptor, EV_READ);
  ev_io_start(loop, &embed->io);
}

template <class Watcher>
ev_embed* embed_of(Watcher* watcher, std::size_t offset) noexcept {
  return reinterpret_cast<ev_embed*>(reinterpret_cast<char*>(watcher) - offset);
}

void on_readable(struct ev_loop* loop, ev_io* io, int) {
  ev_embed* const embed = embed_of(io, offsetof(ev_embed, io));
  if (embed->cb != nullptr) {
    ev_feed_event(loop, embed, EV_EMBED);
  } else {
    ev_embed_sweep(loop, embed);
  }
}

/// Changes of the embedded loop must be submitted to the kernel before this loop waits.
void before_wait(struct ev_loop* loop, ev_prepare* prepare, int) {
  ev_embed* const embed = embed_of(prepare, offsetof(ev_embed, prepare));
  if (embed->other->poller->must_poll()) ev_run(embed->other, EVRUN_NOWAIT);
  follow_descriptor(loop, embed);
}

void after_fork(struct ev_loop* loop, ev_fork* fork, int) {
  ev_embed* const embed = embed_of(fork, offsetof(ev_embed, fork));
  ev_embed_stop(loop, embed);
  ev_loop_fork(embed->other);
  ev_run(embed->other, EVRUN_NOWAIT);
  ev_embed_start(loop, embed);
}

}  // namespace

void ev_embed_sweep(struct ev_loop* loop, ev_embed* w) noexcept {
  ev_run(w->other, EVRUN_NOWAIT);
  follow_descriptor(loop, w);
}

void ev_embed_start(struct ev_loop* loop, ev_embed* w) noexcept {
  if (w->active != 0) return;
  const int descriptor = descriptor_of(w->other);
  tambour::detail::base::check(
      descriptor >= 0 && (ev_backend(w->other) & ev_embeddable_backends()) != 0,
      "ev_embed_start: the loop to be embedded is not embeddable");
  w->other->be_embedded();
  ev_io_init(&w->io, &on_readable, descriptor, EV_READ);
  ev_set_priority(&w->io, w->priority);
  ev_io_start(loop, &w->io);
  ev_prepare_init(&w->prepare, &before_wait);
  ev_set_priority(&w->prepare, EV_MINPRI);
  ev_prepare_start(loop, &w->prepare);
  ev_fork_init(&w->fork, &after_fork);
  ev_fork_start(loop, &w->fork);
  loop->start(w, 1);
}

void ev_embed_stop(struct ev_loop* loop, ev_embed* w) noexcept {
  loop->take_back(w);
  if (w->active == 0) return;
  ev_io_stop(loop, &w->io);
  ev_prepare_stop(loop, &w->prepare);
  ev_fork_stop(loop, &w->fork);
  loop->stop(w);
}
