#include "backend/ring_files.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/system_call.h"

namespace tambour::backend {
namespace {

// Truncating (Linux 6.9) and querying the size are rare and run on a thread pool.
constexpr std::array<std::pair<OperationKind, int>, 4> taken{{
    {OperationKind::file_open, IORING_OP_OPENAT},
    {OperationKind::file_read, IORING_OP_READ},
    {OperationKind::file_write, IORING_OP_WRITE},
    {OperationKind::file_sync, IORING_OP_FSYNC},
}};

constexpr unsigned bit_of(OperationKind kind) noexcept { return 1U << static_cast<unsigned>(kind); }

/// The kernel applies the same limit: MAX_RW_COUNT.
unsigned count_of(std::size_t size) noexcept {
  constexpr std::size_t most = 0x7ffff000;
  return static_cast<unsigned>(std::min(size, most));
}

}  // namespace

void RingFiles::open(io_uring& ring) noexcept {
  in_flight_max_ = ring.cq.ring_entries;
  kinds_ = 0;
  io_uring_probe* const probe = ::io_uring_get_probe_ring(&ring);
  if (probe == nullptr) return;
  for (const auto& [kind, code] : taken) {
    if (::io_uring_opcode_supported(probe, code) != 0) kinds_ |= bit_of(kind);
  }
  ::io_uring_free_probe(probe);
}

bool RingFiles::takes(OperationKind kind) const noexcept { return (kinds_ & bit_of(kind)) != 0; }

void RingFiles::submit(FileOperation& op) noexcept {
  op.handed_over = op.cancel_requested = op.doubted = false;
  op.probe = 0;
  op.misses = 0;
  // First in, first out.
  op.next_on_fd = nullptr;
  op.link_on_fd = pending_end_;
  *pending_end_ = &op;
  pending_end_ = &op.next_on_fd;
}

void RingFiles::put_first(Operation*& first, FileOperation& op) noexcept {
  op.next_on_fd = first;
  op.link_on_fd = &first;
  if (first != nullptr) first->link_on_fd = &op.next_on_fd;
  first = &op;
}

void RingFiles::take_out(FileOperation& op) noexcept {
  *op.link_on_fd = op.next_on_fd;
  if (op.next_on_fd != nullptr) op.next_on_fd->link_on_fd = op.link_on_fd;
  if (pending_end_ == &op.next_on_fd) pending_end_ = op.link_on_fd;
  op.next_on_fd = nullptr;
  op.link_on_fd = nullptr;
}

void RingFiles::prepare(FileOperation& op, io_uring_sqe& entry) noexcept {
  take_out(op);
  put_first(in_flight_, op);
  ++in_flight_count_;
  op.handed_over = true;
  switch (op.kind) {
    case OperationKind::file_open:
      ::io_uring_prep_openat(&entry, AT_FDCWD, op.path, op.flags, op.permissions);
      break;
    case OperationKind::file_read:
      ::io_uring_prep_read(&entry, op.fd, op.data, count_of(op.size), op.offset);
      break;
    case OperationKind::file_write:
      ::io_uring_prep_write(&entry, op.fd, op.data, count_of(op.size), op.offset);
      break;
    default:
      ::io_uring_prep_fsync(&entry, op.fd, 0);
  }
  ::io_uring_sqe_set_data64(&entry, token_of(op));
}

bool RingFiles::request_cancel(FileOperation& op) noexcept {
  if (op.link_on_fd == nullptr || op.cancel_requested) return false;
  op.cancel_requested = true;
  if (op.handed_over) return true;
  end(op, -ECANCELED, ended_);
  return false;
}

void RingFiles::end(FileOperation& op, int result, ReadyQueue& ready) noexcept {
  take_out(op);
  if (op.handed_over) --in_flight_count_;
  op.result = result;
  ready.push(op);
}

void RingFiles::complete(const io_uring_cqe& completion, ReadyQueue& ready) noexcept {
  const std::uint64_t what = completion.user_data & ~(own_bit | probe_bit);
  if ((completion.user_data & probe_bit) != 0) {
    answer_probe(what, completion.res, ready);
    return;
  }
  FileOperation& op = *at(what);
  const bool was_cancelled = completion.res == -ECANCELED || completion.res == -EINTR;
  if (was_cancelled && !op.cancel_requested) {
    // Interrupted, or cancelled by a probe: the operation had not started, so submit it again.
    take_out(op);
    --in_flight_count_;
    submit(op);
    return;
  }
  end(op, was_cancelled ? -ECANCELED : completion.res, ready);
}

void RingFiles::doubt_all() noexcept {
  // This includes operations with a probe in flight: the lost completion may be that of the probe.
  for (Operation* each = in_flight_; each != nullptr; each = each->next_on_fd)
    static_cast<FileOperation*>(each)->doubted = any_doubted_ = true;
}

FileOperation* RingFiles::next_doubted() noexcept {
  if (!any_doubted_) return nullptr;
  for (Operation* each = in_flight_; each != nullptr; each = each->next_on_fd) {
    auto& op = *static_cast<FileOperation*>(each);
    if (op.doubted) return &op;
  }
  any_doubted_ = false;
  return nullptr;
}

/// The only way to query an operation is to cancel it. One that a probe has cancelled is submitted
/// again, see complete().
void RingFiles::prepare_probe(FileOperation& op, io_uring_sqe& entry) noexcept {
  op.doubted = false;
  op.probe = ++probes_;
  ::io_uring_prep_cancel64(&entry, token_of(op), 0);
  ::io_uring_sqe_set_data64(&entry, op.probe | own_bit | probe_bit);
}

void RingFiles::answer_probe(std::uint64_t probe, int result, ReadyQueue& ready) noexcept {
  // With any other result the kernel has found the operation, whose own completion follows.
  if (result != -ENOENT) return;
  // Look it up by the number of the probe, because the operation may have been destroyed by now.
  for (Operation* each = in_flight_; each != nullptr; each = each->next_on_fd) {
    auto& op = *static_cast<FileOperation*>(each);
    if (op.probe != probe) continue;
    // The completion may still arrive: the kernel does not find an operation that has finished but
    // whose completion is not posted yet.
    constexpr unsigned char misses_max = 3;
    if (++op.misses < misses_max) {
      op.doubted = any_doubted_ = true;
    } else {
      end(op, -EIO, ready);  // Its result is unknown.
    }
    return;
  }
}

void RingFiles::cancel_all() noexcept {
  while (pending_ != nullptr) end(static_cast<FileOperation&>(*pending_), -ECANCELED, ended_);
  while (in_flight_ != nullptr) end(static_cast<FileOperation&>(*in_flight_), -ECANCELED, ended_);
}

}  // namespace tambour::backend
