// tasks_of(): the scope of the tasks that were spawned on the loop itself.

#include <memory>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>

#include "loop/core.h"

namespace tambour {
namespace {

class LoopTasks final : public detail::loop::Service {
 public:
  explicit LoopTasks(detail::loop::Core& core) noexcept : core_(core) {}

  TaskScope& scope(EventLoop& loop) {
    if (scope_ == nullptr) {
      scope_ = std::make_unique<TaskScope>(loop);
      // These tasks are never joined; their exceptions leave run(), like those of callbacks.
      scope_->set_exception_handler(
          [this](std::exception_ptr thrown) { core_.throw_out_of_run(std::move(thrown)); });
    }
    return *scope_;
  }

  [[nodiscard]] std::size_t owned_tasks() const noexcept override {
    return scope_ == nullptr ? 0 : scope_->size();
  }
  bool drop_owned() noexcept override {
    if (scope_ == nullptr) return false;
    scope_.reset();
    return true;
  }
  void close() noexcept override { scope_.reset(); }

 private:
  detail::loop::Core& core_;
  /// Not std::optional: a task that is destroyed with the scope may spawn another one.
  std::unique_ptr<TaskScope> scope_;
};

}  // namespace

namespace detail {

TaskScope& tasks_of(EventLoop& loop, std::source_location function) {
  loop::Core& core = loop::core_of(loop);
  core.check_thread(function);
  auto tasks = core.open_service<LoopTasks>();
  if (!tasks) throw std::bad_alloc();
  return (*tasks)->scope(loop);
}

}  // namespace detail

}  // namespace tambour
