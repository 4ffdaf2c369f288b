// Prepare, Check, Idle, ForkHook and CleanupHook: one base class, which enters the list of its
// kind.
#include <tambour/hooks.h>

#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "loop/core.h"

namespace tambour {

Hook::Hook(EventLoop& loop, HookPoint point, Function function,
           std::source_location created_at) noexcept
    : Handle(&run, created_at),
      point_(point),
      core_(&loop::core_of(loop)),
      function_(std::move(function)) {
  core_->attach();
}

Hook::Hook(Hook&& other) noexcept
    : Handle(static_cast<Handle&&>(other)),
      point_(other.point_),
      core_(std::exchange(other.core_, nullptr)),
      function_(std::move(other.function_)) {}

Hook& Hook::operator=(Hook&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

Hook::~Hook() {
  if (core_ == nullptr) return;  // Moved from.
  stop();
  core_->defer_delete(function_.release());
  core_->detach();
}

void Hook::start() noexcept {
  core_->check_thread();
  if (!started()) core_->add(*this);
}

void Hook::stop() noexcept {
  if (!started()) return;
  core_->check_thread();
  unlink();
  core_->remove(*this);
}

void Hook::run(detail::ReadyNode& ready) { static_cast<Hook&>(ready).function_(); }

}  // namespace tambour
