// H2ClientConnection: reading, opening streams, windows, and the end of the connection.
#include "http/h2/client_connection.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>

#include "base/clock.h"
#include "http/h2/limits.h"
#include "http_message/failure.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

namespace h2 = detail::h2;

constexpr std::size_t input_bytes = std::size_t{64} * 1024;
/// What a server allows before its settings have arrived: RFC 9113, section 6.5.2, recommends that
/// it allows as many.
constexpr std::uint32_t streams_before_settings = 100;

}  // namespace

H2ClientConnection::H2ClientConnection(SocketStream stream, const Http2ClientOptions& options,
                                       const MessageLimits& limits, Http2ClientStats& stats,
                                       Callback<void()> changed)
    : loop_(stream.loop()),
      options_(options),
      stats_(stats),
      changed_(std::move(changed)),
      stream_(std::move(stream)),
      parser_(h2::FrameParser::Role::client),
      field_limits_(field_limits(limits, options.fields_hard_max, 0)),
      frame_budget_(options.idle_frames_max),
      budget_(iteration_frames_max),
      initial_window_(clamped_window(options.stream_window_bytes)),
      stream_window_(initial_window_),
      connection_window_(clamped_window(options.connection_window_bytes)),
      receive_window_(connection_window_),
      peer_streams_max_(streams_before_settings),
      settings_arrived_(loop_),
      ping_timer_(loop_, [this] { check_peer(); }),
      memory_(buffered_),
      sender_(stream_, {}, memory_, [](H2SendingStream&) {}),
      reader_(loop_) {}

void H2ClientConnection::start() {
  send_preface();
  last_received_ = loop_.now();
  reader_.set_exception_handler([this](const std::exception_ptr&) { end(system_error(ENOMEM)); });
  reader_.spawn(run());
}

std::size_t H2ClientConnection::streams_max() const noexcept {
  return can_open() ? std::min(peer_streams_max_, std::max(options_.streams_max, 1U)) : 0;
}

void H2ClientConnection::send_preface() {
  sender_.queue().append(h2::client_preface);
  const std::array settings{
      h2::Setting{h2::SettingId::enable_push, 0},
      h2::Setting{h2::SettingId::initial_window_size, initial_window_},
      h2::Setting{h2::SettingId::max_header_list_size, header_list_size_of(field_limits_)}};
  h2::append_settings(sender_.queue(), settings);
  if (connection_window_ > default_window)
    h2::append_window_update(sender_.queue(), 0, connection_window_ - default_window);
}

Task<> H2ClientConnection::run() {
  for (bool more = true; more;) {
    more = parse_input();
    sender_.start_writing();
    if (!more) break;
    if (sender_.queue().size() >= queued_answers_max) {
      const Result<> flushed = co_await sender_.flush_frames();
      if (!flushed) break;
      continue;
    }
    if (is_budget_exhausted_) {
      // Callbacks of other connections of the loop run before the next frames.
      const Result<> slept = co_await sleep_for(Duration::zero());
      if (!slept) break;
      continue;
    }
    const Result<std::size_t> got = co_await stream_.read(input_, input_bytes);
    last_received_ = loop_.now();
    if (got && *got > 0) continue;
    const Error cause = got ? Error(StreamError::eof) : got.error();
    end(sender_.error() ? sender_.error() : cause);
    break;
  }
  end(StreamError::eof);
  // What the last frames say is written by the task of the sender before the stream is closed.
  [[maybe_unused]] const Result<> flushed = co_await sender_.flush_frames();
  stream_.close();
}

bool H2ClientConnection::parse_input() {
  h2::Frame frame;
  is_budget_exhausted_ = false;
  sender_.hold();  // run() starts to write after it.
  while (!has_failed_ && sender_.queue().size() < queued_answers_max) {
    // The end of the input is no frame, and needs no look at the clock.
    if (!parser_.is_between_frames(input_) && budget_.is_exhausted(detail::loop::core_of(loop_))) {
      is_budget_exhausted_ = true;
      return true;
    }
    const auto parsed = parser_.next(input_, frame);
    if (!parsed) return fail(parsed.error());
    if (!*parsed) return true;
    if (!handle(frame)) return false;
  }
  return !has_failed_;
}

Result<> H2ClientConnection::open(H2ClientStream& stream, const RequestHead& head,
                                  std::optional<std::uint64_t> length, bool ends) {
  const std::uint32_t id = next_id_;
  streams_.add(id, &stream);
  Result<> appended;
  try {
    appended = h2::append_head(sender_.queue(), sender_.encoder(), head,
                               {.stream_id = id,
                                .end_stream = ends,
                                .frame_size_max = sender_.frame_size_max(),
                                .content_length = length,
                                .protocol = head.protocol});
  } catch (const std::bad_alloc&) {
    streams_.erase(streams_.find(id));
    throw;
  }
  if (!appended) {
    streams_.erase(streams_.find(id));
    return appended;
  }
  next_id_ += 2;
  ++stats_.streams;
  stream.opened(id, sender_.initial_window(), loop_.now());
  sender_.queued(stream);
  sender_.wake();
  // The time in which no stream was open is not one of a dead server.
  if (streams_.size() == 1) active_since_ = loop_.now();
  if (options_.ping_interval > Duration::zero() && !ping_timer_.is_started())
    ping_timer_.start(options_.ping_interval);
  if (next_id_ > h2::stream_id_max) {
    is_draining_ = true;
    changed_();
  }
  return {};
}

