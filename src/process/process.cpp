// Process: the public handle, which shares its ProcessState with the loop.
#include <tambour/process/process.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <source_location>
#include <utility>

#include "base/check.h"
#include "base/failure.h"
#include "process/process_state.h"

namespace tambour {
namespace {

detail::process::ProcessState& existing(detail::process::ProcessState* state) noexcept {
  detail::base::check(
      state != nullptr,
      "a Process that was moved from, released or default-constructed was used; ask pid()");
  return *state;
}

/// Like existing(), for functions that change the state.
detail::process::ProcessState& changing(
    detail::process::ProcessState* state,
    std::source_location function = std::source_location::current()) noexcept {
  existing(state).check_thread(function);
  return *state;
}

/// Called when a Process gives up its state.
void abandon(detail::process::ProcessState* state,
             std::source_location function = std::source_location::current()) noexcept {
  if (state == nullptr) return;
  state->check_thread(function);
  state->abandon();
}

}  // namespace

std::vector<std::string> current_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

Result<> set_child_subreaper(bool enabled) noexcept {
  if (::prctl(PR_SET_CHILD_SUBREAPER, enabled ? 1L : 0L, 0L, 0L, 0L) != 0)
    return detail::base::failure(errno);
  return {};
}

Result<Process> Process::spawn(EventLoop& loop, const ProcessOptions& options,
                               std::source_location created_at) {
  auto state = detail::process::ProcessState::spawn(loop, options, created_at);
  if (!state) return std::unexpected(state.error());
  return Process(*state);
}

Process::Process(Process&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    abandon(state_);
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

Process::~Process() { abandon(state_); }

pid_t Process::pid() const noexcept { return state_ == nullptr ? 0 : state_->pid(); }

bool Process::is_running() const noexcept { return state_ != nullptr && !state_->status(); }

std::optional<ChildStatus> Process::status() const noexcept {
  return state_ == nullptr ? std::nullopt : state_->status();
}

bool Process::has_timed_out() const noexcept {
  return state_ != nullptr && state_->has_timed_out();
}

PipeStream& Process::input() noexcept { return existing(state_).input; }
PipeStream& Process::output() noexcept { return existing(state_).output; }
PipeStream& Process::error_output() noexcept { return existing(state_).error_output; }

void Process::on_exit(Function function) noexcept { changing(state_).on_exit(std::move(function)); }

Result<> Process::send_signal(int number) noexcept { return changing(state_).send_signal(number); }

Result<> Process::send_signal_to_group(int number) noexcept {
  return changing(state_).send_signal_to_group(number);
}

void Process::terminate(Duration grace) noexcept {
  if (state_ != nullptr) changing(state_).terminate(grace);
}

pid_t Process::release() noexcept {
  if (state_ == nullptr) return 0;
  detail::process::ProcessState& released = changing(std::exchange(state_, nullptr));
  return released.release();
}

bool Process::Wait::await_ready() noexcept {
  const auto& status = changing(state_).status();
  if (status) outcome_ = *status;
  return status.has_value();
}

void Process::Wait::enlist() noexcept { state_->add(*this); }

void Process::Wait::cancel() noexcept {
  unlink();
  state_->queue(*this);
}

void Process::Wait::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Wait&>(ready);
  self.stop_.reset();
  detail::Resumption::run(self.awaiting_);
}

}  // namespace tambour
