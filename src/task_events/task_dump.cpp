// dump_tasks_on(): writes dumps of tasks when a signal arrives.
#include <tambour/events/task_dump.h>

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <string_view>

#include <tambour/loop/event_loop.h>
#include <tambour/task/dump.h>

#include "loop/core.h"

namespace tambour {
namespace {

void write_to_standard_error(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_dump(EventLoop& loop) noexcept {
  try {
    write_to_standard_error(dump_tasks(loop));
  } catch (const std::exception&) {
    write_to_standard_error("no memory for the dump of tasks\n");
  }
}

}  // namespace

TaskDumpSignal::TaskDumpSignal(detail::loop::Core& core, Signal signal) noexcept
    : core_(&core), signal_(std::move(signal)) {
  core_->attach();
  // A started signal keeps the loop running.
  core_->drop_reference();
}

TaskDumpSignal& TaskDumpSignal::operator=(TaskDumpSignal&& other) noexcept {
  if (this == &other) return *this;
  stop();
  core_ = std::exchange(other.core_, nullptr);
  signal_ = std::move(other.signal_);
  return *this;
}

void TaskDumpSignal::stop() noexcept {
  detail::loop::Core* const core = std::exchange(core_, nullptr);
  if (core == nullptr) return;
  // A loop that was destroyed has stopped the signal.
  if (signal_.is_started()) {
    core->add_reference();
    signal_.stop();
  }
  core->detach();
}

Result<TaskDumpSignal> dump_tasks_on(EventLoop& loop, int number, std::source_location at) {
  Signal signal(loop, number, [&loop](int) { write_dump(loop); }, at);
  if (Result<> started = signal.start(); !started) return std::unexpected(started.error());
  return TaskDumpSignal(detail::loop::core_of(loop), std::move(signal));
}

}  // namespace tambour
