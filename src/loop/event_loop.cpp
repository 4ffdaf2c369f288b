// EventLoop: the public functions, which forward to Core.
#include <tambour/loop/event_loop.h>

#include <sys/prctl.h>

#include <string>
#include <system_error>

#include "base/check.h"
#include "base/failure.h"
#include "loop/core.h"
#include "loop/host_wait.h"

namespace tambour {
namespace {

/// The beginning of the message for a loop that could not be created.
std::string reason_for(const LoopOptions& options) {
  const char* const name = detail::backend::unknown_backend(options);
  if (name == nullptr) return "tambour: EventLoop";
  std::string reason = "tambour: EventLoop: the environment has TAMBOUR_BACKEND=\"";
  reason += name;
  reason += "\", which names no backend; use ";
  reason += detail::backend::backend_names;
  return reason;
}

detail::loop::Core* open_core(const LoopOptions& options, std::source_location created_at) {
  auto opened = detail::backend::open_backend(options);
  if (!opened) throw std::system_error(opened.error(), reason_for(options));
  if (options.timer_slack > Duration::zero())
    ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(options.timer_slack.count()));
  return new detail::loop::Core(std::move(*opened), options, created_at);
}

}  // namespace

namespace detail {

void fail_on_empty_callback() noexcept {
  base::fail_check(
      "an empty Callback was invoked; give the timer, watcher, posted task or other object that "
      "invokes it a function");
}

}  // namespace detail

detail::loop::Core& detail::loop::core_of(EventLoop& loop) noexcept { return *loop.core_; }

EventLoop::EventLoop(const LoopOptions& options, std::source_location created_at)
    : core_(open_core(options, created_at)) {
  core_->register_loop(*this);
}

EventLoop::~EventLoop() {
  if (core_->in_group_thread()) core_->warn_if_never_run();
  core_->close();
}

Result<std::unique_ptr<EventLoop>> EventLoop::open(const LoopOptions& options,
                                                   std::source_location created_at) {
  try {
    return std::make_unique<EventLoop>(options, created_at);
  } catch (const std::system_error& refused) {
    return std::unexpected(refused.code());
  } catch (const std::bad_alloc&) {
    return detail::base::failure(ENOMEM);
  }
}

void EventLoop::run() { core_->run(); }
void EventLoop::run_once() { core_->run_once(); }
void EventLoop::run_ready() {
  core_->end_host_wait();
  core_->run_ready();
}

Result<int> EventLoop::fd() noexcept {
  core_->check_thread();
  auto service = core_->open_service<detail::loop::HostWait>();
  if (!service) return std::unexpected(service.error());
  return (*service)->fd();
}

TimePoint EventLoop::next_deadline() noexcept {
  core_->check_thread();
  return TimePoint(Duration(core_->begin_host_wait()));
}

void EventLoop::stop() noexcept { core_->stop(); }

TimePoint EventLoop::now() const noexcept { return TimePoint(Duration(core_->now_ns())); }

void EventLoop::update_now() noexcept {
  core_->check_thread();
  core_->update_now();
}

void EventLoop::post(Callback<void()> task, std::source_location at) {
  core_->post(std::move(task), at);
}
void EventLoop::wake() noexcept { core_->wake(); }

void EventLoop::ref() noexcept {
  core_->check_thread();
  core_->add_reference();
}

void EventLoop::unref() noexcept {
  core_->check_thread();
  core_->drop_reference();
}

LoopStats EventLoop::stats() const noexcept {
  core_->check_thread();
  return core_->stats();
}

void EventLoop::set_stall_detector(Duration threshold,
                                   Callback<void(const Stall&)> report) noexcept {
  core_->check_thread();
  core_->set_stall_detector(threshold.count(), std::move(report));
}

Result<> EventLoop::after_fork() noexcept {
  core_->check_thread();
  return core_->reopen();
}

const BackendTraits& EventLoop::backend() const noexcept { return core_->backend().traits(); }

}  // namespace tambour
