// Entropy: takes random numbers from the kernel in blocks, by getrandom(2).
#include "dns/resolver/entropy.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace tambour::dns::detail {

std::uint64_t Entropy::next() noexcept {
  if (backend_.has_virtual_time()) return backend_.random();
  if (left_ == 0) {
    // Requests of up to 256 bytes are not interrupted.
    ssize_t got;
    do got = ::getrandom(numbers_.data(), sizeof numbers_, 0);
    while (got < 0 && errno == EINTR);
    base::check(got == sizeof numbers_, "getrandom(2) failed; it is needed for ids of DNS queries");
    left_ = numbers_.size();
  }
  return std::exchange(numbers_[--left_], 0);
}

}  // namespace tambour::dns::detail
