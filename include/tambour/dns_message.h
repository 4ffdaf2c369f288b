// DNS messages, parsed and written: RFC 1035, RFC 6891 (EDNS), RFC 7873 (cookies).
//
// parse() is strict: it rejects malformed and trailing bytes. Records of unknown types are kept as
// DnsUnknown, so writing a parsed message preserves its meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tambour/dns_error.h>
#include <tambour/dns_name.h>
#include <tambour/dns_record.h>
#include <tambour/result.h>

#pragma GCC visibility push(default)

namespace tambour {

/// RFC 1035, section 4.1.1; RFC 6895. Codes above 15 require EDNS.
enum class DnsRcode : std::uint16_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
  bad_version = 16,
  bad_cookie = 23,
};

enum class DnsOpcode : std::uint8_t { query = 0, status = 2, notify = 4, update = 5 };

struct DnsQuestion {
  DnsName name;
  DnsType type = DnsType::a;
  DnsClass question_class = DnsClass::in;
  bool operator==(const DnsQuestion&) const = default;
};

/// An option of EDNS.
struct DnsOption {
  static constexpr std::uint16_t cookie = 10;
  static constexpr std::uint16_t padding = 12;
  std::uint16_t code = 0;
  std::string data;
  bool operator==(const DnsOption&) const = default;
};

/// The OPT pseudo-record: RFC 6891. Its extended response code is a part of DnsMessage::rcode.
struct DnsEdns {
  /// What fits into the packets of most paths without fragmentation.
  static constexpr std::uint16_t udp_bytes_default = 1232;

  std::uint16_t udp_bytes = udp_bytes_default;  ///< The largest datagram that the sender accepts.
  std::uint8_t version = 0;
  bool dnssec_ok = false;
  std::uint16_t flags = 0;  ///< The other flags, which are reserved; without the bit of dnssec_ok.
  std::vector<DnsOption> options{};
  bool operator==(const DnsEdns&) const = default;
};

/// A query or a response, as a value type.
struct DnsMessage {
  static constexpr std::size_t bytes_max = 65'535;
  /// The largest datagram without EDNS.
  static constexpr std::size_t udp_bytes_plain = 512;

  std::uint16_t id = 0;
  bool is_response = false;
  DnsOpcode opcode = DnsOpcode::query;
  bool authoritative = false;
  bool truncated = false;
  bool recursion_desired = false;
  bool recursion_available = false;
  bool authentic_data = false;
  bool checking_disabled = false;
  DnsRcode rcode = DnsRcode::no_error;

  std::vector<DnsQuestion> questions{};
  std::vector<DnsRecord> answers{};
  std::vector<DnsRecord> authorities{};
  std::vector<DnsRecord> additionals{};  ///< Without OPT.
  std::optional<DnsEdns> edns{};

  bool operator==(const DnsMessage&) const = default;

  /// The data of the answers that have this type of data, for example DnsMx.
  template <class T>
  [[nodiscard]] std::vector<const T*> answers_of() const {
    std::vector<const T*> found;
    for (const DnsRecord& each : answers) {
      if (const T* const data = each.as<T>()) found.push_back(data);
    }
    return found;
  }

  /// Parses exactly one message. Fails with DnsError::bad_message if it is too short, or longer
  /// than its records, and with the other errors of messages.
  [[nodiscard]] static Result<DnsMessage> parse(std::span<const std::byte> bytes);

  /// The message in wire form, with names compressed where RFC 3597 allows it. If it would have
  /// more than `limit_bytes` bytes, records are omitted from the end, OPT is kept, and the bit
  /// `truncated` is set if an answer or authority is missing. Fails with
  /// DnsError::message_too_long if not even the questions fit, with DnsError::bad_record if a
  /// record's data is not that of its type or exceeds its limits, and with DnsError::bad_edns if
  /// the response code needs EDNS.
  [[nodiscard]] Result<std::string> write(std::size_t limit_bytes = bytes_max) const;

  /// A query for one question, with EDNS and recursion desired.
  [[nodiscard]] static DnsMessage query(DnsName name, DnsType type, std::uint16_t id);
  /// An empty response to `query`, with its id, questions and opcode, and EDNS if the query has it.
  [[nodiscard]] static DnsMessage response_to(const DnsMessage& query);
};

}  // namespace tambour

#pragma GCC visibility pop
