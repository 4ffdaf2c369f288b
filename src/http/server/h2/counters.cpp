// H2Counters: the statistics that programs read.
#include "http/server/h2/counters.h"

#include <algorithm>

namespace tambour::http::detail {

Http2Stats H2Counters::stats() const noexcept {
  const H2Counters& self = *this;
  return {.connections = self[H2Event::connection],
          .refused_streams = self[H2Event::refused_stream],
          .overloaded_streams = self[H2Event::overloaded_stream],
          .postponed_handlers = self[H2Event::postponed_handler],
          .oversized_heads = self[H2Event::oversized_head],
          .oversized_blocks = self[H2Event::oversized_block],
          .delayed_reads = self[H2Event::delayed_read],
          .reset_floods = self[H2Event::reset_flood],
          .idle_frame_floods = self[H2Event::idle_frame_flood],
          .unread_answers = self[H2Event::unread_answers],
          .stalled_streams = self[H2Event::stalled_stream],
          .stalled_connections = self[H2Event::stalled_connection],
          .settings_timeouts = self[H2Event::settings_timeout],
          .ping_timeouts = self[H2Event::ping_timeout],
          .protocol_errors = self[H2Event::protocol_error],
          .buffered_bytes =
              static_cast<std::uint64_t>(std::max<std::int64_t>(self.buffered_.get(), 0))};
}

}  // namespace tambour::http::detail
