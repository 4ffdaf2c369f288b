// One call of OpenSSL by a filter.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include <openssl/err.h>

#include <tambour/detail/namespaces.h>

#include "io/write_size.h"
#include "tls/filter.h"

namespace tambour::tls::detail {

inline constexpr std::size_t record_bytes_max = SSL3_RT_MAX_PLAIN_LENGTH;
/// The plaintext that one write accepts. Its records are sent with one system call, and in one
/// segment if they are full.
inline constexpr std::size_t write_bytes_max = io::segment_bytes_max;

/// Memory for the records of one call, and for one record of small pieces.
struct Scratch {
  std::array<std::byte, write_bytes_max + std::size_t{8} * 1024> records;
  std::array<std::byte, record_bytes_max> plain;
};

/// A call of one filter makes calls of the filters below it, so that each depth has its own memory.
inline constexpr unsigned filters_max = 4;

/// Null if memory runs out. `depth` is less than `filters_max`.
inline Scratch* scratch_of_thread(unsigned depth) noexcept {
  static thread_local std::array<std::unique_ptr<Scratch>, filters_max> scratch;
  std::unique_ptr<Scratch>& chosen = scratch[depth];
  if (chosen == nullptr) chosen.reset(new (std::nothrow) Scratch);
  return chosen.get();
}

/// SSL_get_error() takes an error that another user of the thread has left for one of the call that
/// follows. ERR_clear_error() alone takes 800 instructions, also if there is nothing to clear.
inline void clear_errors() noexcept {
  if (ERR_peek_error() != 0) [[unlikely]]
    ERR_clear_error();
}

/// A call of OpenSSL, which may read and write through the BIO.
class Filter::Call {
 public:
  Call(Filter& filter, const io::Transport& transport, bool receives) noexcept
      : below(transport),
        scratch(scratch_of_thread(filter.depth())),
        may_receive(receives),
        filter_(filter) {
    filter.call_ = this;
    clear_errors();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    filter_.send_collected();
    filter_.call_ = nullptr;
    filter_.unsent_ = filter_.unsent_records_.size();
  }

  const io::Transport& below;
  Scratch* const scratch;
  std::size_t collected = 0;
  bool may_receive;

 private:
  Filter& filter_;
};

}  // namespace tambour::tls::detail
