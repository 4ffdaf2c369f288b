// Domain names.
#include <tambour/dns/name.h>

#include <array>
#include <functional>

#include "base/check.h"
#include "dns_message/wire_name.h"

namespace tambour::dns {

namespace {

using detail::to_lower;
using detail::WireName;

constexpr bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

std::uint8_t length_at(std::string_view wire, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(wire[at]);
}

/// The offsets of the labels of a name, without the root.
struct Labels {
  std::array<std::uint8_t, Name::bytes_max / 2> at;
  std::size_t count = 0;

  explicit Labels(std::string_view wire) noexcept {
    for (std::size_t i = 0; wire[i] != 0; i += length_at(wire, i) + 1U)
      at[count++] = static_cast<std::uint8_t>(i);
  }
};

int compare_labels(std::string_view a, std::string_view b) noexcept {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto x = static_cast<unsigned char>(to_lower(a[i]));
    const auto y = static_cast<unsigned char>(to_lower(b[i]));
    if (x != y) return x < y ? -1 : 1;
  }
  if (a.size() == b.size()) return 0;
  return a.size() < b.size() ? -1 : 1;
}

/// Parses an escape after its backslash at `at`, and moves `at` past it. Returns false if it is
/// malformed.
bool parse_escape(std::string_view text, std::size_t& at, char& byte) noexcept {
  if (at == text.size()) return false;
  if (!is_digit(text[at])) {
    byte = text[at++];
    return true;
  }
  if (text.size() - at < 3 || !is_digit(text[at + 1]) || !is_digit(text[at + 2])) return false;
  const int value = (text[at] - '0') * 100 + (text[at + 1] - '0') * 10 + (text[at + 2] - '0');
  if (value > 255) return false;
  byte = static_cast<char>(value);
  at += 3;
  return true;
}

}  // namespace

namespace detail {

dns::ErrorCode parse_name(std::string_view text, WireName& into) noexcept {
  into.clear();
  if (text.empty()) return dns::ErrorCode::bad_name;
  if (text == ".") {
    static_cast<void>(into.push(0));
    return no_error;
  }
  std::size_t label = 0;  // The offset of the length of the current label.
  if (!into.push(0)) return dns::ErrorCode::name_too_long;
  for (std::size_t i = 0; i < text.size();) {
    char byte = text[i++];
    if (byte == '.') {
      const std::size_t size = into.size() - label - 1;
      if (size == 0) return dns::ErrorCode::bad_name;
      into.set(label, static_cast<char>(size));
      label = into.size();
      // The trailing dot, or the length of the next label.
      if (!into.push(0)) return dns::ErrorCode::name_too_long;
      if (i == text.size()) return no_error;
      continue;
    }
    if (byte == '\\' && !parse_escape(text, i, byte)) return dns::ErrorCode::bad_name;
    if (into.size() - label > dns::Name::label_bytes_max) return dns::ErrorCode::name_too_long;
    if (!into.push(byte)) return dns::ErrorCode::name_too_long;
  }
  into.set(label, static_cast<char>(into.size() - label - 1));
  return into.push(0) ? no_error : dns::ErrorCode::name_too_long;
}

}  // namespace detail

Result<Name> Name::parse(std::string_view text) {
  WireName wire;
  if (const ErrorCode error = detail::parse_name(text, wire); error != detail::no_error)
    return std::unexpected(make_error_code(error));
  return Name(std::string(wire.view()));
}

Result<Name> Name::from_wire(std::span<const std::byte> bytes) {
  const auto malformed = [] { return std::unexpected(make_error_code(ErrorCode::bad_name)); };
  if (bytes.size() > bytes_max) return malformed();
  std::size_t at = 0;
  for (;;) {
    if (at >= bytes.size()) return malformed();
    const auto length = static_cast<std::size_t>(bytes[at]);
    if (length == 0) break;
    if (length > label_bytes_max) return malformed();
    at += length + 1;
  }
  if (at + 1 != bytes.size()) return malformed();
  return Name(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Name Name::for_address(std::span<const std::byte> address) {
  detail::base::check(address.size() == 4 || address.size() == 16,
                      "dns::Name::for_address() needs an address of 4 or 16 bytes");
  std::string wire;
  const auto add = [&wire](std::string_view label) {
    wire += static_cast<char>(label.size());
    wire += label;
  };
  for (std::size_t i = address.size(); i-- != 0;) {
    const auto byte = static_cast<unsigned>(address[i]);
    if (address.size() == 4) {
      add(std::to_string(byte));
      continue;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    add(digits.substr(byte & 0xfU, 1));
    add(digits.substr(byte >> 4U, 1));
  }
  add(address.size() == 4 ? "in-addr" : "ip6");
  add("arpa");
  wire += '\0';
  return Name(std::move(wire));
}

std::string Name::to_string() const {
  if (is_root()) return ".";
  std::string text;
  for (std::size_t at = 0; wire_[at] != 0;) {
    const std::size_t length = length_at(wire_, at++);
    for (const char byte : std::string_view(wire_).substr(at, length)) {
      // The bytes that a zone file gives a meaning: RFC 1035, section 5.1.
      if (std::string_view("\".;\\@()$").contains(byte)) {
        text += '\\';
        text += byte;
      } else if (byte > ' ' && byte < '\x7f') {
        text += byte;
      } else {
        const auto value = static_cast<unsigned char>(byte);
        text += '\\';
        text += static_cast<char>('0' + value / 100);
        text += static_cast<char>('0' + value / 10 % 10);
        text += static_cast<char>('0' + value % 10);
      }
    }
    text += '.';
    at += length;
  }
  return text;
}

std::size_t Name::label_count() const noexcept { return Labels(wire_).count; }

Name Name::parent() const {
  if (is_root()) return *this;
  return Name(wire_.substr(length_at(wire_, 0) + 1U));
}

bool Name::is_within(const Name& zone) const noexcept {
  if (zone.wire_.size() > wire_.size()) return false;
  const std::size_t at = wire_.size() - zone.wire_.size();
  if (!detail::equal_ignoring_case(std::string_view(wire_).substr(at), zone.wire_)) return false;
  // The suffix must begin with a label, not within one.
  std::size_t label = 0;
  while (label < at) label += length_at(wire_, label) + 1U;
  return label == at;
}

Result<Name> Name::with_suffix(const Name& suffix) const {
  if (wire_.size() - 1 + suffix.wire_.size() > bytes_max)
    return std::unexpected(make_error_code(ErrorCode::name_too_long));
  std::string wire = wire_;
  wire.pop_back();
  wire += suffix.wire_;
  return Name(std::move(wire));
}

bool Name::operator==(const Name& other) const noexcept {
  return detail::equal_ignoring_case(wire_, other.wire_);
}

std::weak_ordering Name::operator<=>(const Name& other) const noexcept {
  const Labels ours(wire_);
  const Labels theirs(other.wire_);
  const auto label = [](const std::string& wire, std::size_t at) {
    return std::string_view(wire).substr(at + 1, length_at(wire, at));
  };
  for (std::size_t i = 1; i <= std::min(ours.count, theirs.count); ++i) {
    const int order = compare_labels(label(wire_, ours.at[ours.count - i]),
                                     label(other.wire_, theirs.at[theirs.count - i]));
    if (order != 0) return order <=> 0;
  }
  return ours.count <=> theirs.count;
}

std::size_t Name::hash() const noexcept {
  WireName lower;
  lower.assign(wire_);
  lower.lower();
  return std::hash<std::string_view>()(lower.view());
}

}  // namespace tambour::dns
