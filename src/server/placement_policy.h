// Chooses the loop of a group that serves a connection.
#pragma once

#include <cstddef>

#include <tambour/loop/event_loop.h>
#include <tambour/net/listen_options.h>
#include <tambour/net/socket_stream.h>
#include <tambour/threads/loop_group.h>

namespace tambour::detail::server {

/// Thread: choose() must be called by one loop at a time, the one that accepts, unless each loop
/// listens. The other functions may be called on any thread.
class PlacementPolicy {
 public:
  PlacementPolicy(LoopGroup& group, Placement placement) noexcept
      : group_(group), placement_(placement) {}

  [[nodiscard]] Placement placement() const noexcept { return placement_; }
  /// Otherwise only the first loop does.
  [[nodiscard]] bool each_loop_listens() const noexcept {
    return placement_ == Placement::kernel || placement_ == Placement::processor;
  }
  /// Returns whether choose() needs the stream's PROXY header, if there is one.
  [[nodiscard]] bool needs_header() const noexcept { return placement_ == Placement::peer_address; }
  [[nodiscard]] EventLoop& choose(EventLoop& accepted_on, const SocketStream& stream) noexcept;

 private:
  LoopGroup& group_;
  const Placement placement_;
  std::size_t next_index_ = 0;
};

}  // namespace tambour::detail::server
