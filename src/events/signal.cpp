// Signal: the handle. Signals arrive in signal_slot.cpp and are distributed in signals.cpp.
#include <tambour/signal.h>

#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "events/signal_slot.h"
#include "events/signals.h"
#include "loop/core.h"

namespace tambour {

Signal::Signal(EventLoop& loop, int number, Function function,
               std::source_location created_at) noexcept
    : Handle(&run, created_at),
      number_(number),
      core_(&loop::core_of(loop)),
      function_(std::move(function)) {
  core_->attach();
}

Signal::Signal(loop::Core& core, int number, Function function) noexcept
    : Handle(&run), number_(number), core_(&core), function_(std::move(function)) {
  core_->attach();
}

Signal::Signal(Signal&& other) noexcept
    : Handle(static_cast<Handle&&>(other)),
      number_(other.number_),
      core_(std::exchange(other.core_, nullptr)),
      function_(std::move(other.function_)) {}

Signal& Signal::operator=(Signal&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

Signal::~Signal() {
  if (core_ == nullptr) return;  // Moved from.
  stop();
  core_->defer_delete(function_.release());
  core_->detach();
}

Result<> Signal::start() noexcept {
  core_->check_thread();
  if (started()) return {};
  auto service = core_->open_service<events::Signals>();
  if (!service) return std::unexpected(service.error());
  return (*service)->add(*this);
}

void Signal::stop() noexcept {
  if (!started()) return;
  core_->check_thread();
  core_->service<events::Signals>().remove(*this);
}

void Signal::set_function(Function function) noexcept {
  core_->check_thread();
  core_->defer_delete(function_.release());
  function_ = std::move(function);
}

void Signal::feed(int number) noexcept { events::SignalSlot::raise(number); }

void Signal::feed(EventLoop& loop, int number) noexcept {
  loop::core_of(loop).check_thread();
  if (auto service = loop::core_of(loop).open_service<events::Signals>()) (*service)->feed(number);
}

void Signal::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Signal&>(ready);
  self.function_(self.number_);
}

}  // namespace tambour
