// Messages in a stream of bytes: lines, messages behind their length, messages of one size.
//
// Each kind is a function that takes the next message off the front of a buffer, and says whether
// there is none yet; it is called after bytes have come, until it has nothing more to give. Around
// these are waits of a task, which read until there is a message. How a peer cuts its bytes makes
// no difference to the messages, nor, much, to the work: what was looked at is not looked at again.
// The trap: without a limit, a peer that never ends its message has all our memory; so each kind
// has one.
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

#include <tambour/buffer.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/stream_error.h>
#include <tambour/task.h>

namespace tambour {

/// Lines end with "\n" or "\r\n", which is no part of them.
struct LineOptions {
  std::size_t bytes_max = std::size_t{64} * 1024;  ///< Of one line, without its end.
};

/// Messages that stand behind their length, a number of so many bytes that does not count itself.
struct LengthOptions {
  int length_bytes = 4;                                   ///< From 1 to 8.
  std::endian byte_order = std::endian::big;              ///< Of the length.
  std::size_t bytes_max = std::size_t{16} * 1024 * 1024;  ///< Of one message, without its length.
};

/// Messages of one size.
struct SizeOptions {
  std::size_t bytes = 0;
};

/// Each takes the first message off `from`; see Buffer::take() for when its bytes are copied.
/// Nothing: the message is incomplete. EMSGSIZE: the message is, or will be, longer than the limit;
/// reported as soon as that is known, with `from` unchanged, so that a later call reports it again.
/// Throw std::bad_alloc.
///
///   .on_message = [](Connection& connection, Buffer& buffer) {
///     Result<std::optional<Buffer>> line;
///     while ((line = take_line(buffer)) && *line) serve(connection, **line);
///     if (!line) connection.close();
///   }
Result<std::optional<Buffer>> take_line(Buffer& from, const LineOptions& options = {});
Result<std::optional<Buffer>> take_message(Buffer& from, const LengthOptions& options = {});
std::optional<Buffer> take_exactly(Buffer& from, std::size_t bytes);

/// Appends `line` and "\n" (or another end). EINVAL where `line` has a line feed or a carriage
/// return in it, which somebody would take for two lines. Throws std::bad_alloc.
Result<> append_line(Buffer& to, std::string_view line, std::string_view end = "\n");

/// Appends `message` behind its length. EMSGSIZE where it is longer than the limit, or than its
/// length can say. Then nothing has changed. Throws std::bad_alloc.
Result<> append_message(Buffer& to, std::span<const std::byte> message,
                        const LengthOptions& options = {});
Result<> append_message(Buffer& to, std::string_view message, const LengthOptions& options = {});
/// The same without copying; `message` is empty then.
Result<> append_message(Buffer& to, Buffer&& message, const LengthOptions& options = {});

/// A message that a task waits for, reading into a buffer until it is there. What has come behind
/// it stays in the buffer, which therefore goes with the stream from one message to the next.
///
/// The stream's errors; EMSGSIZE; StreamError::end where it ends before the first byte of a
/// message, StreamError::truncated where it ends within one; ENOMEM. Where it ends early, with
/// ECANCELED, nothing is lost: the next wait goes on with what is there. Allocates nothing but the
/// buffer's own memory, and waits for nothing where the message is in the buffer.
class [[nodiscard("nothing is read until this is awaited")]] MessageWait {
 public:
  using Framing = std::variant<LineOptions, LengthOptions, SizeOptions>;

  MessageWait(Stream& stream, Buffer& buffer, const Framing& framing) noexcept
      : stream_(&stream), buffer_(&buffer), framing_(framing) {}

  class Awaiter final : public Stream::ReadBuffer {
   public:
    Awaiter(Stream& stream, Buffer& buffer, const Framing& framing) noexcept;
    [[nodiscard]] bool await_ready() noexcept { return look(); }
    [[nodiscard]] Result<Buffer> await_resume() noexcept;

   private:
    [[nodiscard]] bool go_on() noexcept override;
    /// Whether the wait is over: with a message, or with an error.
    [[nodiscard]] bool look() noexcept;

    Framing framing_;
    std::optional<Result<Buffer>> found_;
  };

  Awaiter operator co_await() && noexcept { return {*stream_, *buffer_, framing_}; }

 private:
  Stream* stream_;
  Buffer* buffer_;
  Framing framing_;
};

/// What a peer sends, line by line:
///
///   Buffer buffer;
///   while (auto line = co_await read_line(stream, buffer)) use(line->text());
///
/// With a time limit: `co_await timeout(5s, read_line(stream, buffer))`.
inline MessageWait read_line(Stream& stream, Buffer& buffer,
                             const LineOptions& options = {}) noexcept {
  return {stream, buffer, options};
}

/// The next message behind its length.
inline MessageWait read_message(Stream& stream, Buffer& buffer,
                                const LengthOptions& options = {}) noexcept {
  return {stream, buffer, options};
}

/// The next so many bytes, no more.
inline MessageWait read_exactly(Stream& stream, Buffer& buffer, std::size_t bytes) noexcept {
  return {stream, buffer, SizeOptions{.bytes = bytes}};
}

}  // namespace tambour
