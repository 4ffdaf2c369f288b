// H2Stream: the body of a request, and the parts of a response.
#include "http/server/h2/stream.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include <tambour/loop/timer.h>
#include <tambour/net/stream_error.h>

#include "base/clock.h"
#include "http/exchange/copy_file.h"
#include "http/h2/sender.h"
#include "http/server/h2/connection.h"
#include "http/server/h2/tunnel.h"
#include "http_message/content_length.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"
#include "http_message/h1/trailers.h"
#include "http_message/h2/head_writer.h"
#include "loop/core.h"
#include "net/pace/lingering_close.h"

namespace tambour::http {
namespace {

/// A tunnel takes so many bytes of its owner at a time.
constexpr std::size_t tunnel_bytes = std::size_t{64} * 1024;

}  // namespace

H2Stream::H2Stream(H2Connection& connection, std::uint32_t id)
    : H2SendingStream(connection.loop(), id),
      connection_(connection),
      sender_(connection.sender()),
      loop_(connection.loop()),
      body_bytes_max_(connection.options().limits.body_bytes_max),
      receive_window_(connection.initial_stream_window()),
      granted_window_(connection.initial_stream_window()),
      arrived_(loop_),
      exchange_(*this, loop_, connection.settings(), connection.shutdown(), connection.stop()) {
  outgoing_.window = sender_.initial_window();
}

H2Stream::~H2Stream() {
  sender_.remove(*this);
  connection_.memory().remove(received_.size() + held_bytes_);
  detach_tunnel();
}

bool H2Stream::is_reusable() const noexcept {
  return !error_ && alive_ == nullptr && received_.empty() && exchange_.is_reusable();
}

void H2Stream::restart(std::uint32_t id) noexcept {
  id_ = id;
  outgoing_.restart(sender_.initial_window());
  trailers_.clear();
  length_ = {};
  content_length_.reset();
  received_bytes_ = 0;
  body_bytes_max_ = connection_.options().limits.body_bytes_max;
  receive_window_ = granted_window_ = connection_.initial_stream_window();
  uncredited_ = 0;
  is_request_complete_ = is_reset_by_client_ = has_handler_ended_ = false;
  discarded_bytes_ = 0;
  discard_deadline_ = never;
  length_left_.reset();
  arrived_.reset();
  sent_.reset();
}

std::expected<void, detail::h2::Violation> H2Stream::start(bool ends_stream) {
  const auto length = detail::h2::BodyLength::of_request(head_);
  if (!length) return std::unexpected(length.error());
  length_ = *length;
  content_length_ = length_.bytes_left();
  constexpr detail::KnownName priority_name("Priority");
  const std::size_t priority = detail::FieldWriter::find(head_.fields, priority_name);
  if (priority != head_.fields.size())
    outgoing_.priority = detail::h2::parse_priority(head_.fields[priority].value);
  return ends_stream ? end_request() : std::expected<void, detail::h2::Violation>();
}

std::expected<void, detail::h2::Violation> H2Stream::receive(Buffer&& data,
                                                             std::uint32_t flow_bytes) {
  if (auto added = length_.add(data.size()); !added) return added;
  receive_window_ -= flow_bytes;
  const auto padding = static_cast<std::uint32_t>(flow_bytes - data.size());
  if (tunnel_ == nullptr && (has_handler_ended_ || had_tunnel())) {
    discarded_bytes_ += flow_bytes;
    connection_.credit(flow_bytes);
    return {};
  }
  received_bytes_ += data.size();
  connection_.memory().add(data.size());
  received_.append(std::move(data));
  if (padding > 0) {
    connection_.credit(padding);
    uncredited_ += padding;
    renew_window();  // Nothing else would, if DATA is only padding.
  }
  arrived_.set();
  return {};
}

std::expected<void, detail::h2::Violation> H2Stream::end_request() noexcept {
  if (auto finished = length_.finish(); !finished) return finished;
  is_request_complete_ = true;
  arrived_.set();
  return {};
}

void H2Stream::fail(const Error& error) noexcept {
  if (error_) return;
  error_ = error;
  sender_.drop(*this);
  arrived_.set();
  sent_.set();
  exchange_.disconnected();
}

void H2Stream::reset_by_client() noexcept {
  is_reset_by_client_ = true;
  fail(system_error(ECONNRESET));
}

bool H2Stream::is_discarding(TimePoint now) const noexcept {
  const std::size_t bytes_max = connection_.options().discarded_bytes_max;
  const std::uint64_t left = length_.bytes_left().value_or(0);
  // A client whose CONNECT was rejected has nothing to send.
  const bool may_be_sending = !is_tunnel_request() || had_tunnel();
  return has_handler_ended_ && may_be_sending && !is_request_complete_ &&
         discarded_bytes_ <= bytes_max && left <= bytes_max && now < discard_deadline_;
}

void H2Stream::hold_memory(std::size_t bytes) noexcept {
  held_bytes_ += bytes;
  connection_.memory().add(bytes);
}

void H2Stream::handler_ended() noexcept {
  has_handler_ended_ = true;
  connection_.memory().remove(std::exchange(held_bytes_, 0));
  begin_discarding();
  if (tunnel_ == nullptr) discard_received();
}

void H2Stream::begin_discarding() noexcept {
  const ServerOptions& options = connection_.options();
  const Duration linger = detail::net::linger_limit(options.linger, exchange_.is_shutting_down(),
                                                    options.drain_timeout);
  discard_deadline_ = detail::base::saturating_add(loop_.now(), linger);
}

void H2Stream::discard_received() noexcept {
  connection_.memory().remove(received_.size());
  connection_.credit(static_cast<std::uint32_t>(received_.size()));
  received_.clear();
}

bool H2Stream::is_too_large() const noexcept {
  return std::max(content_length_.value_or(0), received_bytes_) > body_bytes_max_;
}

/// Takes bytes of the body, and returns them to the windows.
Buffer H2Stream::take_received(std::size_t bytes_max) {
  Buffer piece = received_.take(std::min(bytes_max, received_.size()));
  const auto size = static_cast<std::uint32_t>(piece.size());
  connection_.memory().remove(size);
  connection_.credit(size);
  uncredited_ += size;
  renew_window();
  return piece;
}

void H2Stream::renew_window() noexcept {
  if (is_request_complete_) return;
  const std::uint32_t window = connection_.stream_window();
  const std::uint32_t update = uncredited_ + (window - granted_window_);
  if (update < window / 2) return;
  receive_window_ += update;
  granted_window_ = window;
  uncredited_ = 0;
  connection_.send_window_update(id_, update);
}

Task<Result<Buffer>> H2Stream::read(std::size_t bytes_max) {
  while (!exchange_.body_error()) {
    if (is_too_large()) co_return exchange_.fail_body(ErrorCode::body_too_large);
    if (!received_.empty() || is_body_complete()) {
      Buffer piece = take_received(bytes_max);
      exchange_.body_arrived(piece.size());
      co_return piece;
    }
    if (error_) co_return exchange_.fail_body(error_);
    if (exchange_.begin_body_wait()) send_continue();
    const std::int64_t begin_ns = detail::loop::core_of(loop_).clock_ns();
    const std::uint64_t received_before = received_bytes_;
    bool has_expired = false;
    Timer limit(loop_, [this, &has_expired] {
      has_expired = true;
      arrived_.set();
    });
    const TimePoint deadline = exchange_.body_deadline(begin_ns);
    if (deadline != never) limit.start_at(deadline);
    arrived_.reset();
    const Result<> waited = co_await arrived_.wait();
    exchange_.use_body_time(begin_ns, received_bytes_ - received_before);
    if (!waited) co_return exchange_.fail_body(waited.error());
    if (has_expired && received_bytes_ == received_before && !is_request_complete_)
      co_return exchange_.fail_body(system_error(ETIMEDOUT));
  }
  co_return std::unexpected(exchange_.body_error());
}

std::optional<std::uint64_t> H2Stream::body_length() const noexcept {
  if (content_length_) return content_length_;
  if (is_tunnel_request() || (is_request_complete_ && received_bytes_ == 0)) return 0;
  return std::nullopt;
}

std::optional<std::uint64_t> H2Stream::body_bytes_left() const noexcept {
  const auto left = length_.bytes_left();
  return left ? std::optional(*left + received_.size()) : left;
}

/// The connection always reads.
void H2Stream::watch() {
  if (error_ || connection_.has_ended_input()) exchange_.disconnected();
}

void H2Stream::send_continue() { static_cast<void>(begin_interim({.status = Status::continue_})); }

Result<> H2Stream::begin_interim(const ResponseHead& head) {
  if (error_) return {};
  const Result<> appended =
      detail::h2::append_head(sender_.queue(), sender_.encoder(), head,
                              {.stream_id = id_, .frame_size_max = sender_.frame_size_max()});
  if (!appended) return appended;
  sender_.queued(*this);
  sender_.wake();
  return {};
}

Result<> H2Stream::begin(const ResponseHead& head, const BodyPlan& plan) {
  detail::h2::HeadOptions options{.stream_id = id_, .frame_size_max = sender_.frame_size_max()};
  options.date = connection_.date();
  if (plan.kind == BodyPlan::Kind::known) options.content_length = plan.length;
  const bool has_body = plan.is_sent && plan.kind != BodyPlan::Kind::none &&
                        !(plan.kind == BodyPlan::Kind::known && plan.length == 0);
  options.end_stream = !has_body;
  // A stream that was reset sends nothing; the handler learns of it when it waits.
  if (error_) return {};
  const Result<> appended = detail::h2::append_head(sender_.queue(), sender_.encoder(), head,
                                                    options, connection_.last_block());
  if (!appended) return appended;
  if (plan.kind == BodyPlan::Kind::known) length_left_ = plan.length;
  outgoing_.has_ended = !has_body;
  sender_.queued(*this);
  sender_.wake();
  return {};
}

Result<> H2Stream::send_text(const ResponseHead& head, const BodyPlan& plan,
                             std::string_view body) {
  const Result<> begun = begin(head, plan);
  if (!begun || !plan.is_sent || error_ || outgoing_.has_ended) return begun;
  if (length_left_ != body.size() || !sender_.send_short_body(*this, body)) write(Buffer(body));
  return begun;
}

void H2Stream::write(Buffer&& piece) {
  if (error_ || outgoing_.has_ended || piece.empty()) return;
  const std::size_t size = piece.size();
  if (length_left_ == size && sender_.send_short_body(*this, piece)) return;
  outgoing_.unsent.append(std::move(piece));
  sender_.add_unsent(*this, size);
  if (length_left_) {
    *length_left_ -= size;
    outgoing_.ends = *length_left_ == 0;
  }
  sender_.update(*this);
}

Task<Result<>> H2Stream::write_file(const File& file, std::uint64_t offset, std::uint64_t size) {
  return copy_file(file, offset, size, exchange_);
}

Result<> H2Stream::end(const Fields& trailers) {
  if (error_ || outgoing_.has_ended || outgoing_.ends) return {};
  for (const Field field : trailers) {
    if (!detail::h1::may_be_trailer(field.name)) return failure(ErrorCode::trailer_not_allowed);
  }
  outgoing_.trailers = trailers;
  outgoing_.ends = true;
  if (outgoing_.unsent.empty()) sender_.end(*this);
  return {};
}

Task<Result<>> H2Stream::flush() {
  const bool has_tunnel = had_tunnel();
  const std::weak_ptr<const bool> alive = alive_;
  sender_.wake();
  while (!error_ && !sender_.error() && !sender_.is_sent(*this)) {
    sender_.add_waiting(*this);
    sent_.reset();
    const Result<> waited = co_await sent_.wait();
    if (!waited) co_return waited;  // The stream may have been destroyed.
    if (has_tunnel && alive.expired()) co_return std::unexpected(system_error(ECANCELED));
  }
  if (error_) co_return std::unexpected(error_);
  if (sender_.error()) co_return std::unexpected(sender_.error());
  co_return {};
}

ByteStream H2Stream::take_stream() {
  auto tunnel = std::make_unique<H2Tunnel>(*this);
  alive_ = std::make_shared<const bool>(true);
  tunnel_ = tunnel.get();
  return ByteStream(std::move(tunnel));
}

const SocketStream& H2Stream::stream() const noexcept { return connection_.socket(); }

Task<Result<std::size_t>> H2Stream::read_tunnel(Buffer& into, std::size_t bytes_max) {
  const std::weak_ptr<const bool> alive = alive_;
  while (received_.empty() && !is_request_complete_ && !error_) {
    arrived_.reset();
    const Result<> waited = co_await arrived_.wait();
    if (!waited) co_return std::unexpected(waited.error());
    if (alive.expired()) co_return std::unexpected(system_error(ECANCELED));
  }
  if (received_.empty() && error_) co_return std::unexpected(error_);
  Buffer piece = take_received(std::max<std::size_t>(bytes_max, 1));
  const std::size_t size = piece.size();
  into.append(std::move(piece));
  co_return size;
}

Task<Result<>> H2Stream::write_tunnel(Buffer& from) {
  if (!error_ && (outgoing_.has_ended || outgoing_.ends))
    co_return std::unexpected(system_error(EPIPE));
  do {
    write(from.take(std::min(from.size(), tunnel_bytes)));
    is_write_cut_ = !from.empty();
    const Result<> flushed = co_await flush();
    if (!flushed) co_return flushed;
  } while (!from.empty());
  co_return {};
}

Result<> H2Stream::try_write_tunnel(Buffer& from) noexcept {
  if (error_) return std::unexpected(error_);
  if (sender_.error()) return std::unexpected(sender_.error());
  if (outgoing_.has_ended || outgoing_.ends) return std::unexpected(system_error(EPIPE));
  if (!sender_.send_at_once(*this, from)) return std::unexpected(system_error(EAGAIN));
  return {};
}

void H2Stream::end_tunnel_output() {
  if (error_ || outgoing_.has_ended || outgoing_.ends) return;
  outgoing_.ends = true;
  if (outgoing_.unsent.empty()) sender_.end(*this);
}

void H2Stream::detach_tunnel() noexcept {
  if (tunnel_ != nullptr) std::exchange(tunnel_, nullptr)->detach();
}

/// Like a socket that is closed, whose peer gets the end of the stream. But what a write has not
/// sent, or an exception has left unsaid, would be missing without notice: the stream is reset.
bool H2Stream::may_end_tunnel() const noexcept {
  if (error_ || std::uncaught_exceptions() > 0) return false;
  return outgoing_.has_ended || outgoing_.ends || (outgoing_.unsent.empty() && !is_write_cut_);
}

void H2Stream::close_tunnel() noexcept {
  discard_received();
  bool ends = may_end_tunnel();
  try {
    // While it has the tunnel, the stream is not destroyed.
    if (ends) end_tunnel_output();
  } catch (const std::bad_alloc&) {
    ends = false;
  }
  tunnel_ = nullptr;
  begin_discarding();
  connection_.tunnel_closed(*this, ends);
}

}  // namespace tambour::http
