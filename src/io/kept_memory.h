// The memory that a filter keeps between transfers.
#pragma once

#include <tambour/detail/namespaces.h>
#include <tambour/detail/transport_filter.h>

namespace tambour::detail::io {

/// A part of a TransportFilter that needs much memory for a transfer, such as that of TLS.
///
/// Thread: that of the stream.
class KeptMemory {
 public:
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  /// Null if the filter has no such memory.
  [[nodiscard]] static KeptMemory* of(TransportFilter& filter) noexcept {
    return dynamic_cast<KeptMemory*>(&filter);
  }

  /// Whether the filter keeps the memory until the next transfer. It begins without.
  virtual void keep_memory(bool is_kept) noexcept = 0;

 protected:
  KeptMemory() = default;
  ~KeptMemory() = default;
};

}  // namespace tambour::detail::io
