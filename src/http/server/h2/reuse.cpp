// H2Connection: streams that serve one request after the other, and what an idle connection frees.
#include <chrono>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "http/server/h2/connection.h"

namespace tambour::http {
namespace {

/// Streams that have ended, and how long an idle connection keeps them for further requests.
constexpr std::size_t spare_streams_max = 16;
constexpr Duration spare_time = std::chrono::seconds(1);

}  // namespace

std::unique_ptr<H2Stream> H2Connection::make_stream(std::uint32_t stream_id) {
  if (spare_streams_.empty()) return std::make_unique<H2Stream>(*this, stream_id);
  std::unique_ptr<H2Stream> stream = std::move(spare_streams_.back());
  spare_streams_.pop_back();
  stream->restart(stream_id);
  record_memory_.keep(stream_);  // The requests of a client follow each other.
  return stream;
}

void H2Connection::keep_or_destroy(std::unique_ptr<H2Stream> stream) noexcept {
  if (spare_streams_.size() >= spare_streams_max || !stream->is_reusable()) return;
  sender_.remove(*stream);
  try {
    spare_streams_.push_back(std::move(stream));
  } catch (const std::bad_alloc&) {
    return;  // The stream is destroyed.
  }
  spares_until_ = detail::base::saturating_add(loop_.now(), spare_time);
  check_by(spares_until_);
}

bool H2Connection::release_spares() noexcept {
  // The last spare stream may have failed in its next use, and have left the memory for records.
  if (spares_until_ == never) return true;
  if (loop_.now() < spares_until_) return false;
  spares_until_ = never;
  record_memory_.release(stream_);
  std::vector<std::unique_ptr<H2Stream>>().swap(spare_streams_);
  last_block_.reset();
  streams_.release_memory();
  if (waits_ != nullptr && waits_->empty()) waits_.reset();
  return true;
}

}  // namespace tambour::http
