#include <tambour/buffer.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "net/buffer_blocks.h"
#include "net/read_size.h"

namespace tambour {

thread_local constinit Buffer::Pool Buffer::Pool::mine{};

Buffer::Pool::Closer::Closer() noexcept {
  for (Shelf& shelf : mine.blocks) shelf.kept_max = shelf.limit;
  mine.segments.kept_max = mine.segments.limit;
}

Buffer::Pool::Closer::~Closer() {
  for (Shelf& shelf : mine.blocks) shelf.close();
  mine.segments.close();
}

void Buffer::Pool::Shelf::give_more(void* memory) noexcept {
  // Constructed once in a thread, at the first time.
  static thread_local const Closer closer;
  if (kept < kept_max) return give(memory);
  ::operator delete(memory);
}

Buffer::Segment* Buffer::Segment::make_of(std::span<const std::byte> bytes,
                                          std::shared_ptr<const void> owner) {
  // Never written: writable() asks whose they are.
  auto* const data = const_cast<std::byte*>(bytes.data());  // NOLINT: as said.
  auto* const block = new Block{.capacity = bytes.size(),
                                .data = data,
                                .kind = Block::Kind::foreign,
                                .owner = std::move(owner)};
  block->own.end = block->end();
  return &block->own;
}

Buffer::Segment* Buffer::Segment::share(std::byte* from, std::byte* to) const {
  void* const memory = Pool::mine.segments.take();
  block->owners.fetch_add(1, std::memory_order_relaxed);
  return new (memory) Segment{.next = nullptr, .block = block, .begin = from, .end = to};
}

void Buffer::check_sum(std::size_t size, std::size_t more) {
  if (more > max_size() - size) throw std::length_error("tambour::Buffer");
}

void Buffer::push_back(Segment* segment) noexcept {
  const auto searched = last_ != nullptr ? last_->searched : Segment::Searched();
  push_front(segment);
  last_ = segment;
  segment->searched = searched;
}

void Buffer::push_front(Segment* segment) noexcept {
  if (last_ == nullptr) {
    segment->next = last_ = segment;
  } else {
    segment->next = std::exchange(last_->next, segment);
  }
  last_->searched = {};
  size_ += segment->size();
}

Buffer::Segment* Buffer::pop_front() noexcept {
  Segment* const segment = last_->next;
  if (segment == last_) {
    last_ = nullptr;
  } else {
    last_->next = segment->next;
  }
  lose_front(segment->size());
  return segment;
}

void Buffer::lose_front(std::size_t size) noexcept {
  size_ -= size;
  if (last_ == nullptr) return;
  auto& searched = last_->searched;
  searched.size = searched.size > size ? searched.size - size : 0;
}

void Buffer::clear() noexcept {
  while (last_ != nullptr) Segment::drop(pop_front());
  commit(0);
}

std::size_t Buffer::room_behind() const noexcept {
  return last_ != nullptr ? last_->room_behind() : 0;
}

std::span<std::byte> Buffer::prepare(std::size_t size) {
  check_sum(size_, size);
  size = std::max<std::size_t>(size, 1);
  if (prepared_ == nullptr && room_behind() >= size) return {last_->end, room_behind()};
  if (prepared_ != nullptr && prepared_->room_behind() < size) commit(0);
  if (prepared_ == nullptr) prepared_ = Segment::make(size);
  return {prepared_->end, prepared_->room_behind()};
}

void Buffer::commit(std::size_t size) noexcept {
  if (size == 0) {
    if (prepared_ != nullptr) Segment::drop(std::exchange(prepared_, nullptr));
  } else if (prepared_ != nullptr) {
    prepared_->end += size;
    push_back(std::exchange(prepared_, nullptr));
  } else {
    last_->end += size;
    size_ += size;
  }
}

void Buffer::append(std::span<const std::byte> bytes) {
  check_sum(size_, bytes.size());
  commit(0);
  const std::size_t at_hand = std::min(room_behind(), bytes.size());
  Segment* more = nullptr;
  if (at_hand < bytes.size()) {
    // Ever more at a time, so that a long message that comes in short pieces lies in few blocks.
    const std::size_t growth = std::min(size_, net::large_room_bytes);
    more = Segment::make(std::max(bytes.size() - at_hand, growth));
  }
  if (at_hand > 0) {
    std::memcpy(last_->end, bytes.data(), at_hand);
    commit(at_hand);
  }
  if (more == nullptr) return;
  const auto rest = bytes.subspan(at_hand);
  std::memcpy(more->begin, rest.data(), rest.size());
  more->end += rest.size();
  push_back(more);
}

void Buffer::append(Buffer&& other) {
  if (&other == this || other.empty()) return;
  check_sum(size_, other.size_);
  commit(0);
  // Two rings become one where their lasts change whom they are followed by.
  if (last_ != nullptr) {
    std::swap(last_->next, other.last_->next);
    other.last_->searched = last_->searched;
  }
  last_ = std::exchange(other.last_, nullptr);
  size_ += std::exchange(other.size_, 0);
}

void Buffer::append_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  check_sum(size_, bytes.size());
  commit(0);
  push_back(Segment::make_of(bytes, std::move(owner)));
}

