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
  debug_loop_ = {.lists = &task_lists_,
                 .now_ns = &now_ns_,
                 .created_at = created_at_,
                 .thread_id = thread_id_};
  show_to_debuggers(debug_loop_);
}

void Core::unregister_loop() noexcept {
  if (loop_ == nullptr) return;
  Core** link = &first_on_thread;
  while (*link != this) link = &(*link)->next_on_thread_;
  *link = next_on_thread_;
  hide_from_debuggers(debug_loop_);
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
