// Finds seccomp filters: by /proc/self/status and by prctl(2), without a call that a filter might
// forbid.
#include "base/seccomp.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <tambour/base/unique_fd.h>

#include "base/system_call.h"

namespace tambour::detail::base {
namespace {

/// Searches for the line that says that there is no filter. Earlier lines may be longer than the
/// buffer (Groups), so the end of each block is kept for the next one.
bool status_says_unrestricted() noexcept {
  constexpr std::string_view wanted = "\nSeccomp:\t0\n";
  const UniqueFd status(
      system_call(Call::seccomp, ::open, "/proc/self/status", O_RDONLY | O_CLOEXEC));
  if (!status.is_open()) return false;
  std::array<char, 4096> block;
  std::size_t kept = 0;
  for (;;) {
    const ssize_t count = uninterrupted(Call::seccomp, ::read, status.get(), block.data() + kept,
                                        block.size() - kept);
    if (count <= 0) return false;
    const std::string_view seen(block.data(), kept + static_cast<std::size_t>(count));
    if (seen.find(wanted) != std::string_view::npos) return true;
    kept = std::min(seen.size(), wanted.size() - 1);
    std::memmove(block.data(), seen.data() + seen.size() - kept, kept);
  }
}

}  // namespace

bool seccomp_filter_was_inherited() noexcept {
  static const bool restricted = !status_says_unrestricted();
  return restricted;
}

bool seccomp_filter_is_installed() noexcept {
  return system_call(Call::seccomp, ::prctl, int{PR_GET_SECCOMP}) != 0;
}

}  // namespace tambour::detail::base
