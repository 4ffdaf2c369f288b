// Content codings: arbitrary bytes in each decoder, whole and in pieces, with limits; and texts
// that are encoded in pieces and decoded again.
#include <algorithm>
#include <string>
#include <utility>

#include <tambour/http/coding.h>
#include <tambour/net/stream_error.h>

#include "fuzz/bytes_checks.h"
#include "http/coding/body_decoder.h"
#include "http/coding/codec.h"
#include "http/coding/negotiation.h"

namespace tambour::fuzz {
namespace {

using http::Coding;
using http::DecodingLimits;
using http::detail::coding::BodyDecoder;
using http::detail::coding::Encoder;

constexpr std::size_t bytes_max = std::size_t{4} * 1024 * 1024;

struct Outcome {
  std::string text;
  Error error{};

  bool operator==(const Outcome&) const = default;
};

Outcome decode(const std::vector<Coding>& codings, std::string_view coded, std::size_t piece,
               std::size_t read_max) {
  BodyDecoder decoder(codings, {.bytes_max = bytes_max, .ratio_max = 0},
                      http::detail::coding::RawDeflate::accepted);
  Buffer output;
  for (std::size_t at = 0; at < coded.size(); at += piece) {
    decoder.append(Buffer(coded.substr(at, piece)));
    for (;;) {
      const auto got = decoder.read(output, read_max);
      if (!got) {
        expect(got.error() == http::ErrorCode::bad_content_coding ||
                   got.error() == http::ErrorCode::decoded_too_large ||
                   got.error() == http::ErrorCode::coded_too_large,
               "decoding failed with another error");
        return {.text = output.to_string(), .error = got.error()};
      }
      expect(*got <= read_max, "more was decoded than was asked for");
      if (*got == 0) break;
    }
  }
  const auto ended = decoder.end();
  expect(ended || ended.error() == StreamError::truncated, "the end failed with another error");
  return {.text = output.to_string(), .error = ended ? Error() : ended.error()};
}

/// The result must not depend on the pieces. Before an error, another part may have been decoded.
void check_decoder(const std::vector<Coding>& codings, std::string_view coded) {
  const Outcome whole = decode(codings, coded, std::max<std::size_t>(coded.size(), 1), 65536);
  const Outcome pieces = decode(codings, coded, 1, 1000);
  // libzstd (1.5.4) does not compare the size of a frame that ends with an empty block with the
  // size in its header, unless the frame arrives as a whole.
  if (codings.front() == Coding::zstd && (!whole.error || !pieces.error)) return;
  expect(whole.error == pieces.error, "the error depends on how the bytes arrive");
  if (!whole.error) expect(whole.text == pieces.text, "the text depends on how the bytes arrive");
  expect(whole.text.size() <= bytes_max + 65536, "more was decoded than the limit");
}

void check_round_trip(Coding coding, std::string_view text, std::size_t piece) {
  const auto encoder = http::detail::coding::make_encoder(coding, 4);
  Buffer coded;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const auto mode = at % 2 == 0 ? Encoder::Mode::flush : Encoder::Mode::append;
    encoder->encode(Buffer(text.substr(at, piece)), mode, coded);
  }
  encoder->encode(Buffer(), Encoder::Mode::finish, coded);
  const std::string bytes = coded.to_string();
  expect(decode({coding}, bytes, 7, 65536) == Outcome{.text = std::string(text)},
         "a text changed when it was encoded and decoded");
  if (bytes.size() == 1) return;  // A body without any byte is valid.
  const Outcome cut =
      decode({coding}, std::string_view(bytes).substr(0, bytes.size() - 1), 100, 99);
  expect(cut.error == StreamError::truncated, "a truncated text was not noticed");
}

}  // namespace

/// The first byte chooses the coding, the second the size of pieces.
void check_coding(Bytes bytes) {
  if (bytes.size() < 2) return;
  const auto coding = static_cast<Coding>(bytes[0] % 4);
  const std::string_view text = text_of(bytes.subspan(2));
  if (http::is_available(coding)) {
    check_decoder({coding}, text);
    check_round_trip(coding, text, bytes[1] + std::size_t{1});
    if (coding != Coding::gzip && http::is_available(Coding::gzip))
      check_decoder({coding, Coding::gzip}, text);
  }
  http::Fields fields;
  if (!fields.add("Accept-Encoding", text) || !fields.add("Content-Encoding", text)) return;
  static_cast<void>(http::detail::coding::codings_of(fields));
  const Coding all[] = {Coding::br, Coding::gzip, Coding::zstd};
  const auto chosen = http::detail::coding::choose_coding(fields, all);
  if (chosen)
    expect(http::detail::coding::quality_of(fields, http::name_of(*chosen), true) > 0,
           "a coding was chosen that the client does not accept");
}

}  // namespace tambour::fuzz
