// The parts of FdRecords that are not called for each event: growth, delivery to all, and what a
// fork or a broken descriptor requires.
#include "backend/fd_records.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/system_call.h"

namespace tambour::detail::backend {

void FdRecords::add_record_and_submit(detail::Operation& op) noexcept {
  const int error = grow(op.fd);
  if (error == 0) return submit(op);
  op.result = -error;
  // An operation that is changed before its failure is delivered is queued only once.
  if (!op.linked()) failed_.push_to_wait(op);
}

int FdRecords::grow(int fd) noexcept {
  // An invalid descriptor may be a huge number, which must not allocate records.
  if (!virtual_ && base::system_call(base::Call::fcntl, ::fcntl, fd, F_GETFD) < 0) return EBADF;
  const std::size_t needed = static_cast<std::size_t>(fd) + 1;
  try {
    records_.resize(std::max({needed, records_.size() * 3 / 2, std::size_t{16}}));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

std::optional<std::uint32_t> FdRecords::take_generation(int fd) noexcept {
  if (!has_record(fd) && grow(fd) != 0) return std::nullopt;
  // The next registration of the record has the one after `generation`.
  const std::uint32_t taken = at(fd).generation + 1;
  at(fd).generation = taken + 1;
  return taken;
}

bool FdRecords::deliver_to_all(FdRecord& record, Events got, base::ReadyQueue& ready) noexcept {
  bool delivered = false;
  for (detail::Operation* op = record.operations.front(); op != nullptr; op = op->next()) {
    const Events hit = got & op->events;
    if (hit == Events::none) continue;
    complete(*op, hit, ready);
    delivered = true;
  }
  return delivered;
}

bool FdRecords::deliver_broken(FdRecord& record, Events got, base::ReadyQueue& ready) noexcept {
  // poll(2): an error or a hang-up makes everything ready, because no call would block.
  const bool hung_up = has(got, hang_up);
  got = (got & Events::error) | Events::read | Events::write | Events::closed;
  bool delivered = false;
  for (detail::Operation* op = record.operations.front(); op != nullptr; op = op->next()) {
    if (op->events == Events::none) continue;
    Events hit = got & (op->events | Events::error);
    // There will be no urgent data, but the kernel keeps reporting the hang-up. Deliver it to
    // operations that asked for nothing else, or the loop would spin without invoking a callback.
    if (hung_up && hit == Events::none) hit = op->events;
    if (hit == Events::none) continue;
    complete(*op, hit, ready);
    delivered = true;
  }
  return delivered;
}

void FdRecords::revalidate_all() noexcept {
  for (std::size_t fd = 0; fd < records_.size(); ++fd) {
    if (records_[fd].armed.events != Events::none) invalidate(static_cast<int>(fd));
  }
}

std::size_t FdRecords::disarm_all() noexcept {
  std::size_t watched = 0;
  for (std::size_t fd = 0; fd < records_.size(); ++fd) {
    FdRecord& record = records_[fd];
    record.armed = {};
    record.left_behind = false;
    if (record.operations.empty()) continue;
    note_change(static_cast<int>(fd));
    ++watched;
  }
  return watched;
}

void FdRecords::fail(FdRecord& record, int error, base::ReadyQueue& ready, Events events) noexcept {
  detail::Operation* next = record.operations.front();
  while (detail::Operation* const op = next) {
    next = op->next();
    if (events != Events::none && !has(op->events, events)) continue;
    op->unlist();
    op->result = -error;
    op->unlink();
    ready.push(*op);
  }
  record.armed = {};
}

void FdRecords::abandon() noexcept {
  for (FdRecord& record : records_) {
    while (detail::Operation* const op = record.operations.front()) {
      op->unlink();
      op->unlist();
    }
  }
}

}  // namespace tambour::detail::backend
