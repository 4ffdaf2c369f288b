// What a TLS context counts.
#pragma once

#include <cstdint>
#include <string>

#include <tambour/base/cxx23.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::tls {

/// The counters of a tls::ServerContext or tls::ClientContext since create(), of all its loops and
/// generations.
struct Stats {
  std::uint64_t handshakes = 0;  ///< Complete ones.
  std::uint64_t resumed = 0;     ///< Those among them that continue an earlier session.
  std::uint64_t failed = 0;      ///< Handshakes that failed, timeouts included.
  /// Unfinished handshakes that a server has closed because there were too many, which are not
  /// among the failed ones: ErrorCode::too_many_handshakes.
  std::uint64_t displaced = 0;
  /// Complete handshakes with early data that the server has accepted, or rejected.
  std::uint64_t early_data_accepted = 0;
  std::uint64_t early_data_rejected = 0;
  /// How often changed files were loaded, or could not be loaded:
  /// tls::Options::file_check_interval.
  std::uint64_t reloads = 0;
  std::uint64_t failed_reloads = 0;
  /// Whether the kernel encrypts (kTLS), and the reason if not, with the result of asking the
  /// kernel for it now.
  bool kernel_tls = false;
  std::string kernel_tls_reason{};
};

}  // namespace tambour::tls

#pragma GCC visibility pop
