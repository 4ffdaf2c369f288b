// block_on(): runs a loop until a task has ended.
#include <tambour/task/block_on.h>

#include <coroutine>
#include <source_location>

#include <tambour/detail/resumption.h>
#include <tambour/detail/task_list.h>

#include "base/check.h"
#include "loop/core.h"

namespace tambour::detail {
namespace {

class BlockingCall final : private TaskObserver {
 public:
  BlockingCall(EventLoop& loop, const std::source_location& at)
      : core_(loop::core_of(loop)), context_{.loop = &loop, .stop = {}, .spawned_at = at} {
    // Another thread may resume the task.
    core_.add_reference();
    tasks_.enlist(core_);
  }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
  ~BlockingCall() {
    tasks_.leave(core_);
    core_.drop_reference();
  }

  void run(TaskPromiseBase& task, void* owner, void (*destroy)(void* owner) noexcept) {
    task.observe_from(*this, context_);
    tasks_.push_back(task);
    try {
      Resumption::run(task.handle());
      while (!has_ended_) core_.run_once();
    } catch (...) {
      // A suspended wait of the task is in the list of `context_`.
      tasks_.remove(core_, task);
      destroy(owner);
      throw;
    }
  }

 private:
  std::coroutine_handle<> task_ended(TaskPromiseBase& task) noexcept override {
    tasks_.remove(core_, task);
    has_ended_ = true;
    return nullptr;
  }

  loop::Core& core_;
  TaskContext context_;
  TaskList tasks_;
  bool has_ended_ = false;
};

}  // namespace

void check_may_block(const std::source_location& at) noexcept {
  if (Resumption::innermost() == nullptr && !loop::Core::is_any_running_on_this_thread()) return;
  base::fail_check(
      "block_on() was called in %s:%u on a thread that is running a loop or a task, which it would "
      "block; co_await the task, or spawn() it",
      at.file_name(), unsigned(at.line()));
}

void run_until_ended(EventLoop& loop, TaskPromiseBase& task, const std::source_location& at,
                     void* owner, void (*destroy)(void* owner) noexcept) {
  loop::core_of(loop).check_thread();
  check_may_block(at);
  BlockingCall(loop, at).run(task, owner, destroy);
}

}  // namespace tambour::detail
