// Reading and searching of buffers.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "bytes/buffer_blocks.h"

namespace tambour {

std::span<const std::byte> Buffer::front() const noexcept {
  if (last_ == nullptr) return {};
  return {first()->begin, first()->size()};
}

std::span<const std::byte> Buffer::peek(std::size_t size) {
  size = std::min(size, size_);
  if (size == 0) return {};
  if (first()->size() < size) {
    Segment* const together = Segment::make_compact(size);
    copy_to({together->begin, size});
    together->end += size;
    consume(size);
    push_front(together);
  }
  return {first()->begin, size};
}

std::string_view Buffer::coalesce() {
  const auto bytes = peek(size_);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t Buffer::copy_to(std::span<std::byte> target, std::size_t from) const noexcept {
  if (from == 0 && last_ != nullptr && size_ <= target.size() && last_->size() == size_) {
    std::memcpy(target.data(), last_->begin, size_);
    return size_;
  }
  std::size_t copied = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    if (copied == target.size()) break;
    const std::size_t skipped = std::min(from, segment->size());
    from -= skipped;
    const std::size_t here = std::min(segment->size() - skipped, target.size() - copied);
    if (here == 0) continue;
    std::memcpy(target.data() + copied, segment->begin + skipped, here);
    copied += here;
  }
  return copied;
}

std::string Buffer::to_string() const {
  std::string text(size_, '\0');
  copy_to(std::as_writable_bytes(std::span(text)));
  return text;
}

bool Buffer::begins_with(const Segment* segment, const std::byte* at,
                         std::string_view text) const noexcept {
  while (segment != nullptr) {
    const std::size_t here = std::min(static_cast<std::size_t>(segment->end - at), text.size());
    if (std::memcmp(at, text.data(), here) != 0) return false;
    text.remove_prefix(here);
    if (text.empty()) return true;
    segment = after(segment);
    if (segment != nullptr) at = segment->begin;
  }
  return false;
}

std::optional<std::size_t> Buffer::find(std::string_view text, std::size_t from) const noexcept {
  if (from > size_ || text.size() > size_ - from) return std::nullopt;
  if (text.empty()) return from;
  std::size_t passed = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    const std::byte* at = segment->begin + std::min(segment->size(), from - std::min(from, passed));
    while (at != segment->end) {
      const auto left = static_cast<std::size_t>(segment->end - at);
      at = static_cast<const std::byte*>(std::memchr(at, text.front(), left));
      if (at == nullptr) break;
      if (begins_with(segment, at, text))
        return passed + static_cast<std::size_t>(at - segment->begin);
      ++at;
    }
    passed += segment->size();
  }
  return std::nullopt;
}

std::optional<std::size_t> Buffer::search(char text) noexcept {
  if (last_ == nullptr) return std::nullopt;
  auto& searched = last_->searched;
  const auto wanted = static_cast<unsigned char>(text);
  if (searched.pattern != wanted) searched = {.size = 0, .pattern = wanted};
  const std::size_t known = searched.size;
  const Segment* segment = first();
  std::size_t passed = 0;
  // Most often the bytes that arrived since the last search are in the last segment.
  if (const std::size_t before_last = size_ - last_->size(); known >= before_last) {
    segment = last_;
    passed = before_last;
  }
  for (; segment != nullptr; segment = after(segment)) {
    const std::size_t skipped = std::min(segment->size(), known - std::min(known, passed));
    const std::byte* const from = segment->begin + skipped;
    const void* const at = std::memchr(from, wanted, segment->size() - skipped);
    if (at != nullptr)
      return passed + static_cast<std::size_t>(static_cast<const std::byte*>(at) - segment->begin);
    passed += segment->size();
  }
  constexpr std::uint64_t size_max = (std::uint64_t{1} << 56) - 1;
  searched.size = std::min<std::uint64_t>(size_, size_max);
  return std::nullopt;
}

bool Buffer::equals(std::string_view text) const noexcept {
  return size_ == text.size() && (text.empty() || begins_with(first(), first()->begin, text));
}

std::size_t Buffer::memory_bytes() const noexcept {
  std::size_t bytes = 0;
  const Block* counted = nullptr;
  const auto count = [&](const Segment& segment) {
    if (segment.block != std::exchange(counted, segment.block)) {
      const bool is_foreign = segment.block->kind == Block::Kind::foreign;
      bytes += is_foreign ? sizeof(ForeignBlock) : sizeof(Block) + segment.block->capacity;
    }
    if (&segment != &segment.block->first) bytes += sizeof(Segment);
  };
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment))
    count(*segment);
  return bytes;
}

std::byte Buffer::operator[](std::size_t index) const noexcept {
  if (index >= size_) [[unlikely]]
    detail::base::fail_check("Buffer::operator[](%zu): the buffer holds %zu bytes", index, size_);
  const Segment* segment = first();
  for (; index >= segment->size(); segment = segment->next) index -= segment->size();
  return segment->begin[index];
}

}  // namespace tambour
