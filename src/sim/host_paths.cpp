// sim::Host: the system calls on names of files.

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <tambour/sim/host.h>

#include "sim/machine.h"

namespace tambour::sim {

using detail::Node;
using detail::NodePointer;

namespace {

void set_time(std::int64_t& into, const timespec& time, std::int64_t now_ns) noexcept {
  constexpr std::int64_t second_ns = 1'000'000'000;
  if (time.tv_nsec == UTIME_OMIT) return;
  into = time.tv_nsec == UTIME_NOW ? now_ns : time.tv_sec * second_ns + time.tv_nsec;
}

}  // namespace

int Host::statx(int fd, const char* path, int flags, struct statx* into) noexcept {
  if (*path == '\0' && (flags & AT_EMPTY_PATH) != 0) {
    return int(machine_->call_on_file(SystemCall::statx, fd, [&](const detail::File& file) {
      *into = {};
      into->stx_mode = S_IFSOCK | 0666;
      if (const NodePointer* const node = file.node()) describe(**node, *into);
      return 0;
    }));
  }
  return int(machine_->call(SystemCall::statx, -1, [&] {
    if (machine_->path_exists(path)) {
      struct stat socket{};
      machine_->lstat(path, socket);
      *into = {};
      into->stx_mode = static_cast<std::uint16_t>(socket.st_mode);
      into->stx_ino = socket.st_ino;
      return 0;
    }
    NodePointer node;
    const int error = machine_->tree.find(path, (flags & AT_SYMLINK_NOFOLLOW) == 0, node);
    if (error == 0) describe(*node, *into);
    return error;
  }));
}

int Host::renameat2(const char* from, const char* to, unsigned flags) noexcept {
  return int(machine_->call(SystemCall::rename, -1,
                            [&] { return machine_->tree.rename(from, to, flags); }));
}

int Host::mkdir(const char* path, mode_t permissions) noexcept {
  return int(machine_->call(SystemCall::mkdir, -1, [&] {
    if (machine_->path_exists(path)) return -EEXIST;
    return machine_->tree.make_directory(path, permissions);
  }));
}

int Host::rmdir(const char* path) noexcept {
  return int(
      machine_->call(SystemCall::rmdir, -1, [&] { return machine_->tree.remove_directory(path); }));
}

int Host::link(const char* from, const char* to) noexcept {
  return int(machine_->call(SystemCall::link, -1, [&] { return machine_->tree.link(from, to); }));
}

int Host::link_unnamed(int fd, const char* to) noexcept {
  return int(machine_->call_on_file(SystemCall::link, fd, [&](const detail::File& file) {
    const NodePointer* const node = file.node();
    if (node == nullptr) return -EXDEV;
    return machine_->tree.link_node(*node, to);
  }));
}

int Host::symlink(const char* target, const char* path) noexcept {
  return int(machine_->call(SystemCall::symlink, -1,
                            [&] { return machine_->tree.symlink(target, path); }));
}

ssize_t Host::readlink(const char* path, char* into, std::size_t size) noexcept {
  return machine_->call(SystemCall::readlink, -1, [&]() -> std::int64_t {
    NodePointer node;
    if (const int error = machine_->tree.find(path, false, node)) return error;
    if (!node->is_symlink() || size == 0) return -EINVAL;
    const std::size_t count = std::min(size, node->bytes.size());
    std::copy_n(node->bytes.data(), count, into);
    return std::int64_t(count);
  });
}

int Host::chmod(const char* path, mode_t permissions) noexcept {
  return int(machine_->call(SystemCall::chmod, -1, [&] {
    NodePointer node;
    if (const int error = machine_->tree.find(path, true, node)) return error;
    constexpr mode_t bits = 07777;
    node->mode = (node->mode & ~bits) | (permissions & bits);
    machine_->tree.note_changed(*node);
    return 0;
  }));
}

int Host::utimensat(const char* path, const timespec* times, int flags) noexcept {
  return int(machine_->call(SystemCall::utimens, -1, [&] {
    NodePointer node;
    const bool follows = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    if (const int error = machine_->tree.find(path, follows, node)) return error;
    const std::int64_t now_ns = machine_->world.wall_ns();
    set_time(node->accessed_ns, times[0], now_ns);
    set_time(node->modified_ns, times[1], now_ns);
    machine_->tree.note_changed(*node);
    return 0;
  }));
}

int Host::realpath(const char* path, std::string& into) noexcept {
  return int(machine_->call(SystemCall::readlink, -1,
                            [&] { return machine_->tree.real_path(path, into); }));
}

int Host::remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept {
  return int(machine_->call(SystemCall::rmdir, -1, [&] {
    if (is_stopped.load(std::memory_order_relaxed)) return -ECANCELED;
    return machine_->tree.remove_all(path);
  }));
}

}  // namespace tambour::sim
