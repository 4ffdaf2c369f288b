#include "backend/fd_records.h"

#include <algorithm>
#include <cerrno>
#include <new>

namespace tambour::backend {

bool FdRecords::link(Operation& op) noexcept {
  if (static_cast<std::size_t>(op.fd) >= records_.size() && !grow(op.fd)) {
    op.result = -ENOMEM;
    failed_.push(op);
    return false;
  }
  FdRecord& record = at(op.fd);
  op.next_on_fd = record.first;
  op.link_on_fd = &record.first;
  if (record.first != nullptr) record.first->link_on_fd = &op.next_on_fd;
  record.first = &op;
  return true;
}

bool FdRecords::grow(int fd) noexcept {
  const std::size_t needed = static_cast<std::size_t>(fd) + 1;
  try {
    records_.resize(std::max({needed, records_.size() * 2, std::size_t{64}}));
  } catch (const std::bad_alloc&) {
    return false;
  }
  // The records have moved, and the first operation of each points into its record.
  for (FdRecord& record : records_) {
    if (record.first != nullptr) record.first->link_on_fd = &record.first;
  }
  return true;
}

void FdRecords::disarm_all() noexcept {
  for (std::size_t fd = 0; fd < records_.size(); ++fd) {
    FdRecord& record = records_[fd];
    record.armed = {};
    record.always_ready = false;
    record.unsure = false;
    if (record.first != nullptr) note_change(static_cast<int>(fd));
  }
}

void FdRecords::fail(FdRecord& record, int error, ReadyQueue& ready) noexcept {
  while (Operation* op = record.first) {
    record.first = op->next_on_fd;
    if (record.first != nullptr) record.first->link_on_fd = &record.first;
    op->link_on_fd = nullptr;
    op->next_on_fd = nullptr;
    op->result = -error;
    op->unlink();
    ready.push(*op);
  }
  record.armed = {};
}

void FdRecords::abandon() noexcept {
  for (FdRecord& record : records_) {
    while (Operation* op = record.first) {
      record.first = op->next_on_fd;
      op->unlink();
      op->link_on_fd = nullptr;
      op->next_on_fd = nullptr;
    }
  }
}

}  // namespace tambour::backend
