// Random bytes from the kernel, in blocks.
#include "http/websocket/mask_keys.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"

namespace tambour::http::detail::websocket {

void fill_mask_key(std::span<std::byte> bytes) {
  // Requests of up to 256 bytes are not interrupted.
  thread_local std::array<std::byte, 256> block;
  thread_local std::size_t left = 0;
  while (!bytes.empty()) {
    if (left == 0) {
      ssize_t got;
      do got = ::getrandom(block.data(), block.size(), 0);
      while (got < 0 && errno == EINTR);
      tambour::detail::base::check(got == ssize_t{block.size()},
                                   "getrandom(2) failed; it is needed for masks of WebSockets");
      left = block.size();
    }
    const std::size_t here = std::min(left, bytes.size());
    const auto from = block.end() - static_cast<std::ptrdiff_t>(left);
    std::copy_n(from, here, bytes.begin());
    std::fill_n(from, here, std::byte{0});
    left -= here;
    bytes = bytes.subspan(here);
  }
}

}  // namespace tambour::http::detail::websocket
