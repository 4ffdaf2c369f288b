#include <tambour/task_scope.h>

#include <utility>

#include <tambour/event_loop.h>

namespace tambour {

TaskScope::TaskScope(EventLoop& loop) : TaskScope(loop, std::stop_token()) {}

TaskScope::TaskScope(EventLoop& loop, std::stop_token outer)
    : context_{.loop = &loop, .stop = stop_.get_token()},
      outer_(std::move(outer), Forward{*this}) {}

TaskScope::~TaskScope() {
  // A task that is destroyed may spawn further ones out of its destructors.
  while (Link* task = tasks_.first()) static_cast<TaskPromiseBase*>(task)->handle().destroy();
  if (gone_ != nullptr) *gone_ = true;
}

void TaskScope::set_exception_handler(Callback<void(std::exception_ptr)> handler) noexcept {
  handler_ = std::move(handler);
}

void TaskScope::start(TaskPromiseBase& promise) {
  promise.observe_from(*this, context_);
  tasks_.push_back(promise);
  ++size_;
  promise.handle().resume();
}

std::coroutine_handle<> TaskScope::task_ended(Link& task) noexcept {
  auto& promise = static_cast<TaskPromiseBase&>(task);
  promise.unlink();
  --size_;
  if (std::exception_ptr thrown = promise.exception(); thrown != nullptr) {
    if (handler_) {
      handler_(std::move(thrown));
    } else {
      if (thrown_ == nullptr) thrown_ = std::move(thrown);
      request_stop();
    }
  }
  // With the task, the scope may go, where nobody else has who has it.
  bool gone = false;
  bool* const outer = std::exchange(gone_, &gone);
  promise.handle().destroy();
  if (gone) {
    if (outer != nullptr) *outer = true;
    return std::noop_coroutine();
  }
  gone_ = outer;
  if (ended_) ended_();
  if (!empty()) return std::noop_coroutine();
  return resume_joins();
}

std::coroutine_handle<> TaskScope::resume_joins() noexcept {
  // Away from here: whoever goes on may destroy the scope, and others who wait.
  LinkList joins;
  while (Link* join = joins_.first()) {
    join->unlink();
    joins.push_back(*join);
  }
  if (Link* first = joins.first())
    static_cast<Join*>(first)->thrown_ = std::exchange(thrown_, nullptr);
  while (Link* link = joins.first()) {
    link->unlink();
    const std::coroutine_handle<> awaiting = static_cast<Join*>(link)->awaiting_;
    if (joins.first() == nullptr) return awaiting;
    awaiting.resume();
  }
  return std::noop_coroutine();
}

}  // namespace tambour
