#include <tambour/embedded_loop.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "loop/core.h"
#include "loop/services.h"

namespace tambour {

EmbeddedLoop::EmbeddedLoop(EventLoop& outer, EventLoop& inner,
                           std::source_location created_at) noexcept
    : EmbeddedLoop(outer, inner, Function(), created_at) {}

EmbeddedLoop::EmbeddedLoop(EventLoop& outer, EventLoop& inner, Function function,
                           std::source_location created_at) noexcept
    : Operation(OperationKind::poll, &run, created_at),
      outer_(outer.core_),
      inner_(inner.core_),
      function_(std::move(function)) {
  events = Events::read;
  outer_->attach();
  inner_->attach();
}

EmbeddedLoop::EmbeddedLoop(EmbeddedLoop&& other) noexcept
    : Operation(static_cast<Operation&&>(other)),
      Listed(static_cast<Listed&&>(other)),
      outer_(std::exchange(other.outer_, nullptr)),
      inner_(std::exchange(other.inner_, nullptr)),
      due_ns_(other.due_ns_),
      function_(std::move(other.function_)) {
  if (started()) loop::EmbeddedLoops::moved(*this);
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
  outer_->retire(function_.release());
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
  auto services = outer_->open_services();
  if (!services) return std::unexpected(services.error());
  return (*services)->embedded_loops.add(*this);
}

void EmbeddedLoop::stop() noexcept {
  if (!started()) return;
  outer_->check_thread();
  outer_->services().embedded_loops.remove(*this);
}

void EmbeddedLoop::run_inner() {
  if (inner_->closed()) return;
  inner_->end_foreign_wait();
  inner_->run_ready();
}

void EmbeddedLoop::run(Ready& ready) {
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
