// What evdns reads from the reply of a nameserver.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dns_message/reader.h"
#include "libevent/evdns/names.h"

namespace tambour::libevent {

struct DnsQuestionView {
  std::string_view name;  ///< In wire form, as it was sent.
  dns::Type type;
  bool exact_case;  ///< The reply must have the name in the same case: see "randomize-case".
};

struct DnsReply {
  static constexpr unsigned addresses_max = 32;

  std::uint32_t ttl_s = 0;
  unsigned count = 0;  ///< The addresses, or 1 if there is a name.
  /// Addresses one behind the other, in network byte order. Programs read them as numbers.
  alignas(8) std::array<std::uint8_t, std::size_t{addresses_max} * 16> addresses;
  NameText name;             ///< Of PTR.
  NameText canonical{'\0'};  ///< The last alias; empty if there is none.
};

enum class Verdict : std::uint8_t {
  foreign,     ///< Not a response to this question.
  other_case,  ///< A response to the question, but its name has another case.
  truncated,
  malformed,
  complete,
};

/// Reads a packet. The id and the source have been compared. Follows aliases from the name of the
/// question and ignores records of other names.
[[nodiscard]] Verdict read_reply(dns::detail::Bytes packet, const DnsQuestionView& question,
                                 DnsReply& reply, unsigned& rcode) noexcept;

}  // namespace tambour::libevent
