// permessage-deflate of one connection. If the library was built without zlib, there is none.
#pragma once

#include <cstddef>
#include <memory>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket.h>

#include "http_message/ws/extensions.h"
#include "http_message/ws/frame.h"
#include "http_message/ws/utf8.h"

namespace tambour::http::detail::websocket {

/// The compressor of sent messages and the decompressor of received ones.
class Compression {
 public:
  Compression() = default;
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;
  virtual ~Compression() = default;

  /// True if a message of this size should be compressed.
  [[nodiscard]] virtual bool compresses(std::size_t bytes) const noexcept = 0;
  /// Appends the payload of the frame for the next part of a message. Throws std::bad_alloc, after
  /// which the connection cannot be used any more.
  virtual void compress(Buffer part, bool is_last, Buffer& output) = 0;
  /// The window of the peer for messages of this end has 2^n bytes.
  [[nodiscard]] virtual int window_bits() const noexcept = 0;
  /// The next message refers to none before it. Not within a message.
  virtual void forget_context() noexcept = 0;

  struct Progress {
    std::size_t added = 0;
    bool is_done = false;  ///< The message has ended.
  };
  /// Decompresses bytes of `input`, which are removed. Fails with WebSocketError::bad_deflate and
  /// inflated_too_large. Throws std::bad_alloc with the same effect.
  [[nodiscard]] virtual Result<Progress> decompress(Buffer& input, bool is_last, Buffer& output,
                                                    std::size_t bytes_max) = 0;

  Buffer received{};                   ///< Compressed bytes of the current message.
  bool has_input = false;              ///< decompress() may produce more.
  bool received_ends_message = false;  ///< `received` has the last bytes of the message.
  ws::Utf8Validator validator{};
};

/// A compressor whose messages refer to none before them, for messages to many connections.
class SharedCompressor {
 public:
  SharedCompressor() = default;
  SharedCompressor(const SharedCompressor&) = delete;
  SharedCompressor& operator=(const SharedCompressor&) = delete;
  virtual ~SharedCompressor() = default;

  /// Returns the payload of the frame. Throws std::bad_alloc, and can be used again.
  [[nodiscard]] virtual Buffer compress(Buffer message) = 0;
};
/// Throws std::bad_alloc. Null without zlib.
[[nodiscard]] std::unique_ptr<SharedCompressor> make_shared_compressor(
    const WebSocketCompression& options);

/// Throws std::bad_alloc. Null without zlib.
[[nodiscard]] std::unique_ptr<Compression> make_compression(const ws::DeflateAgreement& agreement,
                                                            ws::Role role,
                                                            const WebSocketOptions& options);
/// The parameters of the extension that the options ask for.
[[nodiscard]] ws::DeflateOptions deflate_options(const WebSocketCompression& options) noexcept;
/// True if the library was built with zlib.
[[nodiscard]] bool has_zlib() noexcept;

}  // namespace tambour::http::detail::websocket
