// EmbeddedLoop: the handle, and running the inner loop from the outer one.
#include <tambour/events/embedded_loop.h>

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "events/embedded_loops.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {

EmbeddedLoop::EmbeddedLoop(EventLoop& outer, EventLoop& inner,
                           std::source_location created_at) noexcept
    : EmbeddedLoop(outer, inner, Function(), created_at) {}

EmbeddedLoop::EmbeddedLoop(EventLoop& outer, EventLoop& inner, Function function,
                           std::source_location created_at) noexcept
    : Handle(detail::loop::core_of(outer), std::move(function), detail::OperationKind::poll, &run,
             created_at),
      inner_(&detail::loop::core_of(inner)) {
  events = Events::read;
  inner_->attach();
}

EmbeddedLoop::EmbeddedLoop(EmbeddedLoop&& other) noexcept
    : Handle(static_cast<Handle&&>(other)),
      inner_(std::exchange(other.inner_, nullptr)),
      due_ns_(other.due_ns_) {
  if (is_started()) detail::events::EmbeddedLoops::moved(*this);
}

EmbeddedLoop& EmbeddedLoop::operator=(EmbeddedLoop&& other) noexcept {
  return detail::loop::replace_handle(*this, other);
}

EmbeddedLoop::~EmbeddedLoop() {
  stop();
  if (inner_ != nullptr) inner_->detach();
}

bool EmbeddedLoop::possible(const EventLoop& inner) noexcept {
  return !detail::loop::core_of(const_cast<EventLoop&>(inner)).backend().has_virtual_time();
}

Result<> EmbeddedLoop::start() noexcept {
  core_->check_thread();
  if (is_started()) return {};
  auto service = core_->open_service<detail::events::EmbeddedLoops>();
  if (!service) return std::unexpected(service.error());
  return (*service)->add(*this);
}

void EmbeddedLoop::stop() noexcept {
  if (!is_started()) return;
  core_->check_thread();
  core_->service<detail::events::EmbeddedLoops>().remove(*this);
}

void EmbeddedLoop::set_function(Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void EmbeddedLoop::run_inner() {
  if (inner_->closed()) return;
  inner_->end_host_wait();
  inner_->run_ready();
}

void EmbeddedLoop::run(detail::ReadyNode& ready) {
  auto& self = static_cast<EmbeddedLoop&>(ready);
  const int error = -std::exchange(self.result, 0);
  if (error > 0) {
    // ENOMEM: the next before_wait() watches the descriptor again. Until then the inner loop is
    // polled.
    self.fd = -1;
  }
  if (self.function_) {
    self.function_();
  } else {
    self.run_inner();
  }
}

}  // namespace tambour
