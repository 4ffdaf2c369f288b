// StreamWrite: the transfers of a write.
#include "http/h2/stream_write.h"

#include "io/transport.h"
#include "net/stream_filter.h"

namespace tambour::http {

bool StreamWrite::step(detail::loop::Core& core) noexcept {
  const detail::io::Transport transport = detail::net::StreamFilter::transport(stream_);
  do {
    if (!finish(transport.write(from_))) return false;
    if (outcome < 0) return true;
  } while (!from_.empty() && may_continue(core));
  return from_.empty() && finish(transport.flush());
}

}  // namespace tambour::http
