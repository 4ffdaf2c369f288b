// UnixDatagramBatch: its memory, and adding and removing datagrams.
#include <tambour/net/unix_datagram_batch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/failure.h"
#include "net/datagram_headers.h"

namespace tambour {

UnixDatagramBatch::UnixDatagramBatch(std::size_t datagrams, std::size_t bytes_each)
    : bytes_each_(std::max<std::size_t>(bytes_each, 1)) {
  const std::size_t count = std::clamp<std::size_t>(datagrams, 1, datagrams_max);
  datagrams_.reserve(count);
  headers_ = std::make_unique<detail::net::DatagramHeaders>(count);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, bytes_each_, &bytes)) throw std::bad_alloc();
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
}

UnixDatagramBatch::UnixDatagramBatch(UnixDatagramBatch&&) noexcept = default;
UnixDatagramBatch& UnixDatagramBatch::operator=(UnixDatagramBatch&&) noexcept = default;
UnixDatagramBatch::~UnixDatagramBatch() = default;

Result<> UnixDatagramBatch::add(std::span<const std::byte> bytes,
                                const std::optional<Endpoint>& to) noexcept {
  if (bytes.size() > bytes_each_) return detail::base::failure(EMSGSIZE);
  if (to && to->is_ip()) return detail::base::failure(EAFNOSUPPORT);
  if (empty()) clear();
  if (datagrams_.size() == headers_->messages.size()) return detail::base::failure(ENOBUFS);
  std::byte* const place = memory_.get() + datagrams_.size() * bytes_each_;
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  datagrams_.push_back({.bytes = {place, bytes.size()}, .address = to, .is_truncated = false});
  return {};
}

void UnixDatagramBatch::drop_front() noexcept {
  if (!empty()) ++first_;
}

void UnixDatagramBatch::clear() noexcept {
  datagrams_.clear();
  first_ = 0;
}

}  // namespace tambour
