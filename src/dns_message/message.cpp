// Messages, parsed and written.
#include <tambour/dns/message.h>

#include <utility>

#include "dns_message/reader.h"
#include "dns_message/record_data.h"
#include "dns_message/writer.h"

namespace tambour::dns {

namespace {

using detail::Header;
using detail::no_error;
using detail::Reader;
using detail::RecordHead;
using detail::Writer;

constexpr std::uint32_t dnssec_ok_bit = 0x8000;

void set_flags(Message& message, const Header& header) noexcept {
  const auto has = [&](std::uint16_t bit) { return (header.flags & bit) != 0; };
  message.id = header.id;
  message.is_response = has(Header::response);
  message.opcode = Opcode(header.opcode());
  message.authoritative = has(Header::authoritative);
  message.truncated = has(Header::truncated);
  message.recursion_desired = has(Header::recursion_desired);
  message.recursion_available = has(Header::recursion_available);
  message.authentic_data = has(Header::authentic_data);
  message.checking_disabled = has(Header::checking_disabled);
  message.rcode = Rcode(header.rcode());
}

std::uint16_t flags_of(const Message& message) noexcept {
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
Edns read_edns(Reader& reader, const RecordHead& head, Rcode& rcode) {
  Edns edns;
  edns.udp_bytes = static_cast<std::uint16_t>(head.record_class);
  rcode = Rcode(head.ttl >> 24U << 4U | static_cast<unsigned>(rcode));
  edns.version = static_cast<std::uint8_t>(head.ttl >> 16U);
  edns.dnssec_ok = (head.ttl & dnssec_ok_bit) != 0;
  edns.flags = static_cast<std::uint16_t>(head.ttl & ~dnssec_ok_bit);
  const std::size_t former_end = reader.enter(head.size);
  if (reader.has_failed()) return edns;
  while (reader.left() != 0) {
    Option option;
    option.code = reader.u16();
    option.data = reader.text(reader.u16());
    edns.options.push_back(std::move(option));
  }
  reader.leave(former_end);
  return edns;
}

class Parser {
 public:
  Parser(detail::Bytes bytes, Message& into) noexcept : reader_(bytes), message_(into) {}

  ErrorCode parse() {
    const Header header = Header::read(reader_);
    set_flags(message_, header);
    for (unsigned i = 0; i < header.questions && !reader_.has_failed(); ++i) {
      Question& question = message_.questions.emplace_back();
      question.name = reader_.name();
      question.type = Type(reader_.u16());
      question.question_class = Class(reader_.u16());
    }
    section(header.answers, message_.answers, false);
    section(header.authorities, message_.authorities, false);
    section(header.additionals, message_.additionals, true);
    if (reader_.left() != 0) reader_.fail(ErrorCode::bad_message);
    return reader_.error();
  }

 private:
  void section(unsigned count, std::vector<Record>& into, bool may_have_edns) {
    for (unsigned i = 0; i < count && !reader_.has_failed(); ++i) {
      Name name = reader_.name();
      const RecordHead head = RecordHead::read(reader_);
      if (reader_.has_failed()) return;
      if (head.type == Type::opt) {
        if (!may_have_edns || message_.edns || !name.is_root())
          return reader_.fail(ErrorCode::bad_edns);
        message_.edns = read_edns(reader_, head, message_.rcode);
        continue;
      }
      Record& record = into.emplace_back();
      record.name = std::move(name);
      record.type = head.type;
      record.record_class = head.record_class;
      record.ttl = detail::ttl_of(head.ttl);
      record.data = detail::read_data(reader_, head, message_.opcode == Opcode::update);
    }
  }

  Reader reader_;
  Message& message_;
};

/// Returns an error, which does not depend on the limit.
ErrorCode write_record(Writer& writer, const Record& record) {
  writer.compressed_name(record.name.wire());
  writer.u16(static_cast<std::uint16_t>(record.type));
  writer.u16(static_cast<std::uint16_t>(record.record_class));
  writer.u32(record.ttl);
  const std::size_t size_at = writer.size();
  writer.u16(0);
  if (const ErrorCode error = detail::write_data(writer, record); error != no_error) return error;
  const std::size_t size = writer.size() - size_at - 2;
  if (size > UINT16_MAX) return ErrorCode::bad_record;
  writer.set_u16(size_at, static_cast<std::uint16_t>(size));
  return no_error;
}

ErrorCode write_edns(Writer& writer, const Edns& edns, Rcode rcode) {
  writer.u8(0);
  writer.u16(static_cast<std::uint16_t>(Type::opt));
  writer.u16(edns.udp_bytes);
  writer.u8(static_cast<std::uint8_t>(static_cast<unsigned>(rcode) >> 4U));
  writer.u8(edns.version);
  writer.u16(static_cast<std::uint16_t>((edns.flags & ~dnssec_ok_bit) |
                                        (edns.dnssec_ok ? dnssec_ok_bit : 0U)));
  const std::size_t size_at = writer.size();
  writer.u16(0);
  for (const Option& option : edns.options) {
    if (option.data.size() > UINT16_MAX) return ErrorCode::bad_edns;
    writer.u16(option.code);
    writer.u16(static_cast<std::uint16_t>(option.data.size()));
    writer.text(option.data);
  }
  const std::size_t size = writer.size() - size_at - 2;
  if (size > UINT16_MAX) return ErrorCode::bad_edns;
  writer.set_u16(size_at, static_cast<std::uint16_t>(size));
  return no_error;
}

std::size_t size_of(const std::optional<Edns>& edns) noexcept {
  if (!edns) return 0;
  std::size_t size = 11;
  for (const Option& option : edns->options) size += 4 + option.data.size();
  return size;
}

}  // namespace

Result<Message> Message::parse(std::span<const std::byte> bytes) {
  Message message;
  const auto failure = [](ErrorCode error) { return std::unexpected(make_error_code(error)); };
  if (bytes.size() > bytes_max) return failure(ErrorCode::message_too_long);
  if (const ErrorCode error = Parser(bytes, message).parse(); error != no_error)
    return failure(error);
  return message;
}

Result<std::string> Message::write(std::size_t limit_bytes) const {
  const auto failure = [](ErrorCode error) { return std::unexpected(make_error_code(error)); };
  if (static_cast<unsigned>(rcode) > 0xf && (!edns || static_cast<unsigned>(rcode) > 0xfff))
    return failure(ErrorCode::bad_edns);
  const std::size_t limit = std::min(limit_bytes, bytes_max);
  const std::size_t edns_bytes = size_of(edns);
  std::string out;
  Writer writer(out);
  writer.text(std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0", Header::bytes));
  writer.set_u16(0, id);
  for (const Question& question : questions) {
    writer.compressed_name(question.name.wire());
    writer.u16(static_cast<std::uint16_t>(question.type));
    writer.u16(static_cast<std::uint16_t>(question.question_class));
  }
  if (writer.size() + edns_bytes > limit || questions.size() > UINT16_MAX)
    return failure(ErrorCode::message_too_long);
  writer.set_u16(4, static_cast<std::uint16_t>(questions.size()));

  std::uint16_t flags = flags_of(*this);
  bool is_full = false;
  const std::vector<Record>* const sections[] = {&answers, &authorities, &additionals};
  for (std::size_t i = 0; i < std::size(sections); ++i) {
    std::uint16_t count = 0;
    for (const Record& section : *sections[i]) {
      if (is_full) break;
      const std::size_t before = writer.size();
      if (const ErrorCode error = write_record(writer, section); error != no_error)
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
    if (const ErrorCode error = write_edns(writer, *edns, rcode); error != no_error)
      return failure(error);
  }
  writer.set_u16(2, flags);
  return out;
}

Message Message::query(Name name, Type type, std::uint16_t id) {
  Message message;
  message.id = id;
  message.recursion_desired = true;
  message.questions.push_back({.name = std::move(name), .type = type});
  message.edns.emplace();
  return message;
}

Message Message::response_to(const Message& query) {
  Message message;
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

}  // namespace tambour::dns
