// evbuffer: a queue of bytes in a list of chains.
//
// The chains from `first` to `tail` have at least one byte each; those after `tail` are empty:
// space that evbuffer_expand() or evbuffer_reserve_space() added. A function that moves or frees
// chains invalidates every evbuffer_ptr, which refers to a chain.
//
// Callbacks are invoked with the lock held. They may free the buffer: the functions that invoke
// them hold a reference until they return (Locked).
#pragma once

#include <cstddef>
#include <cstdint>

#include <event2/buffer.h>

#include "libevent/buffer/buffer_chain.h"
#include "libevent/event/core.h"

// The header does not do this itself.
extern "C" {
#include <event2/buffer_compat.h>
}

struct bufferevent;

struct evbuffer_cb_entry {
  evbuffer_cb_entry* next;
  evbuffer_cb_entry** link;  ///< The pointer that refers to this entry.
  union {
    evbuffer_cb_func function;
    evbuffer_cb obsolete;
  };
  void* argument;
  std::uint32_t flags;
};

namespace tambour::libevent {

/// Flags of a callback besides EVBUFFER_CB_ENABLED. The upper half cannot be set by the user.
namespace callback_flags {
inline constexpr std::uint32_t never_deferred = 0x2;
inline constexpr std::uint32_t internal = 0xffff0000;
inline constexpr std::uint32_t obsolete = 0x00040000;
inline constexpr std::uint32_t removed = 0x00080000;  ///< Freed when no callback runs.
}  // namespace callback_flags

}  // namespace tambour::libevent

struct evbuffer {
  using Chain = tambour::libevent::Chain;

  Chain* first;
  Chain* last;
  Chain* tail;  ///< The last chain with bytes in it.
  std::size_t length;
  /// Bytes that callbacks have not been told of.
  std::size_t added;
  std::size_t deleted;
  void* lock;
  evbuffer_cb_entry* callbacks;
  std::uint32_t flags;
  int references;
  int running;  ///< The depth of invocations of callbacks.
  bool owns_lock;
  bool front_frozen;
  bool back_frozen;
  bool deferred;
  bool callbacks_removed;             ///< By a callback.
  event_base* base;                   ///< Of deferred callbacks.
  event_callback* deferred_callback;  ///< If there were any: most buffers need none.
  bufferevent* parent;

  /// The chain that bytes are added to: the last one with bytes, or the first empty one.
  [[nodiscard]] Chain* open_chain() const noexcept { return tail != nullptr ? tail : first; }
  /// The first chain after which no byte follows and that may have space, or null.
  [[nodiscard]] Chain* space_chain() const noexcept {
    Chain* const open = open_chain();
    return open != nullptr && open->space() == 0 ? open->next : open;
  }
  /// The first empty chain.
  [[nodiscard]] Chain* spare() const noexcept { return tail != nullptr ? tail->next : first; }

  /// Adds a chain after `tail`, and frees the empty chains.
  void append(Chain* chain) noexcept;
  /// Adds an empty chain after all others.
  void append_spare(Chain* chain) noexcept;
  void drop_spares() noexcept;
  void drop_chains() noexcept;
  /// Moves all chains of `from` behind those with bytes, or in front.
  void take_back(evbuffer& from) noexcept;
  void take_front(evbuffer& from) noexcept;
  /// Removes the first chain from the list without freeing it.
  Chain* unlink_first() noexcept;
  /// Removes an empty chain from the list and frees it.
  void drop_spare(Chain* chain) noexcept;
  /// Replaces a chain by another one with the same bytes, and frees it.
  void replace(Chain* chain, Chain* by) noexcept;

  /// These do not invoke callbacks. They return false if there is no memory, and then leave the
  /// bytes as they are.
  bool add(const void* from, std::size_t size) noexcept;
  bool prepend(const void* from, std::size_t size) noexcept;
  void drain(std::size_t size) noexcept;
  /// Returns a chain with space for `size` bytes after those of the buffer, or null.
  Chain* expand(std::size_t size) noexcept;
  /// Adds to the bytes of a chain of which space has been filled, and moves `tail`.
  void commit(Chain* chain, std::size_t size) noexcept;

  /// Copies bytes to the space of a chain.
  void store(Chain* chain, const void* from, std::size_t size) noexcept;

  /// Invokes callbacks, or schedules them, after bytes were added or removed.
  void changed(std::size_t more, std::size_t less) noexcept {
    if (callbacks == nullptr) [[likely]] {
      added = deleted = 0;
      return;
    }
    added += more;
    deleted += less;
    notify();
  }
  void notify() noexcept;
  void run_callbacks(std::uint32_t mask, std::uint32_t value, bool reset) noexcept;
  void remove_callback(evbuffer_cb_entry* entry) noexcept;
  void remove_callbacks() noexcept;

  void acquire() noexcept {
    tambour::libevent::lock(lock);
    ++references;
  }
  /// Releases a reference and the lock, and frees the buffer if it was the last one.
  void release() noexcept {
    if (--references > 0) [[likely]] {
      tambour::libevent::unlock(lock);
      return;
    }
    destroy();
  }

 private:
  void destroy() noexcept;
};

namespace tambour::libevent {

/// Holds the lock of a buffer, and a reference.
class Locked {
 public:
  explicit Locked(evbuffer* buffer) noexcept : buffer_(buffer) { buffer_->acquire(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { buffer_->release(); }

 private:
  evbuffer* buffer_;
};

/// Holds the locks of two buffers, and references. Every thread acquires two locks in the same
/// order.
class BothLocked {
 public:
  BothLocked(evbuffer* one, evbuffer* other) noexcept
      : first_(reinterpret_cast<std::uintptr_t>(one->lock) <=
                       reinterpret_cast<std::uintptr_t>(other->lock)
                   ? one
                   : other),
        second_(first_ == one ? other : one) {
    first_->acquire();
    second_->acquire();
  }
  BothLocked(const BothLocked&) = delete;
  BothLocked& operator=(const BothLocked&) = delete;
  ~BothLocked() {
    second_->release();
    first_->release();
  }

 private:
  evbuffer* first_;
  evbuffer* second_;
};

/// Writes up to `size` bytes. Unlike evbuffer_write_atmost(), never raises SIGPIPE if `quiet`.
ssize_t write_from(evbuffer& buffer, int fd, std::size_t size, bool quiet) noexcept;

}  // namespace tambour::libevent
