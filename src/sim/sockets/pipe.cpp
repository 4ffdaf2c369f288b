// PipeEnd and EventCounter: pipe(2) and eventfd(2) with the results of Linux.
#include "sim/sockets/pipe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

namespace tambour::sim::detail {
namespace {

/// PIPE_BUF: writes up to this size are atomic.
constexpr std::size_t atomic_bytes = 4096;

constexpr std::uint64_t count_max = std::numeric_limits<std::uint64_t>::max() - 1;

}  // namespace

PipeEnd::Ends PipeEnd::open(World& world) {
  const auto shared = std::make_shared<Shared>();
  Ends ends{std::make_shared<PipeEnd>(world, shared, true),
            std::make_shared<PipeEnd>(world, shared, false)};
  shared->reader = ends.reader.get();
  shared->writer = ends.writer.get();
  return ends;
}

std::size_t PipeEnd::room() const noexcept {
  const std::size_t capacity = std::max(world_.options.pipe_buffer_bytes, atomic_bytes);
  return capacity - std::min(capacity, shared_->bytes.size());
}

Events PipeEnd::readiness() const noexcept {
  Events events = Events::none;
  if (reads_) {
    if (!shared_->bytes.empty()) events |= Events::read;
    if (shared_->writer == nullptr) events |= hang_up;
  } else {
    if (room() >= atomic_bytes) events |= Events::write;
    if (shared_->reader == nullptr) events |= Events::error | Events::write;
  }
  return events;
}

ssize_t PipeEnd::receive(Message& message) {
  if (!reads_) return -EBADF;
  if (total_size(message.buffers) == 0) return 0;
  if (shared_->bytes.empty()) return shared_->writer == nullptr ? 0 : -EAGAIN;
  std::string_view bytes = shared_->bytes.view();
  bytes = bytes.substr(0, total_size(message.buffers));
  if (bytes.size() > 1 && world_.random.chance(world_.options.short_read))
    bytes = bytes.substr(0, 1 + world_.random.below(bytes.size() - 1));
  const bool was_full = room() < atomic_bytes;
  const std::size_t taken = scatter(bytes, message.buffers);
  shared_->bytes.drop(taken);
  if (was_full && room() >= atomic_bytes && shared_->writer != nullptr) shared_->writer->changed();
  return ssize_t(taken);
}

ssize_t PipeEnd::send(Message& message) {
  if (reads_) return -EBADF;
  if (shared_->reader == nullptr) return -EPIPE;
  const std::size_t wanted = total_size(message.buffers);
  if (wanted == 0) return 0;
  std::size_t taken = std::min(wanted, room());
  if (taken == 0 || (wanted <= atomic_bytes && taken < wanted)) return -EAGAIN;
  if (wanted > atomic_bytes && taken > 1 && world_.random.chance(world_.options.short_write))
    taken = 1 + world_.random.below(taken - 1);
  shared_->bytes.append(gather(message.buffers, taken));
  shared_->reader->changed();
  return ssize_t(taken);
}

void PipeEnd::close() {
  PipeEnd* other = reads_ ? shared_->writer : shared_->reader;
  (reads_ ? shared_->reader : shared_->writer) = nullptr;
  if (other != nullptr) other->changed();
}

Events EventCounter::readiness() const noexcept {
  Events events = Events::none;
  if (count_ > 0) events |= Events::read;
  if (count_ < count_max) events |= Events::write;
  return events;
}

ssize_t EventCounter::receive(Message& message) {
  if (total_size(message.buffers) < sizeof count_) return -EINVAL;
  if (count_ == 0) return -EAGAIN;
  const std::uint64_t taken = semaphore_ ? 1 : count_;
  count_ -= taken;
  scatter({reinterpret_cast<const char*>(&taken), sizeof taken}, message.buffers);
  changed();
  return sizeof taken;
}

ssize_t EventCounter::send(Message& message) {
  if (total_size(message.buffers) < sizeof count_) return -EINVAL;
  std::uint64_t added = 0;
  std::memcpy(&added, gather(message.buffers, sizeof added).data(), sizeof added);
  if (added > count_max) return -EINVAL;
  if (added > count_max - count_) return -EAGAIN;
  count_ += added;
  changed();
  return sizeof added;
}

}  // namespace tambour::sim::detail
