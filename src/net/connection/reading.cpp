// Reading of a connection: on_message, EOF, pausing.
#include <cerrno>
#include <utility>

#include "io/transport.h"
#include "net/connection/parts.h"
#include "net/outcome.h"

namespace tambour::detail::net {

void ConnectionCore::read_some() {
  // TLS may answer to what it reads, for example with a new key, when the socket has no space.
  const std::size_t unsent_before = unsent_bytes();
  const std::int32_t answer = transport().read(input_, read_size_);
  if (unsent_before == 0 && unsent_bytes() > 0) start_write_timeout();
  if (ended_) return;
  if (answer == -EAGAIN) return read_again_if_possible();
  // The write end of a pipe reports an event to read when its reader has closed it.
  if (answer == -EBADF && io::is_file(kind_)) return end(EPIPE);
  // After close_after_write() input is discarded, so none can be missing.
  if (answer < 0 && write_shut_down_ && transport().is_truncation(answer)) return receive_end();
  if (answer < 0) return end(-answer);
  if (answer == 0) return receive_end();
  if (Deadlines* const times = deadlines()) times->received_ns = loop::core_of(*loop_).now_ns();
  if (!callbacks_->on_message || paused_) {
    input_.clear();
  } else {
    offer(static_cast<std::size_t>(answer));
  }
  read_again_if_possible();
}

/// A filter may have more to return although the socket is not readable: an end of TLS arrives with
/// the last bytes, but the peer may keep the socket open.
void ConnectionCore::read_again_if_possible() noexcept {
  if (filter() == nullptr) [[likely]]
    return;
  // Reading may have made the filter answer, for example to new keys.
  if (!ended_ && !moving_ && filter()->unsent() > 0) watch();
  if (!ended_ && !moving_ && reads() && may_read_now()) loop::core_of(*loop_).queue(*this);
}

/// Invokes on_message with the buffer, to which `received` bytes were just added.
void ConnectionCore::offer(std::size_t received) {
  const struct Offering {
    ConnectionCore& self;
    explicit Offering(ConnectionCore& connection) noexcept : self(connection) {
      self.offering_ = true;
    }
    ~Offering() { self.offering_ = false; }
  } offering{*this};
  offers_input_ = false;
  const std::size_t before = input_.size();
  callbacks_->on_message(*this, input_);
  const bool is_as_ever = input_.empty() && extras_ == nullptr;
  if (!is_as_ever && !ended_) check_rest(received, input_.size() != before);
}

void ConnectionCore::receive_end() {
  peer_half_closed_ = true;
  if (callbacks_->on_end && !close_requested_) {
    watch();
    callbacks_->on_end(*this);
    if (half_closed_) finish_output();
    return;
  }
  close_after_write();
  if (!ended_) watch();
}

/// Checks the bytes that on_message left in the buffer against the limits.
void ConnectionCore::check_rest(std::size_t received, bool consumed) noexcept {
  const ConnectionLimits& limits = callbacks_->limits;
  // If the callback paused reading, the buffer does not grow.
  if (input_.size() > limits.unread_bytes_max && !paused_) return end_at_limit(EMSGSIZE);
  if (limits.message_timeout > Duration::zero()) note_message(received, consumed);
}

void ConnectionCore::pause_reading() noexcept {
  check_thread("pause_reading");
  paused_ = true;
  if (!ended_) watch();
}

void ConnectionCore::resume_reading() noexcept {
  check_thread("resume_reading");
  if (!paused_ && !throttled_) return;
  // The answer to a pause does not override the high-water mark.
  const bool overrides = !paused_ && throttled_;
  paused_ = false;
  if (overrides || !throttled_) continue_reading();
}

/// The time during which reading was paused does not count towards the limits.
void ConnectionCore::continue_reading() noexcept {
  throttled_ = false;
  if (ended_) return;
  if (Deadlines* const times = deadlines()) {
    const std::int64_t now_ns = loop::core_of(*loop_).clock_ns();
    times->received_ns = now_ns;
    if (times->message.is_started()) times->message.start(now_ns);
    arm_deadlines();
  }
  // Bytes that on_message left before the pause. In on_message the callback has just seen them.
  if (reads() && !input_.empty() && callbacks_->on_message && !offering_) {
    offers_input_ = true;
    loop::core_of(*loop_).queue(*this);
  }
  watch();
  read_again_if_possible();
}

}  // namespace tambour::detail::net
