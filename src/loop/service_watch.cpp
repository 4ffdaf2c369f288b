// ServiceWatch: a poll operation that calls its service instead of a watcher.
#include "loop/service_watch.h"

#include <sys/select.h>

#include <cerrno>
#include <utility>

#include "base/failure.h"
#include "loop/core.h"

namespace tambour::detail::loop {

ServiceWatch::ServiceWatch(Core& core, Callback<void()> readable) noexcept
    : detail::Operation(detail::OperationKind::poll, &run),
      core_(core),
      readable_(std::move(readable)) {
  events = Events::read;
  set_priority(priority_max);
}

Result<> ServiceWatch::start(int descriptor) noexcept {
  if (!can_watch(core_, descriptor)) return base::failure(ERANGE);
  stop();
  fd = descriptor;
  core_.backend().invalidate(fd);
  core_.backend().submit(*this);
  return {};
}

void ServiceWatch::stop() noexcept {
  unlink();
  result = 0;
  if (submitted()) core_.backend().cancel(*this);
}

void ServiceWatch::feed() noexcept { core_.queue(*this); }

void ServiceWatch::run(detail::ReadyNode& ready) {
  auto& self = static_cast<ServiceWatch&>(ready);
  const int error = -std::exchange(self.result, 0);
  if (error > 0) {
    // No event may be lost on ENOMEM: retry in each iteration until it succeeds. Not on EBADF:
    // other code has closed the descriptor.
    if (error != EBADF) self.core_.backend().submit(self);
    return;
  }
  self.readable_();
}

bool can_watch(Core& core, int descriptor) noexcept {
  return core.backend().traits().kind != BackendKind::select || descriptor < FD_SETSIZE;
}

}  // namespace tambour::detail::loop
