// Reader: names with pointers that must lead backwards, headers, and the fixed part of records.
#include "dns_message/reader.h"

namespace tambour::dns::detail {

namespace {

constexpr std::uint8_t pointer_mask = 0xc0;
constexpr unsigned pointers_max = dns::Name::bytes_max / 2;

}  // namespace

void Reader::name(WireName& into) noexcept {
  into.clear();
  std::size_t at = at_;
  std::size_t end = end_;
  std::size_t begin = at_;  // Pointers must point before this.
  std::size_t after = 0;    // Where the name ends in the message: after its first pointer.
  unsigned pointers = 0;
  for (;;) {
    if (at >= end) return fail(dns::ErrorCode::bad_message);
    const std::uint8_t length = byte(at);
    if (length == 0) break;
    if (length <= dns::Name::label_bytes_max) {
      if (length >= end - at) return fail(dns::ErrorCode::bad_message);
      // A byte remains for the root.
      if (into.size() + length + 1U >= dns::Name::bytes_max)
        return fail(dns::ErrorCode::name_too_long);
      static_cast<void>(into.append(&message_[at], length + 1U));
      at += length + 1U;
      continue;
    }
    if (length < pointer_mask || end - at < 2) return fail(dns::ErrorCode::bad_message);
    const std::size_t target = (length & 0x3fU) << 8U | byte(at + 1);
    if (target >= begin || ++pointers > pointers_max) return fail(dns::ErrorCode::bad_pointer);
    if (after == 0) after = at + 2;
    at = begin = target;
    end = message_.size();
  }
  static_cast<void>(into.push(0));
  at_ = after != 0 ? after : at + 1;
}

dns::Name Reader::name() {
  WireName wire;
  name(wire);
  return has_failed() ? dns::Name() : NameAccess::make(wire.view());
}

void Reader::skip_name() noexcept {
  for (;;) {
    const std::uint8_t length = u8();
    if (has_failed() || length == 0) return;
    if (length >= pointer_mask) {
      u8();
      return;
    }
    if (length > dns::Name::label_bytes_max) return fail(dns::ErrorCode::bad_message);
    text(length);
  }
}

std::size_t Reader::enter(std::size_t size) noexcept {
  const std::size_t former_end = end_;
  if (size > left()) {
    fail(dns::ErrorCode::bad_message);
  } else {
    end_ = at_ + size;
  }
  return former_end;
}

void Reader::leave(std::size_t former_end) noexcept {
  // The data of the record is too short, or too long.
  if (has_failed() ? error_ == dns::ErrorCode::bad_message : at_ != end_)
    error_ = dns::ErrorCode::bad_record;
  end_ = former_end;
  if (has_failed()) at_ = end_;
}

Header Header::read(Reader& reader) noexcept {
  Header header{};
  header.id = reader.u16();
  header.flags = reader.u16();
  header.questions = reader.u16();
  header.answers = reader.u16();
  header.authorities = reader.u16();
  header.additionals = reader.u16();
  return header;
}

RecordHead RecordHead::read(Reader& reader) noexcept {
  RecordHead head{};
  head.type = dns::Type(reader.u16());
  head.record_class = dns::Class(reader.u16());
  head.ttl = reader.u32();
  head.size = reader.u16();
  return head;
}

}  // namespace tambour::dns::detail
