// TaskChannelBase: the part of Channel that does not depend on the type of its items.
#include <tambour/task/channel.h>

#include "loop/core.h"

namespace tambour {

TaskChannelBase::TaskChannelBase(EventLoop& loop, std::size_t capacity,
                                 const std::source_location& created_at) noexcept
    : core_(&detail::loop::core_of(loop)), capacity_(capacity), created_at_(created_at) {
  core_->check_thread_of(created_at);
  core_->attach();
}

TaskChannelBase::~TaskChannelBase() {
  core_->check_thread_unless_closed(created_at_);
  for (detail::TaskWaits* waits : {&senders_, &receivers_}) {
    while (auto* const wait = waits->front()) wait->complete(ECANCELED);
  }
  core_->detach();
}

void TaskChannelBase::close() noexcept {
  core_->check_thread_of(created_at_);
  closed_ = true;
  while (auto* const sender = senders_.front()) sender->complete(EPIPE);
  end_receivers();
}

void TaskChannelBase::end_receivers() noexcept {
  if (!has_ended()) return;
  while (auto* const receiver = receivers_.front()) receiver->complete(EPIPE);
}

void TaskChannelBase::check_thread(std::source_location function) const noexcept {
  core_->check_thread_of(created_at_, function);
}

}  // namespace tambour
