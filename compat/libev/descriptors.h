// The ev_io watchers of one loop.
//
// The watchers of one descriptor form a list through their own `next`, the latest first, and share
// one operation of the backend, which asks for all that any of them asks for. So a watcher is the
// user's memory again as soon as it is stopped: the backend knows nothing but our records. What it
// finds goes straight to the watchers that are pending, and through no queue of its own.
#pragma once

#include <cstdint>

#include <ev.h>

#include <tambour/operation.h>

#include "array.h"
#include "backend/backend.h"
#include "pending.h"

namespace tambour::libev {

struct Loop;

/// `active` of watchers that are the loop's own, and are not counted among its references.
inline constexpr int active_own = 2;

/// One descriptor. Pinned, and kept until the loop is destroyed.
struct FdRecord final : Operation {
  FdRecord(Loop& owner, int number) noexcept;

  Loop& loop;
  ev_io* first = nullptr;
  const ev_io* stopped = nullptr;  ///< The watcher that was stopped last,
  std::uint64_t stopped_in = 0;    ///< and in which turn.
};

class Descriptors {
 public:
  explicit Descriptors(Loop& loop) noexcept : loop_(loop) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors();

  /// Puts a watcher on its descriptor.
  void add(ev_io& watcher) noexcept;
  void remove(ev_io& watcher) noexcept;

  /// Makes the watchers of a descriptor due for those of the events that they ask for.
  void feed(int fd, int events) noexcept;

  /// Calls f(fd, record) for each descriptor that ever had a watcher.
  template <class F>
  void for_each(F&& f) {
    for (int chunk = 0; chunk < chunk_count_; ++chunk) {
      if (chunks_[chunk] == nullptr) continue;
      for (int i = 0; i < chunk_size; ++i) f(chunk * chunk_size + i, chunks_[chunk][i]);
    }
  }

 private:
  static constexpr int chunk_size = 64;

  [[nodiscard]] FdRecord* find(int fd) noexcept {
    const int chunk = fd / chunk_size;
    if (fd < 0 || chunk >= chunk_count_ || chunks_[chunk] == nullptr) return nullptr;
    return &chunks_[chunk][fd % chunk_size];
  }
  FdRecord& make(int fd) noexcept;
  void tell(FdRecord& record) noexcept;

  Loop& loop_;
  Array<FdRecord*> chunks_;
  int chunk_count_ = 0;
};

}  // namespace tambour::libev
