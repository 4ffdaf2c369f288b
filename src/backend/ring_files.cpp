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

// Truncating (Linux 6.9) and asking for the size are rare: threads do.
constexpr std::array<std::pair<OperationKind, int>, 4> taken{{
    {OperationKind::file_open, IORING_OP_OPENAT},
    {OperationKind::file_read, IORING_OP_READ},
    {OperationKind::file_write, IORING_OP_WRITE},
    {OperationKind::file_sync, IORING_OP_FSYNC},
}};

constexpr unsigned bit_of(OperationKind kind) noexcept { return 1U << static_cast<unsigned>(kind); }

/// As the kernel cuts them too: MAX_RW_COUNT.
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
  op.handed_over = op.cancel_requested = op.doubted = op.probing = op.has_ended = false;
  op.misses = 0;
  // First come, first served.
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
  FileOperation& op = *at(completion.user_data & ~(own_bit | probe_bit));
  if ((completion.user_data & probe_bit) != 0) {
    answer_probe(op, completion.res, ready);
    return;
  }
  int result = completion.res;
  if (result == -ECANCELED || result == -EINTR) {
    // Interrupted, or cancelled: to get here, it had not begun.
    if (!op.cancel_requested && !op.probing) {
      take_out(op);
      --in_flight_count_;
      submit(op);
      return;
    }
    result = -ECANCELED;
  }
  if (!op.probing) {
    end(op, result, ready);
    return;
  }
  // The kernel has still to answer for it.
  op.has_ended = true;
  op.result = result;
}

void RingFiles::doubt_all() noexcept {
  for (Operation* each = in_flight_; each != nullptr; each = each->next_on_fd) {
    auto& op = *static_cast<FileOperation*>(each);
    op.doubted = !op.probing;
    any_doubted_ = any_doubted_ || op.doubted;
  }
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

/// There is no way to ask but to cancel it; what is cancelled by that alone is begun anew.
void RingFiles::prepare_probe(FileOperation& op, io_uring_sqe& entry) noexcept {
  op.doubted = false;
  op.probing = true;
  ::io_uring_prep_cancel64(&entry, token_of(op), 0);
  ::io_uring_sqe_set_data64(&entry, token_of(op) | probe_bit);
}

void RingFiles::answer_probe(FileOperation& op, int result, ReadyQueue& ready) noexcept {
  op.probing = false;
  if (op.has_ended) {
    op.has_ended = false;
    if (op.result == -ECANCELED && !op.cancel_requested) {
      take_out(op);
      --in_flight_count_;
      submit(op);
    } else {
      end(op, op.result, ready);
    }
  } else if (result == -ENOENT) {
    // It may only be on its way: the kernel does not find what is done and has still to be told.
    constexpr unsigned char misses_max = 3;
    if (++op.misses < misses_max) {
      op.doubted = any_doubted_ = true;
    } else {
      end(op, -EIO, ready);  // What has become of it, nobody knows any more.
    }
  }
}

void RingFiles::cancel_all() noexcept {
  while (pending_ != nullptr) end(static_cast<FileOperation&>(*pending_), -ECANCELED, ended_);
  while (in_flight_ != nullptr) end(static_cast<FileOperation&>(*in_flight_), -ECANCELED, ended_);
}

}  // namespace tambour::backend
