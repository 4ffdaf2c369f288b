// What a connection of HTTP/2 sends: frames in their order, and bodies by priority and window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/timer.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>

#include "http/connection/output.h"
#include "http/h2/memory.h"
#include "http/h2/sending_stream.h"
#include "http/h2/stream_write.h"
#include "http_message/h2/frame.h"
#include "http_message/h2/hpack_encoder.h"
#include "http_message/h2/priority.h"
#include "net/pace/rate_budget.h"

namespace tambour::http {

/// Frames without a body are sent in the order in which they are queued. DATA follows when the
/// windows allow it, the most urgent stream first (RFC 9218): streams with the same urgency take
/// turns if they are incremental, and otherwise follow each other.
///
/// Ownership: owned by the connection. Thread: that of the loop.
class H2Sender {
 public:
  struct Limits {
    Duration write_timeout{};
    std::size_t rate_min = 0;
    std::size_t unsent_bytes_max = 0;
    std::uint32_t socket_unsent_bytes_max = 0;  ///< 0: as many as the kernel accepts.
  };

  /// `sent` is invoked when the end of a stream has been queued, and may destroy the stream.
  H2Sender(SocketStream& stream, const Limits& limits, H2Memory& memory,
           Callback<void(H2SendingStream&)> sent, Callback<void()> failed = {});
  H2Sender(const H2Sender&) = delete;
  H2Sender& operator=(const H2Sender&) = delete;
  ~H2Sender() = default;

  [[nodiscard]] detail::h2::HpackEncoder& encoder() noexcept { return encoder_; }
  /// Frames are appended to it; wake() sends them.
  [[nodiscard]] Buffer& queue() noexcept { return output_.queue(); }
  [[nodiscard]] const Error& error() const noexcept { return output_.error(); }
  [[nodiscard]] std::uint32_t frame_size_max() const noexcept { return frame_size_max_; }
  [[nodiscard]] std::int64_t initial_window() const noexcept { return initial_window_; }

  /// Sends what is queued in the next iteration of the loop.
  void wake() noexcept;
  /// The caller will call start_writing() in this iteration: until then, wake() has no effect.
  void hold() noexcept { is_held_ = true; }
  /// Sends what is queued as far as the kernel accepts it, and the rest later.
  void start_writing() noexcept;
  /// Waits until the kernel has accepted what is queued, DATA without a window excluded.
  [[nodiscard]] Task<Result<>> flush_frames();

  /// A head, or another frame of the stream, has been queued.
  void queued(H2SendingStream& stream) noexcept { stream.outgoing().batch = started_ + 1; }
  /// Bytes of a body, in H2Outgoing::unsent, have been added. update() follows.
  void add_unsent(H2SendingStream& stream, std::size_t bytes) noexcept;
  /// True while Http2Options::unsent_bytes_max is exceeded by several streams. A single download
  /// delays no other request.
  [[nodiscard]] bool is_full() const noexcept {
    return unsent_streams_ > 1 && unsent_bytes_ > limits_.unsent_bytes_max;
  }
  /// Waits until is_full() may have become false.
  [[nodiscard]] Task<Result<>> wait_for_capacity();
  /// Queues the whole body of a response at once, if it is short, nothing else is waiting to be
  /// sent, and the windows allow it. Returns false if the caller must add it to the unsent bytes.
  /// Throws std::bad_alloc.
  [[nodiscard]] bool send_short_body(H2SendingStream& stream, const Buffer& body);
  [[nodiscard]] bool send_short_body(H2SendingStream& stream, std::string_view body);
  /// Queues all of `bytes` as DATA under the same conditions, and removes them. Returns false if
  /// the caller must add them to the unsent bytes. If memory is exhausted, the connection fails.
  [[nodiscard]] bool send_at_once(H2SendingStream& stream, Buffer& bytes) noexcept;
  /// The stream has more to send, or its window has changed.
  void update(H2SendingStream& stream) noexcept;
  void set_priority(H2SendingStream& stream, detail::h2::Priority priority) noexcept;
  /// Nothing of the stream is sent any more.
  void drop(H2SendingStream& stream) noexcept;
  /// Queues the end of a stream that has no unsent bytes. Throws std::bad_alloc.
  void end(H2SendingStream& stream);
  [[nodiscard]] bool is_sent(const H2SendingStream& stream) const noexcept {
    return stream.outgoing().unsent.empty() && stream.outgoing().batch <= completed_;
  }
  /// A task waits until is_sent(): H2SendingStream::wake_writer() is called then, or after an
  /// error.
  void add_waiting(H2SendingStream& stream);
  /// The stream is about to be destroyed.
  void remove(H2SendingStream& stream) noexcept;

