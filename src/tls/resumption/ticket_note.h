// What a server writes into its tickets, beside the session.
#pragma once

#include <cstdint>
#include <optional>

#include "tls/openssl.h"
#include "tls/resumption/strike_register.h"

namespace tambour::tls {

struct TicketNote {
  /// When the peer was verified, by the clock of the system: the tickets that follow a resumption
  /// keep the time.
  std::int64_t verified_s = 0;
  /// Of the process that may accept early data with the ticket; all zero: none.
  StrikeRegister::Identifier strikes{};

  /// Empty if the session has none.
  [[nodiscard]] static std::optional<TicketNote> of(SSL_SESSION* session) noexcept;
  /// Returns false if memory runs out.
  [[nodiscard]] bool write_to(SSL_SESSION* session) const noexcept;
};

}  // namespace tambour::tls
