// A byte buffer: a chain of blocks that grows at both ends and transfers its contents without
// copying.
//
// A block is shared by all buffers that show part of it, and is written only while a single buffer
// owns it. Blocks come from a per-thread pool, so that an active connection does not allocate, and
// an empty buffer holds no memory. Any change of a buffer invalidates the pointers into it.
//
// Memory: a buffer of n bytes holds at most 128 n + 512 bytes, after any sequence of calls and for
// pieces of any size. A queue to which pieces are appended, as text or as buffers made of text or
// read from a stream, holds at most 20 n + 512; as text, about 2 n once it has some kilobytes. So a
// limit of bytes is a limit of memory too, whatever the peer sends. To hold that bound, short
// pieces are copied rather than linked, and what is left of a large block moves to a small one.
// Not counted are the memory of the owners of append_shared(), with about 300 bytes for each call
// of it; memory that prepare() has returned, until commit(); and the free blocks in the pool, at
// most 2.5 MiB for each thread. A block that several buffers share counts for each of them.
#pragma once

#include <sys/uio.h>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tambour/base/result.h>

namespace tambour::detail {
class BufferMemory;
}

#pragma GCC visibility push(default)

namespace tambour {

/// An integer of 1, 2, 4 or 8 bytes, signed or unsigned, as protocols and file formats use.
template <class T>
concept BinaryInteger =
    std::integral<T> && !std::same_as<T, bool> && !std::is_const_v<T> && !std::is_volatile_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// A queue of bytes.
///
/// Thread: one buffer must not be used by two threads at once, but buffers that share blocks may be
/// used by different threads.
/// Errors: functions that allocate throw std::bad_alloc, and std::length_error if the size would
/// exceed max_size(); the buffer is then unchanged.
class Buffer {
 public:
  Buffer() = default;
  /// A buffer with a copy of `text`. Throws std::bad_alloc.
  explicit Buffer(std::string_view text) { append(text); }
  Buffer(Buffer&& other) noexcept
      : last_(std::exchange(other.last_, nullptr)),
        prepared_(std::exchange(other.prepared_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;  // Use slice(), which does not copy.
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    // Most buffers that are destroyed were moved from.
    if (last_ != nullptr || prepared_ != nullptr) clear();
  }

  void swap(Buffer& other) noexcept {
    std::swap(last_, other.last_);
    std::swap(prepared_, other.prepared_);
    std::swap(size_, other.size_);
  }

  /// The number of bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// The memory that the buffer holds: its blocks, those that it shares with other buffers
  /// included, but neither the memory of owners nor what prepare() has returned. O(blocks).
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  static constexpr std::size_t max_size() noexcept { return PTRDIFF_MAX; }

  /// Removes all bytes and frees their memory.
  void clear() noexcept;

  /// Appends a copy of `bytes`, which may be part of this buffer.
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  /// Moves the contents of `other` to the end; `other` is then empty. Links its blocks, or copies
  /// the bytes if they are few (1024 or less).
  void append(Buffer&& other);
  /// Appends `bytes` without copying. `owner` keeps them alive; they must not be modified. Each
  /// call takes about 100 bytes, so append() is better for short text.
  void append_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// Prepends a copy of `bytes`. Cheap if `bytes` is small or the first block has free space in
  /// front.
  void prepend(std::span<const std::byte> bytes);
  void prepend(std::string_view text) { prepend(std::as_bytes(std::span(text))); }
  void prepend(Buffer&& other);

  /// Integers in network byte order (big-endian, `_be`) and in little-endian byte order (`_le`).
  /// The type must be named, because a deduced one would depend on integral promotions:
  /// `append_be<std::uint16_t>(size)`. Signed integers are in two's complement.
  template <BinaryInteger T>
  void append_be(std::type_identity_t<T> value) {
    append(encode<T, std::endian::big>(value));
  }
  template <BinaryInteger T>
  void append_le(std::type_identity_t<T> value) {
    append(encode<T, std::endian::little>(value));
  }
  /// Puts the integer before the first byte, for example the length of a message that is complete.
  template <BinaryInteger T>
  void prepend_be(std::type_identity_t<T> value) {
    prepend(encode<T, std::endian::big>(value));
  }
  template <BinaryInteger T>
  void prepend_le(std::type_identity_t<T> value) {
    prepend(encode<T, std::endian::little>(value));
  }
  /// Removes an integer from the front and returns it. Returns nullopt, and removes nothing, if the
  /// buffer holds fewer bytes. The bytes may be in several blocks.
  template <BinaryInteger T>
  [[nodiscard]] std::optional<T> read_be() noexcept {
    return read<T, std::endian::big>();
  }
  template <BinaryInteger T>
  [[nodiscard]] std::optional<T> read_le() noexcept {
    return read<T, std::endian::little>();
  }
  /// Returns the integer whose first byte is at index `from`, without removing it; nullopt if the
  /// buffer ends before the integer does.
  template <BinaryInteger T>
  [[nodiscard]] std::optional<T> peek_be(std::size_t from = 0) const noexcept {
    return decode<T, std::endian::big>(from);
  }
  template <BinaryInteger T>
  [[nodiscard]] std::optional<T> peek_le(std::size_t from = 0) const noexcept {
    return decode<T, std::endian::little>(from);
  }

  /// Returns writable memory of at least `size` bytes (0 means one) after the end, in one piece,
  /// for example for recv(2). commit() appends the first `size` bytes of it to the buffer;
  /// commit(0) releases it. Committing more than prepare() returned aborts with a message.
  [[nodiscard]] std::span<std::byte> prepare(std::size_t size);
  void commit(std::size_t size) noexcept;

  /// Removes the first `size` bytes. More than size() aborts with a message.
  void consume(std::size_t size) noexcept;
  /// Removes the first `size` bytes, or all if there are fewer, and returns them as a new buffer. A
  /// small part of a large block is copied, so that a program that keeps a short message does not
  /// keep the block. Throws std::bad_alloc; the buffer is then unchanged.
  [[nodiscard]] Buffer take(std::size_t size);
  /// Returns another buffer with the same contents. It shares the blocks and copies no bytes.
  [[nodiscard]] Buffer slice() const;
  /// Returns another buffer with a part of the contents. Like take(), it copies a small part of a
  /// large block and shares other blocks.
  /// `from` and `size` are clamped to the contents.
  [[nodiscard]] Buffer slice(std::size_t from, std::size_t size) const;

  /// The first contiguous bytes; empty only if the buffer is empty.
  [[nodiscard]] std::span<const std::byte> front() const noexcept;
  /// The first `size` bytes, or all if there are fewer, as contiguous memory. If they are not
  /// contiguous, they are copied once into a new block.
  [[nodiscard]] std::span<const std::byte> peek(std::size_t size);
  /// The whole buffer as contiguous text, like peek().
  [[nodiscard]] std::string_view coalesce();

  /// Copies bytes, from index `from` on, without removing them; returns the number of bytes copied.
  std::size_t copy_to(std::span<std::byte> target, std::size_t from = 0) const noexcept;
  [[nodiscard]] std::string to_string() const;

  /// The index of the first occurrence of `text` at or after `from`. An empty `text` is found at
  /// `from`.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view text,
                                                std::size_t from = 0) const noexcept;
  [[nodiscard]] std::optional<std::size_t> find(char text, std::size_t from = 0) const noexcept {
    return find(std::string_view(&text, 1), from);
  }

