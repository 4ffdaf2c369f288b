// HPACK: the examples of RFC 7541, errors, limits, and what the encoder adds to its table.
#include "http_message/support/hpack.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/hpack_encoder.h"
#include "http_message/h2/huffman.h"
#include "http_message/support/hpack_reference.h"
#include "support/scale.h"

namespace tambour::hpack_test {
namespace {

using http::detail::h2::DynamicTable;
using http::detail::h2::FieldSection;
using http::detail::h2::HpackDecoder;
using http::detail::h2::HpackEncoder;
using http::detail::h2::Violation;
using test::decode;
using test::encode;
using test::FieldList;
using test::from_hex;

/// The error of a block, decoded by a new decoder.
Violation error_of(std::string_view hex) {
  HpackDecoder decoder;
  const auto decoded = decode(decoder, from_hex(hex));
  EXPECT_FALSE(decoded) << hex;
  return decoded ? Violation::bad_preface : decoded.error();
}

TEST(Hpack, decodes_the_request_examples_of_the_rfc) {
  // RFC 7541, appendix C.3 and C.4: the same with and without Huffman codes.
  const FieldList first = {
      {":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"}};
  FieldList second = first;
  second.emplace_back("cache-control", "no-cache");
  const FieldList third = {{":method", "GET"},
                           {":scheme", "https"},
                           {":path", "/index.html"},
                           {":authority", "www.example.com"},
                           {"custom-key", "custom-value"}};
  HpackDecoder plain;
  EXPECT_EQ(decode(plain, from_hex("828684410f7777772e6578616d706c652e636f6d")), first);
  EXPECT_EQ(plain.table().size(), 57U);
  EXPECT_EQ(decode(plain, from_hex("828684be58086e6f2d6361636865")), second);
  EXPECT_EQ(plain.table().size(), 110U);
  EXPECT_EQ(decode(plain, from_hex("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565")),
            third);
  EXPECT_EQ(plain.table().size(), 164U);
  HpackDecoder coded;
  EXPECT_EQ(decode(coded, from_hex("828684418cf1e3c2e5f23a6ba0ab90f4ff")), first);
  EXPECT_EQ(decode(coded, from_hex("828684be5886a8eb10649cbf")), second);
  EXPECT_EQ(decode(coded, from_hex("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf")), third);
  EXPECT_EQ(coded.table().count(), 3U);
}

TEST(Hpack, evicts_as_in_the_response_examples_of_the_rfc) {
  // RFC 7541, appendix C.6, with a table of 256 bytes.
  HpackDecoder decoder(256);
  const FieldList first = {{":status", "302"},
                           {"cache-control", "private"},
                           {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
                           {"location", "https://www.example.com"}};
  EXPECT_EQ(decode(decoder, from_hex("488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e0"
                                     "82a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3")),
            first);
  EXPECT_EQ(decoder.table().size(), 222U);
  FieldList second = first;
  second[0].second = "307";
  EXPECT_EQ(decode(decoder, from_hex("4883640effc1c0bf")), second);
  EXPECT_EQ(decoder.table().size(), 222U);
  const FieldList third = {
      {":status", "200"},
      {"cache-control", "private"},
      {"date", "Mon, 21 Oct 2013 20:13:22 GMT"},
      {"location", "https://www.example.com"},
      {"content-encoding", "gzip"},
      {"set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"}};
  EXPECT_EQ(decode(decoder, from_hex("88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839b"
                                     "d9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab27"
                                     "0fb5291f9587316065c003ed4ee5b1063d5007")),
            third);
  EXPECT_EQ(decoder.table().size(), 215U);
}

TEST(Hpack, decodes_each_representation_of_a_literal) {
  HpackDecoder decoder;
  EXPECT_EQ(decode(decoder, from_hex("040c2f73616d706c652f70617468")),
            (FieldList{{":path", "/sample/path"}}));
  EXPECT_EQ(decode(decoder, from_hex("100870617373776f726406736563726574")),
            (FieldList{{"password", "secret"}}));
  EXPECT_EQ(decoder.table().count(), 0U);
  EXPECT_EQ(decode(decoder, ""), FieldList());
  EXPECT_EQ(decode(decoder, from_hex("40 00 00 be")), (FieldList{{"", ""}, {"", ""}}));
}

TEST(Hpack, rejects_malformed_blocks) {
  EXPECT_EQ(error_of("80"), Violation::bad_index);
  EXPECT_EQ(error_of("be"), Violation::bad_index);
  EXPECT_EQ(error_of("7e 01 61"), Violation::bad_index);
  EXPECT_EQ(error_of("ff ff ff ff ff 0f"), Violation::integer_too_large);
  EXPECT_EQ(error_of("ff 80 80 80 80 80 01"), Violation::integer_too_large);
  EXPECT_EQ(error_of("ff 80 80 80 80 10"), Violation::integer_too_large);
  EXPECT_EQ(error_of("ff"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("ff 80"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("40"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("40 02 61"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("40 01 61"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("40 01 61 05 61"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("40 7f"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("41"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("0f"), Violation::truncated_field_block);
  EXPECT_EQ(error_of("82 20"), Violation::late_table_size_update);
  EXPECT_EQ(error_of("3f e2 1f"), Violation::table_size_too_large);
  EXPECT_EQ(error_of("3f"), Violation::truncated_field_block);
}

TEST(Hpack, rejects_bad_huffman_codes) {
  // EOS; EOS after a text; padding that is not all ones; padding of 8 bits; a code that is cut.
  EXPECT_EQ(error_of("40 01 61 84 ff ff ff ff"), Violation::bad_huffman_code);
  EXPECT_EQ(error_of("40 01 61 8c 3f ff ff ff ff ff ff ff ff ff ff ff"),
            Violation::bad_huffman_code);
  EXPECT_EQ(error_of("40 01 61 81 18"), Violation::bad_huffman_padding);
  EXPECT_EQ(error_of("40 01 61 82 1f ff"), Violation::bad_huffman_padding);
  EXPECT_EQ(error_of("40 01 61 81 ff"), Violation::bad_huffman_padding);
  EXPECT_EQ(error_of("40 81 ff 00"), Violation::bad_huffman_padding);
}

TEST(Hpack, fails_again_after_an_error) {
  HpackDecoder decoder;
  EXPECT_EQ(decode(decoder, from_hex("80")).error(), Violation::bad_index);
  EXPECT_EQ(decode(decoder, from_hex("82")).error(), Violation::decoder_failed);
}

TEST(Hpack, expects_a_size_update_after_a_reduction) {
  HpackDecoder decoder;
  ASSERT_TRUE(decode(decoder, from_hex("40 01 61 01 62")));
  decoder.set_table_size_max(0);
  decoder.set_table_size_max(100);
  EXPECT_EQ(decoder.table().count(), 0U);
  // The smallest size must come first; another may follow.
  ASSERT_EQ(decode(decoder, from_hex("20 3f 45 82")), (FieldList{{":method", "GET"}}));
  EXPECT_EQ(decoder.table().size_max(), 100U);
  decoder.set_table_size_max(50);
  EXPECT_EQ(decode(decoder, from_hex("82")).error(), Violation::missing_table_size_update);
  HpackDecoder other;
  other.set_table_size_max(50);
  EXPECT_EQ(decode(other, from_hex("3f 14 82")).error(), Violation::table_size_too_large);
  HpackDecoder larger;
  larger.set_table_size_max(5000);
  EXPECT_TRUE(decode(larger, from_hex("3f e9 26 82")));
  EXPECT_EQ(larger.table().size_max(), 5000U);
}

TEST(Hpack, limits_what_a_section_stores_but_decodes_all) {
  const http::detail::h2::FieldLimits limits = {
      .fields_max = 3, .fields_hard_max = 5, .bytes_max = 1000};
  const std::string field = from_hex("40 01 61 01 62");
  HpackDecoder decoder;
  FieldSection section(limits);
  ASSERT_TRUE(decoder.decode(field + field + field + field, section));
  EXPECT_TRUE(section.is_too_large());
  EXPECT_TRUE(section.is_rejected());
  EXPECT_EQ(section.count(), 4U);
  EXPECT_EQ(section.bytes(), 4U * 34);
  EXPECT_EQ(decoder.table().count(), 4U);
  FieldSection hard(limits);
  const auto decoded = decoder.decode(std::string(6, '\xbe'), hard);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error(), Violation::far_too_many_fields);
  EXPECT_EQ(code_of(decoded.error()), http::detail::h2::ErrorCode::enhance_your_calm);
}

TEST(Hpack, counts_32_bytes_for_each_field) {
  const http::detail::h2::FieldLimits limits = {.bytes_max = 2 * 34};
  HpackDecoder decoder;
  FieldSection fitting(limits);
  ASSERT_TRUE(decoder.decode(from_hex("40 01 61 01 62 be"), fitting));
  EXPECT_FALSE(fitting.is_too_large());
  FieldSection larger(limits);
  ASSERT_TRUE(decoder.decode(from_hex("be 00 01 61 02 62 62"), larger));
  EXPECT_TRUE(larger.is_too_large());
}

TEST(Hpack, stores_large_sections) {
  std::mt19937 random(1);
  HpackDecoder decoder;
  HpackEncoder encoder;
  FieldList list;
  for (int i = 0; i < 300; ++i)
    list.emplace_back("name-" + std::to_string(i), std::string(random() % 100, 'v'));
  list.emplace_back("long", std::string(60'000, 'x'));
  list.emplace_back(std::string(300, 'n'), "value");
  EXPECT_EQ(decode(decoder, encode(encoder, list)), list);
  // A name that Fields cannot describe.
  FieldSection section(test::wide_limits);
  ASSERT_TRUE(decoder.decode(encode(encoder, {{std::string(70'000, 'n'), ""}}), section));
  EXPECT_TRUE(section.is_too_large());
}

TEST(Huffman, codes_every_byte) {
  for (int length : {1, 2, 3, 7, 30}) {
    for (int c = 0; c < 256; ++c) {
      // Short codes around it make the coded text shorter than the text.
      const std::string text =
          "00000000000000000000" +
          std::string(static_cast<std::size_t>(length / 4 + 1), static_cast<char>(c)) +
          std::string(static_cast<std::size_t>(length) * 12, 'e');
      std::string coded(text.size(), '\0');
      const char* const end = http::detail::h2::encode_huffman(text, coded.data());
      ASSERT_NE(end, nullptr);
      coded.resize(static_cast<std::size_t>(end - coded.data()));
      std::string decoded(http::detail::h2::decoded_size_max(coded.size()), '\0');
      const auto size = http::detail::h2::decode_huffman(coded, decoded.data());
      ASSERT_TRUE(size);
      EXPECT_EQ(decoded.substr(0, *size), text);
    }
  }
}

TEST(Huffman, is_used_only_if_it_is_shorter) {
  std::string to(16, '\0');
  EXPECT_EQ(http::detail::h2::encode_huffman("", to.data()), nullptr);
  EXPECT_EQ(http::detail::h2::encode_huffman("a", to.data()), nullptr);
  EXPECT_EQ(http::detail::h2::encode_huffman("\x01\x02\x03\x04", to.data()), nullptr);
  EXPECT_EQ(http::detail::h2::encode_huffman("~~~~~~", to.data()), nullptr);
  EXPECT_NE(http::detail::h2::encode_huffman("aaaa", to.data()), nullptr);
}

TEST(HpackEncoder, indexes_what_repeats) {
  HpackEncoder encoder;
  const FieldList head = {{":status", "200"}, {"server", "tambour"}, {"etag", "\"a\""}};
  encode(encoder, head);
  EXPECT_EQ(encoder.table().count(), 1U);  // "server".
  const std::string second = encode(encoder, head);
  EXPECT_EQ(encoder.table().count(), 2U);
  const std::string third = encode(encoder, head);
  EXPECT_EQ(third, from_hex("88 bf be"));
  EXPECT_LT(third.size(), second.size());
}

TEST(HpackEncoder, never_indexes_secrets) {
  HpackEncoder encoder;
  for (const char* name : {"authorization", "proxy-authorization", "set-cookie", "cookie"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string block = encode(encoder, {{name, "secret"}});
      EXPECT_EQ(block[0] & 0xF0, 0x10) << name;
      HpackDecoder decoder;
      EXPECT_EQ(decode(decoder, block), (FieldList{{name, "secret"}}));
    }
  }
  EXPECT_EQ(encoder.table().count(), 0U);
  encode(encoder, {{"cookie", "a-long-value-that-cannot-be-guessed"}});
  EXPECT_EQ(encoder.table().count(), 1U);
}

TEST(HpackEncoder, does_not_fill_the_table_with_one_field) {
  HpackEncoder encoder;
  const std::string large(3000, 'a');
  EXPECT_NE(encode(encoder, {{"user-agent", large}}).size(), 0U);
  EXPECT_EQ(encoder.table().count(), 0U);
}

TEST(HpackEncoder, converts_names_to_lower_case) {
  HpackEncoder encoder;
  HpackDecoder decoder;
  const FieldList mixed = {{"Content-Type", "text/plain"}, {"X-Some-Name", "A"}};
  const FieldList lower = {{"content-type", "text/plain"}, {"x-some-name", "A"}};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(decode(decoder, encode(encoder, mixed)), lower);
  EXPECT_EQ(encode(encoder, lower), from_hex("bf be"));
}

TEST(HpackEncoder, announces_sizes_of_the_table) {
  HpackEncoder small(100);
  EXPECT_EQ(encode(small, {{":method", "GET"}}), from_hex("3f 45 82"));
  EXPECT_EQ(encode(small, {{":method", "GET"}}), from_hex("82"));
  small.set_peer_table_size_max(0);
  small.set_peer_table_size_max(50);
  EXPECT_EQ(encode(small, {{":method", "GET"}}), from_hex("20 3f 13 82"));
  small.set_peer_table_size_max(60);
  small.set_peer_table_size_max(0);
  EXPECT_EQ(encode(small, {{":method", "GET"}}), from_hex("20 82"));
  HpackEncoder encoder;
  encoder.set_peer_table_size_max(1 << 20);  // It need not be used.
  EXPECT_EQ(encode(encoder, {{":method", "GET"}}), from_hex("82"));
}

TEST(DynamicTable, keeps_its_bound_of_memory) {
  std::mt19937 random(1);
  for (const std::uint32_t size_max : {64U, 300U, 4096U, 20'000U}) {
    DynamicTable table;
    table.set_size_max(size_max);
    EXPECT_EQ(table.memory_bytes(), 0U);
    std::vector<std::string> model;
    for (int i = 0; i < 5000; ++i) {
      const std::string name(random() % 20, 'n');
      const std::string value(random() % (i % 100 == 0 ? size_max : 60), static_cast<char>(i));
      ASSERT_TRUE(table.add(name, value, 1, 2));
      model.insert(model.begin(), name + value);
      std::size_t kept = 0;
      for (std::size_t total = 0; kept < model.size(); ++kept) {
        total += model[kept].size() + DynamicTable::entry_overhead;
        if (total > size_max) break;
      }
      model.resize(kept);
      ASSERT_EQ(table.count(), model.size());
      for (std::uint32_t age = 0; age < table.count(); ++age)
        ASSERT_EQ(table.text(table.entry(age)), model[age]);
      // The ring of entries has at most twice as many as fit, of 20 bytes each.
      ASSERT_LE(table.memory_bytes(), size_max * 5 / 4 + (2 * size_max / 32 + 8) * 20);
      if (i % 1000 == 999) {
        table.set_size_max(0);
        model.clear();
        EXPECT_EQ(table.count(), 0U);
        table.set_size_max(size_max);
      }
    }
  }
}

class HpackReference : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_reference_hpack()) GTEST_SKIP() << "built without libnghttp2";
  }

  static FieldList random_list(std::mt19937& random) {
    static const std::vector<std::string> names = {
        ":method", ":path",  ":status", "accept", "cookie",        "content-type", "etag",
        "x-a",     "x-long", "date",    "server", "authorization", "set-cookie",   "te"};
    FieldList list;
    for (std::size_t i = random() % 12; i > 0; --i) {
      std::string value = "value" + std::to_string(random() % 4);
      if (random() % 4 == 0) value.assign(random() % 200, static_cast<char>(random()));
      list.emplace_back(names[random() % names.size()], value);
    }
    return list;
  }
};

TEST_F(HpackReference, decodes_what_the_library_encodes_and_the_reverse) {
  std::mt19937 random(1);
  for (int connection = 0; connection < (test::sanitized ? 20 : 200); ++connection) {
    HpackEncoder encoder;
    HpackDecoder decoder;
    test::ReferenceDecoder reference_decoder;
    test::ReferenceEncoder reference_encoder;
    for (int block = 0; block < 100; ++block) {
      if (random() % 20 == 0) {
        const std::uint32_t size = random() % 4 == 0 ? 0 : random() % 5000;
        encoder.set_peer_table_size_max(size);
        reference_decoder.set_table_size_max(size);
      }
      if (random() % 20 == 0) {
        const std::uint32_t size = random() % 4 == 0 ? 0 : random() % 5000;
        decoder.set_table_size_max(size);
        reference_encoder.set_table_size_max(size);
      }
      const FieldList list = random_list(random);
      ASSERT_EQ(reference_decoder.decode(encode(encoder, list)), list);
      ASSERT_EQ(decode(decoder, reference_encoder.encode(list)), list);
    }
  }
}

/// A text as hexadecimal digits, with "-" for an empty one.
std::string to_hex(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    digits += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    digits += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return digits.empty() ? "-" : digits;
}

TEST_F(HpackReference, of_python_decodes_what_the_library_encodes) {
  if (std::system("/usr/bin/python3 -c 'import hpack' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-hpack is not installed";
  static constexpr const char* script = R"(
import sys, hpack
text = lambda digits: b'' if digits == '-' else bytes.fromhex(digits)
decoder = hpack.Decoder()
for line in sys.stdin:
    block, *expected = map(text, line.split())
    decoded = [part for field in decoder.decode(block, raw=True) for part in field]
    assert decoded == expected, line
)";
  std::mt19937 random(7);
  HpackEncoder encoder;
  const std::string command = std::string("/usr/bin/python3 -c \"") + script + '"';
  std::FILE* const python = popen(command.c_str(), "w");
  ASSERT_NE(python, nullptr);
  for (int block = 0; block < 500; ++block) {
    if (random() % 20 == 0) encoder.set_peer_table_size_max(random() % 4097);
    const FieldList list = random_list(random);
    std::string line = to_hex(encode(encoder, list));
    for (const auto& [name, value] : list) line += ' ' + to_hex(name) + ' ' + to_hex(value);
    std::fprintf(python, "%s\n", line.c_str());
  }
  EXPECT_EQ(pclose(python), 0);
}

}  // namespace
}  // namespace tambour::hpack_test
