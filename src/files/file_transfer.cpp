// FileTransfer: reads what is in the page cache at once; otherwise the operation is in the frame of
// the task, and runs on the ring of the loop, or a request runs on a worker thread.
#include <tambour/detail/file_transfer.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "files/file_request.h"
#include "files/transfers.h"
#include "loop/core.h"

namespace tambour::detail {

bool FileTransfer::begin(const TaskContext& context, std::coroutine_handle<> awaiting) {
  outcome_ = files::check_transfer(*this, file_.get(), appends_);
  if (outcome_ != 0) return false;
  loop::Core& core = loop::core_of(*context.loop);
  core.check_thread();
  fd = file_->fd();
  awaiting_ = awaiting;
  const auto opened = core.open_service<files::FileRequests>();
  if (!opened) throw std::bad_alloc();
  files::FileRequests& requests = **opened;
  if (!requests.has_ring_for_transfers() || context.stop.stop_requested())
    return begin_on_worker(context, awaiting);
  if (kind == OperationKind::file_read && requests.may_read_at_once(size) && read_cached(requests))
    return false;
  set_created_at(context.spawned_at);
  requests_ = &requests;
  executor_ = Executor::ring;
  requests.add(*this);
  core.add_reference();
  core.backend().submit(*this);
  context.waits.add(*this, context.stop);
  return true;
}

bool FileTransfer::begin_on_worker(const TaskContext& context, std::coroutine_handle<> awaiting) {
  request_ = new files::FileRequest(kind, file_);
  executor_ = Executor::worker;
  FileOperation& op = request_->operation();
  op.data = data;
  op.size = size;
  op.offset = offset;
  op.set_created_at(context.spawned_at);
  if (appends_) request_->set_append();
  if (!request_->begin(*context.loop, awaiting, context.stop)) return false;
  context.waits.add(*this, context.stop);
  return true;
}

bool FileTransfer::read_cached(files::FileRequests& requests) noexcept {
  // An error is left to the operation, which reports it.
  while (file_->may_read_cached()) {
    const ssize_t count = file_->system().pread_cached(fd, data, size, static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EOPNOTSUPP || errno == ENOSYS) file_->note_never_cached();
      return false;
    }
    if (!process_result(count)) return true;
    if (!requests.may_read_at_once(size)) break;
  }
  return false;
}

bool FileTransfer::process_result(std::int64_t answer) noexcept {
  if (answer < 0) {
    if (!files::is_end_of_direct_read(*this, *file_, answer, outcome_)) outcome_ = answer;
    return false;
  }
  const auto count = static_cast<std::size_t>(answer);
  outcome_ += answer;
  offset += count;
  data = static_cast<std::byte*>(data) + count;
  size -= count;
  return files::must_continue(*this, count, outcome_);
}

void FileTransfer::completed(ReadyNode& ready) {
  auto& self = static_cast<FileTransfer&>(ready);
  if (self.process_result(std::exchange(self.result, 0))) {
    if (!self.is_stopped_) return self.requests_->core().backend().submit(self);
    self.outcome_ = -ECANCELED;
  }
  self.end();
  Resumption::run(self.awaiting_);
}

void FileTransfer::end() noexcept {
  ignore_stop();
  executor_ = Executor::none;
  requests_->remove(*this);
  requests_->core().drop_reference();
}

void FileTransfer::cancel(StopHook& hook) noexcept {
  auto& self = static_cast<FileTransfer&>(hook);
  if (self.executor_ == Executor::worker) return self.request_->request_stop();
  self.is_stopped_ = true;
  self.requests_->core().backend().cancel(self);
}

void FileTransfer::abandon() noexcept {
  ignore_stop();
  if (executor_ == Executor::worker) return request_->abandon();
  loop::Core& core = requests_->core();
  core.check_thread();
  core.backend().cancel_and_wait(*this);
  end();
}

std::int64_t FileTransfer::outcome_of_request() const noexcept { return request_->outcome(); }

void FileTransfer::lose_loop(Operation& operation) noexcept {
  auto& self = static_cast<FileTransfer&>(static_cast<FileOperation&>(operation));
  self.requests_->core().backend().cancel_and_wait(self);
  self.end();
}

}  // namespace tambour::detail
