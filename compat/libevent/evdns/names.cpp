// Converts between the names of evdns and the names of DNS messages.
#include "libevent/evdns/names.h"

#include <algorithm>
#include <cstdint>

namespace tambour::libevent {

bool wire_of(std::string_view text, dns::detail::WireName& into) noexcept {
  into.clear();
  if (text.ends_with('.')) text.remove_suffix(1);
  while (!text.empty()) {
    const std::string_view label = text.substr(0, text.find('.'));
    const bool is_last = label.size() == text.size();
    if (label.empty() || label.size() > dns::Name::label_bytes_max) return false;
    if (!into.push(static_cast<char>(label.size()))) return false;
    if (!into.append(label.data(), label.size())) return false;
    text.remove_prefix(label.size() + (is_last ? 0 : 1));
    if (!is_last && text.empty()) return false;
  }
  return into.push(0);
}

bool text_of(std::string_view wire, NameText& into) noexcept {
  std::size_t at = 0;
  while (wire[0] != 0) {
    const std::size_t length = static_cast<std::uint8_t>(wire[0]);
    const std::string_view label = wire.substr(1, length);
    if (label.contains('\0')) return false;
    if (at != 0) into[at++] = '.';
    std::ranges::copy(label, into.begin() + static_cast<std::ptrdiff_t>(at));
    at += length;
    wire.remove_prefix(length + 1);
  }
  into[at] = '\0';
  return true;
}

}  // namespace tambour::libevent
