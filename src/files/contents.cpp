// Reading and replacing whole files.
#include <tambour/fs/contents.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <tambour/file/file.h>
#include <tambour/fs/paths.h>
#include <tambour/fs/temporary.h>

#include "base/failure.h"
#include "files/calls.h"

namespace tambour::fs {

Task<Result<std::string>> read_file(std::string path, std::size_t bytes_max) {
  constexpr std::size_t piece_size = std::size_t{64} * 1024;
  auto file = co_await File::open(std::move(path));
  if (!file) co_return std::unexpected(file.error());
  const auto size = co_await file->size();
  if (!size) co_return std::unexpected(size.error());
  if (*size > bytes_max) co_return detail::base::failure(EFBIG);
  std::string contents;
  // One byte more than the size, which shows that the file has ended.
  std::size_t wanted = *size != 0 ? static_cast<std::size_t>(*size) + 1 : piece_size;
  for (;;) {
    const std::size_t at = contents.size();
    contents.resize(at + wanted);
    const std::span<char> place(contents.data() + at, wanted);
    const auto got = co_await file->read_at(std::as_writable_bytes(place), at);
    if (!got) co_return std::unexpected(got.error());
    contents.resize(at + *got);
    if (contents.size() > bytes_max) co_return detail::base::failure(EFBIG);
    if (*got < wanted) co_return std::move(contents);
    wanted = std::max(piece_size, contents.size());
  }
}

Task<Result<>> replace_file(std::string path, std::string contents, ReplaceOptions options) {
  const std::string directory = detail::files::parent_of(path);
  if (!options.permissions) {
    const auto found = co_await symlink_status(path);
    if (found && found->is_regular()) options.permissions = found->permissions;
    if (!found && found.error() != system_error(ENOENT)) co_return std::unexpected(found.error());
  }
  // The contents must not be readable by others before the permissions are set.
  const mode_t created_permissions = options.permissions ? 0600 : 0666;
  auto temporary = co_await TemporaryFile::create(directory, ".tmp-", created_permissions);
  if (!temporary) co_return std::unexpected(temporary.error());
  auto done = co_await temporary->file().write_at(contents, 0);
  if (done && options.permissions)
    done = co_await set_permissions(temporary->path(), *options.permissions);
  if (done && options.sync) done = co_await temporary->file().sync();
  if (done) done = co_await temporary->persist(std::move(path));
  if (done && options.sync) done = co_await sync_directory(directory);
  co_return done;
}

}  // namespace tambour::fs
