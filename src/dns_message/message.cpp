// Messages, parsed and written.
#include <utility>

#include <tambour/dns_message.h>

#include "dns_message/reader.h"
#include "dns_message/record_data.h"
#include "dns_message/writer.h"

namespace tambour {
namespace {

using dns::Header;
using dns::no_error;
using dns::Reader;
using dns::RecordHead;
using dns::Writer;

constexpr std::uint32_t dnssec_ok_bit = 0x8000;

void set_flags(DnsMessage& message, const Header& header) noexcept {
  const auto has = [&](std::uint16_t bit) { return (header.flags & bit) != 0; };
  message.id = header.id;
  message.is_response = has(Header::response);
  message.opcode = DnsOpcode(header.opcode());
  message.authoritative = has(Header::authoritative);
  message.truncated = has(Header::truncated);
  message.recursion_desired = has(Header::recursion_desired);
  message.recursion_available = has(Header::recursion_available);
  message.authentic_data = has(Header::authentic_data);
  message.checking_disabled = has(Header::checking_disabled);
  message.rcode = DnsRcode(header.rcode());
}

std::uint16_t flags_of(const DnsMessage& message) noexcept {
  const auto bit = [](bool is_set, std::uint16_t value) { return is_set ? value : 0U; };
  return static_cast<std::uint16_t>(bit(message.is_response, Header::response) |
                                    (static_cast<unsigned>(message.opcode) & 0xfU) << 11U |
                                    bit(message.authoritative, Header::authoritative) |
                                    bit(message.truncated, Header::truncated) |
                                    bit(message.recursion_desired, Header::recursion_desired) |
                                    bit(message.recursion_available, Header::recursion_available) |
                                    bit(message.authentic_data, Header::authentic_data) |
                                    bit(message.checking_disabled, Header::checking_disabled) |
                                    (static_cast<unsigned>(message.rcode) & 0xfU));
}

/// `head` is that of an OPT record, whose class and time to live have another meaning.
DnsEdns read_edns(Reader& reader, const RecordHead& head, DnsRcode& rcode) {
  DnsEdns edns;
  edns.udp_bytes = static_cast<std::uint16_t>(head.record_class);
  rcode = DnsRcode(head.ttl >> 24U << 4U | static_cast<unsigned>(rcode));
  edns.version = static_cast<std::uint8_t>(head.ttl >> 16U);
  edns.dnssec_ok = (head.ttl & dnssec_ok_bit) != 0;
  edns.flags = static_cast<std::uint16_t>(head.ttl & ~dnssec_ok_bit);
  const std::size_t former_end = reader.enter(head.size);
  if (reader.failed()) return edns;
  while (reader.left() != 0) {
    DnsOption option;
    option.code = reader.u16();
    option.data = reader.text(reader.u16());
    edns.options.push_back(std::move(option));
  }
  reader.leave(former_end);
  return edns;
}

class Parser {
 public:
  Parser(dns::Bytes bytes, DnsMessage& into) noexcept : reader_(bytes), message_(into) {}

  DnsError parse() {
    const Header header = Header::read(reader_);
    set_flags(message_, header);
    for (unsigned i = 0; i < header.questions && !reader_.failed(); ++i) {
      DnsQuestion& question = message_.questions.emplace_back();
      question.name = reader_.name();
      question.type = DnsType(reader_.u16());
      question.question_class = DnsClass(reader_.u16());
    }
    section(header.answers, message_.answers, false);
    section(header.authorities, message_.authorities, false);
    section(header.additionals, message_.additionals, true);
    if (reader_.left() != 0) reader_.fail(DnsError::bad_message);
    return reader_.error();
  }

 private:
  void section(unsigned count, std::vector<DnsRecord>& into, bool may_have_edns) {
    for (unsigned i = 0; i < count && !reader_.failed(); ++i) {
      DnsName name = reader_.name();
      const RecordHead head = RecordHead::read(reader_);
      if (reader_.failed()) return;
      if (head.type == DnsType::opt) {
        if (!may_have_edns || message_.edns || !name.is_root())
          return reader_.fail(DnsError::bad_edns);
        message_.edns = read_edns(reader_, head, message_.rcode);
        continue;
      }
      DnsRecord& record = into.emplace_back();
      record.name = std::move(name);
      record.type = head.type;
      record.record_class = head.record_class;
      record.ttl = dns::ttl_of(head.ttl);
      record.data = dns::read_data(reader_, head, message_.opcode == DnsOpcode::update);
    }
  }

