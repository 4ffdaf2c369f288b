// TaskScope: starting and ending tasks, exceptions, stop requests, and joins.
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>

#include "base/check.h"
#include "loop/core.h"

namespace tambour {

/// Tasks that were spawned in the same place share a context.
struct TaskScope::OtherPlace {
  static constexpr std::size_t max = 64;  ///< In one scope, which is searched.

  TaskContext context;
  std::size_t number;
  detail::OwnedPointer<OtherPlace> next;
};

TaskScope::TaskScope(EventLoop& loop, std::source_location created_at)
    : TaskScope(loop, std::stop_token(), created_at) {}

TaskScope::TaskScope(EventLoop& loop, std::stop_token outer, std::source_location created_at)
    : core_(&detail::loop::core_of(loop)),
      context_{.loop = &loop, .stop = stop_.get_token()},
      created_at_(created_at),
      outer_(std::move(outer), Forward{*this}) {
  core_->check_thread_of(created_at);
  core_->attach();
  tasks_.enlist(*core_);
}

TaskScope::~TaskScope() {
  core_->check_thread_unless_closed(created_at_);
  // A handle with an exception may be in a frame that is destroyed below: its exception leaves
  // run(), because the handler may use objects that are being destroyed with the scope.
  core_->defer_delete(handler_.release());
  // The destructors of a task's local variables may spawn further tasks.
  while (detail::TaskPromiseBase* const task = tasks_.front()) {
    tasks_.remove(*core_, *task);
    --size_;
    if (&task->observer() != static_cast<detail::TaskObserver*>(this))
      task->observer().task_destroyed();
    task->destroy();
  }
  tasks_.leave(*core_);
  while (detail::JoinHandleBase* const handle = failed_handles_.front()) handle->outlive_scope();
  if (destroyed_ != nullptr) *destroyed_ = true;
  queue_joins();
  if (thrown_ != nullptr && !core_->closed()) core_->throw_out_of_run(std::move(thrown_));
  core_->defer_delete(ended_.release());
  core_->detach();
}

void TaskScope::request_stop() noexcept {
  // If the loop was destroyed, the tasks are never resumed.
  if (core_->closed()) return;
  if (size_ != 0) core_->check_thread_of(created_at_);
  detail::request_stop_of(stop_);
}

void TaskScope::Forward::operator()() const noexcept {
  if (!scope.core_->closed()) detail::request_stop_of(scope.stop_);
}

void TaskScope::set_exception_handler(Callback<void(std::exception_ptr)> handler) noexcept {
  core_->check_thread_of(created_at_);
  // The former handler may be the caller.
  core_->defer_delete(handler_.release());
  handler_ = std::move(handler);
}

namespace {

bool is_same(const std::source_location& a, const std::source_location& b) noexcept {
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

}  // namespace

/// Without memory, and beyond the maximum, the context of the first place.
const TaskContext& TaskScope::context_at(const std::source_location& at) noexcept {
  if (context_.spawned_at.line() == 0) context_.spawned_at = at;
  if (is_same(context_.spawned_at, at)) return context_;
  for (const OtherPlace* place = places_.get(); place != nullptr; place = place->next.get()) {
    if (is_same(place->context.spawned_at, at)) return place->context;
  }
  const std::size_t number = places_ != nullptr ? places_->number + 1 : 1;
  if (number > OtherPlace::max) return context_;
  auto* const place = new (std::nothrow) OtherPlace{.context = {.loop = context_.loop,
                                                                .stop = context_.stop,
                                                                .outer = &context_,
                                                                .spawned_at = at},
                                                    .number = number,
                                                    .next = nullptr};
  if (place == nullptr) return context_;
  place->next = std::exchange(places_, nullptr);
  places_.reset(place);
  return place->context;
}

void TaskScope::start(detail::TaskPromiseBase& promise, detail::TaskObserver& observer,
                      const std::source_location& at, const std::source_location& function) {
  core_->check_thread_of(created_at_, function);
  promise.observe_from(observer, context_at(at));
  tasks_.push_back(promise);
  ++size_;
  detail::Resumption::run(promise.handle());
}

void TaskScope::report(std::exception_ptr thrown) noexcept {
  if (!handler_) {
    if (thrown_ == nullptr) thrown_ = std::move(thrown);
    return detail::request_stop_of(stop_);
  }
  detail::loop::Core& core = *core_;
  const detail::loop::Core::Running keeps_handler(core);
  try {
    handler_(std::move(thrown));
  } catch (...) {
    core.throw_out_of_run(std::current_exception());
  }
}

std::coroutine_handle<> TaskScope::task_ended(detail::TaskPromiseBase& task) noexcept {
  return end_task(task, task.exception()) ? finish_joins() : nullptr;
}

/// Returns true if this was the last task, and the scope still exists.
bool TaskScope::end_task(detail::TaskPromiseBase& task, std::exception_ptr thrown) noexcept {
  tasks_.remove(*core_, task);
  --size_;
  // The exception handler, or destroying the task, may destroy the scope.
  bool destroyed = false;
  bool* const outer = std::exchange(destroyed_, &destroyed);
  if (thrown != nullptr) report(std::move(thrown));
  task.destroy();
  if (destroyed) {
    if (outer != nullptr) *outer = true;
    return false;
  }
  destroyed_ = outer;
  if (ended_) ended_();
  return empty();
}

void TaskScope::destroy_task(detail::TaskPromiseBase& task) noexcept {
  if (end_task(task, nullptr)) queue_joins();
}

void TaskScope::Join::cancel(StopHook& hook) noexcept {
  auto& self = static_cast<Join&>(hook);
  JoinToEnd& join = self;
  // If all tasks have ended or the scope was destroyed, the awaiting task is about to be resumed.
  if (join.scope_ == nullptr) return;
  self.cancelled_ = true;
  join.unlink();
  detail::loop::Core& core = *std::exchange(join.scope_, nullptr)->core_;
  if (!core.closed()) core.queue(join);
}

TaskScope::JoinToEnd* TaskScope::take_first_join() noexcept {
  auto* const join = static_cast<JoinToEnd*>(joins_.front());
  if (join == nullptr) return nullptr;
  join->unlink();
  join->scope_ = nullptr;
  return join;
}

std::coroutine_handle<> TaskScope::finish_joins() noexcept {
  JoinToEnd* const first = take_first_join();
  if (first == nullptr) return nullptr;
  first->thrown_ = std::exchange(thrown_, nullptr);
  // Resuming the first task may destroy the scope and other waiting tasks.
  queue_joins();
  return first->awaiting_;
}

void TaskScope::queue_joins() noexcept {
  if (auto* const first = static_cast<JoinToEnd*>(joins_.front()))
    if (first->thrown_ == nullptr) first->thrown_ = std::exchange(thrown_, nullptr);
  while (JoinToEnd* const join = take_first_join()) {
    if (!core_->closed()) core_->queue(*join);
  }
}

Task<> TaskScope::shut_down(Duration grace) {
  const TaskContext& context = co_await this_task;
  if (runs(context)) [[unlikely]]
    detail::base::fail_check(
        "TaskScope::shut_down() was awaited by a task of the scope (created in %s:%u), for which "
        "it waits; await it outside of the scope",
        created_at_.file_name(), unsigned(created_at_.line()));
  const Result<> drained = co_await timeout(grace, join());
  if (drained) co_return;
  request_stop();
  co_await JoinToEnd(*this);
}

}  // namespace tambour
