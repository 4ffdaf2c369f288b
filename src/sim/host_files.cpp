// sim::Host: regular files.

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include <tambour/sim/host.h>

#include "sim/machine.h"
#include "sim/regular_file.h"

namespace tambour::sim {

using detail::File;
using detail::Machine;
using detail::RegularFile;

namespace {

/// More than any test writes, but too little to exhaust the memory of the real machine.
constexpr off_t size_max = off_t{1} << 30;

/// For calls on regular files only; on other files they fail with `error`.
template <class Body>
std::int64_t call_on_regular(Machine& machine, SystemCall system_call, int fd, int error,
                             Body&& body) {
  return machine.call_on_file(system_call, fd, [&](File& file) -> std::int64_t {
    RegularFile* regular = file.as_regular();
    return regular == nullptr ? -error : body(*regular);
  });
}

int open_file(Machine& machine, const char* path, int flags) {
  if (*path == '\0') return -ENOENT;
  if (const int error = machine.room_for(1)) return error;
  if (machine.path_exists(path)) return -ENXIO;
  const auto found = machine.disk.find(path);
  const bool exists = found != machine.disk.end();
  if (!exists && (flags & O_CREAT) == 0) return -ENOENT;
  if (exists && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return -EEXIST;
  const auto bytes = exists ? found->second : std::make_shared<std::string>();
  if (!exists) machine.disk.emplace(path, bytes);
  if ((flags & O_TRUNC) != 0) bytes->clear();
  return machine.install(std::make_shared<RegularFile>(machine.world, bytes, flags));
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
  const auto from = std::min(std::size_t(offset), bytes_->size());
  const auto wanted = std::min(total_size(into), bytes_->size() - from);
  const auto count = cut(wanted, world_.options.short_read);
  return ssize_t(scatter(std::string_view(*bytes_).substr(from, count), into));
}

ssize_t RegularFile::write_at(const Buffers& from, off_t offset) {
  if (!may_write()) return -EBADF;
  if (offset < 0 || !is_aligned(from, offset)) return -EINVAL;
  const std::size_t count = cut(total_size(from), world_.options.short_write);
  if (count == 0) return 0;
  // O_APPEND ignores the offset, as on Linux and contrary to POSIX (pwrite(2), BUGS).
  const auto at = (flags_ & O_APPEND) != 0 ? bytes_->size() : std::size_t(offset);
  if (at + count > std::size_t(size_max)) return -EFBIG;
  if (bytes_->size() < at + count) bytes_->resize(at + count);
  bytes_->replace(at, count, gather(from, count));
  return ssize_t(count);
}

int RegularFile::truncate(off_t size) {
  if (!may_write() || size < 0) return -EINVAL;
  if (size > size_max) return -EFBIG;
  bytes_->resize(std::size_t(size));
  return 0;
}

ssize_t RegularFile::receive(Message& message) {
  const ssize_t got = read_at(message.buffers, position_);
  if (got > 0) position_ += got;
  return got;
}

ssize_t RegularFile::send(Message& message) {
  if ((flags_ & O_APPEND) != 0) position_ = off_t(bytes_->size());
  const ssize_t taken = write_at(message.buffers, position_);
  if (taken > 0) position_ += taken;
  return taken;
}

}  // namespace detail

int Host::open(const char* path, int flags, mode_t) noexcept {
  return int(
      machine_->call(SystemCall::open, -1, [&] { return open_file(*machine_, path, flags); }));
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
  return int(
      call_on_regular(*machine_, SystemCall::fsync, fd, EINVAL, [](RegularFile&) { return 0; }));
}

int Host::fstat(int fd, struct stat* into) noexcept {
  return int(machine_->call_on_file(SystemCall::fstat, fd, [&](File& file) {
    const RegularFile* regular = file.as_regular();
    *into = {};
    into->st_mode = (regular != nullptr ? S_IFREG : S_IFSOCK) | 0666;
    into->st_size = regular != nullptr ? off_t(regular->size()) : 0;
    return 0;
  }));
}

int Host::ftruncate(int fd, off_t size) noexcept {
  return int(call_on_regular(*machine_, SystemCall::ftruncate, fd, EINVAL,
                             [&](RegularFile& file) { return file.truncate(size); }));
}

}  // namespace tambour::sim
