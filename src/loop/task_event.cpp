#include <tambour/task_event.h>

#include "loop/core.h"

namespace tambour {

void TaskEvent::set() noexcept {
  loop::Core& core = loop::core_of(loop_);
  core.check_thread();
  set_ = true;
  while (Link* link = waiting_.first()) {
    link->unlink();
    auto& wait = *static_cast<Wait*>(link);
    // It has happened, whatever reset() says, or stops the task, before it goes on.
    wait.stop_.reset();
    core.queue(wait);
  }
}

void TaskEvent::Wait::Stop::operator()() const noexcept {
  self.cancelled_ = true;
  self.unlink();
  loop::core_of(self.event_.loop_).queue(self);
}

void TaskEvent::Wait::run(Ready& ready) {
  auto& self = static_cast<Wait&>(ready);
  self.stop_.reset();
  self.awaiting_.resume();
}

}  // namespace tambour
