// permessage-deflate: the compression of WebSocket messages (RFC 7692, section 7), with zlib.
//
// A message is compressed on its own or with reference to earlier ones ("context takeover"). Then
// the compressor keeps the last bytes of the sent messages and the decompressor those of the
// received ones, and both must process each message of the connection in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

struct z_stream_s;  // NOLINT: the name is that of zlib.

namespace tambour::http::detail::websocket {

/// Memory: 2^(window_bits + 2) + 2^(memory_level + 9) bytes and about 6 KiB, from the first message
/// on: 38 KiB with the defaults.
struct DeflateSettings {
  int window_bits = 12;  ///< From 8 to 15: ws::DeflateAgreement.
  bool has_context_takeover = true;
  int level = 1;         ///< 0 to 9. Each higher level takes more time for a little less data.
  int memory_level = 5;  ///< 1 to 9.
};

/// Ends zlib's state.
struct DeflateDeleter {
  void operator()(z_stream_s* stream) const noexcept;
};
struct InflateDeleter {
  void operator()(z_stream_s* stream) const noexcept;
};

/// Compresses messages.
///
/// One without context takeover can serve many connections: what it returns for a broadcast can be
/// sent to every connection whose agreement allows its window. A connection with a compressor of
/// its own then calls forget_context(), since the peer's window contains the broadcast. Thread: one
/// at a time. Errors: throws std::bad_alloc, after which the compressor cannot be used any more.
class Deflater {
 public:
  explicit Deflater(const DeflateSettings& settings) noexcept : settings_(settings) {}

  /// Compresses a message, or the next part of a message, and appends the payload of its frame. The
  /// peer can decompress each part when it has arrived.
  void compress(Buffer part, bool is_last, Buffer& output);
  /// The next message refers to none before it. Not within a message.
  void forget_context() noexcept;
  /// Frees zlib's memory, for a connection that is idle; it then forgets the context. Not within a
  /// message.
  void release_memory() noexcept { stream_.reset(); }

 private:
  void open();
  void step(std::span<const std::byte>& piece, int flush, Buffer& output, bool& is_done);

  /// The last bytes of the output, which are not sent if they are the last of the message.
  static constexpr std::size_t tail_bytes = 4;

  std::unique_ptr<z_stream_s, DeflateDeleter> stream_;
  DeflateSettings settings_;
  std::array<std::byte, tail_bytes> held_{};
  std::size_t held_bytes_ = 0;
  bool is_within_message_ = false;
};

/// How much a compressed message may become: a few KiB can decode to megabytes ("zip bomb"). Both
/// errors are WebSocketError::inflated_too_large, which closes the connection with 1009.
struct InflateLimits {
  std::uint64_t message_bytes_max = std::uint64_t{1} * 1024 * 1024;
  /// Decompressed bytes for each received byte, after the first 64 KiB of a message; zero: no
  /// limit. deflate reaches 1000 with zeros, and 5 to 20 with text.
  std::uint32_t ratio_max = 200;
};

struct InflateSettings {
  int window_bits = 15;  ///< At least that of the peer's compressor.
  bool has_context_takeover = true;
};

/// Decompresses messages.
///
/// Memory: 2^window_bits and about 7 KiB, from the first message on.
/// Thread: one at a time.
class Inflater {
 public:
  explicit Inflater(const InflateSettings& settings, const InflateLimits& limits = {}) noexcept
      : settings_(settings), limits_(limits) {}

  struct Progress {
    std::size_t added = 0;  ///< Bytes that were appended to the output.
    bool is_done = false;   ///< The message has ended. The next call begins another one.
  };

  /// Decompresses bytes of `input`, which are removed, and appends at most `bytes_max` to `output`.
  /// `is_last`: the input has the last bytes of the message. Unless `bytes_max` bytes were added,
  /// more input is needed.
  /// Fails with WebSocketError::bad_deflate and inflated_too_large; the inflater cannot be used any
  /// more then. Throws std::bad_alloc with the same effect.
  [[nodiscard]] Result<Progress> decompress(Buffer& input, bool is_last, Buffer& output,
                                            std::size_t bytes_max);
  /// Frees zlib's memory if messages have no context. Not within a message.
  void release_memory() noexcept;

 private:
  void open();
  [[nodiscard]] Result<std::size_t> step(Buffer& input, bool has_tail, std::span<std::byte> memory);
  void restart_after_final_block();
  [[nodiscard]] Result<> check_limits() const;
  [[nodiscard]] Result<> end_message();

  std::unique_ptr<z_stream_s, InflateDeleter> stream_;
  InflateSettings settings_;
  InflateLimits limits_;
  std::uint64_t received_bytes_ = 0;  ///< Of the current message.
  std::uint64_t message_bytes_ = 0;   ///< Decompressed.
  std::uint32_t final_blocks_ = 0;    ///< Of the current message, after which more came.
  std::uint8_t tail_bytes_used_ = 0;  ///< Of the end that the sender has removed.
  bool has_more_ = false;             ///< zlib may hold output.
  bool is_between_blocks_ = false;    ///< The last byte was the end of a block.
  bool is_at_final_block_ = false;    ///< The last block was marked as the last of a stream.
};

}  // namespace tambour::http::detail::websocket
