// Resuming, transferring and destroying coroutines, and the aborts for misused tasks. Only this
// file resumes a coroutine handle.
#include <tambour/task/task.h>

#include <source_location>
#include <string_view>
#include <utility>

#include <tambour/detail/resumption.h>

#include "base/check.h"
#include "loop/core.h"
#include "task/promise_access.h"

namespace tambour {
namespace {

// One word of static TLS even in a dlopen(3)ed module: the access needs no function call.
[[gnu::tls_model("initial-exec")]] constinit thread_local detail::Resumption* current = nullptr;

}  // namespace

namespace detail {

/// Sets `current` while the coroutine runs, and restores it however the coroutine is left.
class Resumption::OnStack : public Resumption {
 public:
  OnStack() noexcept {
    outer_ = current;
    current = this;
  }
  OnStack(const OnStack&) = delete;
  OnStack& operator=(const OnStack&) = delete;
  ~OnStack() { current = outer_; }
};

}  // namespace detail

// Not inline: each source file that includes the header would register its destructor.
const TaskContext detail::TaskPromiseBase::no_context{};

const detail::Resumption* detail::Resumption::innermost() noexcept { return current; }

void detail::Resumption::run(std::coroutine_handle<> coroutine) {
  OnStack here;
  do {
    here.running_ = coroutine.address();
    here.next_ = nullptr;
    coroutine.resume();
    coroutine = std::coroutine_handle<>::from_address(here.next_);
  } while (coroutine);
}

void detail::Resumption::transfer(std::coroutine_handle<> from, std::coroutine_handle<> to) {
  detail::Resumption* const innermost = current;
  if (innermost != nullptr && innermost->running_ == from.address()) [[likely]] {
    innermost->next_ = to.address();
  } else if (to) {
    run(to);
  }
}

#ifndef TAMBOUR_NO_TASK_DUMP
void detail::TaskPromiseBase::note_wait(WaitNote wait, std::source_location at) noexcept {
  wait_ = wait;
  awaits_at_ = at;
  const std::int64_t now_ns = loop::core_of(*context_->loop).now_ns();
  waits_since_ = static_cast<std::uint32_t>(now_ns >> task::PromiseAccess::since_shift);
}
#endif

bool detail::TaskPromiseBase::is_or_awaits(const void* frame) const noexcept {
  const detail::TaskPromiseBase* task = this;
  while (task->frame() != frame) {
    if (task->awaited_ == nullptr) return false;
    task = *task->awaited_;
    if (task->waiter_ == Waiter::observer) return task->observer_->observes(frame);
  }
  return true;
}

void detail::TaskPromiseBase::destroy_suspended() noexcept {
  for (const detail::Resumption* resumption = detail::Resumption::innermost();
       resumption != nullptr; resumption = resumption->outer()) {
    if (is_or_awaits(resumption->running())) [[unlikely]]
      detail::base::fail_check(
          "a Task (spawned in %s:%u), or the TaskScope that owns it, was destroyed by that task "
          "itself while it was running; let it end first, or destroy it in EventLoop::post()",
          context_->spawned_at.file_name(), unsigned(context_->spawned_at.line()));
  }
  // Destroys the innermost frame first, without recursion: the objects of a frame outlive those of
  // the frames it awaits, which may refer to them.
  detail::TaskPromiseBase* task = this;
  while (task->awaits_one()) task = *task->awaited_;
  while (task != this) {
    detail::TaskPromiseBase& parent = *task->parent_;
    *std::exchange(parent.awaited_, nullptr) = nullptr;
    task->handle().destroy();
    task = &parent;
  }
  handle().destroy();
}

void detail::fail_on_misplaced_frame(std::source_location at) noexcept {
  // "void greet(greet(tambour::TcpStream)::....Frame*)" is the function that resumes greet().
  std::string_view name(at.function_name());
  if (name.starts_with("void ")) name.remove_prefix(5);
  name = name.substr(0, name.find('('));
  detail::base::fail_check(
      "GCC 12 has compiled the coroutine %.*s (%s:%u) so that it cannot be resumed, because it has "
      "a co_await in the condition of if, while, do, for or switch and declares no variable: write "
      "`const auto result = co_await ...;` before the condition, or use clang 19 or GCC 13; "
      "tambour-check-coroutines finds all such coroutines",
      static_cast<int>(name.size()), name.data(), at.file_name(), unsigned(at.line()));
}

namespace detail {

void fail_on_empty_task(const char* function, std::source_location at) noexcept {
  base::fail_check(
      "%s got an empty Task, in %s:%u; a Task is empty when it was default-constructed, moved "
      "from, "
      "awaited or spawned: call the coroutine function again for a new one",
      function, at.file_name(), unsigned(at.line()));
}

void fail_on_empty_range(const char* function, std::source_location at) noexcept {
  base::fail_check(
      "%s got an empty range, in %s:%u; it would wait forever: check that the range has elements",
      function, at.file_name(), unsigned(at.line()));
}

void fail_on_moved_wait(const char* function) noexcept {
  base::fail_check(
      "the awaitable that %s returned was moved after it was awaited; move it before the co_await "
      "expression, or call the function again for a new one",
      function);
}

}  // namespace detail

}  // namespace tambour
