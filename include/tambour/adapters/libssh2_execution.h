// A command of SshSession::execute(): its channel from open to free.
#pragma once

#include <libssh2.h>

#include <array>
#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <utility>

#include <tambour/adapters/libssh2_result.h>
#include <tambour/adapters/libssh2_transport.h>
#include <tambour/detail/resumption.h>
#include <tambour/loop/timer.h>
#include <tambour/task/context.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Owned by its wait, or, after the wait was stopped, by itself: it then closes the channel.
class SshExecution final : public SshOperation {
 public:
  class Wait;

  SshExecution(SshTransport& transport, std::string command, std::size_t output_bytes_max)
      : transport_(transport), command_(std::move(command)), output_bytes_max_(output_bytes_max) {}

  [[nodiscard]] bool needs_session() const noexcept override { return stage_ == Stage::open; }
  int step() noexcept override {
    for (;;) {
      const int code = step_of_stage();
      if (code == LIBSSH2_ERROR_EAGAIN) return code;
      if (code < 0) {
        note_error(code);
        // The session frees the channel too.
        if (stage_ == Stage::open || stage_ == Stage::free || is_ssh_connection_error(code))
          return code;
        stage_ = stage_ == Stage::close ? Stage::free : Stage::close;
        continue;
      }
      if (stage_ == Stage::free) return 0;
      stage_ = Stage(int(stage_) + 1);
      // The server's answer to the command is awaited: nothing else may be done before.
      if (wait_ == nullptr && (stage_ == Stage::run || stage_ == Stage::read))
        stage_ = Stage::close;
    }
  }
  void end(int code) override;
  void drop() noexcept override {
    if (wait_ == nullptr) delete this;
  }

 private:
  enum class Stage : std::uint8_t { open, run, read, close, free };

  int step_of_stage() noexcept {
    switch (stage_) {
      case Stage::open:
        channel_ = libssh2_channel_open_session(transport_.session());
        return channel_ != nullptr ? 0 : libssh2_session_last_errno(transport_.session());
      case Stage::run:
        return libssh2_channel_exec(channel_, command_.c_str());
      case Stage::read:
        try {
          return read_output();
        } catch (const std::bad_alloc&) {
          return LIBSSH2_ERROR_ALLOC;
        }
      case Stage::close:
        return libssh2_channel_close(channel_);
      case Stage::free:
        break;
    }
    note_end();
    return libssh2_channel_free(channel_);
  }
  /// Reads what has arrived of both streams. Returns 0 at their end.
  int read_output() {
    std::array<char, 16'384> part;
    for (const int stream : {0, SSH_EXTENDED_DATA_STDERR}) {
      std::string& text = stream == 0 ? result_.output : result_.errors;
      for (;;) {
        const auto size = libssh2_channel_read_ex(channel_, stream, part.data(), part.size());
        if (size == 0 || size == LIBSSH2_ERROR_EAGAIN) break;
        if (size < 0) return static_cast<int>(size);
        text.append(part.data(), static_cast<std::size_t>(size));
        if (result_.output.size() + result_.errors.size() > output_bytes_max_)
          return ssh_output_too_long;
      }
    }
    return libssh2_channel_eof(channel_) != 0 ? 0 : LIBSSH2_ERROR_EAGAIN;
  }
  void note_end() noexcept {
    if (wait_ == nullptr || is_end_noted_) return;
    is_end_noted_ = true;
    result_.exit_status = libssh2_channel_get_exit_status(channel_);
    char* name = nullptr;
    std::size_t size = 0;
    libssh2_channel_get_exit_signal(channel_, &name, &size, nullptr, nullptr, nullptr, nullptr);
    if (name == nullptr) return;
    try {
      result_.signal.assign(name, size);
    } catch (const std::bad_alloc&) {
      note_error(LIBSSH2_ERROR_ALLOC);
    }
    libssh2_free(transport_.session(), name);
  }
  /// The first error is that of the command.
  void note_error(int code) noexcept {
    if (wait_ != nullptr && !error_) error_.emplace(ssh_error(transport_.session(), code));
  }

  SshTransport& transport_;
  std::string command_;
  std::size_t output_bytes_max_;
  Stage stage_ = Stage::open;
  bool is_end_noted_ = false;
  LIBSSH2_CHANNEL* channel_ = nullptr;
  SshOutput result_;
  std::optional<SshError> error_;
  Wait* wait_ = nullptr;
};

/// Begins the command when it is awaited.
class [[nodiscard]] SshExecution::Wait {
 public:
  explicit Wait(std::unique_ptr<SshExecution> execution) noexcept
      : execution_(std::move(execution)) {}
  Wait(Wait&& other) noexcept : execution_(std::move(other.execution_)) {}
  Wait& operator=(Wait&&) = delete;
  ~Wait() { abandon(); }

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::other, execution_.get()), at);
    awaiting_ = awaiting;
    loop_ = context.loop;
    execution_->wait_ = this;
    const int code = execution_->transport_.begin(*execution_, *context.loop);
    if (code != LIBSSH2_ERROR_EAGAIN) {
      note_end(code);
      return false;
    }
    is_in_flight_ = true;
    if (context.stop.stop_possible()) stop_.emplace(context.stop, Stop{*this});
    return true;
  }
  [[nodiscard]] SshResult<SshOutput> await_resume() {
    if (is_stopped_) return std::unexpected(SshError(system_error(ECANCELED)));
    if (execution_->error_) return std::unexpected(std::move(*execution_->error_));
    return std::move(execution_->result_);
  }

 private:
  friend class SshExecution;
  struct Stop {
    Wait& wait;
    void operator()() const {
      if (!wait.is_in_flight_) return;  // It has ended.
      wait.abandon();
      wait.is_stopped_ = true;
      wait.later_.emplace(*wait.loop_, [&stopped = wait] { stopped.resume_task(); });
      wait.later_->start(Duration::zero());
    }
  };

  void abandon() noexcept {
    if (!std::exchange(is_in_flight_, false)) return;
    SshExecution& execution = *execution_.release();  // Until end() or drop().
    execution.wait_ = nullptr;
    if (execution.stage_ == Stage::read) execution.stage_ = Stage::close;
    if (execution.transport_.abandon(execution)) delete &execution;
  }
  void note_end(int code) noexcept {
    is_in_flight_ = false;
    if (code < 0) execution_->note_error(code);
  }
  void resume_task() { tambour::detail::Resumption::run(awaiting_); }

  std::unique_ptr<SshExecution> execution_;
  bool is_in_flight_ = false;
  bool is_stopped_ = false;
  EventLoop* loop_ = nullptr;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> later_;
  std::optional<std::stop_callback<Stop>> stop_;
};

inline void SshExecution::end(int code) {
  if (wait_ == nullptr) {
    delete this;
    return;
  }
  wait_->note_end(code);
  wait_->resume_task();
}

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
