// Channel: segments are delayed, stalled while the network is cut, delivered in order, and
// acknowledged.
#include "sim/sockets/channel.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sim/machine.h"
#include "sim/sockets/stream_socket.h"

namespace tambour::sim::detail {

Channel::Channel(Machine& from, Machine& to)
    : world_(from.world),
      from_(from),
      to_(to),
      capacity_(std::max<std::size_t>(from.world.options.stream_buffer_bytes, 1)) {}

Channel::Pair Channel::open(Machine& one, Machine& other) {
  Pair pair{std::make_shared<Channel>(one, other), std::make_shared<Channel>(other, one)};
  pair.there->back_ = pair.back;
  pair.back->back_ = pair.there;
  return pair;
}

void Channel::send(SegmentKind kind, std::string bytes) {
  charged_ += bytes.size();
  if (is_local()) {
    deliver(kind, bytes);
    return;
  }
  in_flight_segments_.push_back(
      {.kind = kind, .at_ns = draw_arrival_ns(), .bytes = std::move(bytes)});
  if (in_flight_segments_.size() == 1) schedule_arrival();
}

std::int64_t Channel::draw_arrival_ns() {
  std::int64_t at_ns = base::saturating_add(world_.now_ns(), world_.draw_delay_ns());
  if (world_.random.chance(world_.options.stream_loss))
    at_ns = base::saturating_add(at_ns, world_.options.retransmit_delay.count());
  return last_at_ns_ = std::max(last_at_ns_, at_ns);
}

void Channel::schedule_arrival() {
  world_.schedule(in_flight_segments_.front().at_ns,
                  [self = shared_from_this()] { self->arrive(); });
}

void Channel::arrive() {
  if (in_flight_segments_.empty()) return;  // The connection timed out.
  if (world_.is_cut(from_, to_)) {
    stall();
    return;
  }
  const Segment segment = std::move(in_flight_segments_.front());
  in_flight_segments_.pop_front();
  if (!in_flight_segments_.empty()) schedule_arrival();
  deliver(segment.kind, segment.bytes);
}

void Channel::stall() {
  stuck_ = true;
  const std::uint64_t this_time = ++stuck_count_;
  world_.add_stuck(weak_from_this());
  world_.schedule_in(world_.options.stream_timeout.count(), [self = shared_from_this(), this_time] {
    if (!self->stuck_ || self->stuck_count_ != this_time) return;
    self->stuck_ = false;
    self->in_flight_segments_.clear();
    if (self->writer != nullptr) self->writer->break_off(ETIMEDOUT);
  });
}

void Channel::resume() {
  if (acknowledging_) acknowledge_later();
  if (!stuck_) return;
  stuck_ = false;
  last_at_ns_ = world_.now_ns();
  for (Segment& segment : in_flight_segments_) segment.at_ns = draw_arrival_ns();
  schedule_arrival();
}

void Channel::deliver(SegmentKind kind, const std::string& bytes) {
  if (reader == nullptr) {
    // RFC 9293: a segment for a closed connection is answered with a reset.
    const auto back = back_.lock();
    if (kind != SegmentKind::reset && kind != SegmentKind::end && back != nullptr)
      back->send(SegmentKind::reset);
    return;
  }
  arrived_.append(bytes);
  reader->on_segment(kind);
}

void Channel::consume(std::size_t count) {
  arrived_.drop(count);
  if (is_local()) {
    acknowledge(count);
    return;
  }
  consumed_ += count;
  if (!std::exchange(acknowledging_, true)) acknowledge_later();
}

void Channel::acknowledge_later() {
  world_.schedule_in(world_.draw_delay_ns(), [self = shared_from_this()] {
    if (self->world_.is_cut(self->to_, self->from_)) {
      self->world_.add_stuck(self);
      return;
    }
    self->acknowledging_ = false;
    self->acknowledge(std::exchange(self->consumed_, 0));
  });
}

void Channel::acknowledge(std::size_t count) {
  charged_ -= count;
  if (writer != nullptr) writer->on_room(count);
}

}  // namespace tambour::sim::detail
