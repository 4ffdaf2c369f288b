// FdWatcher: a handle on a poll operation of the backend.
#include <tambour/loop/fd_watcher.h>

#include <utility>

#include <tambour/loop/event_loop.h>

#include "base/failure.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {

FdWatcher::FdWatcher(EventLoop& loop, int watched, Events interest, Function function,
                     Trigger wanted, std::source_location created_at) noexcept
    : detail::Operation(detail::OperationKind::poll, &run, created_at),
      LoopCallback(detail::loop::core_of(loop), std::move(function)) {
  core_->check_thread_of(created_at);
  set(watched, interest, wanted);
}

FdWatcher::FdWatcher(FdWatcher&& other) noexcept = default;
FdWatcher& FdWatcher::operator=(FdWatcher&& other) noexcept {
  return detail::loop::replace_handle(*this, other);
}

FdWatcher::~FdWatcher() { stop(); }

Result<> FdWatcher::start() noexcept {
  core_->check_thread_of(created_at());
  if (is_started()) return {};
  if (Operation::fd < 0) return detail::base::failure(EBADF);
  core_->add_reference();
  result = 0;
  core_->backend().submit(*this);
  return {};
}

void FdWatcher::stop() noexcept {
  if (!is_started()) return;
  if (submitted()) {
    core_->check_thread_of(created_at());
    detail::backend::Backend& backend = core_->backend();
    backend.cancel(*this);
    backend.unwatched(Operation::fd);
    // Inside run(), ~Running() settles the backend.
    if (!core_->is_running()) backend.release_unwatched_fds();
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
  if (!submitted()) return;
  // Events that are due in this iteration but are no longer wanted are not reported.
  if (linked()) {
    result &= std::int32_t(interest | Events::error);
    if (result == 0) unlink();
  }
  core_->backend().submit(*this);
}

void FdWatcher::set(int watched, Events interest, Trigger wanted) noexcept {
  core_->check_thread_of(created_at());
  const bool restart = is_started();
  stop();
  Operation::fd = watched;
  events = interest;
  trigger = wanted;
  core_->backend().invalidate(watched);
  if (restart && watched >= 0) static_cast<void>(start());
}

void FdWatcher::set_function(Function function) noexcept {
  core_->check_thread_of(created_at());
  replace_function(std::move(function));
}

void FdWatcher::run(detail::ReadyNode& ready) {
  auto& self = static_cast<FdWatcher&>(ready);
  if (self.result < 0) [[unlikely]] {
    self.core_->drop_reference();
    self.function_(Events::error);
    return;
  }
  self.function_(Events(std::uint16_t(std::exchange(self.result, 0))));
}

}  // namespace tambour
