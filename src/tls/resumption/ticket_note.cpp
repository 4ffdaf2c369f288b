#include "tls/resumption/ticket_note.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace tambour::tls {
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

}  // namespace tambour::tls
