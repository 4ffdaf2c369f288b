// FileRequest: runs on the ring of the loop, or on a worker thread if there is none; survives the
// task that awaits it.
#include "files/file_request.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <new>

#include <tambour/detail/file_transfer.h>
#include <tambour/loop/event_loop.h>

#include "base/seccomp.h"
#include "files/transfers.h"
#include "loop/core.h"

namespace tambour::detail::files {

OpenFile::OpenFile(backend::System& system, int fd, int flags) noexcept
    : system_(system),
      fd_(fd),
      flags_(flags),
      // A filter may kill the process for preadv2(2). O_DIRECT does not use the page cache.
      reads_cached_(!is_direct() && !base::seccomp_filter_was_inherited() &&
                    !base::seccomp_filter_is_installed()) {}

FileRequest::FileRequest(detail::OperationKind kind, std::shared_ptr<OpenFile> file)
    : operation_(kind, *this), file_(std::move(file)) {
  if (file_ != nullptr) operation_.fd = file_->fd();
}

FileRequest::~FileRequest() {
  if (opened_ >= 0) system_->close(opened_);
}

std::shared_ptr<OpenFile> FileRequest::take_file() {
  auto taken = std::make_shared<OpenFile>(*system_, opened_, operation_.flags);
  opened_ = -1;
  return taken;
}

void FileRequest::set_paths(std::string path, std::string second) {
  if (names_ == nullptr) names_ = std::make_unique<Names>();
  set_path(std::move(path));
  names_->second = std::move(second);
  operation_.second_path = names_->second.c_str();
}

void FileRequest::set_status(std::string path, int flags) {
  set_paths(std::move(path), {});
  operation_.flags = flags;
  operation_.data = &names_->status;
}

void FileRequest::wait_when_stopped() {
  if (names_ == nullptr) names_ = std::make_unique<Names>();
  names_->waits_when_stopped = true;
}

void FileRequest::set_body(Body body) {
  if (names_ == nullptr) names_ = std::make_unique<Names>();
  names_->body = std::move(body);
}

bool FileRequest::needs_file() const noexcept {
  switch (operation_.kind) {
    case detail::OperationKind::file_sync:
    case detail::OperationKind::file_size:
    case detail::OperationKind::file_truncate:
    case detail::OperationKind::file_allocate:
      return true;
    case detail::OperationKind::file_status:
      return (operation_.flags & AT_EMPTY_PATH) != 0;
    default:
      return false;
  }
}

int FileRequest::check() const noexcept {
  if (borrows()) return check_transfer(operation_, file_.get(), appends_);
  if (needs_file() && file_ == nullptr) return -EBADF;
  // For the kernel, the path would end at its first null byte, and name another file.
  if (operation_.path != nullptr &&
      (path_.contains('\0') || (names_ != nullptr && names_->second.contains('\0'))))
    return -EINVAL;
  if (operation_.kind == detail::OperationKind::file_allocate) {
    if (operation_.offset > offset_max) return -EINVAL;
    if (operation_.size > offset_max - operation_.offset) return -EFBIG;
  }
  return 0;
}

bool FileRequest::begin(EventLoop& loop, std::coroutine_handle<> awaiting,
                        const std::stop_token& stop) {
  outcome_ = check();
  if (outcome_ != 0) return false;
  loop::Core& core = loop::core_of(loop);
  core.check_thread();
  system_ = file_ == nullptr ? &core.backend().system() : &file_->system();
  if (core.backend().supports(operation_.kind) && !stop.stop_requested()) {
    const auto requests = core.open_service<FileRequests>();
    if (!requests) throw std::bad_alloc();
    waiting_ = awaiting;
    submit(**requests);
  } else {
    is_on_worker_ = true;
    // An operation that does not use the task's buffer need not be awaited when it is stopped.
    const bool waits = borrows() || (names_ != nullptr && names_->waits_when_stopped);
    start(WorkerPool::files(), loop, awaiting, stop,
          waits ? WhenStopped::wait : WhenStopped::abandon, operation_.created_at());
  }
  return true;
}

void FileRequest::submit(FileRequests& requests) {
  loop::Core& core = requests.core();
  requests.add(*this);
  requests_ = &requests;
  core.attach();
  core.add_reference();
  holds_loop_ = true;
  retain();  // The backend's reference.
  core.backend().submit(operation_);
}

std::int64_t FileRequest::confirm(int fd) noexcept {
  if (system_->confirm_file(fd, operation_.flags) != 0) {
    const int error = errno;
    system_->close(fd);
    return -error;
  }
  opened_ = fd;
  return fd;
}

bool FileRequest::process_result(std::int64_t answer) noexcept {
  if (answer < 0) {
    const bool ended =
        file_ != nullptr && is_end_of_direct_read(operation_, *file_, answer, outcome_);
    if (!ended) outcome_ = answer;
    return false;
  }
  if (operation_.kind == detail::OperationKind::file_open) {
    answer = confirm(static_cast<int>(answer));
  }
  if (!borrows()) {
    outcome_ = answer;
    return false;
  }
  outcome_ += answer;
  const auto count = static_cast<std::size_t>(answer);
  advance(count);
  return must_continue(operation_, count, outcome_);
}

void FileRequest::next_piece() noexcept {
  constexpr std::size_t piece_size = std::size_t{64} * 1024;
  // Copying a small piece costs less than a system call or a worker's.
  constexpr std::size_t small_size = std::size_t{16} * 1024;
  auto piece = bytes_->front();
  if (bytes_->size() <= piece_size || piece.size() < small_size) {
    try {
      piece = bytes_->peek(piece_size);
    } catch (const std::bad_alloc&) {
      piece = bytes_->front();  // Without a copy.
    }
  }
  operation_.data = const_cast<std::byte*>(piece.data());  // NOLINT: pwrite(2) only reads.
  operation_.size = piece.size();
}

/// Skips the bytes that one call has transferred.
void FileRequest::advance(std::size_t count) noexcept {
  operation_.offset += count;
  if (bytes_) {
    bytes_->consume(count);
    return next_piece();
  }
  operation_.data = static_cast<std::byte*>(operation_.data) + count;
  operation_.size -= count;
}

std::int64_t FileRequest::call() noexcept {
  const FileOperation& op = operation_;
  const auto offset = static_cast<off_t>(op.offset);
  std::int64_t answer = -1;
  struct stat status{};
  switch (op.kind) {
    case detail::OperationKind::file_open:
      answer = system_->open(op.path, op.flags, op.permissions);
      break;
    case detail::OperationKind::file_read:
      answer = system_->pread(op.fd, op.data, op.size, offset);
      break;
    case detail::OperationKind::file_write:
      answer = system_->pwrite(op.fd, op.data, op.size, offset);
      break;
    case detail::OperationKind::file_sync:
      answer = system_->fsync(op.fd);
      break;
    case detail::OperationKind::file_size:
      answer = system_->fstat(op.fd, &status);
      if (answer == 0) answer = status.st_size;
      break;
    case detail::OperationKind::file_truncate:
      answer = system_->ftruncate(op.fd, offset);
      break;
    case detail::OperationKind::file_allocate:
      answer = system_->fallocate(op.fd, op.flags, offset, static_cast<off_t>(op.size));
      break;
    default:
      answer = call_on_names();
  }
  return answer < 0 ? -errno : answer;
}

std::int64_t FileRequest::call_on_names() noexcept {
  const FileOperation& op = operation_;
  switch (op.kind) {
    case detail::OperationKind::file_status:
      return system_->statx(op.fd, op.path, op.flags, &names_->status);
    case detail::OperationKind::file_rename:
      return system_->renameat2(op.path, op.second_path, static_cast<unsigned>(op.flags));
    case detail::OperationKind::file_remove:
      return op.flags == AT_REMOVEDIR ? system_->rmdir(op.path) : system_->unlink(op.path);
    case detail::OperationKind::file_make_directory:
      return system_->mkdir(op.path, op.permissions);
    case detail::OperationKind::file_link:
      return system_->link(op.second_path, op.path);
    case detail::OperationKind::file_symlink:
      return system_->symlink(op.second_path, op.path);
    case detail::OperationKind::file_call:
      return names_->body(*system_);
    default:
      errno = EINVAL;
      return -1;
  }
}

void FileRequest::work() noexcept {
  std::int64_t answer;
  do {
    answer = call();
  } while (answer == -EINTR || process_result(answer));
}

void FileRequest::completed(detail::ReadyNode& ready) {
  FileRequest& self = static_cast<Operation&>(ready).request;
  const bool is_awaited = self.waiting_ != nullptr;
  const std::int32_t answer = std::exchange(self.operation_.result, 0);
  if (self.process_result(answer)) {
    if (!self.stopped_) {
      self.requests_->core().backend().submit(self.operation_);
      return;
    }
    self.outcome_ = -ECANCELED;
  }
  const std::coroutine_handle<> waiting = std::exchange(self.waiting_, nullptr);
  self.end();
  if (is_awaited) Resumption::run(waiting);
}

void FileRequest::release_loop() noexcept {
  if (std::exchange(holds_loop_, false)) requests_->core().drop_reference();
}

/// Call when the backend has released the operation.
void FileRequest::end() noexcept {
  requests_->remove(*this);
  release_loop();
  std::exchange(requests_, nullptr)->core().detach();
  release();
}

void FileRequest::request_stop() noexcept {
  if (requests_ == nullptr) {
    detail::WorkerCall::request_stop();
    return;
  }
  stopped_ = true;
  requests_->core().backend().cancel(operation_);
}

void FileRequest::abandon() noexcept {
  waiting_ = nullptr;
  if (is_on_worker_) {
    detail::WorkerCall::abandon(borrows());
    return;
  }
  if (requests_ == nullptr) return release();  // It has ended, or has not begun.
  loop::Core& core = requests_->core();
  core.check_thread();
  if (borrows()) {
    core.backend().cancel_and_wait(operation_);
    end();
  } else {
    // It completes later, and its result is discarded; a file that it opened is then closed.
    core.backend().cancel(operation_);
    release_loop();
  }
  release();
}

void FileRequest::lose_loop() noexcept {
  requests_->core().backend().cancel_and_wait(operation_);
  if (operation_.kind == detail::OperationKind::file_open && operation_.result >= 0)
    opened_ = operation_.result;
  waiting_ = nullptr;
  end();
}

bool FileRequests::is_in_budget(std::size_t size) noexcept {
  // 128 reads of 4 KiB, or 15 of 64 KiB: a few tenths of a millisecond.
  constexpr std::size_t call_cost = 4096;
  constexpr std::size_t cost_max = std::size_t{1} << 20;
  if (iteration_ != core_.iteration_number()) {
    iteration_ = core_.iteration_number();
    read_ = 0;
  }
  if (size > cost_max || read_ + call_cost + size > cost_max) return false;
  read_ += call_cost + size;
  return true;
}

bool FileRequests::ask_backend() noexcept {
  has_ring_for_transfers_ = core_.backend().supports(detail::OperationKind::file_read) &&
                            core_.backend().supports(detail::OperationKind::file_write);
  return has_ring_for_transfers_;
}

void FileRequests::close() noexcept {
  while (detail::Operation* const transfer = transfers_.front())
    detail::FileTransfer::lose_loop(*transfer);
  while (FileRequest* const request = in_flight_.front()) request->lose_loop();
}

}  // namespace tambour::detail::files
