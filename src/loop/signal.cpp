#include <tambour/signal.h>

#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "loop/core.h"
#include "loop/services.h"
#include "loop/signal_slot.h"

namespace tambour {

Signal::Signal(EventLoop& loop, int number, Function function,
               std::source_location created_at) noexcept
    : Ready(&run, created_at), number_(number), core_(loop.core_), function_(std::move(function)) {
  core_->attach();
}

Signal::Signal(loop::Core& core, int number, Function function) noexcept
    : Ready(&run), number_(number), core_(&core), function_(std::move(function)) {
  core_->attach();
}

Signal::Signal(Signal&& other) noexcept
    : Ready(static_cast<Ready&&>(other)),
      Listed(static_cast<Listed&&>(other)),
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
  core_->retire(function_.release());
  core_->detach();
}

Result<> Signal::start() noexcept {
  core_->check_thread();
  if (started()) return {};
  auto services = core_->open_services();
  if (!services) return std::unexpected(services.error());
  return (*services)->signals.add(*this);
}

void Signal::stop() noexcept {
  if (!started()) return;
  core_->check_thread();
  core_->services().signals.remove(*this);
}

void Signal::set_function(Function function) noexcept {
  core_->check_thread();
  core_->retire(function_.release());
  function_ = std::move(function);
}

void Signal::feed(int number) noexcept { loop::SignalSlot::raise(number); }

void Signal::feed(EventLoop& loop, int number) noexcept {
  loop.core_->check_thread();
  if (auto services = loop.core_->open_services()) (*services)->signals.feed(number);
}

void Signal::run(Ready& ready) {
  auto& self = static_cast<Signal&>(ready);
  self.function_(self.number_);
}

}  // namespace tambour
