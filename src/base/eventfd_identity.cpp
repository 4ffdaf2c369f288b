// Reads the id of an eventfd from /proc/self/fdinfo, which tells it from another file with the same
// number.
#include "base/eventfd_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

namespace tambour::detail::base {
namespace {

/// Returns a value without meaning if the descriptor is not an eventfd or the kernel does not
/// report the id, and nothing if the file could not be read.
std::optional<std::uint64_t> read_id(int fd) noexcept {
  constexpr std::uint64_t none = ~std::uint64_t{0};
  constexpr std::string_view label = "eventfd-id:";
  std::array<char, 40> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", fd);
  const int info = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (info < 0) return std::nullopt;
  std::array<char, 512> text;
  const ssize_t bytes = ::read(info, text.data(), text.size());
  ::close(info);
  if (bytes <= 0) return std::nullopt;
  std::string_view rest(text.data(), static_cast<std::size_t>(bytes));
  const std::size_t found = rest.find(label);
  if (found == std::string_view::npos) return none;
  rest.remove_prefix(found + label.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::uint64_t id = none;
  std::from_chars(rest.data(), rest.data() + rest.size(), id);
  return id;
}

}  // namespace

EventfdIdentity::EventfdIdentity(int fd) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  id_ = read_id(fd);
}

bool EventfdIdentity::is(int fd) const noexcept {
  struct stat status{};
  if (fd < 0 || ::fstat(fd, &status) != 0) return false;
  if (status.st_dev != device_ || status.st_ino != inode_) return false;
  if (!id_) return true;
  const auto id = read_id(fd);
  return !id || *id == *id_;
}

}  // namespace tambour::detail::base