  Reader reader_;
  DnsMessage& message_;
};

/// Returns an error, which does not depend on the limit.
DnsError write_record(Writer& writer, const DnsRecord& record) {
  writer.compressed_name(record.name.wire());
  writer.u16(static_cast<std::uint16_t>(record.type));
  writer.u16(static_cast<std::uint16_t>(record.record_class));
  writer.u32(record.ttl);
  const std::size_t size_at = writer.size();
  writer.u16(0);
  if (const DnsError error = dns::write_data(writer, record); error != no_error) return error;
  const std::size_t size = writer.size() - size_at - 2;
  if (size > UINT16_MAX) return DnsError::bad_record;
  writer.set_u16(size_at, static_cast<std::uint16_t>(size));
  return no_error;
}

DnsError write_edns(Writer& writer, const DnsEdns& edns, DnsRcode rcode) {
  writer.u8(0);
  writer.u16(static_cast<std::uint16_t>(DnsType::opt));
  writer.u16(edns.udp_bytes);
  writer.u8(static_cast<std::uint8_t>(static_cast<unsigned>(rcode) >> 4U));
  writer.u8(edns.version);
  writer.u16(static_cast<std::uint16_t>((edns.flags & ~dnssec_ok_bit) |
                                        (edns.dnssec_ok ? dnssec_ok_bit : 0U)));
  const std::size_t size_at = writer.size();
  writer.u16(0);
  for (const DnsOption& each : edns.options) {
    if (each.data.size() > UINT16_MAX) return DnsError::bad_edns;
    writer.u16(each.code);
    writer.u16(static_cast<std::uint16_t>(each.data.size()));
    writer.text(each.data);
  }
  const std::size_t size = writer.size() - size_at - 2;
  if (size > UINT16_MAX) return DnsError::bad_edns;
  writer.set_u16(size_at, static_cast<std::uint16_t>(size));
  return no_error;
}

std::size_t size_of(const std::optional<DnsEdns>& edns) noexcept {
  if (!edns) return 0;
  std::size_t size = 11;
  for (const DnsOption& each : edns->options) size += 4 + each.data.size();
  return size;
}

}  // namespace

Result<DnsMessage> DnsMessage::parse(std::span<const std::byte> bytes) {
  DnsMessage message;
  const auto failure = [](DnsError error) { return std::unexpected(make_error_code(error)); };
  if (bytes.size() > bytes_max) return failure(DnsError::message_too_long);
  if (const DnsError error = Parser(bytes, message).parse(); error != no_error)
    return failure(error);
  return message;
}

Result<std::string> DnsMessage::write(std::size_t limit_bytes) const {
  const auto failure = [](DnsError error) { return std::unexpected(make_error_code(error)); };
  if (static_cast<unsigned>(rcode) > 0xf && (!edns || static_cast<unsigned>(rcode) > 0xfff))
    return failure(DnsError::bad_edns);
  const std::size_t limit = std::min(limit_bytes, bytes_max);
  const std::size_t edns_bytes = size_of(edns);
  std::string out;
  Writer writer(out);
  writer.text(std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0", Header::bytes));
  writer.set_u16(0, id);
  for (const DnsQuestion& each : questions) {
    writer.compressed_name(each.name.wire());
    writer.u16(static_cast<std::uint16_t>(each.type));
    writer.u16(static_cast<std::uint16_t>(each.question_class));
  }
  if (writer.size() + edns_bytes > limit || questions.size() > UINT16_MAX)
    return failure(DnsError::message_too_long);
  writer.set_u16(4, static_cast<std::uint16_t>(questions.size()));

  std::uint16_t flags = flags_of(*this);
  bool is_full = false;
  const std::vector<DnsRecord>* const sections[] = {&answers, &authorities, &additionals};
  for (std::size_t i = 0; i < std::size(sections); ++i) {
    std::uint16_t count = 0;
    for (const DnsRecord& each : *sections[i]) {
      if (is_full) break;
      const std::size_t before = writer.size();
      if (const DnsError error = write_record(writer, each); error != no_error)
        return failure(error);
      is_full = writer.size() + edns_bytes > limit || count == UINT16_MAX - 1;
      if (!is_full) {
        ++count;
      } else {
        writer.truncate(before);
      }
    }
    // Additional records are optional: RFC 2181, section 9.
    if (count != sections[i]->size() && i != 2) flags |= Header::truncated;
    const bool has_edns = i == 2 && edns;
    writer.set_u16(6 + 2 * i, static_cast<std::uint16_t>(count + (has_edns ? 1 : 0)));
  }
  if (edns) {
    if (const DnsError error = write_edns(writer, *edns, rcode); error != no_error)
      return failure(error);
  }
  writer.set_u16(2, flags);
  return out;
}

DnsMessage DnsMessage::query(DnsName name, DnsType type, std::uint16_t id) {
  DnsMessage message;
  message.id = id;
  message.recursion_desired = true;
  message.questions.push_back({.name = std::move(name), .type = type});
  message.edns.emplace();
  return message;
}

DnsMessage DnsMessage::response_to(const DnsMessage& query) {
  DnsMessage message;
  message.id = query.id;
  message.is_response = true;
  message.opcode = query.opcode;
  message.recursion_desired = query.recursion_desired;
  message.checking_disabled = query.checking_disabled;
  message.questions = query.questions;
  if (query.edns) {
    message.edns.emplace();
    message.edns->dnssec_ok = query.edns->dnssec_ok;
  }
  return message;
}

}  // namespace tambour
