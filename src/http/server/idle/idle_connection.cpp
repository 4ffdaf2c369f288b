// IdleConnection: the time limit of a connection that waits for a request.
#include "http/server/idle/idle_connection.h"

#include <algorithm>

#include <tambour/loop/event_loop.h>

#include "base/clock.h"

namespace tambour::http {

IdleWait IdleConnection::wait() {
  const ServerOptions& options = server->settings->options;
  const TimePoint now = stream.loop().now();
  if (kind == IdleKind::first_request && options.header_timeout > Duration::zero())
    deadline = detail::base::saturating_add(now, options.header_timeout);
  if (server->shutdown.stop_requested())
    deadline = std::min(deadline, detail::base::saturating_add(now, options.drain_timeout));
  return IdleWait(server->waits, kind, stream, deadline);
}

bool IdleConnection::closes_silently(const Result<std::size_t>& received) const noexcept {
  if (!received) return true;  // No response can be lost.
  // The end of TLS is a message, and a connection of a server that shuts down lingers.
  return *received == 0 && stream.tls() == nullptr && !server->shutdown.stop_requested();
}

}  // namespace tambour::http