  /// The index of the first `text`, like find(). If it is not found, the next search for the same
  /// byte starts with the bytes added since, so that a message that arrives in many pieces is
  /// scanned once.
  [[nodiscard]] std::optional<std::size_t> search(char text) noexcept;

  /// The byte at `index`. Aborts with a message unless `index` is less than size(). Walks the
  /// blocks: O(blocks).
  [[nodiscard]] std::byte operator[](std::size_t index) const noexcept;

  /// Fills `pieces` with the first contiguous pieces, of at most `size` bytes in total, for
  /// writev(2) and sendmsg(2); returns the number of pieces.
  std::size_t pieces(std::span<iovec> pieces, std::size_t size = max_size()) const noexcept;

  /// Appends up to `size` bytes with one readv(2) call and returns their number; 0 is end of file.
  /// If it throws std::bad_alloc, bytes that were read may be lost, and the file descriptor should
  /// not be used any more.
  [[nodiscard]] Result<std::size_t> read_from(int fd, std::size_t size = 65536);
  /// Writes bytes from the front with one writev(2) call, and removes those that were written. May
  /// raise SIGPIPE; for sockets, use a Stream.
  [[nodiscard]] Result<std::size_t> write_to(int fd) noexcept;

  friend bool operator==(const Buffer& buffer, std::string_view text) noexcept {
    return buffer.equals(text);
  }

