// Core: the loops of each thread, in which functions find the loop that is meant.
#include <utility>

#include "loop/core.h"

namespace tambour::detail::loop {
namespace {

/// The registered cores of this thread, most recent first.
thread_local Core* first_on_thread = nullptr;

}  // namespace

void Core::register_loop(const EventLoop& loop) noexcept {
  loop_ = &loop;
  next_on_thread_ = std::exchange(first_on_thread, this);
}

void Core::unregister_loop() noexcept {
  if (loop_ == nullptr) return;
  Core** link = &first_on_thread;
  while (*link != this) link = &(*link)->next_on_thread_;
  *link = next_on_thread_;
  loop_ = nullptr;
}

Core* Core::find_on_this_thread(const EventLoop* loop) noexcept {
  Core* core = first_on_thread;
  while (core != nullptr && core->loop_ != loop) core = core->next_on_thread_;
  return core;
}

bool Core::is_any_running_on_this_thread() noexcept {
  const Core* core = first_on_thread;
  while (core != nullptr && !core->is_running()) core = core->next_on_thread_;
  return core != nullptr;
}

}  // namespace tambour::detail::loop
