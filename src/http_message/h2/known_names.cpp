// The tables of names.
#include "http_message/h2/known_names.h"

namespace tambour::http::detail::h2 {
namespace {

consteval std::array<KnownName, known_name_count> make_names() noexcept {
  using enum NameKind;
  using enum Indexing;
  return {{
      {":authority", 1, authority, always},
      {":method", 2, method, always},
      {":path", 4, path, repeated},
      {":scheme", 6, scheme, always},
      {":status", 8, status, always},
      {"accept-charset", 15, regular, always},
      {"accept-encoding", 16, regular, always},
      {"accept-language", 17, regular, always},
      {"accept-ranges", 18, regular, always},
      {"accept", 19, regular, always},
      {"access-control-allow-origin", 20, regular, always},
      {"age", 21, regular, repeated},
      {"allow", 22, regular, always},
      {"authorization", 23, regular, never},
      {"cache-control", 24, regular, always},
      {"content-disposition", 25, regular, repeated},
      {"content-encoding", 26, regular, always},
      {"content-language", 27, regular, always},
      {"content-length", 28, content_length, repeated},
      {"content-location", 29, regular, repeated},
      {"content-range", 30, regular, repeated},
      {"content-type", 31, regular, always},
      {"cookie", 32, cookie, always},
      {"date", 33, regular, repeated},
      {"etag", 34, regular, repeated},
      {"expect", 35, regular, always},
      {"expires", 36, regular, repeated},
      {"from", 37, regular, always},
      {"host", 38, host, always},
      {"if-match", 39, regular, repeated},
      {"if-modified-since", 40, regular, repeated},
      {"if-none-match", 41, regular, repeated},
      {"if-range", 42, regular, repeated},
      {"if-unmodified-since", 43, regular, repeated},
      {"last-modified", 44, regular, repeated},
      {"link", 45, regular, always},
      {"location", 46, regular, repeated},
      {"max-forwards", 47, regular, always},
      {"proxy-authenticate", 48, regular, repeated},
      {"proxy-authorization", 49, regular, never},
      {"range", 50, regular, repeated},
      {"referer", 51, regular, always},
      {"refresh", 52, regular, repeated},
      {"retry-after", 53, regular, repeated},
      {"server", 54, regular, always},
      {"set-cookie", 55, regular, never},
      {"strict-transport-security", 56, regular, always},
      {"transfer-encoding", 57, connection_specific, always},
      {"user-agent", 58, regular, always},
      {"vary", 59, regular, always},
      {"via", 60, regular, always},
      {"www-authenticate", 61, regular, repeated},
      {"connection", 0, connection_specific, always},
      {"keep-alive", 0, connection_specific, always},
      {"proxy-connection", 0, connection_specific, always},
      {"upgrade", 0, connection_specific, always},
      {"te", 0, te, always},
      {":protocol", 0, protocol, always},
  }};
}

consteval std::array<std::uint8_t, 256> make_slots() noexcept {
  std::array<std::uint8_t, 256> slots{};
  const auto names = make_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    slots[slot_of_hash(hash_of_name(names[i].name))] = static_cast<std::uint8_t>(i);
  return slots;
}

consteval bool have_slots_of_their_own() noexcept {
  const auto names = make_names();
  const auto slots = make_slots();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (slots[slot_of_hash(hash_of_name(names[i].name))] != i) return false;
  }
  return true;
}
static_assert(have_slots_of_their_own(), "another factor is needed in slot_of_hash()");

consteval StaticEntry entry(std::string_view text, std::size_t name_size) noexcept {
  StaticEntry static_entry{.text = text, .name_size = static_cast<std::uint8_t>(name_size)};
  const std::string_view name = text.substr(0, name_size);
  static_entry.hash = hash_of_name(name);
  for (const KnownName& known : make_names()) {
    if (known.name == name) static_entry.kind = known.kind;
  }
  return static_entry;
}

consteval std::array<StaticEntry, static_entry_count> make_static_table() noexcept {
  return {{
      entry(":authority", 10),
      entry(":methodGET", 7),
      entry(":methodPOST", 7),
      entry(":path/", 5),
      entry(":path/index.html", 5),
      entry(":schemehttp", 7),
      entry(":schemehttps", 7),
      entry(":status200", 7),
      entry(":status204", 7),
      entry(":status206", 7),
      entry(":status304", 7),
      entry(":status400", 7),
      entry(":status404", 7),
      entry(":status500", 7),
      entry("accept-charset", 14),
      entry("accept-encodinggzip, deflate", 15),
      entry("accept-language", 15),
      entry("accept-ranges", 13),
      entry("accept", 6),
      entry("access-control-allow-origin", 27),
      entry("age", 3),
      entry("allow", 5),
      entry("authorization", 13),
      entry("cache-control", 13),
      entry("content-disposition", 19),
      entry("content-encoding", 16),
      entry("content-language", 16),
      entry("content-length", 14),
      entry("content-location", 16),
      entry("content-range", 13),
      entry("content-type", 12),
      entry("cookie", 6),
      entry("date", 4),
      entry("etag", 4),
      entry("expect", 6),
      entry("expires", 7),
      entry("from", 4),
      entry("host", 4),
      entry("if-match", 8),
      entry("if-modified-since", 17),
      entry("if-none-match", 13),
      entry("if-range", 8),
      entry("if-unmodified-since", 19),
      entry("last-modified", 13),
      entry("link", 4),
      entry("location", 8),
      entry("max-forwards", 12),
      entry("proxy-authenticate", 18),
      entry("proxy-authorization", 19),
      entry("range", 5),
      entry("referer", 7),
      entry("refresh", 7),
      entry("retry-after", 11),
      entry("server", 6),
      entry("set-cookie", 10),
      entry("strict-transport-security", 25),
      entry("transfer-encoding", 17),
      entry("user-agent", 10),
      entry("vary", 4),
      entry("via", 3),
      entry("www-authenticate", 16),
  }};
}

}  // namespace

constexpr std::array<KnownName, known_name_count> known_names = make_names();
constexpr std::array<std::uint8_t, 256> known_name_slots = make_slots();
constexpr std::array<StaticEntry, static_entry_count> static_table = make_static_table();

}  // namespace tambour::http::detail::h2
