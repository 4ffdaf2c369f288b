// Chains: the pieces of memory or of a file that the bytes of an evbuffer are in.
//
// The header of a chain and its memory are one allocation. A chain of foreign memory has, in place
// of memory, what is needed to release it. Bytes are [begin, begin + size) of `data`; of a chain
// that is sent by sendfile(2) they are these offsets of the file, and `data` is null until a
// function needs the bytes: see make_readable().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <event2/buffer.h>

struct evbuffer_file_segment;

namespace tambour::libevent {

struct Chain {
  enum class Kind : std::uint8_t {
    memory,     ///< Of the chain itself.
    reference,  ///< Of the user, followed by a Reference.
    file,       ///< Of a file segment, followed by a FilePart.
    view,       ///< Of the chain of another buffer, followed by a pointer to it.
  };
  struct Reference {
    evbuffer_ref_cleanup_cb cleanup;
    void* argument;
  };
  struct FilePart {
    evbuffer_file_segment* segment;
    std::size_t offset;  ///< Of the chain's first byte, from the beginning of the segment.
  };

  Chain* next;
  Chain* previous;
  unsigned char* data;
  std::size_t begin;
  std::size_t size;
  std::size_t capacity;
  Kind kind;
  bool writable;  ///< Bytes may be stored in the memory around those of the chain.
  bool shared;    ///< Views may refer to it: `references` counts them and the buffer.
  std::atomic<std::uint32_t> references;

  [[nodiscard]] unsigned char* bytes() const noexcept { return data + begin; }
  [[nodiscard]] unsigned char* end() const noexcept { return data + begin + size; }
  /// The number of bytes that fit after the last one.
  [[nodiscard]] std::size_t space() const noexcept {
    return writable ? capacity - begin - size : 0;
  }
  [[nodiscard]] bool in_file() const noexcept { return data == nullptr && kind == Kind::file; }
  /// Moves the bytes to the beginning of the memory.
  void align() noexcept;
  template <class T>
  [[nodiscard]] T& extra() noexcept {
    return *reinterpret_cast<T*>(this + 1);
  }
};

/// The largest chain.
inline constexpr std::size_t chain_size_max = SIZE_MAX / 2;

/// Makes an empty chain for at least `capacity` bytes, rounded up so that small additions share it.
/// Returns null if there is no memory.
Chain* make_chain(std::size_t capacity) noexcept;
/// Makes an empty chain for `capacity` bytes.
Chain* make_exact_chain(std::size_t capacity) noexcept;
/// Makes a chain without memory of its own, with zeroed room for an extra of `extra` bytes.
Chain* make_foreign_chain(Chain::Kind kind, std::size_t extra) noexcept;
/// Frees a chain once no view refers to it. May invoke the cleanup function of its memory.
void drop(Chain* chain) noexcept;
/// Frees a chain and those after it.
void drop_all(Chain* chain) noexcept;
/// Maps the part of a file that the chain stands for, unless its bytes are in memory. Returns false
/// if that fails.
[[nodiscard]] bool make_readable(Chain& chain) noexcept;

/// Adds one to the references of a segment; evbuffer_file_segment_free() subtracts one.
void retain(evbuffer_file_segment& segment) noexcept;

}  // namespace tambour::libevent
