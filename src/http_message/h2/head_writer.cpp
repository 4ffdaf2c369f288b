// Encodes heads into memory of the buffer whose size is known before.
#include "http_message/h2/head_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>

#include "bytes/short_copy.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"
#include "http_message/h1/trailers.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/request_target.h"

namespace tambour::http::detail::h2 {
namespace {

/// A field whose name has a hash that is known when the program is compiled.
struct FieldName {
  std::string_view name;
  std::uint32_t hash = hash_of_name(name);
};

constexpr FieldName method_name{":method"};
constexpr FieldName scheme_name{":scheme"};
constexpr FieldName authority_name{":authority"};
constexpr FieldName path_name{":path"};
constexpr FieldName protocol_name{":protocol"};
constexpr FieldName status_name{":status"};
constexpr FieldName content_length_name{"content-length"};
constexpr FieldName date_name{"date"};

constexpr std::size_t number_digits_max = 20;

class BlockWriter {
 public:
  BlockWriter(HpackEncoder& encoder, char* to) noexcept
      : encoder_(encoder), at_(encoder.begin(to)) {}

  void put(const FieldName& name, std::string_view value) noexcept {
    at_ = encoder_.encode(at_, name.name, name.hash, &known_name_of(name.hash), value);
  }
  void put_number(const FieldName& name, std::uint64_t number) noexcept {
    std::array<char, number_digits_max> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    put(name, {digits.begin(), end});
  }
  /// All fields but those that other parts of the head, or the protocol, determine.
  void put(const Fields& fields, bool is_request) noexcept {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field field = fields[i];
      const std::uint32_t hash = detail::FieldWriter::hash_of(fields, i);
      const KnownName* const known = find_known_name(field.name, hash);
      if (known == nullptr || is_written(known->kind, field.value, is_request))
        at_ = encoder_.encode(at_, field.name, hash, known, field.value);
    }
  }
  [[nodiscard]] char* end() const noexcept { return at_; }

 private:
  [[nodiscard]] static bool is_written(NameKind kind, std::string_view value,
                                       bool is_request) noexcept {
    switch (kind) {
      case NameKind::connection_specific:
      case NameKind::content_length:
        return false;
      case NameKind::host:
        return !is_request;
      case NameKind::te:
        return equal_ignoring_case(value, "trailers");
      default:
        return true;
    }
  }

  HpackEncoder& encoder_;
  char* at_;
};

/// True if all representations of a part of a block are indices: RFC 7541, section 6.1. It is
/// short: each index takes one or two bytes.
bool has_only_indices(std::string_view block) noexcept {
  constexpr unsigned char indexed_bit = 0x80;
  constexpr unsigned char first_bits = 0x7F;
  for (std::size_t at = 0; at < block.size(); ++at) {
    const auto byte = static_cast<unsigned char>(block[at]);
    if ((byte & indexed_bit) == 0) return false;
    if ((byte & first_bits) != first_bits) continue;
    do ++at;
    while (at < block.size() && (static_cast<unsigned char>(block[at]) & indexed_bit) != 0);
  }
  return true;
}

/// Appends a block of at most `size_max` bytes, which `write` writes to its argument; it returns
/// the end. All memory is allocated before.
template <class Write>
void append_block(Buffer& to, std::size_t size_max, const HeadOptions& options, Write write) {
  const std::size_t part_max = options.frame_size_max;
  const std::size_t heads_size = frame_head_size * (1 + size_max / part_max);
  const std::span<std::byte> memory = to.prepare(heads_size + size_max);
  std::byte* at = memory.data();
  // If the block needs several frames, its parts move to the front, behind their heads.
  const std::byte* from = at + heads_size;
  char* const begin = reinterpret_cast<char*>(at) + heads_size;
  auto left = static_cast<std::size_t>(write(begin) - begin);
  auto type = FrameType::headers;
  unsigned flags = options.end_stream ? flag::end_stream : 0U;
  do {
    const std::size_t size = std::min(left, part_max);
    left -= size;
    if (left == 0) flags |= flag::end_headers;
    if (from != at + frame_head_size) std::memmove(at + frame_head_size, from, size);
    write_frame_head(at, static_cast<std::uint32_t>(size), type, static_cast<std::uint8_t>(flags),
                     options.stream_id);
    at += frame_head_size + size;
    from += size;
    type = FrameType::continuation;
    flags = 0;
  } while (left > 0);
  to.commit(static_cast<std::size_t>(at - memory.data()));
}

/// The maximum of what put() writes for a field, apart from its name and value.
constexpr std::size_t field_size_max = HpackEncoder::encoded_size_max(0, 0);
/// The same of all fields of HeadOptions and of the beginning of the block.
std::size_t size_max_of(const HeadOptions& options) noexcept {
  return HpackEncoder::begin_size_max + 3 * field_size_max + content_length_name.name.size() +
         number_digits_max + date_name.name.size() + options.date.size() +
         protocol_name.name.size() + options.protocol.size();
}

std::size_t size_max_of(const Fields& fields) noexcept {
  return fields.bytes() + fields.size() * field_size_max;
}

Result<> check_request(const RequestHead& head, const HeadOptions& options) noexcept {
  if (options.protocol.empty()) return check_target(head);
  // An extended CONNECT has the target of any other request: RFC 8441, section 4.
  if (head.method != Method::connect) return failure(http::ErrorCode::bad_target);
  return check_extended_connect(head);
}

/// `last` may be null.
Result<> append_response(Buffer& to, HpackEncoder& encoder, ResponseBlock* last,
                         const ResponseHead& head, const HeadOptions& options) {
  const int code = code_of(head.status);
  if (code < 100 || code > 999 || head.status == Status::switching_protocols)
    return failure(http::ErrorCode::bad_status);
  const std::size_t size_max = size_max_of(options) + size_max_of(head.fields) + field_size_max +
                               status_name.name.size() + number_digits_max;
  append_block(to, size_max, options, [&](char* begin) {
    BlockWriter block(encoder, begin);
    const std::uint64_t state = encoder.table_state();
    block.put_number(status_name, static_cast<std::uint64_t>(code));
    if (!options.date.empty() && !head.fields.contains(date_name.name))
      block.put(date_name, options.date);
    block.put(head.fields, false);
    const char* const fixed_end = block.end();
    if (options.content_length) block.put_number(content_length_name, *options.content_length);
    if (last != nullptr)
      last->note(encoder.table_state() == state ? state : 0, head, options, {begin, fixed_end},
                 {begin, block.end()});
    return block.end();
  });
  return {};
}

}  // namespace

