// What an exchange needs of its connection, whatever the version of HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/file/file.h>
#include <tambour/http/message.h>
#include <tambour/http/response.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::http {

/// What follows the head of a response.
struct BodyPlan {
  enum class Kind : std::uint8_t {
    none,     ///< No body, and no statement about its length.
    known,    ///< `length` bytes.
    unknown,  ///< The end of the body is marked.
    tunnel,   ///< Another protocol.
  };
  Kind kind = Kind::none;
  bool is_sent = true;   ///< False in response to HEAD, whose head describes the body of GET.
  bool is_last = false;  ///< The connection must not carry a further request.
  std::uint64_t length = 0;
};

/// Carries the messages of one exchange. It decides nothing: the exchange knows which calls are
/// valid, and what follows from an error.
///
/// Ownership: owned by the connection. Thread: that of the connection's loop.
class Wire {
 public:
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // The request.

  /// Moves bytes of the body that have arrived, or waits for them; none at the end. The errors are
  /// those that Exchange::fail_body() has recorded. `bytes_max` is at least 1.
  [[nodiscard]] virtual Task<Result<Buffer>> read(std::size_t bytes_max) = 0;
  [[nodiscard]] virtual std::optional<std::uint64_t> body_length() const noexcept = 0;
  /// What is left of it, if the length is known.
  [[nodiscard]] virtual std::optional<std::uint64_t> body_bytes_left() const noexcept = 0;
  [[nodiscard]] virtual bool is_body_complete() const noexcept = 0;
  [[nodiscard]] virtual const Fields& trailers() const noexcept = 0;
  virtual void set_body_bytes_max(std::uint64_t bytes_max) noexcept = 0;
  /// Begins to watch for the end of the peer, and calls Exchange::disconnected() then.
  virtual void watch() = 0;
  virtual void stop_watching() noexcept = 0;

  /// The handler holds so many bytes more, of encoders for example, until it has ended.
  virtual void hold_memory(std::size_t /*bytes*/) noexcept {}

  // The response. What is queued is sent by flush(), or by the connection. If one of these throws
  // std::bad_alloc, a part of the message may have been queued.

  /// Queues the head. If it fails (http::ErrorCode::bad_status, bad_reason), nothing was queued.
  [[nodiscard]] virtual Result<> begin(const ResponseHead& head, const BodyPlan& plan) = 0;
  /// Queues the head and the whole body, which is moved from. Fails like begin().
  [[nodiscard]] virtual Result<> send(const ResponseHead& head, const BodyPlan& plan,
                                      Buffer&& body) {
    const Result<> begun = begin(head, plan);
    if (begun && plan.is_sent) write(std::move(body));
    return begun;
  }
  /// The same with a short body, which is copied.
  [[nodiscard]] virtual Result<> send_text(const ResponseHead& head, const BodyPlan& plan,
                                           std::string_view body) {
    return send(head, plan, Buffer(body));
  }
  /// Queues an interim response, unless the client or this wire does not support any.
  [[nodiscard]] virtual Result<> begin_interim(const ResponseHead& /*head*/) { return {}; }
  /// Queues a part of the body, which is moved from.
  virtual void write(Buffer&& piece) = 0;
  /// Sends a part of a file. Calls Exchange::count_sent() for what was sent of it.
  [[nodiscard]] virtual Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                                  std::uint64_t size) = 0;
  /// Queues the end of the message. Fails with http::ErrorCode::trailer_not_allowed.
  [[nodiscard]] virtual Result<> end(const Fields& trailers) = 0;
  /// Waits until the kernel has accepted what is queued.
  [[nodiscard]] virtual Task<Result<>> flush() = 0;

  /// Gives the stream away, after a response whose plan was a tunnel.
  [[nodiscard]] virtual ByteStream take_stream() = 0;
  /// True if the stream is the connection itself, and not one of several that it carries.
  [[nodiscard]] virtual bool is_connection() const noexcept { return false; }
  /// The connection, for what RequestConnection tells.
  [[nodiscard]] virtual const SocketStream& stream() const noexcept = 0;

 protected:
  Wire() = default;
  ~Wire() = default;
};

}  // namespace tambour::http
