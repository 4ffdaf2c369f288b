// The compression of a connection, by Deflater and Inflater.
#include "http/websocket/compression.h"

#include <utility>

#include "http/websocket/deflate.h"

namespace tambour::http::detail::websocket {

ws::DeflateOptions deflate_options(const WebSocketCompression& options) noexcept {
  return {.window_bits = options.window_bits,
          .peer_window_bits = options.peer_window_bits,
          .has_context_takeover = options.has_context_takeover,
          .has_peer_context_takeover = options.has_peer_context_takeover};
}

#ifndef TAMBOUR_NO_ZLIB
namespace {

class Deflate final : public Compression {
 public:
  Deflate(const WebSocketCompression& options, const DeflateSettings& sent,
          const InflateSettings& received_settings, const InflateLimits& limits)
      : message_bytes_min_(options.message_bytes_min),
        window_bits_(sent.window_bits),
        deflater_(sent),
        inflater_(received_settings, limits) {}

  bool compresses(std::size_t bytes) const noexcept override { return bytes >= message_bytes_min_; }
  void compress(Buffer part, bool is_last, Buffer& output) override {
    deflater_.compress(std::move(part), is_last, output);
  }
  int window_bits() const noexcept override { return window_bits_; }
  void forget_context() noexcept override { deflater_.forget_context(); }
  Result<Progress> decompress(Buffer& input, bool is_last, Buffer& output,
                              std::size_t bytes_max) override {
    const auto progress = inflater_.decompress(input, is_last, output, bytes_max);
    if (!progress) return std::unexpected(progress.error());
    if (progress->is_done) inflater_.release_memory();
    return Progress{.added = progress->added, .is_done = progress->is_done};
  }

 private:
  std::size_t message_bytes_min_;
  int window_bits_;
  Deflater deflater_;
  Inflater inflater_;
};

class SharedDeflate final : public SharedCompressor {
 public:
  explicit SharedDeflate(const WebSocketCompression& options) noexcept
      : settings_{.window_bits = options.window_bits,
                  .has_context_takeover = false,
                  .level = options.level,
                  .memory_level = options.memory_level},
        deflater_(settings_) {}

  Buffer compress(Buffer message) override {
    Buffer output;
    try {
      deflater_.compress(std::move(message), true, output);
    } catch (...) {
      deflater_ = Deflater(settings_);
      throw;
    }
    return output;
  }

 private:
  DeflateSettings settings_;
  Deflater deflater_;
};

}  // namespace

std::unique_ptr<SharedCompressor> make_shared_compressor(const WebSocketCompression& options) {
  return std::make_unique<SharedDeflate>(options);
}

bool has_zlib() noexcept { return true; }

std::unique_ptr<Compression> make_compression(const ws::DeflateAgreement& agreement, ws::Role role,
                                              const WebSocketOptions& options) {
  const bool is_server = role == ws::Role::server;
  const WebSocketCompression chosen = options.compression.value_or(WebSocketCompression());
  const DeflateSettings sent{
      .window_bits = is_server ? agreement.server_window_bits : agreement.client_window_bits,
      .has_context_takeover =
          is_server ? agreement.has_server_context_takeover : agreement.has_client_context_takeover,
      .level = chosen.level,
      .memory_level = chosen.memory_level};
  const InflateSettings received{
      .window_bits = is_server ? agreement.client_window_bits : agreement.server_window_bits,
      .has_context_takeover = is_server ? agreement.has_client_context_takeover
                                        : agreement.has_server_context_takeover};
  const InflateLimits limits{.message_bytes_max = options.message_bytes_max,
                             .ratio_max = chosen.ratio_max};
  return std::make_unique<Deflate>(chosen, sent, received, limits);
}
#else
std::unique_ptr<SharedCompressor> make_shared_compressor(const WebSocketCompression& /*options*/) {
  return nullptr;
}

bool has_zlib() noexcept { return false; }

std::unique_ptr<Compression> make_compression(const ws::DeflateAgreement& /*agreement*/,
                                              ws::Role /*role*/,
                                              const WebSocketOptions& /*options*/) {
  return nullptr;
}
#endif

}  // namespace tambour::http::detail::websocket
