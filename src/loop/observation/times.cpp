// Core: the times of callbacks and iterations, its monitor and its stall detector.
#include <algorithm>
#include <utility>

#include "loop/core.h"

namespace tambour::detail::loop {

template <class Call>
void Core::time_callback(const std::source_location& created_at, Call call) {
  // Callbacks follow one another, so that one reading of the clock is enough for each.
  const std::int64_t began_ns = call_ended_ns_;
  callback_place_.store(created_at, std::memory_order_relaxed);
  if (monitor_ != nullptr) monitor_->note_call(began_ns);
  call();
  call_ended_ns_ = call_clock_.now_ns(*backend_);
  // An adjustment may have set the clock back.
  const std::int64_t took_ns = std::max<std::int64_t>(call_ended_ns_ - began_ns, 0);
  const std::source_location place = callback_place();
  if (monitor_ != nullptr) monitor_->note_call_end(place, took_ns);
  if (took_ns <= stall_ns_ || !report_stall_) return;
  report_stall_({.created_at = place, .duration = Duration(took_ns)});
  call_ended_ns_ = call_clock_.now_ns(*backend_);
}

std::size_t Core::time_queue() {
  // Not when the iteration began: since then, timers have expired.
  call_ended_ns_ = call_clock_.now_ns(*backend_);
  return running_queue_.run_all([this](const detail::ReadyNode& item, auto call) {
    // The item may be destroyed by its own callback.
    time_callback(std::source_location(item.created_at()), call);
  });
}

std::size_t Core::time_posted() {
  // Unknown if a callback of this iteration has asked for times.
  if (call_ended_ns_ == 0) call_ended_ns_ = call_clock_.now_ns(*backend_);
  std::size_t count = 0;
  for (PostQueue::Posted posted; posted_.take_next(posted); ++count) {
    if (!posted.task) continue;
    // The task is destroyed in its own time.
    time_callback(posted.posted_at, [&posted] {
      const Callback<void()> task = std::move(posted.task);
      task();
    });
  }
  return count;
}

std::int64_t Core::take_end_of_iteration() noexcept {
  const std::int64_t ended_ns = std::exchange(iteration_ended_ns_, 0);
  return ended_ns != 0 ? ended_ns : call_clock_.now_ns(*backend_);
}

void Core::note_wait(std::int64_t before_ns) noexcept {
  call_clock_.adjust(*backend_, now_ns_);
  call_ended_ns_ = 0;
  stats_.wait_time += Duration(std::max<std::int64_t>(now_ns_ - before_ns, 0));
}

void Core::note_times() noexcept {
  iteration_ended_ns_ = call_ended_ns_ != 0 ? call_ended_ns_ : call_clock_.now_ns(*backend_);
  const Duration calling(std::max<std::int64_t>(iteration_ended_ns_ - iteration_began_ns_, 0));
  stats_.callback_time += calling;
  if (calling > stats_.lag_max) stats_.lag_max = calling;
  if (monitor_ != nullptr) monitor_->note_iteration(stats(), posted_.size(), calling.count());
}

std::shared_ptr<Monitor> Core::monitor(bool measures) {
  if (monitor_ == nullptr) monitor_ = std::make_shared<Monitor>(*this);
  if (!measures || monitor_measures_) return monitor_;
  measure_times_ = times_callbacks_ = monitor_measures_ = true;
  call_ended_ns_ = 0;
  if (!backend_->has_virtual_time()) call_clock_.use_counter();
  return monitor_;
}

LoopStats Core::stats() const noexcept {
  LoopStats stats = stats_;
  stats.system_calls = backend_->system_calls();
  stats.wakeups = wakeups_.load(std::memory_order_relaxed);
  stats.timers = timers_.size();
  stats.pending = pending_count();
  stats.references = references();
  return stats;
}

void Core::set_stall_detector(std::int64_t threshold_ns,
                              Callback<void(const Stall&)> report) noexcept {
  stall_ns_ = threshold_ns;
  defer_delete(report_stall_.release());
  report_stall_ = std::move(report);
  times_callbacks_ = report_stall_ || monitor_measures_;
  call_ended_ns_ = 0;
}

}  // namespace tambour::detail::loop
