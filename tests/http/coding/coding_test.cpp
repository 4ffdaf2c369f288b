// Encoders and decoders of content codings, and the choice of a coding.
#include <tambour/http/coding.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>
#include <tambour/net/stream_error.h>

#include "http/coding/body_decoder.h"
#include "http/coding/codec.h"
#include "http/coding/negotiation.h"
#include "http/support/coded.h"

namespace tambour::coding_test {
namespace {

using http::Coding;
using http::DecodingLimits;
using http::Fields;
using http::detail::coding::BodyDecoder;
using http::detail::coding::Decoder;
using http::detail::coding::Encoder;
using test::encoded;
using test::text_of_bytes;

struct Decoded {
  std::string text;
  Error error{};
  bool may_end = false;
};

/// Decodes in pieces of the input, with at most `bytes_max` of output at a time.
Decoded decoded(Coding coding, std::string_view text, std::size_t piece, std::size_t bytes_max) {
  const auto decoder = http::detail::coding::make_decoder(coding);
  Buffer input;
  Buffer output;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    input.append(text.substr(at, piece));
    for (;;) {
      const auto got = decoder->decode(input, output, bytes_max);
      if (!got) return {.text = output.to_string(), .error = got.error()};
      EXPECT_LE(*got, bytes_max);
      if (*got == 0) break;
    }
  }
  return {.text = output.to_string(), .may_end = decoder->may_end()};
}

class HttpCoding : public testing::TestWithParam<Coding> {
 public:
  void SetUp() override {
    if (!http::is_available(GetParam())) GTEST_SKIP() << "the library was built without it";
  }
};

TEST_P(HttpCoding, texts_are_the_same_after_encoding_and_decoding) {
  for (const std::size_t size : {0, 1, 100, 4096, 70'000, 1'000'000}) {
    const std::string text = text_of_bytes(size);
    const std::string coded = encoded(GetParam(), text);
    EXPECT_LT(coded.size(), size / 2 + 100);
    for (const auto& [piece, bytes_max] : {std::pair<std::size_t, std::size_t>(SIZE_MAX, SIZE_MAX),
                                           {1000, 4096},
                                           {1'000'000, 777}}) {
      const Decoded got = decoded(GetParam(), coded, std::min(piece, coded.size()), bytes_max);
      EXPECT_EQ(got.error, Error()) << got.error.message();
      EXPECT_TRUE(got.text == text) << size << " " << piece;
      EXPECT_TRUE(got.may_end) << size << " " << piece;
    }
  }
}

TEST_P(HttpCoding, a_prefix_is_no_whole) {
  const std::string text = text_of_bytes(3000);
  const std::string coded = encoded(GetParam(), text);
  for (std::size_t size = 1; size < coded.size(); ++size) {
    const Decoded got = decoded(GetParam(), coded.substr(0, size), 1, 100);
    EXPECT_EQ(got.error, Error()) << size;
    EXPECT_TRUE(text.starts_with(got.text)) << size;
    EXPECT_FALSE(got.may_end) << size;
  }
}

TEST_P(HttpCoding, flushed_bytes_can_be_decoded) {
  const auto encoder = http::detail::coding::make_encoder(GetParam(), 4);
  const auto decoder = http::detail::coding::make_decoder(GetParam());
  Buffer coded;
  for (int i = 0; i < 50; ++i) {
    const std::string text = text_of_bytes(static_cast<std::size_t>(i) * 300);
    encoder->encode(Buffer(text), Encoder::Mode::flush, coded);
    Buffer output;
    const auto got = decoder->decode(coded, output, SIZE_MAX);
    ASSERT_TRUE(got);
    EXPECT_TRUE(output == text) << i;
    EXPECT_TRUE(coded.empty());
  }
  encoder->encode(Buffer(), Encoder::Mode::finish, coded);
  Buffer output;
  EXPECT_EQ(decoder->decode(coded, output, SIZE_MAX), 0U);
  EXPECT_TRUE(decoder->may_end());
}

TEST_P(HttpCoding, other_bytes_are_rejected) {
  for (const char* const text :
       {"This is no compressed text at all.", "\xff\xff\xff\xff\xff\xff"}) {
    const Decoded got = decoded(GetParam(), text, 1, SIZE_MAX);
    EXPECT_TRUE(got.error == http::ErrorCode::bad_content_coding || !got.may_end) << text;
  }
  const std::string coded = encoded(GetParam(), text_of_bytes(1000));
  EXPECT_EQ(decoded(GetParam(), coded + "garbage!", 1, SIZE_MAX).error,
            http::ErrorCode::bad_content_coding);
}

TEST_P(HttpCoding, data_after_the_end) {
  const std::string twice = encoded(GetParam(), "one ") + encoded(GetParam(), "two");
  const Decoded got = decoded(GetParam(), twice, twice.size(), SIZE_MAX);
  // gzip consists of members, zstd of frames.
  if (GetParam() == Coding::gzip || GetParam() == Coding::zstd) {
    EXPECT_EQ(got.text, "one two");
    EXPECT_TRUE(got.may_end);
  } else {
    EXPECT_EQ(got.error, http::ErrorCode::bad_content_coding);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, HttpCoding,
                         testing::Values(Coding::gzip, Coding::deflate, Coding::br, Coding::zstd),
                         [](const auto& entry) { return std::string(http::name_of(entry.param)); });

/// Tests that need several codings.
class WithEveryCoding : public testing::Test {
 protected:
  void SetUp() override {
    for (const Coding coding : {Coding::gzip, Coding::br, Coding::zstd}) {
      if (!http::is_available(coding)) GTEST_SKIP() << "the library was built without a coding";
    }
  }
};
class HttpBodyDecoder : public WithEveryCoding {};
class HttpNegotiation : public WithEveryCoding {};

// A chain of decoders.

/// The text, or the error.
std::string body_of(const std::vector<Coding>& codings, std::string_view coded,
                    const DecodingLimits& limits = {}) {
  BodyDecoder decoder(codings, limits);
  Buffer output;
  for (std::size_t at = 0; at < coded.size(); at += 10'000) {
    decoder.append(Buffer(coded.substr(at, 10'000)));
    for (;;) {
      const auto got = decoder.read(output, 5000);
      if (!got) return got.error().message();
      if (*got == 0) break;
    }
  }
  if (const auto ended = decoder.end(); !ended) return ended.error().message();
  return output.to_string();
}

const std::string too_large = make_error_code(http::ErrorCode::decoded_too_large).message();

TEST_F(HttpBodyDecoder, several_codings_are_removed_in_reverse_order) {
  const std::string text = text_of_bytes(50'000);
  const std::string coded = encoded(Coding::br, encoded(Coding::gzip, text));
  EXPECT_TRUE(body_of({Coding::gzip, Coding::br}, coded) == text);
  EXPECT_FALSE(body_of({Coding::br, Coding::gzip}, coded) == text);
  EXPECT_EQ(body_of({Coding::gzip, Coding::br}, coded.substr(0, coded.size() - 1)),
            Error(StreamError::truncated).message());
  EXPECT_EQ(body_of({Coding::gzip}, ""), "");
}

TEST_F(HttpBodyDecoder, limits) {
  const std::string zeros = encoded(Coding::gzip, std::string(5'000'000, '\0'));
  EXPECT_EQ(body_of({Coding::gzip}, zeros), too_large) << "about 1000 for each byte";
  EXPECT_EQ(body_of({Coding::gzip}, zeros, {.ratio_max = 0}).size(), 5'000'000U);
  EXPECT_EQ(body_of({Coding::gzip}, zeros, {.bytes_max = 4'999'999, .ratio_max = 0}), too_large);
  EXPECT_EQ(body_of({Coding::gzip}, zeros, {.bytes_max = 5'000'000, .ratio_max = 0}).size(),
            5'000'000U);
  // Short texts may have any ratio.
  EXPECT_EQ(body_of({Coding::gzip}, encoded(Coding::gzip, std::string(1'000'000, '\0'))).size(),
            1'000'000U);
}

TEST_F(HttpBodyDecoder, a_bomb_that_decodes_to_nothing) {
  // Millions of empty members, which are not seen in the output.
  const std::string empty = encoded(Coding::gzip, "");
  std::string members;
  for (int i = 0; i < 200'000; ++i) members += empty;
  const std::string bomb = encoded(Coding::gzip, members);
  EXPECT_EQ(body_of({Coding::gzip, Coding::gzip}, bomb, {.ratio_max = 0}), too_large);
}

/// What the coding of a body can contain without decoding to anything.
std::string part_without_content(Coding coding) {
  switch (coding) {
    case Coding::gzip:
      return encoded(Coding::gzip, "");
    case Coding::deflate:
      return std::string("\x00\x00\x00\xFF\xFF", 5);  // A stored block.
    case Coding::br:
      return "\x06";  // Empty metadata.
    default:
      return std::string("\x50\x2A\x4D\x18\x01\x00\x00\x00x", 9);  // A skippable frame.
  }
}

TEST_F(HttpBodyDecoder, coded_bytes_that_decode_to_nothing_are_limited) {
  for (const Coding coding : {Coding::gzip, Coding::deflate, Coding::br, Coding::zstd}) {
    if (!http::is_available(coding)) continue;
    BodyDecoder decoder({coding}, {.bytes_max = SIZE_MAX, .ratio_max = 0});
    if (coding == Coding::deflate) decoder.append(Buffer("\x78\x9C"));
    if (coding == Coding::br) decoder.append(Buffer("\x0C"));  // With the size of the window.
    std::string piece;
    while (piece.size() < 4096) piece += part_without_content(coding);
    std::size_t received = 0;
    Buffer output;
    Error error;
    while (!error && received < (std::size_t{2} << 20U)) {
      decoder.append(Buffer(piece));
      received += piece.size();
      const auto got = decoder.read(output, 65536);
      if (!got) error = got.error();
    }
    EXPECT_EQ(error, http::ErrorCode::coded_too_large)
        << http::name_of(coding) << " " << error.message();
    EXPECT_GT(received, std::size_t{1} << 20U) << http::name_of(coding);
    EXPECT_TRUE(output.empty());
  }
}

TEST_F(HttpBodyDecoder, short_pieces_that_are_flushed_are_not_limited) {
  for (const Coding coding : {Coding::gzip, Coding::br, Coding::zstd}) {
    if (!http::is_available(coding)) continue;
    const auto encoder = http::detail::coding::make_encoder(coding, 4);
    BodyDecoder decoder({coding}, {});
    Buffer output;
    for (int i = 0; i < 200'000; ++i) {
      Buffer coded;
      encoder->encode(Buffer("x"), Encoder::Mode::flush, coded);
      decoder.append(std::move(coded));
      if (i % 100 != 0) continue;
      ASSERT_TRUE(decoder.read(output, 65536)) << http::name_of(coding) << i;
    }
    ASSERT_TRUE(decoder.read(output, 1'000'000));
    EXPECT_EQ(output.size(), 200'000U) << http::name_of(coding);
  }
}

#ifndef TAMBOUR_NO_ZLIB
TEST_F(HttpBodyDecoder, deflate_without_the_zlib_format_is_decoded_in_responses) {
  for (const std::string& text : {std::string(), std::string("x"), text_of_bytes(100'000)}) {
    const std::string zlib = encoded(Coding::deflate, text);
    const std::string raw = zlib.substr(2, zlib.size() - 6);
    for (const std::string& coded : {zlib, raw}) {
      for (const std::size_t piece : {std::size_t{1}, coded.size()}) {
        BodyDecoder decoder({Coding::deflate}, {}, http::detail::coding::RawDeflate::accepted);
        Buffer output;
        for (std::size_t at = 0; at < coded.size(); at += piece) {
          decoder.append(Buffer(coded.substr(at, piece)));
          for (;;) {
            const auto got = decoder.read(output, 1000);
            ASSERT_TRUE(got) << got.error().message();
            if (*got == 0) break;
          }
          EXPECT_EQ(decoder.end().has_value(), at + piece >= coded.size());
        }
        EXPECT_EQ(output.to_string(), text);
      }
    }
    EXPECT_EQ(body_of({Coding::deflate}, raw, {}),
              make_error_code(http::ErrorCode::bad_content_coding).message());  // In a request.
  }
}
#endif

Fields fields_of(std::vector<std::string> values, std::string_view name) {
  Fields fields;
  for (const std::string& value : values) EXPECT_TRUE(fields.add(name, value));
  return fields;
}

TEST_F(HttpBodyDecoder, content_encoding) {
  const auto codings = [](std::vector<std::string> values) {
    return http::detail::coding::codings_of(fields_of(std::move(values), "Content-Encoding"));
  };
  EXPECT_EQ(codings({}), std::vector<Coding>{});
  EXPECT_EQ(codings({"identity"}), std::vector<Coding>{});
  EXPECT_EQ(codings({"GZip, br", "x-gzip"}),
            (std::vector<Coding>{Coding::gzip, Coding::br, Coding::gzip}));
  EXPECT_EQ(codings({" , deflate,,zstd"}), (std::vector<Coding>{Coding::deflate, Coding::zstd}));
  for (const char* const bad : {"compress", "gzip;q=1", "gzip gzip", "gzip,gzip,gzip,gzip,gzip"})
    EXPECT_EQ(codings({bad}).error(), http::ErrorCode::unsupported_content_coding) << bad;
}

// Accept-Encoding.

std::string chosen(std::vector<std::string> values,
                   std::vector<Coding> offered = {Coding::zstd, Coding::br, Coding::gzip}) {
  const auto coding =
      http::detail::coding::choose_coding(fields_of(std::move(values), "Accept-Encoding"), offered);
  return coding ? std::string(http::name_of(*coding)) : "none";
}

TEST_F(HttpNegotiation, choice) {
  EXPECT_EQ(chosen({}), "none");
  EXPECT_EQ(chosen({""}), "none");
  EXPECT_EQ(chosen({"identity"}), "none");
  EXPECT_EQ(chosen({"gzip"}), "gzip");
  EXPECT_EQ(chosen({"GZIP"}), "gzip");
  EXPECT_EQ(chosen({"x-gzip"}), "gzip");
  EXPECT_EQ(chosen({"gzip, deflate, br, zstd"}), "zstd") << "the server's preference";
  EXPECT_EQ(chosen({"gzip, deflate, br"}), "br");
  EXPECT_EQ(chosen({"gzip", "br"}), "br") << "two fields";
  EXPECT_EQ(chosen({"gzip;q=1.0, br;q=0.9"}), "gzip");
  EXPECT_EQ(chosen({"gzip;q=0.5, br;q=0.501"}), "br");
  EXPECT_EQ(chosen({"gzip ; q=0.5 , br;\tQ=0.25"}), "gzip");
  EXPECT_EQ(chosen({"gzip;q=0"}), "none");
  EXPECT_EQ(chosen({"gzip;q=0.000, *"}), "zstd");
  EXPECT_EQ(chosen({"*;q=0"}), "none");
  EXPECT_EQ(chosen({"*"}), "zstd");
  EXPECT_EQ(chosen({"zstd;q=0, *;q=0.1"}), "br");
  EXPECT_EQ(chosen({"identity;q=0.5, gzip;q=0.4"}), "none") << "identity is preferred";
  EXPECT_EQ(chosen({"identity, gzip"}), "gzip");
  EXPECT_EQ(chosen({"identity;q=0, gzip;q=0.1"}), "gzip");
  EXPECT_EQ(chosen({"deflate"}), "none") << "not offered";
  EXPECT_EQ(chosen({"deflate"}, {Coding::deflate}), "deflate");
}

TEST_F(HttpNegotiation, malformed_elements_are_ignored) {
  for (const char* const bad :
       {"gzip;q=", "gzip;q=2", "gzip;q=1.001", "gzip;q=0.1234", "gzip;q=-1", "gzip;q=.5",
        "gzip;q=0,5", "gzip;q=1;q=x", "gz ip", "gzip\"", ";q=1"})
    EXPECT_EQ(chosen({bad}), "none") << bad;
  EXPECT_EQ(chosen({"gzip;q=bad, br;q=0.1"}), "br");
  EXPECT_EQ(chosen({"gzip;level=9;q=0.1"}), "gzip") << "other parameters";
}

}  // namespace
}  // namespace tambour::coding_test
