// sim::Host: opening files, reading and writing them.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <tambour/sim/host.h>

#include "base/libc/glibc_functions.h"
#include "sim/machine.h"
#include "sim/regular_file.h"

namespace tambour::sim {

using detail::DirectoryFile;
using detail::File;
using detail::FileTree;
using detail::Machine;
using detail::NodePointer;
using detail::RegularFile;
using tambour::detail::base::dirent64;

namespace {

/// More than any test writes, but too little to exhaust the memory of the real machine.
constexpr off_t size_max = off_t{1} << 30;

/// For calls on regular files only; on other files they fail with `error`.
template <class Body>
std::int64_t call_on_regular(Machine& machine, SystemCall system_call, int fd, int error,
                             Body&& body) {
  return machine.call_on_file(system_call, fd, [&](File& file) -> std::int64_t {
    RegularFile* regular = file.as_regular();
    if (regular == nullptr && file.as_directory() != nullptr) return -EISDIR;
    return regular == nullptr ? -error : body(*regular);
  });
}

int open_node(Machine& machine, const NodePointer& node, int flags) {
  if (node->is_directory()) {
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0) return -EISDIR;
    return machine.install(std::make_shared<DirectoryFile>(node));
  }
  if ((flags & O_DIRECTORY) != 0) return -ENOTDIR;
  if (node->is_symlink()) return -ELOOP;  // With O_NOFOLLOW.
  if ((flags & O_TRUNC) != 0) {
    node->bytes.clear();
    machine.tree.note_modified(*node);
  }
  return machine.install(std::make_shared<RegularFile>(machine.world, machine.tree, node, flags));
}

int open_file(Machine& machine, const char* path, int flags, mode_t permissions) {
  if (const int error = machine.room_for(1)) return error;
  if (machine.path_exists(path)) return -ENXIO;
  const bool creates = (flags & O_CREAT) != 0;
  const bool must_create = creates && (flags & O_EXCL) != 0;
  const bool has_no_name = (flags & O_TMPFILE) == O_TMPFILE;
  FileTree::Found found;
  const bool follows = (flags & O_NOFOLLOW) == 0 && !must_create;
  if (const int error = machine.tree.walk(path, follows, found)) return error;
  const mode_t mode = S_IFREG | (permissions & 07777);
  if (has_no_name) {
    if (found.node == nullptr) return -ENOENT;
    if (!found.node->is_directory()) return -ENOTDIR;
    if ((flags & O_ACCMODE) == O_RDONLY) return -EINVAL;
    return open_node(machine, machine.tree.make(mode), flags & ~O_TMPFILE);
  }
  if (found.node != nullptr) return must_create ? -EEXIST : open_node(machine, found.node, flags);
  if (!creates) return -ENOENT;
  if (std::string_view(path).ends_with('/')) return -EISDIR;
  found.node = machine.tree.make(mode);
  machine.tree.insert(found, found.node);
  return open_node(machine, found.node, flags);
}

}  // namespace

namespace detail {

/// Returns `wanted`, or with the given probability a smaller size.
std::size_t RegularFile::cut(std::size_t wanted, double chance) {
  const std::size_t unit = is_direct() ? direct_unit : 1;
  if (wanted < 2 * unit || !world_.random.chance(chance)) return wanted;
  return unit * (1 + world_.random.below(wanted / unit - 1));
}

/// Direct I/O requires the alignment of a disk with 512-byte sectors.
bool RegularFile::is_aligned(const Buffers& buffers, off_t offset) const noexcept {
  if (!is_direct()) return true;
  const auto fits = [](std::uintptr_t value) { return value % direct_unit == 0; };
  return fits(std::uintptr_t(offset)) && std::ranges::all_of(buffers, [&](const iovec& buffer) {
           return fits(std::bit_cast<std::uintptr_t>(buffer.iov_base)) && fits(buffer.iov_len);
         });
}

ssize_t RegularFile::read_at(const Buffers& into, off_t offset) {
  if (!may_read()) return -EBADF;
  if (offset < 0 || !is_aligned(into, offset)) return -EINVAL;
  const auto from = std::min(std::size_t(offset), bytes().size());
  const auto wanted = std::min(total_size(into), bytes().size() - from);
  const auto count = cut(wanted, world_.options.short_read);
  return ssize_t(scatter(std::string_view(bytes()).substr(from, count), into));
}

ssize_t RegularFile::write_at(const Buffers& from, off_t offset) {
  if (!may_write()) return -EBADF;
  if (offset < 0 || !is_aligned(from, offset)) return -EINVAL;
  const std::size_t count = cut(total_size(from), world_.options.short_write);
  if (count == 0) return 0;
  // O_APPEND ignores the offset, as on Linux and contrary to POSIX (pwrite(2), BUGS).
  const auto at = (flags_ & O_APPEND) != 0 ? bytes().size() : std::size_t(offset);
  if (at + count > std::size_t(size_max)) return -EFBIG;
  if (bytes().size() < at + count) bytes().resize(at + count);
  bytes().replace(at, count, gather(from, count));
  if (count != 0) tree_.note_modified(*node_);
  return ssize_t(count);
}

int RegularFile::truncate(off_t size) {
  if (!may_write() || size < 0) return -EINVAL;
  if (size > size_max) return -EFBIG;
  bytes().resize(std::size_t(size));
  tree_.note_modified(*node_);
  return 0;
}

int RegularFile::allocate(int mode, off_t offset, off_t size) {
  if (!may_write()) return -EBADF;
  if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0) return -EOPNOTSUPP;
  if (offset < 0 || size <= 0) return -EINVAL;
  if (offset > size_max || size > size_max - offset) return -EFBIG;
  const auto end = std::size_t(offset) + std::size_t(size);
  if (mode == 0 && bytes().size() < end) bytes().resize(end);
  tree_.note_modified(*node_);
  return 0;
}

