// Counts a connection on its loop from accept(2) on, and on the loop to which it moves.
#include "server/connection_slot.h"

#include "server/acceptor_group.h"

namespace tambour::detail::server {

ConnectionSlot::ConnectionSlot(AcceptorGroup* group, EventLoop& loop) noexcept
    : group_(group), loop_(&loop) {
  if (group_ != nullptr) group_->count_in(loop);
}

ConnectionSlot::~ConnectionSlot() {
  if (group_ != nullptr) group_->count_out(*loop_);
}

void ConnectionSlot::move_to(EventLoop& loop) noexcept {
  if (group_ != nullptr) group_->move_count(*std::exchange(loop_, &loop), loop);
}

}  // namespace tambour::detail::server
