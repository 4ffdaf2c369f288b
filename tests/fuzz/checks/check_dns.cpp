// DNS messages, compared with a plain walk over their structure and with their round trip.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/dns/message.h>

#include "fuzz/bytes_checks.h"

namespace tambour::fuzz {
namespace {

Result<dns::Message> parse(std::string_view bytes) {
  return dns::Message::parse(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

/// A plain walk over the structure of a message: names and the sizes of records, not their data.
class Walk {
 public:
  explicit Walk(std::string_view bytes) : bytes_(bytes) {}

  /// Returns true if the structure is that of exactly one message.
  bool message() {
    if (bytes_.size() < 12 || bytes_.size() > 65535) return false;
    const unsigned questions = number(4);
    const unsigned records = number(6) + number(8) + number(10);
    at_ = 12;
    for (unsigned i = 0; i < questions; ++i) {
      if (!name() || !skip(4)) return false;
    }
    for (unsigned i = 0; i < records; ++i) {
      if (!name() || !skip(10) || !skip(number(at_ - 2))) return false;
    }
    return at_ == bytes_.size();
  }

 private:
  [[nodiscard]] unsigned number(std::size_t at) const {
    return static_cast<unsigned>(byte(at)) << 8U | byte(at + 1);
  }
  [[nodiscard]] std::uint8_t byte(std::size_t at) const {
    return static_cast<std::uint8_t>(bytes_.at(at));
  }
  bool skip(std::size_t size) {
    if (bytes_.size() - at_ < size) return false;
    at_ += size;
    return true;
  }
  bool name() {
    std::size_t at = at_;
    std::size_t lowest = at_;
    std::size_t size = 1;
    std::optional<std::size_t> after;
    for (;;) {
      if (at >= bytes_.size()) return false;
      const std::uint8_t length = byte(at);
      if (length >= 192) {
        if (at + 1 >= bytes_.size()) return false;
        if (!after) after = at + 2;
        at = number(at) & 0x3fffU;
        if (at >= lowest) return false;
        lowest = at;
      } else if (length >= 64 || at + length >= bytes_.size()) {
        return false;
      } else {
        at += 1U + length;
        if (length == 0) break;
        size += 1U + length;
        if (size > 255) return false;
      }
    }
    at_ = after.value_or(at);
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

void check_names(const std::vector<dns::Record>& records) {
  for (const dns::Record& record : records) {
    expect(record.name.wire().size() <= 255, "a name has more than 255 bytes");
    const auto again = dns::Name::parse(record.name.to_string());
    expect(again && again->wire() == record.name.wire(), "parse(to_string()) is another name");
    expect(!record.to_string().empty(), "a record has no text");
  }
}

void check_parsed(const dns::Message& message, std::string_view bytes) {
  check_names(message.answers);
  check_names(message.authorities);
  check_names(message.additionals);
  const auto written = message.write();
  // Names that share labels without being compressed as this library does may need more space.
  if (!written) {
    expect(written.error() == dns::ErrorCode::message_too_long,
           "a parsed message cannot be written");
    return;
  }
  const auto again = parse(*written);
  expect(again.has_value(), "a written message cannot be parsed");
  if (!again->truncated || message.truncated)
    expect(*again == message || again->additionals.size() < message.additionals.size(),
           "a written message differs");
  expect(again->write() == written, "a message is written in two ways");
  for (const std::size_t limit : {bytes.size() / 2, std::size_t{512}}) {
    const auto limited = message.write(limit);
    if (!limited) continue;
    expect(limited->size() <= limit, "a written message exceeds its limit");
    expect(parse(*limited).has_value(), "a truncated message cannot be parsed");
  }
}

void check_text(std::string_view text) {
  const auto name = dns::Name::parse(text);
  if (!name) {
    const bool is_documented =
        name.error() == dns::ErrorCode::bad_name || name.error() == dns::ErrorCode::name_too_long;
    expect(is_documented, "parse() of a name failed with an undocumented error");
    return;
  }
  expect(name->wire().size() <= 255, "a parsed name has more than 255 bytes");
  const auto again = dns::Name::parse(name->to_string());
  expect(again && again->wire() == name->wire(), "parse(to_string()) is another name");
  const auto same = dns::Name::from_wire(std::as_bytes(std::span(name->wire())));
  expect(same && *same == *name, "from_wire(wire()) is another name");
  expect(name->is_within(name->parent()), "a name is not within its parent");
}

}  // namespace

void check_dns(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const auto message = parse(text);
  const bool has_structure = Walk(text).message();
  if (message) {
    expect(has_structure, "a message without the structure of one was accepted");
    check_parsed(*message, text);
  } else if (has_structure) {
    const Error error = message.error();
    const bool is_about_data =
        error == dns::ErrorCode::bad_record || error == dns::ErrorCode::bad_edns ||
        error == dns::ErrorCode::bad_pointer || error == dns::ErrorCode::name_too_long;
    expect(is_about_data, "a message with the structure of one was rejected");
  }
  check_text(text);
}

}  // namespace tambour::fuzz
