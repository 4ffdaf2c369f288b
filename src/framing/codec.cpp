// The codecs of lines, of length prefixes and of fixed sizes, and the wait for a message on a
// stream.
#include <tambour/net/codec.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>

#include "base/check.h"
#include "base/failure.h"
#include "net/outcome.h"

namespace tambour {
namespace {

std::unexpected<Error> too_long() noexcept { return detail::base::failure(EMSGSIZE); }

constexpr std::size_t length_bytes_max = 8;

/// Checked in every build: a length of 9 bytes would be written out of bounds.
std::size_t length_bytes(const LengthOptions& options) noexcept {
  if (options.length_bytes < 1 || options.length_bytes > int(length_bytes_max)) [[unlikely]]
    detail::base::fail_check(
        "LengthOptions::length_bytes is %d; the length of a message has 1 to 8 bytes",
        options.length_bytes);
  return static_cast<std::size_t>(options.length_bytes);
}

std::uint64_t decode(std::span<const std::byte> bytes, std::endian order) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t next = order == std::endian::big ? i : bytes.size() - 1 - i;
    number = number << 8 | std::to_integer<std::uint64_t>(bytes[next]);
  }
  return number;
}

void encode(std::uint64_t number, std::span<std::byte> bytes, std::endian order) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[order == std::endian::big ? bytes.size() - 1 - i : i] = std::byte(number);
    number >>= 8;
  }
}

/// Returns whether the length prefix can represent `size`, and whether the message fits into `to`.
bool is_allowed(const Buffer& to, std::size_t size, const LengthOptions& options) noexcept {
  const std::size_t bytes = length_bytes(options);
  const std::uint64_t size_max =
      bytes == length_bytes_max ? UINT64_MAX : (std::uint64_t{1} << (8 * bytes)) - 1;
  if (size > options.bytes_max || size > size_max || size > Buffer::max_size() - bytes)
    return false;
  return to.size() <= Buffer::max_size() - bytes - size;
}

/// Takes one message of the given framing from the front of `from`.
Result<std::optional<Buffer>> take(Buffer& from, const MessageWait::Framing& framing) {
  if (const auto* lines = std::get_if<LineOptions>(&framing)) return take_line(from, *lines);
  if (const auto* lengths = std::get_if<LengthOptions>(&framing))
    return take_message(from, *lengths);
  return take_exactly(from, std::get<SizeOptions>(framing).bytes);
}

}  // namespace

Result<std::optional<Buffer>> take_line(Buffer& from, const LineOptions& options) {
  const std::size_t size = from.size();
  const std::size_t limit = std::min(options.bytes_max, Buffer::max_size() - 2);
  const auto end = from.search('\n');
  if (!end) {
    // A carriage return at the end may be the first half of CRLF.
    const bool ends_half = size == limit + 1 && from[size - 1] == std::byte('\r');
    if (size > limit && !ends_half) return too_long();
    return std::nullopt;
  }
  const bool has_return = *end > 0 && from[*end - 1] == std::byte('\r');
  const std::size_t length = *end - (has_return ? 1 : 0);
  if (length > limit) return too_long();
  Buffer line = from.take(length);
  from.consume(has_return ? 2 : 1);
  return line;
}

Result<std::optional<Buffer>> take_message(Buffer& from, const LengthOptions& options) {
  std::array<std::byte, length_bytes_max> place;
  const auto bytes = std::span(place).first(length_bytes(options));
  if (from.copy_to(bytes) < bytes.size()) return std::nullopt;
  const std::uint64_t length = decode(bytes, options.byte_order);
  if (length > options.bytes_max || length > Buffer::max_size() - bytes.size()) return too_long();
  const auto size = static_cast<std::size_t>(length);
  if (from.size() - bytes.size() < size) return std::nullopt;
  Buffer message = from.slice(bytes.size(), size);
  from.consume(bytes.size() + size);
  return message;
}

std::optional<Buffer> take_exactly(Buffer& from, std::size_t bytes) {
  if (from.size() < bytes) return std::nullopt;
  return from.take(bytes);
}

Result<> append_line(Buffer& to, std::string_view line, std::string_view end) {
  if (line.find_first_of("\r\n") != std::string_view::npos) return detail::base::failure(EINVAL);
  if (end.size() > Buffer::max_size() - line.size()) return too_long();
  // In one commit, so that either the whole line is appended or nothing.
  const auto room = to.prepare(line.size() + end.size());
  const auto behind = std::ranges::copy(std::as_bytes(std::span(line)), room.begin()).out;
  std::ranges::copy(std::as_bytes(std::span(end)), behind);
  to.commit(line.size() + end.size());
  return {};
}

Result<> append_message(Buffer& to, std::span<const std::byte> message,
                        const LengthOptions& options) {
  if (!is_allowed(to, message.size(), options)) return too_long();
  const std::size_t bytes = length_bytes(options);
  const auto room = to.prepare(bytes + message.size());
  encode(message.size(), room.first(bytes), options.byte_order);
  std::ranges::copy(message, room.begin() + std::ptrdiff_t(bytes));
  to.commit(bytes + message.size());
  return {};
}

Result<> append_message(Buffer& to, std::string_view message, const LengthOptions& options) {
  return append_message(to, std::as_bytes(std::span(message)), options);
}

Result<> append_message(Buffer& to, Buffer&& message, const LengthOptions& options) {
  if (!is_allowed(to, message.size(), options)) return too_long();
  std::array<std::byte, length_bytes_max> place;
  const auto bytes = std::span(place).first(length_bytes(options));
  encode(message.size(), bytes, options.byte_order);
  to.append(bytes);
  to.append(std::move(message));
  return {};
}

MessageWait::Awaiter::Awaiter(Stream& stream, Buffer& buffer, const Framing& framing) noexcept
    : ReadBuffer(stream, buffer, SIZE_MAX), framing_(framing) {}

bool MessageWait::Awaiter::find_message() noexcept {
  try {
    auto message = take(into_, framing_);
    if (!message) {
      found_.emplace(std::unexpected(message.error()));
    } else if (*message) {
      found_.emplace(std::move(**message));
    }
  } catch (const std::exception&) {
    found_.emplace(detail::base::failure(ENOMEM));
  }
  return found_.has_value();
}

bool MessageWait::Awaiter::step(detail::loop::Core& core) noexcept {
  if (!ReadBuffer::step(core)) return false;
  if (outcome < 0) return true;
  // If the message is still incomplete, more bytes have to arrive first.
  if (outcome > 0) return find_message();
  found_.emplace(std::unexpected(into_.empty() ? StreamError::eof : StreamError::truncated));
  return true;
}

Result<Buffer> MessageWait::Awaiter::await_resume() noexcept {
  if (found_) return std::move(*found_);
  return std::unexpected(detail::net::error_of(outcome));
}

}  // namespace tambour
