// Async: send() sets a flag and wakes the loop, which queues the callback.
#include <tambour/loop/async.h>

#include <utility>

#include <tambour/loop/event_loop.h>

#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {

Async::Async(EventLoop& loop, Function function, std::source_location created_at) noexcept
    : Handle(detail::loop::core_of(loop), std::move(function), &run, created_at) {}

Async::~Async() { stop(); }

void Async::start() noexcept {
  core_->check_thread();
  if (!is_started()) core_->add(*this);
}

void Async::stop() noexcept {
  if (!is_started()) return;
  core_->check_thread();
  unlink();
  core_->remove(*this);
}

void Async::send() noexcept {
  // Set the flag before waking the loop: if another wakeup arrives first, the loop must find it.
  if (!sent_.exchange(true, std::memory_order_seq_cst)) core_->async_sent();
}

void Async::set_function(Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void Async::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Async&>(ready);
  // Before the callback, which may cause another send().
  self.sent_.store(false, std::memory_order_seq_cst);
  self.function_();
}

}  // namespace tambour
