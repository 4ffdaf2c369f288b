// The waits of IoOperation between system calls.
#include "io/io_operation.h"

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#include "loop/core.h"

namespace tambour::detail::io {

void IoOperation::start(loop::Core& core, int descriptor, Events readiness) noexcept {
  core_ = &core;
  core_->attach();
  core_->add_reference();
  fd = descriptor;
  events = readiness;
  result = 0;
  core.backend().submit(*this);
}

void IoOperation::set_awaiting(std::coroutine_handle<> awaiting,
                               const TaskContext& context) noexcept {
  awaiting_ = awaiting;
  set_created_at(context.spawned_at);
  context.waits.add(*this, context.stop);
}

void IoOperation::end() noexcept {
  ignore_stop();
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
  wait_->outcome = -ECANCELED;
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

void IoOperation::run(detail::ReadyNode& ready) {
  auto& self = static_cast<IoOperation&>(ready);
  IoWait& wait = *self.wait_;
  if (self.submitted()) {
    self.result = 0;
    if (!wait.step(*self.core_)) return;
    self.core_->backend().cancel(self);
  } else if (self.result < 0) {
    wait.outcome = self.result;
    wait.cannot_be_watched_ = true;
  }
  self.end();
  wait.completed();
}

}  // namespace tambour::detail::io