void Buffer::prepend(std::span<const std::byte> bytes) {
  check_sum(size_, bytes.size());
  if (bytes.empty()) return;
  if (last_ == nullptr || first()->room_before() < bytes.size()) {
    Segment* const segment = Segment::make(bytes.size());
    // At the end of its block, so that what is prepended next finds room.
    segment->begin = segment->end = segment->block->end();
    push_front(segment);
  }
  std::byte*& begin = first()->begin;
  begin -= bytes.size();
  size_ += bytes.size();
  last_->searched = {};
  // The bytes may be the block's own, but lie behind where these go.
  std::memcpy(begin, bytes.data(), bytes.size());
}

void Buffer::prepend(Buffer&& other) {
  if (&other == this) return;
  other.append(std::move(*this));
  swap(other);
}

void Buffer::consume(std::size_t size) noexcept {
  while (size > 0) {
    Segment* const segment = first();
    if (size < segment->size()) {
      segment->begin += size;
      return lose_front(size);
    }
    size -= segment->size();
    Segment::drop(pop_front());
  }
}

Buffer Buffer::take(std::size_t size) {
  Buffer taken;
  while (last_ != nullptr && size >= first()->size()) {
    size -= first()->size();
    taken.push_back(pop_front());
  }
  if (last_ == nullptr || size == 0) return taken;
  try {
    taken.push_back(first()->share(first()->begin, first()->begin + size));
  } catch (...) {
    prepend(std::move(taken));
    throw;
  }
  consume(size);
  return taken;
}

Buffer Buffer::share() const { return share(0, size_); }

Buffer Buffer::share(std::size_t from, std::size_t size) const {
  Buffer shared;
  for (const Segment* segment = first(); segment != nullptr && size > 0; segment = after(segment)) {
    const std::size_t skipped = std::min(from, segment->size());
    from -= skipped;
    const std::size_t here = std::min(size, segment->size() - skipped);
    if (here == 0) continue;
    std::byte* const begin = segment->begin + skipped;
    shared.push_back(segment->share(begin, begin + here));
    size -= here;
  }
  return shared;
}

std::size_t Buffer::pieces(std::span<iovec> pieces, std::size_t size) const noexcept {
  std::size_t count = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    if (count == pieces.size() || size == 0) break;
    const std::size_t here = std::min(size, segment->size());
    pieces[count++] = {.iov_base = segment->begin, .iov_len = here};
    size -= here;
  }
  return count;
}

Result<std::size_t> Buffer::read_from(int fd, std::size_t size) {
  if (size == 0) return 0;
  // What does not fit into the block at hand goes through the stack, and so does not cost a large
  // block for each reader that has little to read.
  std::array<std::byte, std::size_t{60} * 1024> overflow;
  const auto room = prepare(1);
  const std::size_t here = std::min(room.size(), size);
  const std::size_t beyond = std::min(overflow.size(), size - here);
  const std::array<iovec, 2> pieces{{{.iov_base = room.data(), .iov_len = here},
                                     {.iov_base = overflow.data(), .iov_len = beyond}}};
  const ssize_t got = ::readv(fd, pieces.data(), beyond > 0 ? 2 : 1);
  if (got < 0) {
    const Error error = system_error(errno);
    commit(0);
    return std::unexpected(error);
  }
  const auto count = static_cast<std::size_t>(got);
  commit(std::min(count, here));
  if (count > here) append(std::span(overflow).first(count - here));
  return count;
}

Result<std::size_t> Buffer::write_to(int fd) noexcept {
  std::array<iovec, 64> out;
  const std::size_t count = pieces(out);
  if (count == 0) return 0;
  const ssize_t written = ::writev(fd, out.data(), static_cast<int>(count));
  if (written < 0) return std::unexpected(system_error(errno));
  consume(static_cast<std::size_t>(written));
  return static_cast<std::size_t>(written);
}

}  // namespace tambour