void H2ClientConnection::remove(H2ClientStream& stream, bool is_complete,
                                h2::ErrorCode code) noexcept {
  sender_.remove(stream);
  if (forget(stream.id()) && !is_complete && !has_failed_) {
    ++stats_.streams_cancelled;
    send_reset(stream.id(), code);
    // The server may be dead: requests that time out sooner than a PING is due would not notice.
    if (last_received_ <= stream.opened_at() && options_.ping_interval > Duration::zero() &&
        !awaits_pong_)
      ping_peer();
  }
  was_used_ = was_used_ || is_complete;
  if (streams_.empty() && !awaits_pong_) ping_timer_.stop();
}

void H2ClientConnection::discard(std::size_t bytes) noexcept {
  unused_bytes_ -= static_cast<std::int64_t>(bytes);
  const std::int64_t missing = connection_window_ - receive_window_ - unused_bytes_;
  if (missing < connection_window_ / 2) return;
  receive_window_ += missing;
  send_window_update(0, static_cast<std::uint32_t>(missing));
}

void H2ClientConnection::send_window_update(std::uint32_t stream_id, std::uint32_t bytes) noexcept {
  if (has_failed_) return;
  try {
    h2::append_window_update(sender_.queue(), stream_id, bytes);
  } catch (const std::bad_alloc&) {
    return end(system_error(ENOMEM));
  }
  sender_.wake();
}

void H2ClientConnection::send_reset(std::uint32_t stream_id, h2::ErrorCode code) noexcept {
  if (has_failed_) return;
  try {
    h2::append_rst_stream(sender_.queue(), stream_id, code);
  } catch (const std::bad_alloc&) {
    return end(system_error(ENOMEM));
  }
  sender_.wake();
}

H2ClientStream* H2ClientConnection::find(std::uint32_t stream_id) noexcept {
  const auto found = streams_.find(stream_id);
  return found != streams_.end() ? found->second : nullptr;
}

bool H2ClientConnection::forget(std::uint32_t stream_id) noexcept {
  const auto found = streams_.find(stream_id);
  if (found == streams_.end()) return false;
  streams_.erase(found);
  return true;
}

void H2ClientConnection::reset(H2ClientStream& stream, h2::ErrorCode code,
                               const Error& error) noexcept {
  forget(stream.id());
  send_reset(stream.id(), code);
  stream.fail(error);
}

/// Sends GOAWAY, after which the connection ends. Returns false.
bool H2ClientConnection::fail(h2::ErrorCode code, std::string_view text) noexcept {
  if (has_failed_) return false;
  ++stats_.violations;
  try {
    h2::append_goaway(sender_.queue(), 0, code, text);
  } catch (const std::bad_alloc&) {
    stream_.close();
  }
  end(failure(ErrorCode::http_2_violation).error());
  return false;
}

void H2ClientConnection::end(const Error& error) noexcept {
  if (has_failed_) return;
  has_failed_ = true;
  ping_timer_.stop();
  settings_arrived_.set();
  // A stream leaves the table when its owner closes it.
  for (const auto& [id, stream] : streams_) stream->fail(error);
  streams_.clear();
  changed_();
  if (error == system_error(ETIMEDOUT) || error == system_error(ENOMEM)) stream_.close();
}

/// Counts the bytes that arrive within one round trip of a PING.
void H2ClientConnection::measure_window(std::uint32_t bytes) {
  if (window_meter_.is_measuring()) return window_meter_.count(bytes);
  sample_after_ -= std::min<std::uint64_t>(sample_after_, bytes);
  const bool is_largest =
      stream_window_ >= clamped_window(options_.stream_window_bytes_max) &&
      connection_window_ >= clamped_window(options_.connection_window_bytes_max);
  if (sample_after_ > 0 || is_largest) return;
  frame_budget_.ping(sender_.queue(), WindowMeter::ping);
  window_meter_.begin(bytes);
}

/// A round trip has ended. If the windows may have limited the server, they grow.
void H2ClientConnection::grow_windows() noexcept {
  window_meter_.end();
  // Further measurements begin at other parts of the window: one that begins after the server was
  // allowed to send a part of it does not count that part.
  sample_after_ = stream_window_ + stream_window_ / 3;
  const std::uint32_t stream_window =
      window_meter_.grown(stream_window_, clamped_window(options_.stream_window_bytes_max));
  const std::uint32_t connection_window =
      window_meter_.grown(connection_window_, clamped_window(options_.connection_window_bytes_max));
  if (stream_window == stream_window_ && connection_window == connection_window_) return;
  stream_window_ = stream_window;
  connection_window_ = connection_window;
  sample_after_ = 0;
  ++stats_.windows_grown;
  discard(0);
}

/// Ends the connection if the server has not answered a PING; sends one if nothing has arrived.
void H2ClientConnection::check_peer() noexcept {
  if (has_failed_) return;
  if (std::exchange(awaits_pong_, false) && last_received_ <= pinged_at_) {
    ++stats_.peers_lost;
    return end(system_error(ETIMEDOUT));
  }
  if (streams_.empty()) return;
  const TimePoint silent_until =
      detail::base::saturating_add(std::max(last_received_, active_since_), options_.ping_interval);
  if (loop_.now() < silent_until) return ping_timer_.start_at(silent_until);
  ping_peer();
}

void H2ClientConnection::ping_peer() noexcept {
  if (has_failed_) return;
  try {
    frame_budget_.ping(sender_.queue(), peer_ping);
  } catch (const std::bad_alloc&) {
    return ping_timer_.start(options_.ping_interval);
  }
  sender_.wake();
  pinged_at_ = loop_.now();
  awaits_pong_ = true;
  ping_timer_.start(std::max(options_.ping_timeout, Duration(1)));
}

}  // namespace tambour::http
