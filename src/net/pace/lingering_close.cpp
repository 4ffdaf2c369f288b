// Closes a stream gracefully: shuts down the write side, and discards what the peer still sends.
#include "net/pace/lingering_close.h"

#include <cstddef>

#include <tambour/base/result.h>

namespace tambour::detail::net {
namespace {

constexpr std::size_t read_bytes = std::size_t{64} * 1024;

}  // namespace

LingeringClose::LingeringClose(Stream& stream)
    : stream_(stream), timer_(stream.loop(), [this] {
        has_expired_ = true;
        stream_.cancel_read();
        stream_.cancel_write();
      }) {}

Task<> LingeringClose::run(Duration linger, Duration shutdown_limit) {
  const bool waits = linger > Duration::zero();
  const Duration limit = waits ? linger : shutdown_limit;
  if (limit > Duration::zero()) timer_.start(limit);
  const Result<> shut = co_await stream_.shutdown_write();
  bool is_open = shut.has_value() && waits;
  Buffer discarded;
  while (is_open && !has_expired_) {
    discarded.clear();
    const Result<std::size_t> got = co_await stream_.read(discarded, read_bytes);
    is_open = got.value_or(0) > 0;
  }
  timer_.stop();
}

void LingeringClose::end_by(TimePoint deadline) noexcept {
  if (!timer_.is_started() || deadline < timer_.deadline()) timer_.start_at(deadline);
}

}  // namespace tambour::detail::net
