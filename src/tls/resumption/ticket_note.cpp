// Encodes the note into the application data of a session, and decides whether its certificate
// counts as verified.
#include "tls/resumption/ticket_note.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tambour::tls::detail {
namespace {

constexpr std::size_t time_bytes = sizeof(TicketNote::verified_s);
constexpr std::size_t note_bytes = time_bytes + sizeof(TicketNote::strikes);

}  // namespace

std::optional<TicketNote> TicketNote::of(SSL_SESSION* session) noexcept {
  void* data = nullptr;
  std::size_t size = 0;
  if (SSL_SESSION_get0_ticket_appdata(session, &data, &size) != 1 || size != note_bytes)
    return std::nullopt;
  TicketNote note;
  std::memcpy(&note.verified_s, data, time_bytes);
  std::memcpy(note.strikes.data(), static_cast<const std::byte*>(data) + time_bytes,
              note.strikes.size());
  return note;
}

bool TicketNote::write_to(SSL_SESSION* session) const noexcept {
  // All machines that share ticket keys have the byte order of this one, or no ticket is resumed.
  std::array<std::byte, note_bytes> data;
  std::memcpy(data.data(), &verified_s, time_bytes);
  std::memcpy(data.data() + time_bytes, strikes.data(), strikes.size());
  return SSL_SESSION_set1_ticket_appdata(session, data.data(), data.size()) == 1;
}

bool is_still_verified(SSL_SESSION* session, std::int64_t age_s_max) noexcept {
  const X509* const peer = SSL_SESSION_get0_peer(session);
  if (peer == nullptr) return true;
  const auto note = TicketNote::of(session);
  if (!note || X509_cmp_current_time(X509_get0_notBefore(peer)) > 0 ||
      X509_cmp_current_time(X509_get0_notAfter(peer)) < 0)
    return false;
  // In both directions, because the clock may have been set.
  return std::abs(std::time(nullptr) - note->verified_s) <= age_s_max;
}

}  // namespace tambour::tls::detail
