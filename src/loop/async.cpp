// Async: send() sets a flag and wakes the loop, which queues the callback.
#include <tambour/async.h>

#include <utility>

#include <tambour/event_loop.h>

#include "loop/core.h"

namespace tambour {

Async::Async(EventLoop& loop, Function function, std::source_location created_at) noexcept
    : Handle(&run, created_at), core_(&loop::core_of(loop)), function_(std::move(function)) {
  core_->attach();
}

Async::~Async() {
  stop();
  core_->defer_delete(function_.release());
  core_->detach();
}

void Async::start() noexcept {
  core_->check_thread();
  if (!started()) core_->add(*this);
}

void Async::stop() noexcept {
  if (!started()) return;
  core_->check_thread();
  unlink();
  core_->remove(*this);
}

void Async::send() noexcept {
  // Set the flag before waking the loop: if another wakeup arrives first, the loop must find it.
  if (!sent_.exchange(true, std::memory_order_seq_cst)) core_->async_sent();
}

void Async::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Async&>(ready);
  // Before the callback, which may cause another send().
  self.sent_.store(false, std::memory_order_seq_cst);
  self.function_();
}

}  // namespace tambour
