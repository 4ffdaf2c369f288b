// H2Connection: reading, streams and their handlers, and the end of the connection.
#include "http/server/h2/connection.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>

#include "base/clock.h"
#include "http/h2/limits.h"
#include "http_message/h2/frame_writer.h"
#include "loop/core.h"
#include "net/pace/lingering_close.h"
#include "server/error_reporting.h"
#include "task/scope_access.h"

namespace tambour::http {
namespace {

namespace h2 = detail::h2;

/// The delay of a read for each reset too many.
constexpr Duration reset_delay = std::chrono::milliseconds(100);

}  // namespace

H2Connection::H2Connection(SocketStream stream, Buffer received,
                           std::shared_ptr<const ServerSettings> settings,
                           const std::stop_token& shutdown, std::stop_token stop)
    : loop_(stream.loop()),
      settings_(std::move(settings)),
      shutdown_(shutdown),
      stop_(std::move(stop)),
      stream_(std::move(stream)),
      input_(stream_),
      parser_(h2::FrameParser::Role::server),
      field_limits_(field_limits(options().limits, options().http_2.fields_hard_max,
                                 options().limits.http_1.start_line_bytes_max)),
      resets_(options().http_2.resets_max),
      frame_budget_(options().http_2.idle_frames_max),
      budget_(iteration_frames_max),
      receive_window_(clamped_window(options().http_2.connection_window_bytes)),
      stream_window_(initial_stream_window()),
      connection_window_(static_cast<std::uint32_t>(receive_window_)),
      granted_window_(connection_window_),
      received_at_(loop_.now()),
      emptied_(loop_),
      drain_timer_(loop_, [this] { end_drain(); }),
      progress_timer_(loop_, [this] { check_progress(); }),
      memory_(settings_->h2_counters->buffered()),
      sender_(
          stream_,
          {options().write_timeout, options().http_2.send_rate_min,
           options().http_2.unsent_bytes_max, options().http_2.socket_unsent_bytes_max},
          memory_, [this](H2SendingStream& sent) { remove_if_done(static_cast<H2Stream&>(sent)); },
          [this] { emptied_.set(); }) {
  input_.bytes() = std::move(received);
}

/// A handler that is destroyed with its stream may own the tunnel of another stream.
H2Connection::~H2Connection() {
  for (const auto& [id, stream] : streams_) stream->detach_tunnel();
}

std::uint32_t H2Connection::initial_stream_window() const noexcept {
  return clamped_window(options().http_2.stream_window_bytes);
}

void H2Connection::send_settings() {
  const std::array settings{
      h2::Setting{h2::SettingId::max_concurrent_streams, options().http_2.streams_max},
      h2::Setting{h2::SettingId::initial_window_size, initial_stream_window()},
      h2::Setting{h2::SettingId::max_header_list_size, header_list_size_of(field_limits_)},
      h2::Setting{h2::SettingId::enable_connect_protocol, 1},
      h2::Setting{h2::SettingId::no_rfc7540_priorities, 1}};
  h2::append_settings(sender_.queue(), settings);
  if (connection_window_ > default_window)
    h2::append_window_update(sender_.queue(), 0, connection_window_ - default_window);
  const Duration limit = options().http_2.settings_timeout;
  if (limit > Duration::zero())
    settings_deadline_ = detail::base::saturating_add(loop_.now(), limit);
}

Task<> H2Connection::serve() {
  count(H2Event::connection);
  send_settings();
  drain_.emplace(shutdown_, Drain{*this});
  for (bool more = true; more;) {
    more = parse_input();
    sender_.start_writing();
    if (!more || is_done()) break;
    if (has_to_wait()) {
      more = co_await wait_before_reading();
      continue;
    }
    if (!begin_receiving()) break;
    more = end_receiving(co_await stream_.read(input_.bytes(), read_bytes));
  }
  co_await end_streams();
  co_await close_gracefully();
  while (unreported_ != nullptr && !unreported_->empty()) co_await sleep_for(Duration::zero());
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

/// Returns false if the connection must end.
bool H2Connection::parse_input() {
  h2::Frame frame;
  is_budget_exhausted_ = false;
  sender_.hold();  // serve() starts to write after it.
  while (!has_failed_) {
    if (has_to_wait()) return true;
    // The end of the input is no frame, and needs no look at the clock.
    if (!parser_.is_between_frames(input_.bytes()) &&
        budget_.is_exhausted(detail::loop::core_of(loop_))) {
      is_budget_exhausted_ = true;
      return true;
    }
    const auto parsed = parser_.next(input_.bytes(), frame);
    if (!parsed) return fail(parsed.error());
    if (!*parsed) return true;
    if (!handle(frame)) return false;
  }
  return false;
}

bool H2Connection::has_to_wait() noexcept {
  return is_budget_exhausted_ || delays_ > 0 || sender_.queue().size() >= queued_answers_max;
}

/// Lets the other connections of the loop run, delays a client that resets too many streams, and
/// waits for one that does not read.
Task<bool> H2Connection::wait_before_reading() {
  if (sender_.queue().size() >= queued_answers_max) {
    count(H2Event::unread_answers);
    const Result<> flushed = co_await sender_.flush_frames();
    if (!flushed) {
      fail_streams(flushed.error());
      co_return false;
    }
  }
  const bool is_delayed = delays_ > 0;
  const Duration delay = is_delayed ? reset_delay : Duration::zero();
  if (is_delayed) {
    --delays_;
    count(H2Event::delayed_read);
  }
  const Result<> slept = co_await sleep_for(delay);
  if (!slept) fail_streams(slept.error());
  co_return slept.has_value();
}

/// Returns false if the connection has ended.
bool H2Connection::begin_receiving() noexcept {
  if (has_failed_ || sender_.error()) {
    if (sender_.error()) fail_streams(sender_.error());
    return false;
  }
  if (!streams_.empty()) {
    idle_deadline_ = never;
  } else if (idle_deadline_ == never) {
    const Duration limit = last_stream_id_ == 0 ? options().header_timeout : options().idle_timeout;
    if (limit > Duration::zero()) idle_deadline_ = detail::base::saturating_add(loop_.now(), limit);
  }
  input_.begin_until(idle_deadline_);
  is_receiving_ = true;
  return true;
}

/// Returns false if the connection has ended, or has to.
bool H2Connection::end_receiving(Result<std::size_t> received) {
  is_receiving_ = false;
  const Result<std::size_t> got = input_.end(received);
  if (got && *got > 0) {
    received_at_ = loop_.now();
    ping_deadline_ = never;
    return true;
  }
  if (got) {
    has_ended_input_ = true;
    return false;
  }
  if (got.error() == system_error(ETIMEDOUT)) {
    if (is_done() || has_failed_) return false;
    if (!streams_.empty()) return true;
    return fail(h2::ErrorCode::no_error, "");
  }
  fail_streams(sender_.error() ? sender_.error() : got.error());
  return false;
}

void H2Connection::interrupt_reading(TimePoint deadline) noexcept {
  if (is_receiving_) input_.shorten(deadline);
}

/// Sends GOAWAY, after which the connection ends. Returns false.
bool H2Connection::fail(h2::ErrorCode code, std::string_view text, H2Event event) noexcept {
  if (has_failed_) return false;
  has_failed_ = code != h2::ErrorCode::no_error;
  if (has_failed_) count(event);
  is_draining_out_ = true;
  try {
    h2::append_goaway(sender_.queue(), last_accepted_id_, code, text);
  } catch (const std::bad_alloc&) {
    stream_.close();
  }
  if (has_failed_) fail_streams(system_error(ECONNRESET));
  interrupt_reading(loop_.now());
  sender_.wake();
  return false;
}

bool H2Connection::fail(h2::Violation violation) noexcept {
  const h2::ErrorCode code = code_of(violation);
  return fail(code, text_of(violation),
              code == h2::ErrorCode::enhance_your_calm ? H2Event::oversized_block
                                                       : H2Event::protocol_error);
}

H2Stream* H2Connection::find(std::uint32_t stream_id) noexcept {
  const auto found = streams_.find(stream_id);
  return found != streams_.end() ? found->second.get() : nullptr;
}

void H2Connection::start_handler(H2Stream& stream) {
  detail::Exchange& exchange = stream.exchange();
  exchange.start(stream.head());
  exchange.start_handler();
  if (exchange.handlers().empty()) return finish(stream);
  start_waiting(wait_for_handler(stream));
}

void H2Connection::start_waiting(Task<> wait) {
  if (waits_ == nullptr) {
    waits_ = std::make_unique<TaskScope>(loop_);
    waits_->set_exception_handler([this](std::exception_ptr thrown) {
      if (thrown_ == nullptr) thrown_ = std::move(thrown);
      stream_.close();
    });
  }
  detail::task::ScopeAccess::start(*waits_, std::move(wait));
}

Task<> H2Connection::wait_for_handler(H2Stream& stream) {
  co_await stream.exchange().handlers().join();
  finish(stream);
}

bool H2Connection::is_postponed(H2Stream& stream) noexcept {
  if (!sender_.is_full()) return false;
  const std::uint8_t urgency = stream.outgoing().priority.urgency;
  return std::ranges::any_of(streams_, [urgency](const auto& entry) {
    const H2Outgoing& other = entry.second->outgoing();
    return !other.unsent.empty() && other.priority.urgency <= urgency;
  });
}

/// For a client that does not receive the responses to its other requests.
Task<> H2Connection::start_handler_later(H2Stream& stream) {
  Result<> waited;
  while (waited && is_postponed(stream) && !stream.error())
    waited = co_await sender_.wait_for_capacity();
  if (!waited) stream.fail(waited.error());
  detail::Exchange& exchange = stream.exchange();
  if (!stream.error()) {
    exchange.start(stream.head());
    exchange.start_handler();
    co_await exchange.handlers().join();
    co_return finish(stream);
  }
  stream.handler_ended();
  remove_if_done(stream);
}

void H2Connection::finish(H2Stream& stream) {
  detail::Exchange& exchange = stream.exchange();
  try {
    exchange.finish(stream.error() || sender_.error());
  } catch (const std::bad_alloc&) {
    report(std::current_exception());
    if (!stream.error()) reset(stream, h2::ErrorCode::internal_error, system_error(ENOMEM));
  }
  stream.handler_ended();
  // A tunnel that could not be handed out has begun a response that nothing ends.
  const bool has_end = stream.outgoing().has_ended || stream.outgoing().ends;
  const bool is_incomplete = exchange.is_broken() || !(has_end || stream.has_tunnel());
  if (is_incomplete && !stream.error())
    reset(stream, h2::ErrorCode::internal_error, system_error(ECANCELED));
  remove_if_done(stream);
}

void H2Connection::reset(H2Stream& stream, h2::ErrorCode code, const Error& error) noexcept {
  send_reset(stream.id(), code);
  stream.fail(error);
}

void H2Connection::send_reset(std::uint32_t stream_id, h2::ErrorCode code) noexcept {
  if (has_failed_) return;
  try {
    h2::append_rst_stream(sender_.queue(), stream_id, code);
  } catch (const std::bad_alloc&) {
    stream_.close();
  }
  sender_.wake();
}

void H2Connection::remove_if_done(H2Stream& stream) noexcept {
  const bool has_failed = static_cast<bool>(stream.error());
  if (!stream.is_unused() || !(has_failed || stream.outgoing().has_ended)) return;
  if (!has_failed && stream.is_discarding(loop_.now())) return check_by(stream.discard_deadline());
  // The client need not send the rest of a request that was answered: RFC 9113, section 8.1.
  if (!has_failed && !stream.is_request_complete())
    send_reset(stream.id(), h2::ErrorCode::no_error);
  if (!has_failed) resets_.earn(1);
  note_closed(stream.id(), !stream.is_request_complete() && !stream.is_reset_by_client());
  if (std::exception_ptr thrown = stream.exchange().take_exception(); thrown != nullptr)
    report(std::move(thrown));
  keep_or_destroy(streams_.take(streams_.find(stream.id())));
  if (!streams_.empty()) return;
  emptied_.set();
  if (!is_receiving_) return;
  const Duration limit = options().idle_timeout;
  if (is_done()) {
    interrupt_reading(loop_.now());
  } else if (limit > Duration::zero()) {
    idle_deadline_ = detail::base::saturating_add(loop_.now(), limit);
    interrupt_reading(idle_deadline_);
  }
}

void H2Connection::note_closed(std::uint32_t stream_id, bool may_receive) noexcept {
  if (may_receive) {
    const std::size_t closed_max =
        std::max<std::size_t>(closed_.size(), options().http_2.streams_max);
    try {
      if (receiving_.size() < closed_max) return receiving_.push_back({stream_id, true});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the oldest is forgotten.
    }
    if (!receiving_.empty()) {
      receiving_[next_receiving_] = {stream_id, true};
      next_receiving_ = (next_receiving_ + 1) % receiving_.size();
      return;
    }
  }
  closed_[next_closed_] = {stream_id, may_receive};
  next_closed_ = (next_closed_ + 1) % closed_.size();
}

const H2Connection::Closed* H2Connection::find_closed(std::uint32_t stream_id) const noexcept {
  const auto receiving = std::ranges::find(receiving_, stream_id, &Closed::stream_id);
  if (receiving != receiving_.end()) return &*receiving;
  const auto found = std::ranges::find(closed_, stream_id, &Closed::stream_id);
  return found != closed_.end() ? &*found : nullptr;
}

/// Returns false if the connection must end.
bool H2Connection::spend_reset() noexcept {
  resets_.spend();
  if (resets_.is_overdrawn())
    return fail(h2::ErrorCode::enhance_your_calm, "Too many streams were reset",
                H2Event::reset_flood);
  if (resets_.is_used_up()) ++delays_;
  return true;
}

bool H2Connection::spend_idle_frame() noexcept {
  if (frame_budget_.spend(loop_.now(), sender_.take_data_frames())) return true;
  return fail(h2::ErrorCode::enhance_your_calm, "Too many frames that advance no request",
              H2Event::idle_frame_flood);
}

/// Reports an exception of a stream that is about to be destroyed. From the loop, because on_error
/// may destroy the server, and with it this connection: no exception is reported after that.
void H2Connection::report(std::exception_ptr thrown) noexcept {
  try {
    if (unreported_ == nullptr) unreported_ = std::make_shared<std::vector<std::exception_ptr>>();
    unreported_->push_back(thrown);
    try {
      loop_.post([settings = settings_, &loop = loop_, weak = std::weak_ptr(unreported_)] {
        std::exception_ptr first;
        if (const auto unreported = weak.lock()) {
          first = std::move(unreported->front());
          unreported->erase(unreported->begin());
        }
        if (first != nullptr) settings->reporter->report(detail::loop::core_of(loop), first);
      });
    } catch (const std::exception&) {
      unreported_->pop_back();
      throw;
    }
  } catch (const std::exception&) {
    if (thrown_ == nullptr) thrown_ = std::move(thrown);
  }
}

void H2Connection::credit(std::uint32_t bytes) noexcept {
  uncredited_ += bytes;
  const std::uint32_t update = uncredited_ + (connection_window_ - granted_window_);
  if (update < connection_window_ / 2) return;
  receive_window_ += update;
  granted_window_ = connection_window_;
  uncredited_ = 0;
  send_window_update(0, update);
}

void H2Connection::send_window_update(std::uint32_t stream_id, std::uint32_t bytes) noexcept {
  if (has_failed_ || has_ended_input_) return;
  try {
    h2::append_window_update(sender_.queue(), stream_id, bytes);
  } catch (const std::bad_alloc&) {
    stream_.close();
  }
  sender_.wake();
}

void H2Connection::tunnel_closed(H2Stream& stream, bool has_ended) noexcept {
  if (!stream.error() && !has_ended) reset(stream, h2::ErrorCode::cancel, system_error(ECANCELED));
  remove_if_done(stream);
}

/// The first of two GOAWAY: requests that the client has sent meanwhile are still answered.
void H2Connection::begin_drain() noexcept {
  if (is_draining_ || is_draining_out_) return;
  is_draining_ = true;
  try {
    h2::append_goaway(sender_.queue(), h2::stream_id_max, h2::ErrorCode::no_error, "");
    frame_budget_.ping(sender_.queue(), h2_drain_ping);
  } catch (const std::bad_alloc&) {
    return end_drain();
  }
  sender_.wake();
  drain_timer_.start(options().drain_timeout);
}

void H2Connection::end_drain() noexcept {
  if (is_draining_out_) return;
  drain_timer_.stop();
  is_draining_out_ = true;
  try {
    h2::append_goaway(sender_.queue(), last_accepted_id_, h2::ErrorCode::no_error, "");
  } catch (const std::bad_alloc&) {
    stream_.close();
  }
  sender_.wake();
  if (is_done()) interrupt_reading(loop_.now());
}

void H2Connection::fail_streams(const Error& error) noexcept {
  for_each_stream([&error](H2Stream& stream) { stream.fail(error); });
}

/// Waits for the handlers, and for responses that can still be sent.
Task<> H2Connection::end_streams() {
  if (has_ended_input_) {
    settings_deadline_ = never;  // The client cannot acknowledge them any more.
    for_each_stream([](H2Stream& stream) {
      if (!stream.is_request_complete()) stream.fail(StreamError::truncated);
      stream.exchange().disconnected();
    });
  }
  while (!streams_.empty()) {
    // Nothing reads the connection any more, so only a write finds out that the client has gone.
    if (sender_.error()) fail_streams(sender_.error());
    if (streams_.empty()) break;
    emptied_.reset();
    const Result<> waited = co_await emptied_.wait();
    if (waited) continue;
    // The task was asked to stop, and the handlers with it.
    fail_streams(waited.error());
    if (waits_ != nullptr) co_await detail::task::ScopeAccess::join_to_end(*waits_);
    break;
  }
}

/// As for HTTP/1: the client gets the last frames even if it is still sending.
Task<> H2Connection::close_gracefully() {
  progress_timer_.stop();
  drain_timer_.stop();
  const Result<> flushed = co_await sender_.flush_frames();
  if (!flushed || !stream_.is_open()) co_return;
  const bool drains = shutdown_.stop_requested();
  const Duration limit = has_ended_input_ ? Duration::zero()
                                          : detail::net::linger_limit(options().linger, drains,
                                                                      options().drain_timeout);
  if (limit <= Duration::zero() && stream_.tls() == nullptr) co_return;
  input_.bytes().clear();
  input_.begin(Duration::zero());
  detail::net::LingeringClose closing(stream_);
  co_await closing.run(limit, options().write_timeout);
}

}  // namespace tambour::http
