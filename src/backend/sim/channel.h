// One direction of a stream: bytes on their way, and bytes that have arrived and were not read.
//
// Between hosts every segment takes its time, in order, and waits where the network is cut. Within
// a host it has arrived when send() returns, as over the kernel's loopback device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "backend/sim/byte_queue.h"
#include "backend/sim/world.h"

namespace tambour::backend::sim {

class StreamSocket;

enum class SegmentKind : std::uint8_t {
  established,  ///< The answer to a connection request.
  data,
  end,    ///< FIN: nothing comes after it.
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

  /// Null where there is none any more.
  StreamSocket* writer = nullptr;
  StreamSocket* reader = nullptr;

  // The writer's side.
  void send(SegmentKind kind, std::string bytes = {});
  /// How many bytes the channel takes before it is full.
  [[nodiscard]] std::size_t room() const noexcept {
    return charged_ < capacity_ ? capacity_ - charged_ : 0;
  }
  [[nodiscard]] std::size_t charged() const noexcept { return charged_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  void set_capacity(std::size_t bytes) noexcept { capacity_ = bytes; }

  // The reader's side.
  [[nodiscard]] const ByteQueue& arrived() const noexcept { return arrived_; }
  /// The reader has taken so many of the bytes that have arrived.
  void consume(std::size_t count);

  /// A cut was healed: what waited for that sets out anew.
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
  void get_stuck();
  void deliver(SegmentKind kind, const std::string& bytes);
  void acknowledge(std::size_t count);
  void acknowledge_later();

  World& world_;
  Machine& from_;
  Machine& to_;
  std::weak_ptr<Channel> back_;
  std::deque<Segment> on_the_way_;
  ByteQueue arrived_;
  std::size_t charged_ = 0;   ///< Bytes sent that the writer does not know to have been read.
  std::size_t consumed_ = 0;  ///< Of these, what the reader has read meanwhile.
  std::size_t capacity_;
  std::int64_t last_at_ns_ = 0;
  std::uint64_t stuck_count_ = 0;  ///< How often it got stuck.
  bool stuck_ = false;
  bool acknowledging_ = false;  ///< What was consumed is about to be told.
};

}  // namespace tambour::backend::sim
