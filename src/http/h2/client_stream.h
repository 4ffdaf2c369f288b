// One stream of HTTP/2 on the connection of a client: a request and its response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/task/event.h>

#include "http/h2/sending_stream.h"
#include "http_message/h2/field_section.h"
#include "http_message/h2/message.h"
#include "http_message/h2/violation.h"

namespace tambour::http {

class H2ClientConnection;

/// Ownership: owned by an exchange or a tunnel, which destroys it before its connection. Its
/// destructor resets the stream if the response, or the request, is not complete.
/// Thread: that of the connection's loop.
class H2ClientStream final : public H2SendingStream {
 public:
  explicit H2ClientStream(H2ClientConnection& connection);
  ~H2ClientStream() { close(detail::h2::ErrorCode::cancel); }

  /// Opens the stream. With `ends`, the request has no body. Fails with the errors of a head, with
  /// ECONNRESET if the connection opens no streams, which is_unprocessed() reports. Throws
  /// std::bad_alloc.
  [[nodiscard]] Result<> open(const RequestHead& head, std::optional<std::uint64_t> length,
                              bool ends);
  /// Ends the stream: no effect if it has ended on both sides, or was not opened.
  void close(detail::h2::ErrorCode code) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }

  // Sending.

  /// Appends to the body. Nothing is sent after an error.
  void write(Buffer&& piece);
  /// The same for all of `from`, which is removed, if the connection can send it next and at once.
  /// Fails with EAGAIN if it cannot, with EPIPE after the end, and with send_error().
  [[nodiscard]] Result<> try_write(Buffer& from) noexcept;
  /// Ends the request. Fails with http::ErrorCode::trailer_not_allowed. Throws std::bad_alloc.
  [[nodiscard]] Result<> end(const Fields& trailers);
  /// Nothing more of the body is sent, and the stream will be reset.
  void stop_sending() noexcept;
  /// True if the end of the request has been queued.
  [[nodiscard]] bool is_sent() const noexcept { return outgoing().has_ended; }
  /// True if what was written is on its way, or will never be. Otherwise, wait for sent(). Throws
  /// std::bad_alloc.
  [[nodiscard]] bool is_flushed();
  [[nodiscard]] TaskEvent& sent() noexcept { return sent_; }

  // Receiving.

  /// Set when something has arrived, or the stream has failed.
  [[nodiscard]] TaskEvent& arrived() noexcept { return arrived_; }
  /// The heads that have arrived: interim ones, and the one of the response.
  [[nodiscard]] std::vector<ResponseHead>& heads() noexcept { return heads_; }
  [[nodiscard]] bool has_received() const noexcept { return has_received_; }
  [[nodiscard]] std::size_t buffered() const noexcept { return received_.size(); }
  /// The end of the response has arrived. There may be bytes to take.
  [[nodiscard]] bool is_response_complete() const noexcept { return is_response_complete_; }
  [[nodiscard]] Fields& trailers() noexcept { return trailers_; }
  /// All bytes of the body that have arrived, including those that were taken.
  [[nodiscard]] std::uint64_t received_bytes() const noexcept { return received_bytes_; }
  [[nodiscard]] Buffer take(std::size_t bytes_max);
  /// Of the body, as the head says.
  [[nodiscard]] std::optional<std::uint64_t> length() const noexcept { return stated_length_; }
  /// The rest of the response cannot arrive, or is not wanted. What has arrived can be taken.
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  /// Nothing more of the request is sent. Unlike error(), also after a complete response.
  [[nodiscard]] const Error& send_error() const noexcept;
  /// After an error: the server has certainly not processed the request.
  [[nodiscard]] bool is_unprocessed() const noexcept { return is_unprocessed_; }

  // For the connection.

  void opened(std::uint32_t id, std::int64_t send_window, TimePoint now) noexcept {
    id_ = id;
    opened_at_ = now;
    outgoing_.window = send_window;
  }
  [[nodiscard]] TimePoint opened_at() const noexcept { return opened_at_; }
  using Checked = std::expected<void, detail::h2::Violation>;
  [[nodiscard]] Checked on_headers(detail::h2::FieldSection& section, bool ends);
  [[nodiscard]] Checked on_data(Buffer&& data, std::uint32_t flow_bytes, bool ends);
  void fail(const Error& error, bool is_unprocessed = false) noexcept;

 private:
  [[nodiscard]] Checked end_response() noexcept;
  void grow_window();

  H2ClientConnection& connection_;
  Method method_;
  std::vector<ResponseHead> heads_;
  Fields trailers_;
  Buffer received_;
  detail::h2::BodyLength length_;
  std::optional<std::uint64_t> stated_length_;
  std::uint64_t received_bytes_ = 0;
  std::int64_t receive_window_ = 0;  ///< What the server may still send.
  TimePoint opened_at_{};
  bool is_open_ = false;  ///< In the table of the connection.
  bool has_received_ = false;
  bool has_head_ = false;
  bool is_response_complete_ = false;
  bool is_unprocessed_ = false;
  int interim_heads_ = 0;
  Error error_{};
  Error send_error_{};
  TaskEvent arrived_;
};

}  // namespace tambour::http
