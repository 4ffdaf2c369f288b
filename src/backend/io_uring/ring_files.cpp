// RingFiles: submits file operations to a ring, continues those that the kernel has done in part,
// and finds out which operations it supports.
#include "backend/io_uring/ring_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

// Truncating (Linux 6.9) and querying the size are rare and run on a thread pool. The operations on
// paths need Linux 5.15; those on the contents 5.6.
constexpr std::array<std::pair<detail::OperationKind, int>, 11> taken{{
    {detail::OperationKind::file_open, IORING_OP_OPENAT},
    {detail::OperationKind::file_read, IORING_OP_READ},
    {detail::OperationKind::file_write, IORING_OP_WRITE},
    {detail::OperationKind::file_sync, IORING_OP_FSYNC},
    {detail::OperationKind::file_allocate, IORING_OP_FALLOCATE},
    {detail::OperationKind::file_status, IORING_OP_STATX},
    {detail::OperationKind::file_rename, IORING_OP_RENAMEAT},
    {detail::OperationKind::file_remove, IORING_OP_UNLINKAT},
    {detail::OperationKind::file_make_directory, IORING_OP_MKDIRAT},
    {detail::OperationKind::file_link, IORING_OP_LINKAT},
    {detail::OperationKind::file_symlink, IORING_OP_SYMLINKAT},
}};

constexpr unsigned bit_of(detail::OperationKind kind) noexcept {
  return 1U << static_cast<unsigned>(kind);
}

/// The kernel applies the same limit: MAX_RW_COUNT.
unsigned count_of(std::size_t size) noexcept {
  constexpr std::size_t transfer_max = 0x7ffff000;
  return static_cast<unsigned>(std::min(size, transfer_max));
}