Result<> append_head(Buffer& to, HpackEncoder& encoder, const RequestHead& head,
                     const HeadOptions& options) {
  if (auto checked = check_request(head, options); !checked) return checked;
  const std::string_view scheme = head.scheme.empty() ? "https" : std::string_view(head.scheme);
  const std::string_view method = head.method.name();
  constexpr std::size_t names_size = 32;
  const std::size_t size_max = size_max_of(options) + size_max_of(head.fields) + names_size +
                               4 * field_size_max + method.size() + scheme.size() +
                               head.authority.size() + head.target.size();
  append_block(to, size_max, options, [&](char* begin) {
    BlockWriter block(encoder, begin);
    block.put(method_name, method);
    // A tunnel has neither scheme nor path: RFC 9113, section 8.5.
    const bool is_tunnel = head.form == TargetForm::authority;
    if (!options.protocol.empty()) block.put(protocol_name, options.protocol);
    if (!is_tunnel) block.put(scheme_name, scheme);
    if (!head.authority.empty()) block.put(authority_name, head.authority);
    if (!is_tunnel) block.put(path_name, head.target);
    block.put(head.fields, true);
    if (options.content_length) block.put_number(content_length_name, *options.content_length);
    return block.end();
  });
  return {};
}

ResponseBlock::Match ResponseBlock::find(const HpackEncoder& encoder, const ResponseHead& head,
                                         const HeadOptions& options) const noexcept {
  if (table_state_ == 0 || table_state_ != encoder.table_state() ||
      status_ != code_of(head.status) || !are_equal({date_.data(), date_size_}, options.date) ||
      !detail::FieldWriter::are_same(fields_, head.fields))
    return {};
  const bool has_length =
      !options.content_length || (size_ > 0 && *options.content_length == content_length_);
  const std::size_t size = options.content_length && has_length ? size_ : fixed_size_;
  return {.block = {bytes_.data(), size}, .has_length = has_length};
}

void ResponseBlock::note(std::uint64_t table_state, const ResponseHead& head,
                         const HeadOptions& options, std::string_view fixed,
                         std::string_view block) noexcept {
  constexpr std::size_t fields_bytes_max = 512;
  constexpr std::size_t fields_max = 24;
  const std::size_t fields_bytes = head.fields.bytes();
  const int status = code_of(head.status);
  const bool is_repeated = fields_bytes_ == fields_bytes && status_ == status;
  fields_bytes_ = fields_bytes;
  status_ = status;
  table_state_ = 0;
  if (table_state == 0 || !is_repeated || fixed.size() > block_bytes_max ||
      options.date.size() > date_bytes_max || fields_bytes > fields_bytes_max ||
      head.fields.size() > fields_max || !has_only_indices(fixed))
    return;
  try {
    fields_ = head.fields;
  } catch (const std::bad_alloc&) {
    return;
  }
  fixed_size_ = static_cast<std::uint8_t>(fixed.size());
  size_ = 0;
  if (options.content_length && block.size() <= block_bytes_max && has_only_indices(block)) {
    size_ = static_cast<std::uint8_t>(block.size());
    content_length_ = *options.content_length;
  }
  std::ranges::copy(size_ > 0 ? block : fixed, bytes_.begin());
  std::ranges::copy(options.date, date_.begin());
  date_size_ = static_cast<std::uint8_t>(options.date.size());
  table_state_ = table_state;
}

Result<> append_head(Buffer& to, HpackEncoder& encoder, const ResponseHead& head,
                     const HeadOptions& options, ResponseBlock* last) {
  const auto match = last != nullptr ? last->find(encoder, head, options) : ResponseBlock::Match();
  if (match.block.empty()) return append_response(to, encoder, last, head, options);
  const std::size_t size_max =
      match.block.size() + content_length_name.name.size() + number_digits_max + field_size_max;
  append_block(to, size_max, options, [&](char* begin) {
    char* const end = bytes::copy_short(begin, match.block);
    if (match.has_length) return end;
    BlockWriter block(encoder, end);
    block.put_number(content_length_name, *options.content_length);
    return block.end();
  });
  return {};
}

Result<> append_trailers(Buffer& to, HpackEncoder& encoder, const Fields& trailers,
                         const HeadOptions& options) {
  for (const Field field : trailers) {
    if (!h1::may_be_trailer(field.name)) return failure(http::ErrorCode::trailer_not_allowed);
  }
  HeadOptions ending = options;
  ending.end_stream = true;
  append_block(to, size_max_of(options) + size_max_of(trailers), ending, [&](char* begin) {
    BlockWriter block(encoder, begin);
    block.put(trailers, false);
    return block.end();
  });
  return {};
}

}  // namespace tambour::http::detail::h2
