// Encodes heads into memory of the buffer whose size is known before.
#include "http_message/h2/head_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>

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

Result<> append_head(Buffer& to, HpackEncoder& encoder, const ResponseHead& head,
                     const HeadOptions& options) {
  const int code = code_of(head.status);
  if (code < 100 || code > 999 || head.status == Status::switching_protocols)
    return failure(http::ErrorCode::bad_status);
  const std::size_t size_max = size_max_of(options) + size_max_of(head.fields) + field_size_max +
                               status_name.name.size() + number_digits_max;
  append_block(to, size_max, options, [&](char* begin) {
    BlockWriter block(encoder, begin);
    block.put_number(status_name, static_cast<std::uint64_t>(code));
    if (!options.date.empty() && !head.fields.contains(date_name.name))
      block.put(date_name, options.date);
    block.put(head.fields, false);
    if (options.content_length) block.put_number(content_length_name, *options.content_length);
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
