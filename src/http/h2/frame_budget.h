// Which frames of a peer cost something, for servers and clients.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "http/h2/token_budget.h"
#include "http_message/h2/frame_writer.h"

namespace tambour::http {

/// The budget of one connection for frames that advance no message: see
/// Http2Options::idle_frames_max. Answers to the PINGs of this end cost nothing, because it has
/// asked for them.
class H2FrameBudget {
 public:
  explicit H2FrameBudget(std::uint32_t idle_frames_max) noexcept : tokens_(idle_frames_max) {}

  /// The head of a message has been received.
  void message_received() noexcept { tokens_.earn(frames_of_message); }
  /// DATA that is not empty has been received.
  void data_received() noexcept { tokens_.earn(frames_of_data); }
  /// A frame that advances no message has been received, and `data_frames` have been sent since the
  /// last call. Returns false if the budget is used up.
  [[nodiscard]] bool spend(TimePoint now, std::uint32_t data_frames) noexcept {
    tokens_.earn_by_time(now);
    tokens_.earn(frames_of_data * std::int64_t{data_frames});
    tokens_.spend();
    return !tokens_.is_used_up();
  }

  /// Queues a PING. Throws std::bad_alloc.
  void ping(Buffer& queue, std::string_view data) {
    detail::h2::append_ping(queue, data, false);
    ++unanswered_pings_;
  }
  /// A PING or its answer has been received. Returns true if it is an answer that was asked for;
  /// the others cost a token.
  [[nodiscard]] bool take_answer(bool is_ack) noexcept {
    if (!is_ack || unanswered_pings_ == 0) return false;
    --unanswered_pings_;
    return true;
  }

 private:
  static constexpr std::int64_t frames_of_message = 10;
  static constexpr std::int64_t frames_of_data = 2;

  TokenBudget tokens_;
  std::uint32_t unanswered_pings_ = 0;
};

}  // namespace tambour::http
