// Counts the forks of this process with a handler of pthread_atfork(3).
#include "base/process_number.h"

#include <pthread.h>

namespace tambour::detail::base {

constinit std::atomic<unsigned> forks_survived{0};

void count_forks() noexcept {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks_survived.fetch_add(1); });
  static_cast<void>(registered);
}

}  // namespace tambour::detail::base