ssize_t DirectoryFile::list(void* into, std::size_t size) {
  auto* const out = static_cast<char*>(into);
  std::size_t used = 0;
  for (auto entry = node_->entries.upper_bound(last_); entry != node_->entries.end(); ++entry) {
    const auto& [name, node] = *entry;
    constexpr std::size_t unit = alignof(dirent64);
    const std::size_t needed =
        (offsetof(dirent64, d_name) + name.size() + 1 + unit - 1) / unit * unit;
    if (needed > size - used) return used == 0 ? -EINVAL : ssize_t(used);
    dirent64 head{};
    head.d_ino = node->inode;
    head.d_reclen = static_cast<unsigned short>(needed);
    head.d_type = static_cast<unsigned char>(IFTODT(node->mode));
    std::memcpy(out + used, &head, offsetof(dirent64, d_name));
    std::memcpy(out + used + offsetof(dirent64, d_name), name.c_str(), name.size() + 1);
    used += needed;
    last_ = name;
  }
  return ssize_t(used);
}

ssize_t RegularFile::receive(Message& message) {
  const ssize_t got = read_at(message.buffers, position_);
  if (got > 0) position_ += got;
  return got;
}

ssize_t RegularFile::send(Message& message) {
  if ((flags_ & O_APPEND) != 0) position_ = off_t(bytes().size());
  const ssize_t taken = write_at(message.buffers, position_);
  if (taken > 0) position_ += taken;
  return taken;
}

}  // namespace detail

int Host::open(const char* path, int flags, mode_t permissions) noexcept {
  return int(machine_->call(SystemCall::open, -1,
                            [&] { return open_file(*machine_, path, flags, permissions); }));
}

ssize_t Host::pread(int fd, void* into, std::size_t size, off_t offset) noexcept {
  const iovec buffer{.iov_base = into, .iov_len = size};
  return call_on_regular(*machine_, SystemCall::pread, fd, ESPIPE,
                         [&](RegularFile& file) { return file.read_at({&buffer, 1}, offset); });
}

ssize_t Host::pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept {
  const iovec buffer{.iov_base = const_cast<void*>(from), .iov_len = size};
  return call_on_regular(*machine_, SystemCall::pwrite, fd, ESPIPE,
                         [&](RegularFile& file) { return file.write_at({&buffer, 1}, offset); });
}

int Host::fsync(int fd) noexcept {
  return int(machine_->call_on_file(SystemCall::fsync, fd, [](const File& file) {
    return file.node() == nullptr ? -EINVAL : 0;
  }));
}

int Host::fstat(int fd, struct stat* into) noexcept {
  return int(machine_->call_on_file(SystemCall::fstat, fd, [&](File& file) {
    *into = {};
    into->st_mode = S_IFSOCK | 0666;
    if (const auto* const node = file.node()) describe(**node, *into);
    return 0;
  }));
}

int Host::ftruncate(int fd, off_t size) noexcept {
  return int(call_on_regular(*machine_, SystemCall::ftruncate, fd, EINVAL,
                             [&](RegularFile& file) { return file.truncate(size); }));
}

int Host::fallocate(int fd, int mode, off_t offset, off_t size) noexcept {
  return int(call_on_regular(*machine_, SystemCall::fallocate, fd, ESPIPE,
                             [&](RegularFile& file) { return file.allocate(mode, offset, size); }));
}

ssize_t Host::copy_file_range(int from, off_t* from_at, int to, off_t* to_at,
                              std::size_t size) noexcept {
  return call_on_regular(
      *machine_, SystemCall::copy_file_range, to, EINVAL, [&](RegularFile& target) -> ssize_t {
        const auto opened = machine_->file(from);
        RegularFile* const source = opened != nullptr ? opened->as_regular() : nullptr;
        if (source == nullptr) return opened == nullptr ? -EBADF : -EINVAL;
        if (target.appends()) return -EBADF;
        std::string bytes(std::min(size, source->size()), '\0');
        const iovec buffer{.iov_base = bytes.data(), .iov_len = bytes.size()};
        const ssize_t got = source->read_at({&buffer, 1}, *from_at);
        if (got <= 0) return got;
        const iovec part{.iov_base = bytes.data(), .iov_len = std::size_t(got)};
        const ssize_t put = target.write_at({&part, 1}, *to_at);
        if (put <= 0) return put;
        *from_at += put;
        *to_at += put;
        return put;
      });
}

ssize_t Host::getdents64(int fd, void* into, std::size_t size) noexcept {
  return machine_->call_on_file(SystemCall::getdents, fd, [&](File& file) -> ssize_t {
    DirectoryFile* const directory = file.as_directory();
    return directory == nullptr ? -ENOTDIR : directory->list(into, size);
  });
}

}  // namespace tambour::sim
