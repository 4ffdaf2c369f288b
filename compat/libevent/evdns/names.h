// Names as evdns has them: labels separated by dots, without escapes.
#pragma once

#include <array>
#include <string_view>

#include "dns_message/wire_name.h"

namespace tambour::libevent {

/// Long enough for each name: 253 bytes and the NUL.
using NameText = std::array<char, dns::Name::bytes_max + 1>;

/// "" and "." are the root. Returns false if a label is empty or longer than 63 bytes, or the name
/// longer than 253.
[[nodiscard]] bool wire_of(std::string_view text, dns::detail::WireName& into) noexcept;

/// Writes the name without a trailing dot, and a NUL. Returns false if the name has a NUL byte,
/// which would end the text early.
[[nodiscard]] bool text_of(std::string_view wire, NameText& into) noexcept;

}  // namespace tambour::libevent
