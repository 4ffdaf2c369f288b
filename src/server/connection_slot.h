// The count of a connection between accept(2) and its start.
#pragma once

#include <utility>

#include <tambour/loop/event_loop.h>

namespace tambour::detail::server {

class AcceptorGroup;

/// Counts one connection for a loop of a group, until the connection is started and counted by
/// itself (release()) or lost (the destructor). Without a group it has no effect: an acceptor knows
/// the number of its own tasks and connections. The group must outlive the slot.
class ConnectionSlot {
 public:
  ConnectionSlot(AcceptorGroup* group, EventLoop& loop) noexcept;
  ConnectionSlot(ConnectionSlot&& other) noexcept
      : group_(std::exchange(other.group_, nullptr)), loop_(other.loop_) {}
  ConnectionSlot& operator=(ConnectionSlot&&) = delete;
  ~ConnectionSlot();

  /// Counts the connection for another loop from now on.
  void move_to(EventLoop& loop) noexcept;
  void release() noexcept { group_ = nullptr; }

 private:
  AcceptorGroup* group_;
  EventLoop* loop_;
};

}  // namespace tambour::detail::server
