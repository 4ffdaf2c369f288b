// What a session says beside the state of OpenSSL: in the tickets of a server, and among the
// sessions that a client keeps.
#pragma once

#include <cstdint>
#include <optional>

#include <tambour/detail/namespaces.h>

#include "tls/openssl.h"
#include "tls/resumption/strike_register.h"

namespace tambour::tls::detail {

struct TicketNote {
  /// When the peer was verified, by the clock of the system: the tickets that follow a resumption
  /// keep the time.
  std::int64_t verified_s = 0;
  /// For a server: of the process that may accept early data with the ticket; all zero: none.
  StrikeRegister::Identifier strikes{};

  /// Empty if the session has none.
  [[nodiscard]] static std::optional<TicketNote> of(SSL_SESSION* session) noexcept;
  /// Returns false if memory runs out.
  [[nodiscard]] bool write_to(SSL_SESSION* session) const noexcept;
};

/// A resumption does not verify the peer again, and gives it or this end a new ticket. Without a
/// limit, sessions could be resumed for ever. Returns whether the certificate of the peer is valid
/// now and was verified at most `age_s_max` ago; true if the peer has none.
[[nodiscard]] bool is_still_verified(SSL_SESSION* session, std::int64_t age_s_max) noexcept;

}  // namespace tambour::tls::detail