 private:
  friend class detail::BufferMemory;

  struct [[gnu::visibility("hidden")]] Block;
  struct [[gnu::visibility("hidden")]] ForeignBlock;
  struct [[gnu::visibility("hidden")]] Segment;
  struct [[gnu::visibility("hidden")]] Pool;

  template <class T, std::endian order>
  [[nodiscard]] static std::array<std::byte, sizeof(T)> encode(T value) noexcept {
    if constexpr (order != std::endian::native) value = std::byteswap(value);
    return std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  }
  template <class T, std::endian order>
  [[nodiscard]] std::optional<T> decode(std::size_t from) const noexcept {
    std::array<std::byte, sizeof(T)> bytes{};
    if (copy_to(bytes, from) != sizeof(T)) return std::nullopt;
    const T value = std::bit_cast<T>(bytes);
    return order != std::endian::native ? std::byteswap(value) : value;
  }
  template <class T, std::endian order>
  [[nodiscard]] std::optional<T> read() noexcept {
    const std::optional<T> value = decode<T, order>(0);
    if (value) consume(sizeof(T));
    return value;
  }
  [[nodiscard]] bool equals(std::string_view text) const noexcept;
  /// Returns true if the bytes from `at` on, which is in `segment`, begin with `text`.
  [[nodiscard]] bool begins_with(const Segment* segment, const std::byte* at,
                                 std::string_view text) const noexcept;
  static void check_sum(std::size_t size, std::size_t more);
  [[nodiscard]] Segment* first() const noexcept;
  /// Null after the last segment.
  [[nodiscard]] Segment* after(const Segment* segment) const noexcept;
  void push_back(Segment* segment) noexcept;
  void push_front(Segment* segment) noexcept;
  Segment* pop_front() noexcept;
  void push_back_compact(Segment* segment) noexcept;
  void push_back_part(const Segment& segment, std::byte* begin, std::size_t size);
  void replace(Segment* segment, Segment* replacement) noexcept;
  void tighten(Segment* segment) noexcept;
  void tighten_last() noexcept;
  void tighten_ends() noexcept;
  [[nodiscard]] bool is_last_merged() const noexcept;
  [[nodiscard]] Segment* make_next(std::size_t size) const;
  void push_back_next(Segment* segment) noexcept;
  void append_in_new_block(std::span<const std::byte> bytes);
  [[nodiscard]] std::span<std::byte> extend(std::size_t size);
  void append_copy(const Buffer& piece);
  [[nodiscard]] static bool is_copied_out(const Block& block, std::size_t here,
                                          std::size_t size) noexcept;
  void link(Buffer& other) noexcept;
  void drop_all() noexcept;
  /// Adjusts size_ and the search state after `size` bytes were removed from the front.
  void lose_front(std::size_t size) noexcept;
  [[nodiscard]] std::size_t room_behind() const noexcept;
  /// Calls `each(begin, count, segment)` for each contiguous piece of a range.
  void for_each_piece(std::size_t from, std::size_t size, auto&& entry) const;
  [[nodiscard]] Buffer copy_out(std::size_t from, std::size_t size) const;

  /// Circular list: the last segment points to the first. A single pointer, because every idle
  /// connection has a buffer.
  Segment* last_ = nullptr;
  Segment* prepared_ = nullptr;  ///< Empty; commit() makes it the last segment.
  std::size_t size_ = 0;
};

}  // namespace tambour

#pragma GCC visibility pop