  /// The peer has enlarged the window of the connection. Returns false if it is too large.
  [[nodiscard]] bool add_window(std::uint32_t bytes) noexcept;
  /// The same for a stream.
  [[nodiscard]] bool add_window(H2SendingStream& stream, std::int64_t bytes) noexcept;
  /// Settings that concern what this end sends; others have no effect. `streams` is the map of all
  /// streams. Returns false if a window becomes too large.
  template <class Streams>
  [[nodiscard]] bool apply(detail::h2::Setting setting, const Streams& streams) {
    switch (setting.id) {
      case detail::h2::SettingId::header_table_size:
        encoder_.set_peer_table_size_max(setting.value);
        return true;
      case detail::h2::SettingId::max_frame_size:
        frame_size_max_ = setting.value;
        return true;
      case detail::h2::SettingId::initial_window_size: {
        const std::int64_t change = setting.value - std::exchange(initial_window_, setting.value);
        for (const auto& entry : streams) {
          if (!add_window(*entry.second, change)) return false;
        }
        return true;
      }
      default:
        return true;
    }
  }

  /// True if the peer has held up the stream for too long.
  [[nodiscard]] bool is_stalled(H2SendingStream& stream) const noexcept;
  /// The same for the window of the connection.
  [[nodiscard]] bool is_stalled() const noexcept;
  /// True while the peer has not received what was written last.
  [[nodiscard]] bool is_writing() const noexcept { return is_writing_; }
  /// When the last write was completed.
  [[nodiscard]] TimePoint written_at() const noexcept { return written_at_; }
  /// The number of DATA frames that were sent since the last call.
  [[nodiscard]] std::uint32_t take_data_frames() noexcept { return std::exchange(data_frames_, 0); }

 private:
  class Write final : public StreamWrite {
   public:
    Write(H2Sender& sender, Stream& stream) noexcept
        : StreamWrite(stream, sender.output_.sending()), sender_(sender) {}

   private:
    void ended() noexcept override {
      H2Sender& sender = sender_;
      sender.end_write();  // Destroys this object.
      sender.write();
    }

    H2Sender& sender_;
  };

  template <class Body>
  [[nodiscard]] bool send_short(H2SendingStream& stream, const Body& body);
  void write() noexcept;
  void end_write() noexcept;
  void fill();
  [[nodiscard]] std::size_t data_bytes_max() noexcept;
  void keep_unsent_low() noexcept;
  /// Queues a DATA frame. The stream has unsent bytes, and windows that allow one.
  void send_data(H2SendingStream& stream, std::size_t bytes_max);
  /// True if DATA of the stream may be queued before all that waits.
  [[nodiscard]] bool can_send(const H2SendingStream& stream, std::size_t bytes) noexcept;
  /// A DATA frame of the stream was queued.
  void note_data(H2SendingStream& stream, std::size_t bytes) noexcept;
  /// They have been removed from H2Outgoing::unsent.
  void remove_unsent(H2SendingStream& stream, std::size_t bytes) noexcept;
  [[nodiscard]] H2SendingStream* next() noexcept;
  void wake_waiting() noexcept;
  /// `was_blocked` is changed to `is_blocked`.
  void set_blocked(detail::net::RateBudget& patience, bool& was_blocked, bool is_blocked) noexcept;
  void earn(detail::net::RateBudget& patience, std::size_t bytes) noexcept;
  [[nodiscard]] std::int64_t now_ns() const noexcept;

  EventLoop& loop_;
  SocketStream& stream_;
  Limits limits_;
  H2Memory& memory_;
  Callback<void(H2SendingStream&)> sent_;
  Callback<void()> failed_;
  Output output_;
  detail::h2::HpackEncoder encoder_;
  using SendOrder = detail::IntrusiveList<H2SendingStream>;
  std::array<SendOrder, detail::h2::Priority::urgency_max + 1> ready_;
  std::vector<H2SendingStream*> waiting_;
  std::size_t unsent_bytes_ = 0;    ///< Of all streams.
  std::size_t unsent_streams_ = 0;  ///< Those that have unsent bytes.
  std::int64_t window_ = 65'535;
  std::int64_t initial_window_ = 65'535;
  std::uint32_t frame_size_max_ = detail::h2::frame_size_max_min;
  std::uint32_t data_frames_ = 0;
  std::uint64_t started_ = 0;  ///< Writes.
  std::uint64_t completed_ = 0;
  TimePoint written_at_{};
  detail::net::RateBudget patience_;  ///< Spent while the window of the connection is used up.
  bool is_blocked_ = false;
  bool is_writing_ = false;
  bool is_held_ = false;
  bool is_unsent_low_ = false;  ///< The kernel accepts few bytes that it cannot send.
  TaskEvent written_;
  TaskEvent has_capacity_;
  Timer soon_;
  std::optional<Write> write_;  ///< In progress. Last, because it uses the others.
};

}  // namespace tambour::http
