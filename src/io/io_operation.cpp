// The waits of an IoOperation between its system calls.
#include <tambour/detail/io_operation.h>

#include <cerrno>
#include <utility>

#include <tambour/event_loop.h>

#include "base/check.h"
#include "loop/core.h"

namespace tambour::detail {

bool IoOperation::start(EventLoop& loop, int descriptor) noexcept {
  loop::Core& core = loop::core_of(loop);
  core.check_thread();
  if (busy()) [[unlikely]] {
    base::fail_check(
        "IoOperation (created in %s:%u) started on descriptor %d while it was busy on descriptor "
        "%d; cancel it, or wait until it has completed",
        created_at().file_name(), unsigned(created_at().line()), descriptor, fd);
  }
  fd = descriptor;
  if (descriptor < 0) return finish(-EBADF);
  const bool waits = first_call_ == FirstCall::when_ready || !may_continue(core);
  if (!waits && step(core)) return true;
  begin(core);
  result = 0;
  core.backend().submit(*this);
  return false;
}

bool IoOperation::finish(std::int32_t answer) noexcept {
  if (answer == -EAGAIN) return false;
  outcome = answer;
  return true;
}

bool IoOperation::may_continue(loop::Core& core) const noexcept {
  return first_call_ == FirstCall::at_once || !core.io_budget_exhausted();
}

void IoOperation::begin(loop::Core& core) noexcept {
  core_ = &core;
  core_->attach();
  core_->add_reference();
}

void IoOperation::end() noexcept {
  loop::Core& core = *std::exchange(core_, nullptr);
  if (!core.closed()) core.drop_reference();
  core.detach();
}

void IoOperation::cancel() noexcept {
  if (!busy() || core_->closed()) return;
  core_->check_thread();
  // It has already completed or failed; its completion is queued.
  if (!submitted()) return;
  core_->backend().cancel(*this);
  outcome = -ECANCELED;
  result = 0;
  core_->queue(*this);
}

void IoOperation::abandon() noexcept {
  if (!busy()) return;
  // A destroyed loop has already dropped its references.
  if (!core_->closed()) {
    core_->check_thread();
    if (submitted()) core_->backend().cancel(*this);
  }
  unlink();
  end();
}

void IoOperation::run(ReadyNode& ready) {
  auto& self = static_cast<IoOperation&>(ready);
  if (self.submitted()) {
    self.result = 0;
    if (!self.step(*self.core_)) return;
    self.core_->backend().cancel(self);
  } else if (self.result < 0) {
    self.outcome = self.result;  // The descriptor cannot be watched.
  }
  self.end();
  self.completed();
}

}  // namespace tambour::detail
