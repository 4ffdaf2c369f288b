#include <tambour/buffer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#include "net/read_size.h"

namespace tambour {

/// Memory, and how many segments show it. The bytes stand behind the header, or are an owner's.
struct Buffer::Block {
  std::atomic<std::size_t> owners{1};
  std::size_t capacity;
  std::byte* data;
  std::shared_ptr<const void> owner;  ///< Of bytes that are somebody else's.
  bool is_ours = true;                ///< And may be written.

  [[nodiscard]] bool is_unshared() const noexcept {
    // Acquire: what others have read from the block was read before.
    return owners.load(std::memory_order_acquire) == 1;
  }
  /// Whoever alone owns a block may write to it: nobody else can become an owner meanwhile.
  [[nodiscard]] bool writable() const noexcept { return is_ours && is_unshared(); }
  [[nodiscard]] std::byte* end() const noexcept { return data + capacity; }
};

/// Part of a block that a buffer shows; never empty in the chain.
struct Buffer::Segment {
  /// What was searched for last, and so many bytes from the front of the buffer on are not that.
  struct Searched {
    std::uint64_t size : 56 = 0;
    std::uint64_t what : 8 = 0;
  };

  Segment* next;
  Block* block;
  std::byte* begin;
  std::byte* end;
  Searched searched{};  ///< Kept by the last one, so that an empty buffer has none.

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
  [[nodiscard]] std::size_t room_behind() const noexcept {
    return block->writable() ? static_cast<std::size_t>(block->end() - end) : 0;
  }
  [[nodiscard]] std::size_t room_before() const noexcept {
    return block->writable() ? static_cast<std::size_t>(begin - block->data) : 0;
  }

  /// Takes over what the caller owns of the block, also where it throws.
  static Segment* make(Block* block, std::byte* begin, std::byte* end);
  /// Empty, at the start of a new block.
  static Segment* make(std::size_t capacity);
  [[nodiscard]] Segment* share(std::byte* from, std::byte* to) const;
  static void drop(Segment* segment) noexcept;
};

/// The blocks and segments that a thread has used last, kept for the next to come.
struct Buffer::Pool {
  struct Free {
    Free* next;
  };

  /// Pieces of memory of one size.
  struct Shelf {
    std::size_t bytes;
    std::size_t kept_max;
    std::size_t kept = 0;
    Free* first = nullptr;

    void* take() {
      if (first == nullptr) return ::operator new(bytes);
      --kept;
      return std::exchange(first, first->next);
    }
    void give(void* memory) noexcept {
      if (kept == kept_max) {
        ::operator delete(memory);
        return;
      }
      ++kept;
      first = new (memory) Free{first};
    }
    void clear() noexcept {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
  };

  Shelf small{.bytes = 4096, .kept_max = 64};
  /// What a kernel hands over at a time, where there is much.
  Shelf large{.bytes = net::large_block_bytes, .kept_max = 16};
  Shelf segments{.bytes = sizeof(Segment), .kept_max = 256};

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Shelf* shelf : {&small, &large, &segments}) shelf->clear();
  }

  /// Null: a size that is not kept.
  [[nodiscard]] Shelf* shelf_of(std::size_t bytes) noexcept {
    if (bytes == small.bytes) return &small;
    return bytes == large.bytes ? &large : nullptr;
  }

  /// That of this thread; null where the thread is about to end, and has destroyed it.
  static Pool* mine() noexcept;

  static Block* new_block(std::size_t capacity) {
    Pool* const pool = mine();
    std::size_t bytes = sizeof(Block) + capacity;
    for (const std::size_t kept : {std::size_t{4096}, net::large_block_bytes}) {
      // What is nearly as large as one that is kept takes one of those.
      if (bytes > kept / 4 && bytes <= kept) bytes = kept;
    }
    bytes = std::max<std::size_t>(bytes, 4096);
    Shelf* const shelf = pool != nullptr ? pool->shelf_of(bytes) : nullptr;
    void* const memory = shelf != nullptr ? shelf->take() : ::operator new(bytes);
    auto* data = static_cast<std::byte*>(memory) + sizeof(Block);
    return new (memory) Block{.capacity = bytes - sizeof(Block), .data = data, .owner = nullptr};
  }

