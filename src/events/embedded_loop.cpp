// EmbeddedLoop: the handle, and running the inner loop from the outer one.
#include <tambour/embedded_loop.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "events/embedded_loops.h"
#include "loop/core.h"

namespace tambour {

EmbeddedLoop::EmbeddedLoop(EventLoop& outer, EventLoop& inner,
                           std::source_location created_at) noexcept
    : EmbeddedLoop(outer, inner, Function(), created_at) {}

EmbeddedLoop::EmbeddedLoop(EventLoop& outer, EventLoop& inner, Function function,
                           std::source_location created_at) noexcept
    : Handle(detail::OperationKind::poll, &run, created_at),
      outer_(&loop::core_of(outer)),
      inner_(&loop::core_of(inner)),
      function_(std::move(function)) {
  events = Events::read;
  outer_->attach();
  inner_->attach();
}

EmbeddedLoop::EmbeddedLoop(EmbeddedLoop&& other) noexcept
    : Handle(static_cast<Handle&&>(other)),
      outer_(std::exchange(other.outer_, nullptr)),
      inner_(std::exchange(other.inner_, nullptr)),
      due_ns_(other.due_ns_),
      function_(std::move(other.function_)) {
  if (started()) events::EmbeddedLoops::moved(*this);
}

EmbeddedLoop& EmbeddedLoop::operator=(EmbeddedLoop&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

EmbeddedLoop::~EmbeddedLoop() {
  if (outer_ == nullptr) return;  // Moved from.
  stop();
  outer_->defer_delete(function_.release());
  inner_->detach();
  outer_->detach();
}

bool EmbeddedLoop::possible(const EventLoop& inner) noexcept {
  const BackendKind kind = inner.backend().kind;
  return kind == BackendKind::epoll || kind == BackendKind::io_uring;
}

Result<> EmbeddedLoop::start() noexcept {
  outer_->check_thread();
  if (started()) return {};
  auto service = outer_->open_service<events::EmbeddedLoops>();
  if (!service) return std::unexpected(service.error());
  return (*service)->add(*this);
}

void EmbeddedLoop::stop() noexcept {
  if (!started()) return;
  outer_->check_thread();
  outer_->service<events::EmbeddedLoops>().remove(*this);
}

void EmbeddedLoop::run_inner() {
  if (inner_->closed()) return;
  inner_->end_foreign_wait();
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
