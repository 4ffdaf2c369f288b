// Prepare, Check, Idle, ForkHook and CleanupHook: one base class, which enters the list of its
// kind.
#include <tambour/loop/hooks.h>

#include <utility>

#include <tambour/loop/event_loop.h>

#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {

Hook::Hook(EventLoop& loop, HookPoint point, Function function,
           std::source_location created_at) noexcept
    : Handle(detail::loop::core_of(loop), std::move(function), &run, created_at), point_(point) {}

Hook::Hook(Hook&& other) noexcept = default;
Hook& Hook::operator=(Hook&& other) noexcept { return detail::loop::replace_handle(*this, other); }

Hook::~Hook() { stop(); }

void Hook::start() noexcept {
  core_->check_thread();
  if (!is_started()) core_->add(*this);
}

void Hook::stop() noexcept {
  if (!is_started()) return;
  core_->check_thread();
  unlink();
  core_->remove(*this);
}

void Hook::set_function(Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void Hook::run(detail::ReadyNode& ready) { static_cast<Hook&>(ready).function_(); }

}  // namespace tambour
