#include <tambour/fd_watcher.h>

#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "loop/core.h"

namespace tambour {

FdWatcher::FdWatcher(EventLoop& loop, int watched, Events interest, Function function,
                     Trigger wanted, std::source_location created_at) noexcept
    : Operation(OperationKind::poll, &run, created_at),
      core_(loop.core_),
      function_(std::move(function)) {
  core_->attach();
  set(watched, interest, wanted);
}

FdWatcher::FdWatcher(FdWatcher&& other) noexcept
    : Operation(static_cast<Operation&&>(other)),
      core_(std::exchange(other.core_, nullptr)),
      function_(std::move(other.function_)) {}

FdWatcher& FdWatcher::operator=(FdWatcher&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

FdWatcher::~FdWatcher() {
  if (core_ == nullptr) return;  // Moved from.
  stop();
  core_->retire(function_.release());
  core_->detach();
}

Result<> FdWatcher::start() noexcept {
  core_->check_thread_of(created_at());
  if (started()) return {};
  if (fd < 0) return std::unexpected(system_error(EBADF));
  core_->add_reference();
  result = 0;
  core_->backend().submit(*this);
  return {};
}

void FdWatcher::stop() noexcept {
  if (!started()) return;
  if (link_on_fd != nullptr) {
    core_->check_thread_of(created_at());
    backend::Backend& backend = core_->backend();
    backend.cancel(*this);
    backend.unwatched(fd);
    // Inside run(), ~Running() settles the backend.
    if (!core_->is_running()) backend.settle();
  } else {
    unlink();  // A failure may still be queued for its callback.
  }
  result = 0;
  core_->drop_reference();
}

void FdWatcher::set(Events interest, Trigger wanted) noexcept {
  core_->check_thread_of(created_at());
  events = interest;
  trigger = wanted;
  if (link_on_fd == nullptr) return;
  // Events that are due in this iteration but are no longer wanted are not reported.
  if (linked()) {
    result &= std::int32_t(interest | Events::error);
    if (result == 0) unlink();
  }
  core_->backend().submit(*this);
}

void FdWatcher::set(int watched, Events interest, Trigger wanted) noexcept {
  core_->check_thread_of(created_at());
  const bool restart = started();
  stop();
  fd = watched;
  events = interest;
  trigger = wanted;
  core_->backend().forget(watched);
  if (restart && watched >= 0) static_cast<void>(start());
}

void FdWatcher::set_function(Function function) noexcept {
  core_->check_thread_of(created_at());
  core_->retire(function_.release());
  function_ = std::move(function);
}

void FdWatcher::run(Ready& ready) {
  auto& self = static_cast<FdWatcher&>(ready);
  if (self.result < 0) [[unlikely]] {
    self.core_->drop_reference();
    self.function_(Events::error);
    return;
  }
  self.function_(Events(std::uint16_t(std::exchange(self.result, 0))));
}

}  // namespace tambour
