// fs::copy_file(): copy_file_range(2) in pieces, and reading and writing where the kernel refuses.
#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <tambour/file/file.h>
#include <tambour/fs/contents.h>
#include <tambour/fs/paths.h>

#include "base/failure.h"
#include "files/calls.h"

namespace tambour::fs {
namespace {

using detail::backend::System;
using detail::base::failure;
using detail::files::Access;
using detail::files::call_open;

/// Removes a file that was created, unless the copy is complete. Made before the file, because it
/// allocates memory.
class RemoveCreated {
 public:
  RemoveCreated(System& system, std::string path) noexcept
      : system_(system), path_(std::move(path)) {}
  RemoveCreated(const RemoveCreated&) = delete;
  RemoveCreated& operator=(const RemoveCreated&) = delete;
  ~RemoveCreated() {
    if (is_created_) system_.unlink(path_.c_str());
  }
  void set_created(bool created) noexcept { is_created_ = created; }

 private:
  System& system_;
  std::string path_;
  bool is_created_ = false;
};

/// True if the kernel cannot copy between these two files, but they can be read and written: file
/// systems of different types, files without a size (/proc), or a sandbox.
bool is_refusal(const Error& error) noexcept {
  for (const int value : {EXDEV, EINVAL, EOPNOTSUPP, ENOSYS, EPERM, ETXTBSY, EBADF}) {
    if (error == system_error(value)) return true;
  }
  return false;
}

/// Returns the number of bytes that the kernel has copied, which may be less than all.
Task<Result<std::uint64_t>> copy_in_kernel(const File& from, const File& to) {
  // A stop is noticed after this number of bytes.
  constexpr std::size_t piece_size = std::size_t{16} << 20;
  std::uint64_t at = 0;
  for (;;) {
    detail::files::FileRequest::Body copy = [source = Access::file_of(from),
                                             target = Access::file_of(to),
                                             at](System& system) -> std::int64_t {
      auto from_at = static_cast<off_t>(at);
      off_t to_at = from_at;
      return system.copy_file_range(source->fd(), &from_at, target->fd(), &to_at, piece_size);
    };
    const auto copied = co_await detail::files::call_on_worker({}, std::move(copy));
    if (!copied && !is_refusal(copied.error())) co_return std::unexpected(copied.error());
    if (!copied || *copied == 0) co_return at;
    at += *copied;
  }
}

/// Copies what follows `at`, and returns the size of the file.
Task<Result<std::uint64_t>> copy_by_reading(const File& from, File& to, std::uint64_t at) {
  constexpr std::size_t piece_size = std::size_t{128} * 1024;
  const auto piece = std::make_unique<std::byte[]>(piece_size);
  for (;;) {
    const std::span<std::byte> bytes(piece.get(), piece_size);
    const auto got = co_await from.read_at(bytes, at);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return at;
    const std::span<const std::byte> part = bytes.first(*got);
    const auto written = co_await to.write_at(part, at);
    if (!written) co_return std::unexpected(written.error());
    at += *got;
  }
}

Task<Result<std::uint64_t>> copy_contents(const File& from, File& to) {
  const auto copied = co_await copy_in_kernel(from, to);
  if (!copied) co_return std::unexpected(copied.error());
  // 0 bytes are the end of most files, but not of those in /proc.
  co_return co_await copy_by_reading(from, to, *copied);
}

}  // namespace

Task<Result<std::uint64_t>> copy_file(std::string from, std::string to, CopyOptions options) {
  const TaskContext& context = co_await this_task;
  auto source = co_await File::open(std::move(from));
  if (!source) co_return std::unexpected(source.error());
  const auto status = co_await source->status();
  if (!status) co_return std::unexpected(status.error());
  if (status->is_directory()) co_return failure(EISDIR);
  if (!status->is_regular()) co_return failure(EINVAL);
  const mode_t permissions = status->permissions;
  RemoveCreated cleanup(detail::files::system_of(context), to);
  auto opened = co_await call_open(to, O_WRONLY | O_CREAT | O_EXCL, permissions);
  const bool is_created = opened.has_value();
  cleanup.set_created(is_created);
  // Not truncated yet: it may be the same file.
  if (options.existing == ExistingFile::replace && !is_created &&
      opened.error() == system_error(EEXIST))
    opened = co_await call_open(to, O_WRONLY | O_CREAT | O_NONBLOCK, permissions);
  if (!opened) co_return std::unexpected(opened.error());
  File copy = Access::make(std::move(*opened));
  if (!is_created) {
    const auto replaced = co_await copy.status();
    if (!replaced) co_return std::unexpected(replaced.error());
    if (replaced->is_same_file(*status)) co_return failure(EINVAL);
    const auto emptied = co_await copy.truncate(0);
    if (!emptied) co_return std::unexpected(emptied.error());
  }
  auto copied = co_await copy_contents(*source, copy);
  if (copied && options.sync) {
    const auto synced = co_await copy.sync();
    if (!synced) co_return std::unexpected(synced.error());
  }
  if (copied) cleanup.set_created(false);
  if (copied && options.sync) {
    const auto synced = co_await sync_directory(detail::files::parent_of(to));
    if (!synced) co_return std::unexpected(synced.error());
  }
  co_return copied;
}

}  // namespace tambour::fs
