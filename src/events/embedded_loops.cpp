// EmbeddedLoops: before the outer loop waits, the inner loops that have work run, and their
// deadlines and descriptors join its wait.
#include "events/embedded_loops.h"

#include <cerrno>

#include "base/failure.h"
#include "loop/core.h"
#include "loop/service_watch.h"

namespace tambour::detail::events {

EmbeddedLoop*& EmbeddedLoops::around(loop::Core& inner) noexcept {
  return inner.service<EmbeddedLoops>().around_;
}

/// Returns true if `outer` is `inner` or is embedded in it, directly or indirectly.
bool EmbeddedLoops::contains(loop::Core& inner, loop::Core* outer) noexcept {
  for (;;) {
    if (outer == &inner) return true;
    const EmbeddedLoop* embedded = around(*outer);
    if (embedded == nullptr) return false;
    outer = embedded->core_;
  }
}

Result<> EmbeddedLoops::add(EmbeddedLoop& embedded) noexcept {
  loop::Core& inner = *embedded.inner_;
  inner.check_thread();
  if (auto opened = inner.open_service<EmbeddedLoops>(); !opened)
    return std::unexpected(opened.error());
  if (contains(inner, &core_)) return base::failure(ELOOP);
  if (around(inner) != nullptr) return base::failure(EBUSY);
  // A simulated loop watches simulated descriptors only.
  if (core_.backend().has_virtual_time()) return base::failure(EOPNOTSUPP);
  auto descriptor = inner.backend().fd();
  if (!descriptor) return std::unexpected(descriptor.error());
  if (!can_watch(core_, *descriptor)) return base::failure(ERANGE);
  around(inner) = &embedded;
  embedded.fd = -1;
  embedded_.push_front(embedded);
  core_.add_reference();
  return {};
}

void EmbeddedLoops::remove(EmbeddedLoop& embedded) noexcept {
  around(*embedded.inner_) = nullptr;
  embedded.inner_->end_host_wait();
  embedded.unlink();
  embedded.result = 0;
  if (embedded.submitted()) core_.backend().cancel(embedded);
  embedded.unlist();
  core_.drop_reference();
}

void EmbeddedLoops::moved(EmbeddedLoop& embedded) noexcept { around(*embedded.inner_) = &embedded; }

/// The inner loop's descriptor may have changed: an epoll instance is recreated to drop
/// registrations that cannot be removed, and every backend is reopened after a fork.
void EmbeddedLoops::watch_descriptor(EmbeddedLoop& embedded) noexcept {
  const auto descriptor = embedded.inner_->backend().fd();
  if (!descriptor || *descriptor == embedded.fd) return;
  if (embedded.submitted()) core_.backend().cancel(embedded);
  embedded.fd = *descriptor;
  core_.backend().invalidate(embedded.fd);
  core_.backend().submit(embedded);
}

std::int64_t EmbeddedLoops::before_wait() noexcept {
  // The program runs this loop, which another one contains, by itself. Its descriptor may be
  // replaced twice before the other loop waits, and then have the number that it had before.
  if (around_ != nullptr && around_->is_started())
    around_->core_->service<EmbeddedLoops>().watch_descriptor(*around_);
  std::int64_t soonest_ns = base::end_of_time_ns;
  for (EmbeddedLoop* embedded = embedded_.front(); embedded != nullptr;
       embedded = embedded->next()) {
    loop::Core& inner = *embedded->inner_;
    watch_descriptor(*embedded);
    const std::int64_t until_ns = inner.begin_host_wait();
    embedded->due_ns_ = base::end_of_time_ns;
    if (until_ns == base::end_of_time_ns) continue;
    // The two loops may use different clocks.
    const std::int64_t wait_ns = until_ns - inner.clock_ns();
    if (wait_ns <= 0) {
      core_.queue(*embedded);
      continue;
    }
    embedded->due_ns_ = base::saturating_add(core_.clock_ns(), wait_ns);
    if (embedded->due_ns_ < soonest_ns) soonest_ns = embedded->due_ns_;
  }
  return soonest_ns;
}

void EmbeddedLoops::expire(std::int64_t now_ns) noexcept {
  for (EmbeddedLoop* embedded = embedded_.front(); embedded != nullptr;
       embedded = embedded->next()) {
    if (embedded->due_ns_ <= now_ns) core_.queue(*embedded);
  }
}

void EmbeddedLoops::close() noexcept {
  if (around_ != nullptr) around_->stop();
  while (EmbeddedLoop* const embedded = embedded_.front()) embedded->stop();
}

}  // namespace tambour::detail::events
