// What the sender of a connection of HTTP/2 knows of a stream, for servers and clients.
#pragma once

#include <cstdint>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/event.h>

#include "http_message/h2/priority.h"
#include "net/pace/rate_budget.h"

namespace tambour::http {

/// What a stream sends.
struct H2Outgoing {
  /// As for a new stream. There must be no unsent bytes.
  void restart(std::int64_t initial_window) noexcept {
    window = initial_window;
    batch = 0;
    priority = {};
    patience.reset();
    trailers.clear();
    is_blocked = is_waiting = ends = has_ended = false;
  }

  Buffer unsent;            ///< Bytes of the body that are not in frames yet.
  std::int64_t window = 0;  ///< May be negative: RFC 9113, section 6.9.2.
  std::uint64_t batch = 0;  ///< The write that sends what was queued last.
  detail::h2::Priority priority;
  detail::net::RateBudget patience;  ///< Spent while the window of the stream is used up.
  Fields trailers;
  bool is_blocked = false;  ///< The window is used up.
  bool is_waiting = false;  ///< A task waits until the stream has sent everything.
  bool ends = false;        ///< The stream ends after the unsent bytes.
  bool has_ended = false;   ///< The end is queued.
};

/// The part of a stream that sends. The stream of a server and that of a client derive from it. It
/// is in a list of the sender while it has bytes that may be sent.
class H2SendingStream : public detail::ListHook<H2SendingStream> {
 public:
  H2SendingStream(const H2SendingStream&) = delete;
  H2SendingStream& operator=(const H2SendingStream&) = delete;

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] H2Outgoing& outgoing() noexcept { return outgoing_; }
  [[nodiscard]] const H2Outgoing& outgoing() const noexcept { return outgoing_; }
  /// What was queued has been sent, or will never be.
  void wake_writer() noexcept { sent_.set(); }

 protected:
  H2SendingStream(EventLoop& loop, std::uint32_t id) : id_(id), sent_(loop) {}
  ~H2SendingStream() = default;

  std::uint32_t id_;
  H2Outgoing outgoing_;
  TaskEvent sent_;
};

}  // namespace tambour::http
