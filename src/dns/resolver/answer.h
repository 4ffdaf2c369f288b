// The answer to one question, and how it is read from a response.
//
// The resolver reads responses here and not as dns::Message, because most of them only carry
// addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/error.h>
#include <tambour/dns/message.h>
#include <tambour/net/ip_address.h>

#include "dns/resolver/question.h"
#include "dns_message/reader.h"

namespace tambour::dns::detail {

struct Answer {
  dns::ErrorCode error = no_error;
  std::uint32_t ttl_s = 0;             ///< How long it may be kept.
  std::vector<IpAddress> addresses{};  ///< Of questions for A and AAAA.
  std::string message{};               ///< The response; empty if there is none.
};
using AnswerPointer = std::shared_ptr<const Answer>;

/// What a response says about its server.
struct ResponseInfo {
  unsigned rcode = 0;  ///< With the bits of EDNS.
  bool truncated = false;
  bool has_question = true;  ///< Servers that cannot parse a query may omit it from their error.
  bool has_edns = false;
  std::size_t size = 0;       ///< Of the message. Bytes may follow, as some middleboxes send them.
  std::string_view cookie{};  ///< The data of the option; empty if there is none.
};

/// True if the packet is a response with this id to exactly this question, or an error with this id
/// and no question. `name` is compared byte by byte if `exact_case`.
[[nodiscard]] bool is_response_to(Bytes packet, std::uint16_t id, std::string_view name,
                                  dns::Type type, bool exact_case) noexcept;

/// Reads a packet for which is_response_to() is true. Follows aliases from the name of the
/// question; ignores other records. Returns false if the packet is malformed. A truncated response
/// is read up to its question only.
[[nodiscard]] bool read_response(Bytes packet, std::string_view key, Answer& answer,
                                 ResponseInfo& info);

/// The response as a message, without the answers that do not belong to the question, and with the
/// times to live that remain after `age_s`.
[[nodiscard]] Result<dns::Message> message_of(const Answer& answer, std::string_view key,
                                              std::uint32_t age_s);

}  // namespace tambour::dns::detail
