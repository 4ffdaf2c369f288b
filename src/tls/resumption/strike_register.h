// Which early data a server has accepted, so that it accepts none twice (RFC 8446, section 8.2).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tambour/detail/namespaces.h>

namespace tambour::tls::detail {

/// Remembers the ClientHellos whose early data was accepted. OpenSSL accepts early data only if the
/// age of the ticket, as the client states it, is right within 11 seconds, so a ClientHello can be
/// forgotten after that time. If there are too many to remember, early data is rejected.
///
/// Other processes that have the same ticket keys do not share the register. So tickets carry its
/// identifier, and early data is accepted only with a ticket that was issued here. A child of
/// fork(2) begins with an empty register and another identifier.
///
/// Thread: callable from any thread.
class StrikeRegister {
 public:
  using Identifier = std::array<unsigned char, 16>;

  /// A ClientHello is remembered for one to two periods.
  static constexpr std::int64_t period_s = 16;
  static constexpr std::size_t hellos_per_period_max = 49152;

  /// `now_s` returns the time by the clock with which OpenSSL computes the age of tickets; tests
  /// replace it. Throws std::bad_alloc.
  explicit StrikeRegister(std::int64_t (*now_s)() noexcept = nullptr);
  StrikeRegister(const StrikeRegister&) = delete;
  StrikeRegister& operator=(const StrikeRegister&) = delete;
  ~StrikeRegister();

  /// Returns whether `random`, that of a ClientHello, is new, and remembers it.
  [[nodiscard]] bool accept(std::span<const unsigned char> random) noexcept;
  /// That of this process; all zero if memory has run out.
  [[nodiscard]] Identifier identifier() noexcept;

 private:
  class Memory;
  /// Null if memory has run out.
  [[nodiscard]] Memory* memory() noexcept;

  std::int64_t (*const now_s_)() noexcept;
  std::atomic<Memory*> memory_;
};

}  // namespace tambour::tls::detail
