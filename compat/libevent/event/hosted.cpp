// Bases that run on an EventLoop of the program: <tambour/adapters/libevent.h>.

#include <cerrno>
#include <memory>
#include <new>

#include <tambour/detail/guest_calls.h>

#include "common/hosted_backend.h"
#include "libevent/event/base.h"

namespace le = tambour::libevent;
using tambour::BackendKind;
using tambour::detail::GuestCalls;
using tambour::detail::HostCalls;

std::int64_t event_base::deadline_for_host() noexcept {
  const le::BaseLock locked(*this);
  // The owner: other threads wake it when they add an event.
  if (evthread_id_fn_ != nullptr) owner = evthread_id_fn_();
  submit_changes();
  hosted->collect(ready);
  take_results();
  // A callback of this base runs the host: nothing else of the base can run before it returns.
  if (running) return INT64_MAX;
  if (active_count != 0 || later.first() != nullptr || signals.any_pending()) return 0;
  if (timeouts.empty()) return INT64_MAX;
  const std::int64_t due_us = timeouts.next();
  return due_us > INT64_MAX / 1000 ? INT64_MAX : due_us * 1000;
}

bool event_base::run_for_host() {
  const le::BaseLock locked(*this);
  if (running) return false;
  running = true;
  signals.receive();
  if (evthread_id_fn_ != nullptr) owner = evthread_id_fn_();
  exit_asked = break_asked = continue_asked = false;
  deferred_count = 0;
  activate_later_queue();
  submit_changes();
  hosted->collect(ready);
  take_results();
  update_cached_time();
  activate_expired();
  signals.queue_arrived();
  if (active_count != 0) process_active();
  cached_us = 0;
  running = false;
  fds.submit_changes();
  poller->release_unwatched_fds();
  return exit_asked || break_asked;
}

namespace {

std::int64_t deadline(void* guest) noexcept { return le::base_of(guest).deadline_for_host(); }

const le::Method* method_of(BackendKind kind) noexcept {
  switch (kind) {
    case BackendKind::poll:
      return &le::methods[1];
    case BackendKind::select:
      return &le::methods[2];
    default:
      return &le::methods[0];
  }
}

}  // namespace

extern "C" int tambour_open_event_base_1(const HostCalls& host, GuestCalls& guest) noexcept {
  std::unique_ptr<tambour::compat::HostedBackend> backend(new (std::nothrow)
                                                              tambour::compat::HostedBackend(host));
  if (backend == nullptr) return ENOMEM;
  auto* const hosted = backend.get();
  const le::Method* const method = method_of(hosted->traits().kind);
  event_base* const base = le::new_base(nullptr, std::move(backend), method);
  if (base == nullptr) return ENOMEM;
  base->hosted = hosted;
  if (evthread_id_fn_ != nullptr) base->owner = evthread_id_fn_();
  guest = {.loop = base,
           .prepare =
               [](void* self, bool* must_run) {
                 *must_run = false;
                 return deadline(self);
               },
           .update_time = nullptr,
           .deadline = &deadline,
           .run = [](void* self) { return le::base_of(self).run_for_host(); },
           .after_fork = [](void* self) noexcept { event_reinit(&le::base_of(self)); },
           .destroy = [](void* self) { event_base_free(&le::base_of(self)); }};
  return 0;
}
