// Child: the handle. The table of the process and the watches of the loop are in child_table.cpp
// and children.cpp.
#include <tambour/events/child.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "base/libc/glibc_functions.h"
#include "events/child_table.h"
#include "events/children.h"
#include "events/signals.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {
namespace {

std::string name_of_signal(int number) {
  if (const char* const name = detail::base::sigabbrev_np(number)) return std::string("SIG") + name;
  if (number >= SIGRTMIN && number <= SIGRTMAX) {
    const int offset = number - SIGRTMIN;
    return offset == 0 ? "SIGRTMIN" : "SIGRTMIN+" + std::to_string(offset);
  }
  return "signal " + std::to_string(number);
}

}  // namespace

std::string ChildStatus::to_string() const {
  switch (event) {
    case Event::exited:
      return "exited with status " + std::to_string(code);
    case Event::signaled:
      return "killed by " + name_of_signal(code) + (dumped_core ? " (core dumped)" : "");
    case Event::stopped:
      return "stopped by " + name_of_signal(code);
    case Event::continued:
      return "continued";
    case Event::lost:
      break;
  }
  return "status lost: " + system_error(code).message();
}

Child::Child(EventLoop& loop, pid_t pid, Function function, ChildChanges changes,
             std::source_location created_at) noexcept
    : Handle(detail::loop::core_of(loop), std::move(function), detail::OperationKind::poll, &run,
             created_at),
      pid_(pid),
      any_(false),
      changes_(changes) {
  events = Events::read;
  // A child traced by another process (ptrace(2)) can be a zombie that waitid(2) does not report
  // yet: a level-triggered pidfd would make the loop spin until it does.
  trigger = Trigger::edge;
}

Child::Child(EventLoop& loop, AnyChild /*any*/, Function function, ChildChanges changes,
             std::source_location created_at) noexcept
    : Child(loop, pid_t{0}, std::move(function), changes, created_at) {
  any_ = true;
}

Child::Child(Child&& other) noexcept
    : Handle(static_cast<Handle&&>(other)),
      pid_(other.pid_),
      any_(other.any_),
      changes_(other.changes_) {
  if (!is_started()) return;
  other.fd = -1;
  detail::events::ChildTable::move(other, *this);
}

Child& Child::operator=(Child&& other) noexcept {
  return detail::loop::replace_handle(*this, other);
}

Child::~Child() { stop(); }

Result<> Child::start() noexcept {
  core_->check_thread();
  if (is_started()) return {};
  // Before the children, so that they are closed first: they own a signal watcher.
  if (auto signals = core_->open_service<detail::events::Signals>(); !signals)
    return std::unexpected(signals.error());
  auto service = core_->open_service<detail::events::Children>();
  if (!service) return std::unexpected(service.error());
  return (*service)->add(*this);
}

void Child::stop() noexcept {
  if (!is_started()) return;
  core_->check_thread();
  core_->service<detail::events::Children>().remove(*this);
}

void Child::set_function(Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void Child::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Child&>(ready);
  self.core_->service<detail::events::Children>().run(self);
}

}  // namespace tambour
