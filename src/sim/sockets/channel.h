// One direction of a stream: the segments in flight, and the bytes that have arrived but were not
// read.
//
// Between hosts each segment has a delay, segments arrive in order, and they wait while the network
// is cut. Within a host a segment has arrived when send() returns, as with the kernel's loopback
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include <tambour/detail/namespaces.h>

#include "sim/sockets/byte_queue.h"
#include "sim/world.h"

namespace tambour::sim::detail {

class StreamSocket;

enum class SegmentKind : std::uint8_t {
  established,  ///< Accepts a connection request (SYN-ACK).
  data,
  end,    ///< FIN: the last segment.
  reset,  ///< RST.
};

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  /// Two channels, one for each direction between two hosts.
  struct Pair {
    std::shared_ptr<Channel> there;
    std::shared_ptr<Channel> back;
  };
  static Pair open(Machine& one, Machine& other);

  Channel(Machine& from, Machine& to);

  /// Null if that end was closed.
  StreamSocket* writer = nullptr;
  StreamSocket* reader = nullptr;

  // The writer's side.
  void send(SegmentKind kind, std::string bytes = {});
  /// Returns the number of bytes that fit into the channel.
  [[nodiscard]] std::size_t room() const noexcept {
    return charged_ < capacity_ ? capacity_ - charged_ : 0;
  }
  [[nodiscard]] std::size_t charged() const noexcept { return charged_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  void set_capacity(std::size_t bytes) noexcept { capacity_ = bytes; }

  // The reader's side.
  [[nodiscard]] const ByteQueue& arrived() const noexcept { return arrived_; }
  /// Removes `count` of the arrived bytes.
  void consume(std::size_t count);

  /// Call after a cut was healed: sends the waiting segments again.
  void resume();

  [[nodiscard]] bool is_local() const noexcept { return &from_ == &to_; }

 private:
  struct Segment {
    SegmentKind kind;
    std::int64_t at_ns;
    std::string bytes;
  };

  [[nodiscard]] std::int64_t draw_arrival_ns();
  void schedule_arrival();
  void arrive();
  void stall();
  void deliver(SegmentKind kind, const std::string& bytes);
  void acknowledge(std::size_t count);
  void acknowledge_later();

  World& world_;
  Machine& from_;
  Machine& to_;
  std::weak_ptr<Channel> back_;
  std::deque<Segment> in_flight_segments_;
  ByteQueue arrived_;
  std::size_t charged_ = 0;   ///< Bytes sent and not yet acknowledged.
  std::size_t consumed_ = 0;  ///< Of these, the bytes read by the reader.
  std::size_t capacity_;
  std::int64_t last_at_ns_ = 0;
  std::uint64_t stuck_count_ = 0;  ///< The number of times it got stuck.
  bool stuck_ = false;
  bool acknowledging_ = false;  ///< An acknowledgement is in flight.
};

}  // namespace tambour::sim::detail
