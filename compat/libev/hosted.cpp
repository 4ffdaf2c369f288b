// Loops that run on an EventLoop of the program: <tambour/adapters/libev.h>.

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <tambour/detail/guest_calls.h>

#include "common/hosted_backend.h"
#include "loop.h"

using tambour::BackendKind;
using tambour::detail::GuestCalls;
using tambour::detail::HostCalls;
using tambour::libev::loop_at;

namespace {

unsigned flag_of(BackendKind kind) noexcept {
  switch (kind) {
    case BackendKind::io_uring:
      return EVBACKEND_IOURING;
    case BackendKind::poll:
      return EVBACKEND_POLL;
    case BackendKind::select:
      return EVBACKEND_SELECT;
    default:
      return EVBACKEND_EPOLL;
  }
}

std::int64_t prepare(void* guest, bool* must_run) {
  struct ev_loop* const loop = &loop_at(guest);
  const std::int64_t deadline_ns = loop->prepare_for_host();
  *must_run = loop->checks.count() != 0;
  return deadline_ns;
}

}  // namespace

extern "C" int tambour_open_ev_loop_1(const HostCalls& host, GuestCalls& guest) noexcept {
  std::unique_ptr<tambour::compat::HostedBackend> backend(new (std::nothrow)
                                                              tambour::compat::HostedBackend(host));
  if (backend == nullptr) return ENOMEM;
  auto* const hosted = backend.get();
  void* const memory = tambour::libev::reallocate(nullptr, sizeof(struct ev_loop));
  tambour::libev::Loop::Parts parts{
      .poller = std::move(backend), .flags = 0, .backend_kind = flag_of(hosted->traits().kind)};
  auto* const loop = new (memory) struct ev_loop(std::move(parts));
  loop->hosted = hosted;
  // The host must be woken by messages whenever it waits.
  loop->be_embedded();
  loop->begin_observation();
  guest = {.loop = loop,
           .prepare = &prepare,
           .update_time = [](void* self) noexcept { loop_at(self).update_time(); },
           .deadline = [](void* self) noexcept { return loop_at(self).deadline_for_host(); },
           .run = [](void* self) { return loop_at(self).run_for_host(); },
           .after_fork = [](void* self) noexcept { ev_loop_fork(&loop_at(self)); },
           .destroy = [](void* self) { ev_loop_destroy(&loop_at(self)); }};
  return 0;
}