void prepare_on_path(const FileOperation& op, io_uring_sqe& entry) noexcept {
  const auto flags = static_cast<unsigned>(op.flags);
  switch (op.kind) {
    case detail::OperationKind::file_status:
      ::io_uring_prep_statx(&entry, *op.path == '\0' ? op.fd : AT_FDCWD, op.path, op.flags,
                            STATX_BASIC_STATS | STATX_BTIME, static_cast<struct statx*>(op.data));
      break;
    case detail::OperationKind::file_rename:
      ::io_uring_prep_renameat(&entry, AT_FDCWD, op.path, AT_FDCWD, op.second_path, flags);
      break;
    case detail::OperationKind::file_remove:
      ::io_uring_prep_unlinkat(&entry, AT_FDCWD, op.path, op.flags);
      break;
    case detail::OperationKind::file_make_directory:
      ::io_uring_prep_mkdirat(&entry, AT_FDCWD, op.path, op.permissions);
      break;
    case detail::OperationKind::file_link:
      ::io_uring_prep_linkat(&entry, AT_FDCWD, op.second_path, AT_FDCWD, op.path, 0);
      break;
    case detail::OperationKind::file_symlink:
      ::io_uring_prep_symlinkat(&entry, op.second_path, AT_FDCWD, op.path);
      break;
    default:
      ::io_uring_prep_fallocate(&entry, op.fd, op.flags, op.offset,
                                static_cast<std::uint64_t>(op.size));
  }
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

bool RingFiles::supports(detail::OperationKind kind) const noexcept {
  return (kinds_ & bit_of(kind)) != 0;
}

void RingFiles::submit(FileOperation& op) noexcept {
  op.handed_over = op.cancel_requested = op.unverified = false;
  op.probe = 0;
  op.misses = 0;
  pending_.push_back(op);
}

void RingFiles::prepare(FileOperation& op, io_uring_sqe& entry) noexcept {
  op.InRing::unlink();
  in_flight_.push_back(op);
  ++in_flight_count_;
  op.handed_over = true;
  switch (op.kind) {
    case detail::OperationKind::file_open:
      ::io_uring_prep_openat(&entry, AT_FDCWD, op.path, op.flags, op.permissions);
      break;
    case detail::OperationKind::file_read:
      ::io_uring_prep_read(&entry, op.fd, op.data, count_of(op.size), op.offset);
      break;
    case detail::OperationKind::file_write:
      ::io_uring_prep_write(&entry, op.fd, op.data, count_of(op.size), op.offset);
      break;
    case detail::OperationKind::file_sync:
      ::io_uring_prep_fsync(&entry, op.fd, 0);
      break;
    default:
      prepare_on_path(op, entry);
  }
  ::io_uring_sqe_set_data64(&entry, token_of(op));
}

bool RingFiles::request_cancel(FileOperation& op) noexcept {
  if (!op.InRing::linked() || op.cancel_requested) return false;
  op.cancel_requested = true;
  if (op.handed_over) return true;
  end(op, -ECANCELED, ended_);
  return false;
}

void RingFiles::end(FileOperation& op, int result, base::ReadyQueue& ready) noexcept {
  op.InRing::unlink();
  if (op.handed_over) --in_flight_count_;
  // A file ring submits nothing without operations, so nothing else would clear this.
  if (in_flight_.empty()) any_unverified_ = false;
  op.result = result;
  ready.push(op);
}

void RingFiles::complete(const io_uring_cqe& completion, base::ReadyQueue& ready) noexcept {
  const std::uint64_t kind = completion.user_data & ~(own_bit | probe_bit);
  if ((completion.user_data & probe_bit) != 0) {
    answer_probe(kind, completion.res, ready);
    return;
  }
  FileOperation& op = *at(kind);
  const bool was_cancelled = completion.res == -ECANCELED || completion.res == -EINTR;
  if (was_cancelled && !op.cancel_requested) {
    // Interrupted, or cancelled by a probe: the operation had not started, so submit it again.
    op.InRing::unlink();
    --in_flight_count_;
    submit(op);
    return;
  }
  end(op, was_cancelled ? -ECANCELED : completion.res, ready);
}

void RingFiles::revalidate_all() noexcept {
  // This includes operations with a probe in flight: the lost completion may be that of the probe.
  for (FileOperation* op = in_flight_.front(); op != nullptr; op = in_flight_.after(*op))
    op->unverified = any_unverified_ = true;
}

FileOperation* RingFiles::next_unverified() noexcept {
  if (!any_unverified_) return nullptr;
  for (FileOperation* op = in_flight_.front(); op != nullptr; op = in_flight_.after(*op)) {
    if (op->unverified) return op;
  }
  any_unverified_ = false;
  return nullptr;
}

/// The only way to query an operation is to cancel it. One that a probe has cancelled is submitted
/// again, see complete().
void RingFiles::prepare_probe(FileOperation& op, io_uring_sqe& entry) noexcept {
  op.unverified = false;
  op.probe = ++probes_;
  ::io_uring_prep_cancel64(&entry, token_of(op), 0);
  ::io_uring_sqe_set_data64(&entry, op.probe | own_bit | probe_bit);
}

void RingFiles::answer_probe(std::uint64_t probe, int result, base::ReadyQueue& ready) noexcept {
  // With any other result the kernel has found the operation, whose own completion follows.
  if (result != -ENOENT) return;
  // Look it up by the number of the probe, because the operation may have been destroyed by now.
  for (FileOperation* file_operation = in_flight_.front(); file_operation != nullptr;
       file_operation = in_flight_.after(*file_operation)) {
    FileOperation& op = *file_operation;
    if (op.probe != probe) continue;
    // The completion may still arrive: the kernel does not find an operation that has finished but
    // whose completion is not posted yet.
    constexpr unsigned char misses_max = 3;
    if (++op.misses < misses_max) {
      op.unverified = any_unverified_ = true;
    } else {
      end(op, -EIO, ready);  // Its result is unknown.
    }
    return;
  }
}

void RingFiles::cancel_all() noexcept {
  while (FileOperation* const op = pending_.front()) end(*op, -ECANCELED, ended_);
  while (FileOperation* const op = in_flight_.front()) end(*op, -ECANCELED, ended_);
}

}  // namespace tambour::detail::backend
