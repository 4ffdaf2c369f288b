// RingFiles: submits file operations to a ring, continues those that the kernel has done in part,
// and finds out which operations it supports.
#include "backend/io_uring/ring_files.h"

#include <fcntl.h>
#include <sys/stat.h>

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

void RingFiles::prepare_other(const FileOperation& op, io_uring_sqe& entry) noexcept {
  switch (op.kind) {
    case detail::OperationKind::file_open:
      ::io_uring_prep_openat(&entry, AT_FDCWD, op.path, op.flags, op.permissions);
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
}

bool RingFiles::request_cancel(FileOperation& op) noexcept {
  if (!op.InRing::linked() || op.cancel_requested) return false;
  op.cancel_requested = true;
  if (op.handed_over) return true;
  end(op, -ECANCELED, ended_);
  return false;
}

void RingFiles::complete_cancelled(FileOperation& op, base::ReadyQueue& ready) noexcept {
  if (op.cancel_requested) return end(op, -ECANCELED, ready);
  // Interrupted, or cancelled by a probe: the operation had not started, so submit it again.
  op.InRing::unlink();
  --in_flight_count_;
  submit(op);
}

void RingFiles::revalidate_all() noexcept {
  // This includes operations with a probe in flight: the lost completion may be that of the probe.
  for (FileOperation* op = first_in_flight(); op != nullptr; op = next_in_flight(*op))
    op->unverified = any_unverified_ = true;
}

FileOperation* RingFiles::next_unverified() noexcept {
  if (!any_unverified_) return nullptr;
  for (FileOperation* op = first_in_flight(); op != nullptr; op = next_in_flight(*op)) {
    if (op->unverified) return op;
  }
  any_unverified_ = false;
  return nullptr;
}

/// The only way to query an operation is to cancel it. One that a probe has cancelled is submitted
/// again, see complete_cancelled().
void RingFiles::prepare_probe(FileOperation& op, io_uring_sqe& entry) noexcept {
  op.unverified = false;
  op.probe = ++probes_;
  ::io_uring_prep_cancel64(&entry, token_of(op), 0);
  ::io_uring_sqe_set_data64(&entry, op.probe | own_bit | probe_bit);
}

void RingFiles::answer_probe(const io_uring_cqe& completion, base::ReadyQueue& ready) noexcept {
  // With any other result the kernel has found the operation, whose own completion follows.
  if (completion.res != -ENOENT) return;
  const std::uint64_t probe = completion.user_data & ~(own_bit | probe_bit);
  // Look it up by the number of the probe, because the operation may have been destroyed by now.
  for (FileOperation* in_flight = first_in_flight(); in_flight != nullptr;
       in_flight = next_in_flight(*in_flight)) {
    FileOperation& op = *in_flight;
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
  while (FileOperation* const op = unfinished_.front()) end(*op, -ECANCELED, ended_);
}

}  // namespace tambour::detail::backend
