// DNS messages, parsed and written: RFC 1035, RFC 6891 (EDNS), RFC 7873 (cookies).
//
// parse() is strict: it rejects malformed and trailing bytes. Records of unknown types are kept as
// dns::UnknownData, so writing a parsed message preserves its meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/dns/error.h>
#include <tambour/dns/name.h>
#include <tambour/dns/record.h>

#pragma GCC visibility push(default)

namespace tambour::dns {

/// The response code of a message: RFC 1035, section 4.1.1; RFC 6895. Codes above 15 require EDNS.
enum class Rcode : std::uint16_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
  bad_version = 16,
  bad_cookie = 23,
};

/// The kind of a query: RFC 1035, section 4.1.1. Servers answer other values with NOTIMP.
enum class Opcode : std::uint8_t { query = 0, status = 2, notify = 4, update = 5 };

/// What a query asks for: RFC 1035, section 4.1.2.
struct Question {
  Name name;
  Type type = Type::a;
  Class question_class = Class::in;
  bool operator==(const Question&) const = default;
};

/// An option of EDNS.
struct Option {
  static constexpr std::uint16_t cookie = 10;
  static constexpr std::uint16_t padding = 12;
  std::uint16_t code = 0;
  std::string data;
  bool operator==(const Option&) const = default;
};

/// The OPT pseudo-record: RFC 6891. Its extended response code is a part of dns::Message::rcode.
struct Edns {
  /// What fits into the packets of most paths without fragmentation.
  static constexpr std::uint16_t udp_bytes_default = 1232;

  std::uint16_t udp_bytes = udp_bytes_default;  ///< The largest datagram that the sender accepts.
  std::uint8_t version = 0;
  bool dnssec_ok = false;
  std::uint16_t flags = 0;  ///< The other flags, which are reserved; without the bit of dnssec_ok.
  std::vector<Option> options{};
  bool operator==(const Edns&) const = default;
};

/// A query or a response, as a value type.
struct Message {
  static constexpr std::size_t bytes_max = 65'535;
  /// The largest datagram without EDNS.
  static constexpr std::size_t udp_bytes_plain = 512;

  std::uint16_t id = 0;
  bool is_response = false;
  Opcode opcode = Opcode::query;
  bool authoritative = false;
  bool truncated = false;
  bool recursion_desired = false;
  bool recursion_available = false;
  bool authentic_data = false;
  bool checking_disabled = false;
  Rcode rcode = Rcode::no_error;

  std::vector<Question> questions{};
  std::vector<Record> answers{};
  std::vector<Record> authorities{};
  std::vector<Record> additionals{};  ///< Without OPT.
  std::optional<Edns> edns{};

  bool operator==(const Message&) const = default;

  /// The data of the answers that have this type of data, for example dns::Mx.
  template <class T>
  [[nodiscard]] std::vector<const T*> answers_of() const {
    std::vector<const T*> found;
    for (const Record& answer : answers) {
      if (const T* const data = answer.as<T>()) found.push_back(data);
    }
    return found;
  }

  /// Parses exactly one message. Fails with dns::ErrorCode::bad_message if it is too short, or
  /// longer than its records, and with the other errors of messages.
  [[nodiscard]] static Result<Message> parse(std::span<const std::byte> bytes);

  /// The message in wire form, with names compressed where RFC 3597 allows it. If it would have
  /// more than `limit_bytes` bytes, records are omitted from the end, OPT is kept, and the bit
  /// `truncated` is set if an answer or authority is missing. Fails with
  /// dns::ErrorCode::message_too_long if not even the questions fit, with
  /// dns::ErrorCode::bad_record if a record's data is not that of its type or exceeds its limits,
  /// and with dns::ErrorCode::bad_edns if the response code needs EDNS.
  [[nodiscard]] Result<std::string> write(std::size_t limit_bytes = bytes_max) const;

  /// A query for one question, with EDNS and recursion desired.
  [[nodiscard]] static Message query(Name name, Type type, std::uint16_t id);
  /// An empty response to `query`, with its id, questions and opcode, and EDNS if the query has it.
  [[nodiscard]] static Message response_to(const Message& query);
};

}  // namespace tambour::dns

#pragma GCC visibility pop
