// Message framing on byte streams: lines, length-prefixed messages and fixed-size messages.
//
// Each framing has a function that removes the next message from the front of a buffer, or reports
// that it is incomplete; call it after data has arrived until it returns no message. The awaitable
// functions read from a stream until a message is complete. Framing does not depend on how the peer
// splits its writes, and received bytes are not scanned twice. Every framing has a size limit,
// because otherwise a peer could make the program buffer an endless message.
#pragma once

#include <bit>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/net/stream.h>
#include <tambour/net/stream_error.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Lines end with "\n" or "\r\n", which is not part of the line.
struct LineOptions {
  std::size_t bytes_max = std::size_t{64} * 1024;  ///< The maximum size of a line, without its end.
};

/// Length-prefixed messages. The length does not include the prefix.
struct LengthOptions {
  int length_bytes = 4;                       ///< The size of the prefix, 1 to 8 bytes.
  std::endian byte_order = std::endian::big;  ///< The byte order of the prefix.
  /// The maximum size of a message, without its prefix.
  std::size_t bytes_max = std::size_t{16} * 1024 * 1024;
};

/// Messages of a fixed size.
struct SizeOptions {
  std::size_t bytes = 0;
};

/// Removes the first line from `from` and returns it; see Buffer::take() for when its bytes are
/// copied. Returns nullopt if the line is incomplete. Fails with EMSGSIZE if the line exceeds, or
/// will exceed, the limit: as soon as that is known, and with `from` unchanged, so that a later
/// call fails again. Throws std::bad_alloc.
///
///   .on_message = [](Connection& connection, Buffer& buffer) {
///     Result<std::optional<Buffer>> line;
///     while ((line = take_line(buffer)) && *line) serve(connection, **line);
///     if (!line) connection.close();
///   }
[[nodiscard]] Result<std::optional<Buffer>> take_line(Buffer& from,
                                                      const LineOptions& options = {});
/// Removes the first length-prefixed message from `from` and returns it, like take_line().
[[nodiscard]] Result<std::optional<Buffer>> take_message(Buffer& from,
                                                         const LengthOptions& options = {});
/// Removes `bytes` bytes from `from` and returns them, or nullopt if it has fewer. Throws
/// std::bad_alloc.
[[nodiscard]] std::optional<Buffer> take_exactly(Buffer& from, std::size_t bytes);

/// Appends `line` and `end`. Fails with EINVAL if `line` contains a line feed or a carriage return,
/// which a receiver would read as two lines. Throws std::bad_alloc.
[[nodiscard]] Result<> append_line(Buffer& to, std::string_view line, std::string_view end = "\n");

/// Appends `message` with its length prefix. Fails with EMSGSIZE if `message` exceeds the limit or
/// the range of the prefix; `to` is then unchanged. Throws std::bad_alloc.
[[nodiscard]] Result<> append_message(Buffer& to, std::span<const std::byte> message,
                                      const LengthOptions& options = {});
[[nodiscard]] Result<> append_message(Buffer& to, std::string_view message,
                                      const LengthOptions& options = {});
/// Appends `message` with its length prefix, without copying it; `message` is then empty. Fails
/// like append_message(to, span).
[[nodiscard]] Result<> append_message(Buffer& to, Buffer&& message,
                                      const LengthOptions& options = {});

/// A task's wait for a message, which reads into a buffer until the message is complete. Bytes
/// received after the message stay in the buffer: use the same buffer for all messages of a stream.
///
/// Fails with the stream's errors, with EMSGSIZE, with StreamError::eof if the stream ends before
/// the first byte of a message, with StreamError::truncated if it ends within one, and with ENOMEM.
/// If it fails with ECANCELED, no data is lost: the next wait continues with the bytes in the
/// buffer. Allocates only the buffer's memory. If the buffer already contains the message, it
/// returns without waiting.
class [[nodiscard("nothing is read until this is awaited")]] MessageWait {
 public:
  /// What ends a message: see the options.
  using Framing = std::variant<LineOptions, LengthOptions, SizeOptions>;
  static constexpr bool is_cancel_safe = true;

  /// What read_line(), read_message() and read_exactly() return.
  MessageWait(Stream& stream, Buffer& buffer, const Framing& framing) noexcept
      : stream_(&stream), buffer_(&buffer), framing_(framing) {}

  class Awaiter final : public Stream::ReadBuffer {
   public:
    Awaiter(Stream& stream, Buffer& buffer, const Framing& framing) noexcept;
    [[nodiscard]] bool await_ready() noexcept { return find_message(); }
    [[nodiscard]] Result<Buffer> await_resume() noexcept;

   private:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;
    /// Returns true if the wait is complete, with a message or an error.
    [[nodiscard]] bool find_message() noexcept;

    Framing framing_;
    std::optional<Result<Buffer>> found_;
  };

  Awaiter operator co_await() && noexcept { return {*stream_, *buffer_, framing_}; }

 private:
  Stream* stream_;
  Buffer* buffer_;
  Framing framing_;
};

/// Reads line by line:
///
///   Buffer buffer;
///   while (auto line = co_await read_line(stream, buffer)) use(line->coalesce());
///
/// With a time limit: `co_await timeout(5s, read_line(stream, buffer))`.
inline MessageWait read_line(Stream& stream, Buffer& buffer,
                             const LineOptions& options = {}) noexcept {
  return {stream, buffer, options};
}

/// Reads the next length-prefixed message.
inline MessageWait read_message(Stream& stream, Buffer& buffer,
                                const LengthOptions& options = {}) noexcept {
  return {stream, buffer, options};
}

/// Reads exactly `bytes` bytes.
inline MessageWait read_exactly(Stream& stream, Buffer& buffer, std::size_t bytes) noexcept {
  return {stream, buffer, SizeOptions{.bytes = bytes}};
}

}  // namespace tambour

#pragma GCC visibility pop
