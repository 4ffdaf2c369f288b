// The counters of a context.
#pragma once

#include <atomic>
#include <cstdint>

#include <tambour/detail/namespaces.h>
#include <tambour/tls/session.h>
#include <tambour/tls/stats.h>

namespace tambour::tls::detail {

/// Shared by the generations of a context. Thread: callable from any thread.
class Counters {
 public:
  /// A handshake that is complete.
  void count(const tls::Session& session) noexcept;
  /// Changed files that were loaded, or could not be.
  void count_reload(bool succeeded) noexcept {
    (succeeded ? reloads_ : failed_reloads_).fetch_add(1, std::memory_order_relaxed);
  }
  void count_failed() noexcept { failed_.fetch_add(1, std::memory_order_relaxed); }
  void count_displaced() noexcept { displaced_.fetch_add(1, std::memory_order_relaxed); }
  /// Throws std::bad_alloc.
  [[nodiscard]] tls::Stats stats() const;

 private:
  std::atomic<std::uint64_t> handshakes_{0};
  std::atomic<std::uint64_t> resumed_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> displaced_{0};
  std::atomic<std::uint64_t> early_data_accepted_{0};
  std::atomic<std::uint64_t> early_data_rejected_{0};
  std::atomic<std::uint64_t> reloads_{0};
  std::atomic<std::uint64_t> failed_reloads_{0};
};

}  // namespace tambour::tls::detail
