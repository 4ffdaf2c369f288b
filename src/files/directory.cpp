// fs::Directory: reads getdents64(2) records into a buffer, and returns them one at a time.
#include <tambour/fs/directory.h>

#include <dirent.h>
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/failure.h"
#include "base/libc/glibc_functions.h"
#include "files/calls.h"

namespace tambour::fs {
namespace {

using tambour::detail::base::dirent64;

/// glibc reads as much.
constexpr std::size_t batch_bytes = std::size_t{32} * 1024;

struct Batch {
  alignas(dirent64) std::array<std::byte, batch_bytes> bytes;
};

Type type_of(unsigned char type) noexcept {
  switch (type) {
    case DT_REG:
      return Type::regular;
    case DT_DIR:
      return Type::directory;
    case DT_LNK:
      return Type::symlink;
    case DT_FIFO:
      return Type::fifo;
    case DT_SOCK:
      return Type::socket;
    case DT_BLK:
      return Type::block_device;
    case DT_CHR:
      return Type::character_device;
    default:
      return Type::unknown;
  }
}

template <class Value>
Value load(const std::byte* from) noexcept {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

struct Directory::State {
  std::shared_ptr<detail::files::OpenFile> file;
  std::shared_ptr<Batch> batch;  ///< Null until entries are needed. Shared with the thread.
  std::size_t at = 0;
  std::size_t end = 0;

  /// Takes the next record of the batch. Returns false if it has none.
  bool take(DirectoryEntry& entry) {
    while (at < end) {
      const std::byte* const record = batch->bytes.data() + at;
      const std::size_t next =
          at + load<decltype(dirent64::d_reclen)>(record + offsetof(dirent64, d_reclen));
      const auto* const name = reinterpret_cast<const char*>(record + offsetof(dirent64, d_name));
      const std::string_view text(name);
      const bool is_listed = text != "." && text != "..";
      if (is_listed) entry.name = text;  // May throw: the record is not taken then.
      at = next;
      if (!is_listed) continue;
      entry.type = type_of(load<unsigned char>(record + offsetof(dirent64, d_type)));
      entry.inode = load<decltype(dirent64::d_ino)>(record + offsetof(dirent64, d_ino));
      return true;
    }
    return false;
  }
};

Directory::Directory() noexcept = default;
Directory::Directory(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Directory::Directory(Directory&& other) noexcept = default;
Directory& Directory::operator=(Directory&& other) noexcept = default;
Directory::~Directory() = default;

Task<Result<Directory>> Directory::open(std::string path) {
  const int flags = O_RDONLY | O_DIRECTORY;
  auto opened = co_await detail::files::call_open(std::move(path), flags, 0);
  if (!opened) co_return std::unexpected(opened.error());
  auto state = std::make_shared<State>();
  state->file = std::move(*opened);
  co_return Directory(std::move(state));
}

Task<Result<std::optional<DirectoryEntry>>> Directory::next() {
  const std::shared_ptr<State> state = state_;  // The directory may be moved or closed meanwhile.
  if (state == nullptr) co_return detail::base::failure(EBADF);
  DirectoryEntry entry;
  while (!state->take(entry)) {
    // A new batch: the thread of a destroyed task may still write to the old one.
    if (state->batch == nullptr || state->batch.use_count() > 1)
      state->batch = std::make_shared<Batch>();
    detail::files::FileRequest::Body list = [file = state->file, batch = state->batch](
                                                detail::backend::System& system) {
      return std::int64_t{system.getdents64(file->fd(), batch->bytes.data(), batch->bytes.size())};
    };
    const auto size = co_await detail::files::call_on_worker({}, std::move(list));
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) co_return std::nullopt;
    state->at = 0;
    state->end = *size;
  }
  co_return std::move(entry);
}

int Directory::fd() const noexcept { return state_ == nullptr ? -1 : state_->file->fd(); }

}  // namespace tambour::fs
