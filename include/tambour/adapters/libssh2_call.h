// The wait of SshSession::call() for a function of libssh2.
#pragma once

#include <libssh2.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tambour/adapters/libssh2_result.h>
#include <tambour/adapters/libssh2_transport.h>
#include <tambour/detail/resumption.h>
#include <tambour/loop/timer.h>
#include <tambour/task/context.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Calls the function when it is awaited, and again until it does not return
/// LIBSSH2_ERROR_EAGAIN, or a null pointer with this error.
template <std::invocable F>
class [[nodiscard]] SshCall final : private SshOperation {
 public:
  using Value = std::invoke_result_t<F&>;

  /// `transport`: null if the session was moved from.
  SshCall(SshTransport* transport, bool needs_session, F function)
      : transport_(transport), needs_session_(needs_session), function_(std::move(function)) {}
  SshCall(SshCall&& other) noexcept
      : transport_(other.transport_),
        needs_session_(other.needs_session_),
        function_(std::move(other.function_)) {}
  SshCall& operator=(SshCall&&) = delete;
  ~SshCall() override { leave(); }

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::other, this), at);
    if (transport_ == nullptr || transport_->is_lost()) {
      error_.emplace(system_error(ENOTCONN));
      return false;
    }
    awaiting_ = awaiting;
    loop_ = context.loop;
    const int code = transport_->begin(*this, *context.loop);
    if (code != LIBSSH2_ERROR_EAGAIN) {
      note_end(code);
      return false;
    }
    is_in_flight_ = true;
    if (context.stop.stop_possible()) stop_.emplace(context.stop, Stop{*this});
    return true;
  }
  [[nodiscard]] SshResult<Value> await_resume() {
    if (exception_) std::rethrow_exception(exception_);
    if (error_) return std::unexpected(std::move(*error_));
    return value_;
  }

 private:
  struct Stop {
    SshCall& call;
    void operator()() const {
      if (!call.is_in_flight_) return;  // It has ended.
      call.leave();
      call.error_.emplace(system_error(ECANCELED));
      call.later_.emplace(*call.loop_, [&stopped = call] { stopped.resume_task(); });
      call.later_->start(Duration::zero());
    }
  };

  [[nodiscard]] bool needs_session() const noexcept override { return needs_session_; }
  int step() noexcept override {
    try {
      value_ = function_();
    } catch (...) {
      exception_ = std::current_exception();
      return 0;
    }
    if constexpr (std::is_pointer_v<Value>) {
      if (value_ != nullptr) return 0;
      return std::min(libssh2_session_last_errno(transport_->session()), -1);
    } else {
      return value_ < 0 ? static_cast<int>(value_) : 0;
    }
  }
  void end(int code) override {
    note_end(code);
    resume_task();
  }
  void drop() noexcept override { is_in_flight_ = false; }

  void note_end(int code) {
    is_in_flight_ = false;
    if (code < 0) error_.emplace(ssh_error(transport_->session(), code));
  }
  void leave() noexcept {
    if (std::exchange(is_in_flight_, false)) transport_->remove_unfinished(*this);
  }
  void resume_task() { tambour::detail::Resumption::run(awaiting_); }

  SshTransport* transport_;
  bool needs_session_;
  F function_;
  bool is_in_flight_ = false;
  Value value_{};
  std::optional<SshError> error_;
  std::exception_ptr exception_;
  EventLoop* loop_ = nullptr;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> later_;
  std::optional<std::stop_callback<Stop>> stop_;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
