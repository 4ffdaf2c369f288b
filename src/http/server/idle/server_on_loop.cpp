// ServerOnLoop: the end of a burst of connections, or of their requests.
#include "http/server/idle/server_on_loop.h"

#include "base/heap.h"
#include "bytes/buffer_memory.h"

namespace tambour::http {

/// Takes a millisecond or two after thousands of connections, each of which has taken much more.
void ServerOnLoop::end_burst() noexcept {
  connections_max_ = connections_;
  burst_end_ = connections_ > 0 ? 0 : SIZE_MAX;
  return_memory();
}

void ServerOnLoop::return_memory() noexcept {
  released_ = 0;
  tambour::detail::BufferMemory::free_kept_blocks();
  tambour::detail::base::return_free_memory();
}

}  // namespace tambour::http
