// File: its operations as awaitables, and the requests that they make.
#include <tambour/file/file.h>

#include <fcntl.h>

#include <utility>

#include "base/failure.h"
#include "files/calls.h"
#include "files/file_request.h"

namespace tambour {
namespace {

using detail::files::FileRequest;
using detail::files::OpenFile;

int flags_of(FileMode mode) noexcept {
  switch (mode) {
    case FileMode::read:
      return O_RDONLY;
    case FileMode::write:
      return O_WRONLY;
    case FileMode::update:
      return O_RDWR;
    case FileMode::create:
      return O_RDWR | O_CREAT;
    case FileMode::replace:
      return O_RDWR | O_CREAT | O_TRUNC;
    case FileMode::create_new:
      return O_RDWR | O_CREAT | O_EXCL;
    case FileMode::append:
      return O_WRONLY | O_CREAT | O_APPEND;
  }
  return O_RDONLY;
}

FileRequest& request_to(detail::OperationKind kind, const std::shared_ptr<OpenFile>& file) {
  return *new FileRequest(kind, file);
}

FileRequest& request_at(detail::OperationKind kind, const std::shared_ptr<OpenFile>& file,
                        void* data, std::size_t size, std::uint64_t offset) {
  FileRequest& request = request_to(kind, file);
  request.operation().data = data;
  request.operation().size = size;
  request.operation().offset = offset;
  return request;
}

void* memory_of(std::span<const std::byte> from) noexcept {
  return const_cast<std::byte*>(from.data());  // NOLINT: pwrite(2) only reads.
}

FileRequest& request_write(const std::shared_ptr<OpenFile>& file, Buffer& from,
                           std::uint64_t offset) {
  FileRequest& request = request_at(detail::OperationKind::file_write, file, nullptr, 0, offset);
  request.set_bytes(std::move(from));
  return request;
}

FileRequest& request_open(std::string path, FileMode mode, mode_t permissions, FileCache cache) {
  FileRequest& request = request_to(detail::OperationKind::file_open, nullptr);
  request.set_path(std::move(path));
  // O_NONBLOCK: open(2) must not block on a FIFO; System::confirm_file() clears the flag.
  request.operation().flags = flags_of(mode) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                              (cache == FileCache::none ? O_DIRECT : 0);
  request.operation().permissions = permissions;
  return request;
}

}  // namespace

detail::FileWait::~FileWait() {
  ignore_stop();
  if (request_ != nullptr) request_->abandon();
}

bool detail::FileWait::begin(const TaskContext& context, std::coroutine_handle<> awaiting) {
  awaiting_ = awaiting;
  request_->operation().set_created_at(context.spawned_at);
  if (!request_->begin(*context.loop, awaiting, context.stop)) return false;
  context.waits.add(*this, context.stop);
  return true;
}

void detail::FileWait::cancel(StopHook& hook) noexcept {
  static_cast<FileWait&>(hook).request_->request_stop();
}

std::int64_t detail::FileWait::outcome() const noexcept { return request_->outcome(); }

int File::fd() const noexcept { return file_ != nullptr ? file_->fd() : -1; }

File::Open::Open(std::string path, FileMode mode, mode_t permissions, FileCache cache)
    : detail::FileWait(request_open(std::move(path), mode, permissions, cache)) {}

Result<File> File::Open::await_resume() const {
  if (outcome() < 0) return detail::base::failure(int(outcome()));
  return File(request().take_file());
}

File::Write::Write(const File& file, std::span<const std::byte> from, std::uint64_t to) noexcept
    : FileTransfer(detail::OperationKind::file_write, file.file_, memory_of(from), from.size(),
                   to) {}

File::Write::Write(const File& file, std::span<const std::byte> from) noexcept
    : FileTransfer(detail::OperationKind::file_write, file.file_, memory_of(from), from.size(), 0,
                   /*appends=*/true) {}

Result<> File::Write::await_resume() const noexcept {
  if (outcome() < 0) return detail::base::failure(int(outcome()));
  return {};
}

File::WriteBuffer::WriteBuffer(const File& file, Buffer& from, std::uint64_t offset,
                               bool returns_rest)
    : detail::FileWait(request_write(file.file_, from, offset)),
      rest_(returns_rest ? &from : nullptr) {}

File::WriteBuffer::WriteBuffer(const File& file, Buffer& from, bool returns_rest)
    : WriteBuffer(file, from, 0, returns_rest) {
  request().set_append();
}

Result<> File::WriteBuffer::await_resume() noexcept {
  if (rest_ != nullptr) rest_->prepend(request().take_bytes());
  if (outcome() < 0) return detail::base::failure(int(outcome()));
  return {};
}

File::Done File::sync() { return Done(request_to(detail::OperationKind::file_sync, file_)); }

File::Done File::truncate(std::uint64_t size) {
  return Done(request_at(detail::OperationKind::file_truncate, file_, nullptr, 0, size));
}

Result<> File::Done::await_resume() const noexcept {
  if (outcome() < 0) return detail::base::failure(int(outcome()));
  return {};
}

File::Done File::allocate(std::uint64_t offset, std::uint64_t size) {
  return Done(request_at(detail::OperationKind::file_allocate, file_, nullptr, size, offset));
}

File::StatusOf File::status() const {
  FileRequest& request = request_to(detail::OperationKind::file_status, file_);
  StatusOf status(request);  // Owns it, also if the next line throws.
  request.set_status({}, AT_EMPTY_PATH);
  return status;
}

Result<fs::Status> File::StatusOf::await_resume() const noexcept {
  if (outcome() < 0) return detail::base::failure(int(outcome()));
  return detail::files::status_of(request().status());
}

File::Size File::size() const { return Size(request_to(detail::OperationKind::file_size, file_)); }

Result<std::uint64_t> File::Size::await_resume() const noexcept {
  if (outcome() < 0) return detail::base::failure(int(outcome()));
  return static_cast<std::uint64_t>(outcome());
}

}  // namespace tambour
