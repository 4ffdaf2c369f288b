// The wait of a task for a callback of a client library: what the adapters of this directory have
// in common. It resumes the task inside the library's callback, without another iteration of the
// loop; the library must allow calls to its functions there. Where it does not, use from_callback()
// (<tambour/threads/completion.h>).
#pragma once

#include <cerrno>
#include <coroutine>
#include <optional>
#include <source_location>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/resumption.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/task/context.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// One call to a client library, which the library's callback and the wait of a task share: the
/// last of the two deletes it. A wait that is stopped or destroyed leaves the call to the callback,
/// which then has no effect.
///
/// Thread: the loop's. `E` is constructible from an Error.
template <class T, class E = Error>
class Call {
 public:
  class Wait;

  /// The argument of the library's callback, which must call finish() or finish_later() exactly
  /// once, and the wait for it.
  static std::pair<Call*, Wait> begin() {
    Call* const call = new Call;
    return {call, Wait(call)};
  }
  /// A wait that fails at once.
  static Wait failed(E error) { return Wait(std::move(error)); }

  /// Resumes the task inside this call, which may destroy any object of the program.
  void finish(Result<T, E> result) {
    Wait* const wait = store(std::move(result));
    release();
    if (wait != nullptr) wait->resume();
  }
  /// Resumes the task in the next iteration: for destructors, and for places in which the library
  /// forbids calls to it.
  void finish_later(Result<T, E> result) {
    Wait* const wait = store(std::move(result));
    release();
    if (wait != nullptr) wait->resume_later();
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Call() = default;
  ~Call() = default;

  Wait* store(Result<T, E>&& result) {
    if (is_awaited_) result_.emplace(std::move(result));
    return wait_;
  }
  void release() noexcept {
    if (--owners_ == 0) delete this;
  }
  /// The task does not wait any more.
  void abandon() noexcept {
    wait_ = nullptr;
    is_awaited_ = false;
    release();
  }

  int owners_ = 2;
  bool is_awaited_ = true;
  Wait* wait_ = nullptr;
  std::optional<Result<T, E>> result_;
};

/// Returns the result that the callback has given. If the task is asked to stop before that, the
/// wait fails with ECANCELED, and the result is dropped when it arrives.
template <class T, class E>
class [[nodiscard]] Call<T, E>::Wait : private tambour::detail::StopHook {
 public:
  Wait(Wait&& other) noexcept
      : StopHook(&stop),
        call_(std::exchange(other.call_, nullptr)),
        error_(std::move(other.error_)) {}
  Wait& operator=(Wait&&) = delete;
  ~Wait() { drop(); }

  [[nodiscard]] bool await_ready() const noexcept { return call_ == nullptr || call_->result_; }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::callback), at);
    loop_ = context.loop;
    awaiting_ = awaiting;
    call_->wait_ = this;
    context.waits.add(*this, context.stop);
  }
  [[nodiscard]] Result<T, E> await_resume() {
    if (call_ == nullptr) return std::unexpected(std::move(error_));
    return std::move(*call_->result_);
  }

 private:
  friend class Call;
  static void stop(StopHook& hook) noexcept {
    auto& self = static_cast<Wait&>(hook);
    if (self.call_ == nullptr || self.call_->result_) return;
    self.drop();
    self.error_ = E(system_error(ECANCELED));
    self.resume_later();
  }

  explicit Wait(Call* call) : StopHook(&stop), call_(call), error_(Error()) {}
  explicit Wait(E error) : StopHook(&stop), error_(std::move(error)) {}

  void drop() noexcept {
    if (call_ != nullptr) std::exchange(call_, nullptr)->abandon();
  }
  void resume() { tambour::detail::Resumption::run(awaiting_); }
  void resume_later() {
    later_.emplace(*loop_, [this] { resume(); });
    later_->start(Duration::zero());
  }

  Call* call_ = nullptr;
  E error_;
  EventLoop* loop_ = nullptr;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> later_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
