// BodyDecoder: undoes the codings of Content-Encoding in reverse order, within the limit of bytes.
#include "http/coding/body_decoder.h"

#include <algorithm>
#include <ranges>

#include <tambour/net/stream_error.h>

#include "http/coding/lists.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http::detail::coding {
namespace {

constexpr std::size_t codings_max = 4;
/// How much of one decoder's output is decoded by the next at a time.
constexpr std::size_t piece_bytes = std::size_t{16} * 1024;
/// The ratio does not count before: short texts of zeros are harmless.
constexpr std::uint64_t free_bytes = std::uint64_t{1024} * 1024;
/// The limit between decoders, whatever the limit of their result: a chain of three could decode a
/// KiB to a GiB that the last one discards.
constexpr std::uint32_t inner_ratio_max = 200;
/// Coded bytes for each decoded one, after the first MiB. A body that flushes after each byte has
/// about 8. Empty members of gzip, skippable frames of zstd and the like decode to nothing at all.
constexpr std::uint64_t coded_ratio_max = 16;

}  // namespace

Result<std::vector<Coding>> codings_of(const Fields& fields) {
  std::vector<Coding> codings;
  for (std::size_t at = fields.find("Content-Encoding"); at != fields.size();
       at = fields.find("Content-Encoding", at + 1)) {
    for (const std::string_view name : ListElements(fields[at].value)) {
      if (equal_ignoring_case(name, "identity")) continue;
      const auto coding = coding_named(name);
      if (!coding || !is_available(*coding) || codings.size() == codings_max)
        return failure(http::ErrorCode::unsupported_content_coding);
      codings.push_back(*coding);
    }
  }
  return codings;
}

BodyDecoder::BodyDecoder(const std::vector<Coding>& codings, const DecodingLimits& limits,
                         RawDeflate raw)
    : limits_(limits) {
  stages_.reserve(codings.size());
  // The coding that was applied last is removed first.
  for (const Coding coding : std::views::reverse(codings))
    stages_.push_back({.decoder = make_decoder(coding, raw), .input = {}});
}

std::size_t BodyDecoder::take_memory_growth() noexcept {
  std::size_t bytes = 0;
  for (const Stage& stage : stages_) bytes += stage.decoder->memory_bytes();
  const std::size_t before = std::exchange(memory_bytes_, std::max(memory_bytes_, bytes));
  return memory_bytes_ - before;
}

Result<std::size_t> BodyDecoder::read(Buffer& into, std::size_t bytes_max) {
  const auto got = pull(stages_.size() - 1, into, bytes_max);
  if (!got) return got;
  decoded_ += *got;
  if (decoded_ > limits_.bytes_max || exceeds(decoded_, limits_.ratio_max))
    return failure(http::ErrorCode::decoded_too_large);
  if (decodes_to_nothing()) return failure(http::ErrorCode::coded_too_large);
  return got;
}

bool BodyDecoder::decodes_to_nothing() const noexcept {
  const std::uint64_t consumed = received_ - stages_.front().input.size();
  return consumed > free_bytes && (consumed - free_bytes) / coded_ratio_max > decoded_;
}

Result<std::size_t> BodyDecoder::pull(std::size_t stage, Buffer& into, std::size_t bytes_max) {
  Stage& self = stages_[stage];
  for (;;) {
    const auto got = self.decoder->decode(self.input, into, bytes_max);
    if (!got || *got > 0 || stage == 0) return got;
    const auto more = pull(stage - 1, self.input, piece_bytes);
    if (!more || *more == 0) return more;
    between_ += *more;
    if (exceeds(between_, inner_ratio_max)) return failure(http::ErrorCode::decoded_too_large);
  }
}

bool BodyDecoder::exceeds(std::uint64_t bytes, std::uint32_t ratio_max) const noexcept {
  return ratio_max > 0 && bytes > free_bytes && bytes / ratio_max > received_;
}

Result<> BodyDecoder::end() {
  // Nothing at all is accepted: servers send responses with Content-Encoding and without a body.
  const bool is_complete =
      std::ranges::all_of(stages_, [](const Stage& stage) { return stage.decoder->may_end(); });
  if (!is_complete) return std::unexpected(Error(StreamError::truncated));
  has_ended_ = true;
  return {};
}

}  // namespace tambour::http::detail::coding