  static void drop(Block* block) noexcept {
    if (!block->is_unshared() && block->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Pool* const pool = mine();
    const std::size_t bytes = block->is_ours ? sizeof(Block) + block->capacity : sizeof(Block);
    block->~Block();
    Shelf* const shelf = pool != nullptr ? pool->shelf_of(bytes) : nullptr;
    if (shelf != nullptr) return shelf->give(block);
    ::operator delete(block);
  }
};

Buffer::Pool* Buffer::Pool::mine() noexcept {
  // A buffer may be destroyed after the pool: a global one, or another thread_local.
  thread_local constinit bool ended = false;
  struct Holder {
    Pool pool;
    ~Holder() { ended = true; }
  };
  if (ended) return nullptr;
  thread_local Holder holder;
  return &holder.pool;
}

Buffer::Segment* Buffer::Segment::make(Block* block, std::byte* begin, std::byte* end) {
  Pool* const pool = Pool::mine();
  try {
    void* memory = pool != nullptr ? pool->segments.take() : ::operator new(sizeof(Segment));
    return new (memory) Segment{.next = nullptr, .block = block, .begin = begin, .end = end};
  } catch (...) {
    Pool::drop(block);
    throw;
  }
}

Buffer::Segment* Buffer::Segment::make(std::size_t capacity) {
  Block* const block = Pool::new_block(capacity);
  return make(block, block->data, block->data);
}

Buffer::Segment* Buffer::Segment::share(std::byte* from, std::byte* to) const {
  block->owners.fetch_add(1, std::memory_order_relaxed);
  return make(block, from, to);
}

void Buffer::Segment::drop(Segment* segment) noexcept {
  Pool::drop(segment->block);
  if (Pool* const pool = Pool::mine()) {
    pool->segments.give(segment);
  } else {
    ::operator delete(segment);
  }
}

void Buffer::check_sum(std::size_t size, std::size_t more) {
  if (more > max_size() - size) throw std::length_error("tambour::Buffer");
}

Buffer::Segment* Buffer::first() const noexcept { return last_ == nullptr ? nullptr : last_->next; }

Buffer::Segment* Buffer::after(const Segment* segment) const noexcept {
  return segment == last_ ? nullptr : segment->next;
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
    constexpr std::size_t growth_max = net::large_block_bytes - sizeof(Block);
    more = Segment::make(std::max(bytes.size() - at_hand, std::min(size_, growth_max)));
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
  // Never written: writable() asks for the owner.
  auto* const data = const_cast<std::byte*>(bytes.data());  // NOLINT: as said.
  Block* const block = new Block{
      .capacity = bytes.size(), .data = data, .owner = std::move(owner), .is_ours = false};
  push_back(Segment::make(block, data, data + bytes.size()));
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
    const std::size_t here = std::min(size, segment->size());
    segment->begin += here;
    lose_front(here);
    size -= here;
    if (segment->size() == 0) Segment::drop(pop_front());
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

std::span<const std::byte> Buffer::front() const noexcept {
  if (last_ == nullptr) return {};
  return {first()->begin, first()->size()};
}

std::span<const std::byte> Buffer::peek(std::size_t size) {
  size = std::min(size, size_);
  if (size == 0) return {};
  if (first()->size() < size) {
    Segment* const together = Segment::make(size);
    copy_to({together->begin, size});
    together->end += size;
    consume(size);
    push_front(together);
  }
  return {first()->begin, size};
}

std::string_view Buffer::text() {
  const auto bytes = peek(size_);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t Buffer::copy_to(std::span<std::byte> target) const noexcept {
  std::size_t copied = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    const std::size_t here = std::min(segment->size(), target.size() - copied);
    if (here == 0) break;
    std::memcpy(target.data() + copied, segment->begin, here);
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
                         std::string_view what) const noexcept {
  while (segment != nullptr) {
    const std::size_t here = std::min(static_cast<std::size_t>(segment->end - at), what.size());
    if (std::memcmp(at, what.data(), here) != 0) return false;
    what.remove_prefix(here);
    if (what.empty()) return true;
    segment = after(segment);
    if (segment != nullptr) at = segment->begin;
  }
  return false;
}

std::optional<std::size_t> Buffer::find(std::string_view what, std::size_t from) const noexcept {
  if (from > size_ || what.size() > size_ - from) return std::nullopt;
  if (what.empty()) return from;
  std::size_t passed = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    const std::byte* at = segment->begin + std::min(segment->size(), from - std::min(from, passed));
    while (at != segment->end) {
      const auto left = static_cast<std::size_t>(segment->end - at);
      at = static_cast<const std::byte*>(std::memchr(at, what.front(), left));
      if (at == nullptr) break;
      if (begins_with(segment, at, what))
        return passed + static_cast<std::size_t>(at - segment->begin);
      ++at;
    }
    passed += segment->size();
  }
  return std::nullopt;
}

std::optional<std::size_t> Buffer::search(char what) noexcept {
  if (last_ == nullptr) return std::nullopt;
  auto& searched = last_->searched;
  const auto wanted = static_cast<unsigned char>(what);
  if (searched.what != wanted) searched = {.size = 0, .what = wanted};
  const std::size_t known = searched.size;
  const Segment* segment = first();
  std::size_t passed = 0;
  // What has come since lies in the last one, mostly.
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
  constexpr std::uint64_t most = (std::uint64_t{1} << 56) - 1;
  searched.size = std::min<std::uint64_t>(size_, most);
  return std::nullopt;
}

bool Buffer::equals(std::string_view text) const noexcept {
  return size_ == text.size() && (text.empty() || begins_with(first(), first()->begin, text));
}

std::byte Buffer::operator[](std::size_t index) const noexcept {
  const Segment* segment = first();
  for (; index >= segment->size(); segment = segment->next) index -= segment->size();
  return segment->begin[index];
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
