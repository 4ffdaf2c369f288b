// IoOperation: waits between system calls, and the watch that a wait leaves to the next one.
#include "io/io_operation.h"

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#include "loop/core.h"

namespace tambour::detail::io {

void IoOperation::start(loop::Core& core, int descriptor, Events readiness) noexcept {
  is_busy_ = true;
  core.add_reference();
  if (submitted()) return;  // Since the last wait, whose handle was the same.
  if (core_ == nullptr) {
    core_ = &core;
    core_->attach();
  }
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

[[gnu::always_inline]] inline void IoOperation::end() noexcept {
  ignore_stop();
  is_busy_ = false;
  if (!core_->closed()) core_->drop_reference();
  if (!submitted()) release();
}

/// Ends the watch. It must not be busy.
void IoOperation::release() noexcept {
  if (core_ == nullptr) return;
  if (submitted() && !core_->closed()) {
    core_->check_thread();
    core_->backend().cancel(*this);
  }
  unlink();
  std::exchange(core_, nullptr)->detach();
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

void IoOperation::abandon_busy() noexcept {
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
  if (!self.busy()) return self.release();  // No task reads what has arrived.
  IoWait& wait = *self.wait_;
  if (self.submitted()) {
    self.result = 0;
    if (!wait.step(*self.core_)) return;
    // After the end of the stream, or an error, no task reads again.
    if (wait.to_write_ || wait.outcome <= 0) self.core_->backend().cancel(self);
  } else if (self.result < 0) {
    wait.outcome = self.result;
    wait.cannot_be_watched_ = true;
  }
  self.end();
  wait.completed();
}

}  // namespace tambour::detail::io
