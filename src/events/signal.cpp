// Signal: the handle. Signals arrive in signal_slot.cpp and are distributed in signals.cpp.
#include <tambour/events/signal.h>

#include <utility>

#include <tambour/loop/event_loop.h>

#include "events/signal_slot.h"
#include "events/signals.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {

Signal::Signal(EventLoop& loop, int number, Function function,
               std::source_location created_at) noexcept
    : Handle(detail::loop::core_of(loop), std::move(function), &run, created_at), number_(number) {}

Signal::Signal(detail::loop::Core& core, int number, Function function) noexcept
    : Handle(core, std::move(function), &run, std::source_location::current()), number_(number) {}

Signal::Signal(Signal&& other) noexcept = default;
Signal& Signal::operator=(Signal&& other) noexcept {
  return detail::loop::replace_handle(*this, other);
}

Signal::~Signal() { stop(); }

Result<> Signal::start() noexcept {
  core_->check_thread();
  if (is_started()) return {};
  auto service = core_->open_service<detail::events::Signals>();
  if (!service) return std::unexpected(service.error());
  return (*service)->add(*this);
}

void Signal::stop() noexcept {
  if (!is_started()) return;
  core_->check_thread();
  core_->service<detail::events::Signals>().remove(*this);
}

void Signal::set_function(Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void Signal::feed(int number) noexcept { detail::events::SignalSlot::raise(number); }

void Signal::feed(EventLoop& loop, int number) noexcept {
  detail::loop::core_of(loop).check_thread();
  if (auto service = detail::loop::core_of(loop).open_service<detail::events::Signals>())
    (*service)->feed(number);
}

void Signal::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Signal&>(ready);
  self.function_(self.number_);
}

}  // namespace tambour
