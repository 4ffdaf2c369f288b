// The bytes of the responses of a server.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tambour/dns/message.h>

#include "dns_message/reader.h"

namespace tambour::detail::dns_server {

/// True if the packet has the header of a query. Responses are never answered: that could go on for
/// ever.
[[nodiscard]] bool is_query(dns::detail::Bytes packet) noexcept;

/// The response to bytes that are not a query that a handler can answer; empty if a handler can,
/// and `query` is set then. Requires is_query().
[[nodiscard]] std::optional<dns::Message> refuse(dns::detail::Bytes packet, dns::Message& query);

/// The bytes of a response; empty if the handler has made it malformed, and not even an error fits.
[[nodiscard]] std::string bytes_of(const dns::Message& response, std::size_t limit);

/// A message with its length, as TCP needs it.
[[nodiscard]] std::string framed(const std::string& message);

/// The messages of a response over TCP. Those of a zone transfer are several (RFC 5936, section
/// 2.2), and are made one by one, so that only one is in memory beside the records.
class Messages {
 public:
  explicit Messages(dns::Message response);

  /// The next message with its length; empty after the last one.
  [[nodiscard]] std::string next();

 private:
  [[nodiscard]] std::string next_of_transfer();

  dns::Message response_;
  bool is_transfer_;
  bool has_ended_ = false;
  std::vector<dns::Record> records_;  ///< Of a transfer.
  std::size_t sent_ = 0;
  std::size_t count_;  ///< The records that fitted into the last message.
};

}  // namespace tambour::detail::dns_server
