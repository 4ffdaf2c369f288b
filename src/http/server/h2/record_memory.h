// What a busy connection over TLS keeps for its next records.
#pragma once

#include <cstddef>

#include <tambour/detail/namespaces.h>
#include <tambour/net/stream.h>

#include "io/kept_memory.h"
#include "net/stream_filter.h"

namespace tambour::http {

/// OpenSSL's memory for records, 34 KiB. A connection that does not keep it allocates and frees it
/// for each read and each write, which takes 2,000 instructions.
///
/// Thread: that of the connection's loop.
class RecordMemory {
 public:
  /// The connections of a thread that keep it, 2.2 MiB in all.
  static constexpr std::size_t connections_max = 64;

  RecordMemory() = default;
  RecordMemory(const RecordMemory&) = delete;
  RecordMemory& operator=(const RecordMemory&) = delete;
  ~RecordMemory() {
    if (is_kept_) --connections;
  }

  /// No effect if there are too many connections, or if the stream does not use TLS.
  void keep(Stream& stream) noexcept {
    if (is_kept_ || connections >= connections_max || !set(stream, true)) return;
    is_kept_ = true;
    ++connections;
  }
  void release(Stream& stream) noexcept {
    if (!is_kept_) return;
    is_kept_ = false;
    --connections;
    static_cast<void>(set(stream, false));
  }

 private:
  /// Returns false if the stream does not use TLS, or is closed.
  [[nodiscard]] static bool set(Stream& stream, bool is_kept) noexcept {
    if (stream.tls() == nullptr) return false;
    using detail::io::KeptMemory;
    KeptMemory* const memory = KeptMemory::of(detail::net::StreamFilter::of(stream));
    if (memory != nullptr) memory->keep_memory(is_kept);
    return memory != nullptr;
  }

  static inline constinit thread_local std::size_t connections = 0;

  bool is_kept_ = false;
};

}  // namespace tambour::http
