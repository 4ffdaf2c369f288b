// Bytes on their way: a chain of blocks that grows at both ends and gives away what it holds
// without copying.
//
// A block belongs to all buffers that show part of it, and is written only while it belongs to one.
// Blocks come from a pool of the thread, so that a connection that talks allocates nothing, and an
// empty buffer holds nothing. The trap: a pointer into a buffer is good until the buffer changes.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/result.h>

namespace tambour {

/// A queue of bytes. Not for two threads at once; but buffers that share blocks may be in different
/// threads. Functions that make room throw std::bad_alloc, and std::length_error where the size
/// would exceed max_size(); then nothing has changed.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::string_view text) { append(text); }
  Buffer(Buffer&& other) noexcept
      : last_(std::exchange(other.last_, nullptr)),
        prepared_(std::exchange(other.prepared_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;  // share() is what says that it costs nothing.
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { clear(); }

  void swap(Buffer& other) noexcept {
    std::swap(last_, other.last_);
    std::swap(prepared_, other.prepared_);
    std::swap(size_, other.size_);
  }

  /// In bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  static constexpr std::size_t max_size() noexcept { return PTRDIFF_MAX; }

  void clear() noexcept;

  /// Copies to the end. The bytes may be the buffer's own.
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  /// Moves all of `other` to the end; it is empty then.
  void append(Buffer&& other);
  /// Shows bytes of somebody else, which `owner` keeps alive and nobody changes.
  void append_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// Copies to the front; cheap where a header was left room for, or is small.
  void prepend(std::span<const std::byte> bytes);
  void prepend(std::string_view text) { prepend(std::as_bytes(std::span(text))); }
  void prepend(Buffer&& other);

  /// Returns room for at least `size` bytes (0 means one) behind the end, in one piece, for
  /// recv(2), say. commit() then makes the first `size` bytes of it part of the buffer; commit(0)
  /// gives the room back. Committing more than the room that prepare() returned aborts with a
  /// message.
  [[nodiscard]] std::span<std::byte> prepare(std::size_t size);
  void commit(std::size_t size) noexcept;

  /// Drops the first `size` bytes. More than size() aborts with a message.
  void consume(std::size_t size) noexcept;
  /// Removes the first `size` bytes, or all if there are fewer, and returns them as a buffer of
  /// their own. A small part of a large block is copied, so that a program which keeps a short
  /// message does not keep the block; the result holds at most 64 times its size. Throws
  /// std::bad_alloc, and then nothing has changed.
  [[nodiscard]] Buffer take(std::size_t size);
  /// Returns another buffer with the same bytes, without copying them: it holds the same blocks.
  [[nodiscard]] Buffer share() const;
  /// The same for a part; a small part of a large block is copied, as by take(). `from` and `size`
  /// are cut to what there is.
  [[nodiscard]] Buffer share(std::size_t from, std::size_t size) const;

  /// The first bytes, as many as lie together; empty only where the buffer is.
  [[nodiscard]] std::span<const std::byte> front() const noexcept;
  /// The first `size` bytes, or all where there are fewer, together: moved there if they do not lie
  /// so, which costs a copy of them once.
  [[nodiscard]] std::span<const std::byte> peek(std::size_t size);
  /// As peek(), for all of it, as text.
  [[nodiscard]] std::string_view text();

  /// Copies from the front, without dropping; returns how much.
  std::size_t copy_to(std::span<std::byte> target) const noexcept;
  [[nodiscard]] std::string to_string() const;

  /// Where `what` first begins, at `from` or behind it. An empty `what` is found at `from`.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view what,
                                                std::size_t from = 0) const noexcept;
  [[nodiscard]] std::optional<std::size_t> find(char what, std::size_t from = 0) const noexcept {
    return find(std::string_view(&what, 1), from);
  }

  /// Where `what` first is, as find() says; but where it was not found, the next search for it
  /// begins with what has come since. For messages that come in many pieces.
  [[nodiscard]] std::optional<std::size_t> search(char what) noexcept;

  /// The byte at `index`, which must be less than size(), else it aborts with a message. Walks the
  /// blocks.
  [[nodiscard]] std::byte operator[](std::size_t index) const noexcept;

  /// Fills `pieces` with the first pieces of at most `size` bytes in all, for writev(2) and
  /// sendmsg(2); returns how many.
  std::size_t pieces(std::span<iovec> pieces, std::size_t size = max_size()) const noexcept;

  /// Reads once, up to `size` bytes, to the end (readv(2)); 0 is the end of file. Where it throws
  /// std::bad_alloc, bytes may have been read that are lost: the descriptor is of no use then.
  Result<std::size_t> read_from(int fd, std::size_t size = 65536);
  /// Writes once, from the front, what the descriptor takes, and drops it (writev(2), SIGPIPE and
  /// all: for sockets there are streams).
  Result<std::size_t> write_to(int fd) noexcept;

  friend bool operator==(const Buffer& buffer, std::string_view text) noexcept {
    return buffer.equals(text);
  }

 private:
  struct Block;
  struct Segment;
  struct Pool;

  [[nodiscard]] bool equals(std::string_view text) const noexcept;
  /// Whether the bytes from `at` on, which lie in `segment`, begin with `what`.
  [[nodiscard]] bool begins_with(const Segment* segment, const std::byte* at,
                                 std::string_view what) const noexcept;
  static void check_sum(std::size_t size, std::size_t more);
  [[nodiscard]] Segment* first() const noexcept;
  /// Null behind the last one.
  [[nodiscard]] Segment* after(const Segment* segment) const noexcept;
  void push_back(Segment* segment) noexcept;
  void push_front(Segment* segment) noexcept;
  Segment* pop_front() noexcept;
  /// So many bytes at the front are no longer there.
  void lose_front(std::size_t size) noexcept;
  [[nodiscard]] std::size_t room_behind() const noexcept;
  /// Calls `each(begin, count, segment)` for the pieces of a part.
  void for_each_piece(std::size_t from, std::size_t size, auto&& each) const;
  [[nodiscard]] Buffer copy_out(std::size_t from, std::size_t size) const;

  /// In a ring: the last is followed by the first. An idle connection has a buffer, and there are
  /// many of those.
  Segment* last_ = nullptr;
  Segment* prepared_ = nullptr;  ///< Empty; becomes the last one with commit().
  std::size_t size_ = 0;
};

}  // namespace tambour
