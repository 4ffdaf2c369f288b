// Field blocks of HTTP/2: arbitrary ones, those of the library's encoder, and Huffman codes.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"
#include "http_message/h2/huffman.h"
#include "http_message/support/hpack.h"
#include "http_message/support/hpack_reference.h"

namespace tambour::fuzz {
namespace {

using http::detail::h2::HpackDecoder;
using http::detail::h2::HpackEncoder;
using test::FieldList;

/// Arbitrary blocks, and changes of SETTINGS_HEADER_TABLE_SIZE between them.
void check_blocks(Bytes bytes) {
  HpackDecoder decoder;
  std::optional<test::ReferenceDecoder> reference;
  if (test::has_reference_hpack()) reference.emplace();
  while (!bytes.empty()) {
    const std::uint8_t head = bytes.front();
    bytes = bytes.subspan(1);
    if (head >= 0xF0) {
      const std::uint32_t size = (head & 15U) * 64;
      decoder.set_table_size_max(size);
      if (reference) reference->set_table_size_max(size);
      continue;
    }
    const std::string_view block = text_of(bytes).substr(0, head);
    bytes = bytes.subspan(block.size());
    const auto decoded = test::decode(decoder, block);
    // The fields of the message are valid or not, but the decoder does the same.
    if (reference) {
      const auto expected = reference->decode(block);
      expect(expected.has_value() == decoded.has_value(),
             decoded ? "libnghttp2 rejects the block" : text_of(decoded.error()));
      expect(!expected || *expected == *decoded, "libnghttp2 decodes other fields");
    }
    if (!decoded) {
      expect(!test::decode(decoder, "\x82"), "a decoder works after an error");
      return;
    }
    std::size_t bytes_in_table = 0;
    const auto& table = decoder.table();
    for (std::uint32_t age = 0; age < table.count(); ++age)
      bytes_in_table += table.text(table.entry(age)).size() + 32;
    expect(bytes_in_table == table.size() && table.size() <= table.size_max(),
           "the size of the table");
  }
}

/// A block by itself.
void check_block(std::string_view block) {
  HpackDecoder decoder;
  const auto decoded = test::decode(decoder, block);
  if (!test::has_reference_hpack()) return;
  const auto expected = test::ReferenceDecoder().decode(block);
  expect(expected.has_value() == decoded.has_value(), "libnghttp2 has another verdict");
  expect(!expected || *expected == *decoded, "libnghttp2 decodes another text");
}

/// A list of fields that repeats itself.
FieldList fields_of(Input& input) {
  static constexpr std::array<const char*, 12> names = {
      ":path", ":status", "accept-encoding", "authorization", "cookie",   "date",
      "etag",  "x-other", "x-another",       "server",        "location", "set-cookie"};
  FieldList list;
  for (std::size_t i = input.below(8); i > 0; --i) {
    std::string value(input.below(4) == 0 ? input.byte() : input.below(8), 'v');
    for (char& c : value) c = static_cast<char>(input.flag() ? 'a' + input.below(3) : input.byte());
    list.emplace_back(names[input.below(names.size())], value);
  }
  return list;
}

void check_round_trip(Bytes bytes) {
  Input input(bytes);
  HpackEncoder encoder(input.flag() ? 4096 : 200);
  HpackDecoder decoder;
  std::optional<test::ReferenceDecoder> reference;
  if (test::has_reference_hpack()) reference.emplace();
  for (int block = 0; block < 20 && !input.empty(); ++block) {
    for (std::size_t i = input.below(3); i > 0 && input.flag(); --i) {
      const auto size = static_cast<std::uint32_t>(input.byte() * 20);
      encoder.set_peer_table_size_max(size);
      decoder.set_table_size_max(size);
      if (reference) reference->set_table_size_max(size);
    }
    const FieldList list = fields_of(input);
    const std::string text = test::encode(encoder, list);
    const auto decoded = test::decode(decoder, text);
    expect(decoded.has_value(), decoded ? "" : text_of(decoded.error()));
    expect(*decoded == list, "the decoded fields are others");
    if (reference) expect(reference->decode(text) == list, "libnghttp2 decodes other fields");
    expect(decoder.table().size() == encoder.table().size(), "the tables differ");
  }
}

void check_huffman(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  std::string coded(text.size() + 1, '\0');
  if (const char* const end = http::detail::h2::encode_huffman(text, coded.data())) {
    coded.resize(static_cast<std::size_t>(end - coded.data()));
    expect(coded.size() < text.size(), "the coded text is not shorter");
    std::string decoded(http::detail::h2::decoded_size_max(coded.size()), '\0');
    const auto size = http::detail::h2::decode_huffman(coded, decoded.data());
    expect(size && decoded.substr(0, *size) == text, "the decoded text is another");
  }
  // Arbitrary codes, as the value of a field.
  for (std::size_t begin = 0; begin < std::min<std::size_t>(text.size(), 3); ++begin) {
    const std::string_view value = text.substr(begin, 100);
    std::string block("\0\1a", 3);
    block += static_cast<char>(0x80 | value.size());
    check_block(block.append(value));
  }
}

}  // namespace

void check_hpack(Bytes bytes) {
  check_blocks(bytes);
  check_round_trip(bytes);
  check_huffman(bytes);
}

}  // namespace tambour::fuzz
