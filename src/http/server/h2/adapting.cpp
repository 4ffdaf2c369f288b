// H2Connection: windows that grow with the bandwidth-delay product, and early priorities.
#include <algorithm>
#include <utility>

#include "http/server/h2/connection.h"
#include "http_message/h2/priority.h"

namespace tambour::http {
namespace {

namespace h2 = detail::h2;

/// The newest PRIORITY_UPDATE frames of streams that have not been opened. RFC 9218, section 7,
/// lets the server limit them.
constexpr std::size_t early_priorities_max = 16;

}  // namespace

/// Counts the bytes that arrive within one round trip of a PING.
void H2Connection::measure_window(const H2Stream& stream, std::uint32_t bytes) {
  if (window_meter_.is_measuring()) return window_meter_.count(bytes);
  if (stream_window_ >= options().http_2.window_bytes_max || !stream.is_upload()) return;
  frame_budget_.ping(sender_.queue(), WindowMeter::ping);
  window_meter_.begin(bytes);
}

/// A round trip has ended. If the windows may have limited the client, they double.
void H2Connection::grow_windows() noexcept {
  window_meter_.end();
  const Http2Options& http_2 = options().http_2;
  const auto buffered = static_cast<std::uint64_t>(settings_->h2_counters->buffered().get());
  if (buffered > http_2.server_bytes_max / 2) return;
  stream_window_ = window_meter_.grown(stream_window_, http_2.window_bytes_max);
  connection_window_ = std::max(connection_window_, stream_window_);
}

void H2Connection::on_priority_update(const h2::Frame& frame) {
  const h2::Priority priority = h2::parse_priority(frame.text);
  if (H2Stream* const stream = find(frame.value)) return sender_.set_priority(*stream, priority);
  if (!is_idle_stream(frame.value) || frame.value % 2 == 0) return;
  std::erase_if(early_priorities_, [this, &frame](const EarlyPriority& early) {
    return early.stream_id == frame.value || !is_idle_stream(early.stream_id);
  });
  if (early_priorities_.size() == early_priorities_max)
    early_priorities_.erase(early_priorities_.begin());
  early_priorities_.push_back({frame.value, priority});
}

void H2Connection::apply_early_priority(H2Stream& stream) noexcept {
  const auto found = std::ranges::find(early_priorities_, stream.id(), &EarlyPriority::stream_id);
  if (found == early_priorities_.end()) return;
  stream.outgoing().priority = found->priority;
  early_priorities_.erase(found);
}

}  // namespace tambour::http
