// H1Connection: reads requests, waits for handlers, and ends the connection.
#include "http/server/h1_connection.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>

#include "base/clock.h"
#include "http/exchange/prefetch.h"
#include "http/protocol.h"
#include "http_message/field_writer.h"
#include "loop/core.h"
#include "net/pace/lingering_close.h"
#include "task/scope_access.h"

namespace tambour::http {
namespace {

/// Responses are sent before the next request if there are more bytes of them.
constexpr std::size_t collected_bytes_max = std::size_t{64} * 1024;

/// How long a connection that waits for a request keeps all that it needs to serve it.
constexpr Duration warm_time = std::chrono::seconds(1);

/// True if a connection that was not kept would have been used soon. Its wait has begun
/// ServerOptions::idle_timeout before its deadline.
bool has_waited_shortly(const IdleConnection& idle, TimePoint now) noexcept {
  if (idle.kind != IdleKind::next_request || idle.deadline == never) return false;
  const TimePoint began = idle.deadline - idle.server->settings->options.idle_timeout;
  return detail::base::saturating_add(began, warm_time) > now;
}

/// A read of a connection that waits with all that the next request needs. If there are more
/// connections than a cache holds (ServerOnLoop::outgrows_caches()), nothing of that is in one. It
/// arrives there while the kernel copies the request.
class ReadNextRequest final : public ReadRequests {
 public:
  ReadNextRequest(Stream& stream, ServerOnLoop& server, const H1Connection& connection) noexcept
      : ReadRequests(stream, server), connection_(connection) {}

 private:
  [[nodiscard]] bool step(detail::loop::Core& core) noexcept override {
    connection_.prefetch();
    return ReadRequests::step(core);
  }

  const H1Connection& connection_;
};

}  // namespace

H1Connection::H1Connection(IdleConnection& idle, std::stop_token stop)
    : loop_(idle.stream.loop()),
      server_(*idle.server),
      wire_(std::move(idle.stream), server_),
      exchange_(wire_, loop_, server_.settings, server_.shutdown, std::move(stop)),
      head_deadline_(idle.deadline),
      has_served_(idle.kind != IdleKind::first_request) {
  wire_.attach(exchange_);
  exchange_.set_shutdown_hooks(server_.shutdown_hooks);
  if (has_waited_shortly(idle, loop_.now())) server_.keep_more();
  drain_.emplace(server_.shutdown, Drain{*this});
}

void H1Connection::move_to(IdleConnection& idle) noexcept {
  idle.stream = std::move(wire_.socket());
  idle.deadline = head_deadline_;
  idle.kind = was_kept_ ? IdleKind::released : IdleKind::next_request;
}

Task<> H1Connection::serve(Result<std::size_t> received) {
  detail::h1::RequestParser& parser = wire_.parser();
  SocketStream& stream = wire_.socket();
  Output& output = wire_.output();
  bool more = end_receiving(received);
  if (more) wire_.receive(server_.input_text(*received));
  while (more) {
    const Result<bool> has_head = wire_.parse_head();
    if (!has_head) {
      const bool is_other = !has_served_ && has_http_2_preface(wire_.input().bytes());
      is_http_2_ = is_other && options().http_2.is_enabled;
      if (is_http_2_) break;
      reject(is_other ? make_error_code(ErrorCode::http_2_preface) : has_head.error());
      break;
    }
    if (!*has_head) {
      // Not in tasks of their own, whose frames would have to be allocated for each request. No
      // handler is running.
      if (!wire_.write_now()) {
        while (output.begin_writing()) output.end_writing(co_await stream.write(output.sending()));
      }
      if (!begin_receiving()) break;
      const Result<std::size_t> got = co_await ReadNextRequest(stream, server_, *this);
      more = end_receiving(got);
      if (more) wire_.receive(server_.input_text(*got));
      continue;
    }
    while (more && budget_.is_exhausted(detail::loop::core_of(loop_)))
      more = co_await wait_for_next_iteration();
    if (!more) break;
    begin_request();
    exchange_.start_handler();
    if (!exchange_.handlers().empty()) {
      // The handler waits. Earlier responses must not wait for it.
      const bool is_sent = wire_.output_bytes() == 0 || wire_.write_now();
      wire_.leave_shared_memory();
      if (!is_sent) static_cast<void>(co_await output.flush());
      co_await detail::task::ScopeAccess::join_to_end(exchange_.handlers());
    }
    wire_.stop_watching();
    exchange_.finish(static_cast<bool>(output.error()));
    if (exchange_.is_tunnel() || exchange_.is_broken() || exchange_.is_last() ||
        !wire_.is_persistent())
      break;
    const bool is_sent_now = wire_.output_bytes() >= collected_bytes_max || !parser.is_complete();
    if (is_sent_now && !wire_.write_now()) {
      wire_.leave_shared_memory();
      static_cast<void>(co_await output.flush());
    }
    if (!parser.is_complete()) more = co_await exchange_.discard_body();
    parser.restart();
  }
  if (is_released_) co_return;
  wire_.leave_shared_memory();
  if (!exchange_.is_tunnel() && !is_http_2_) co_await close_gracefully();
  if (const std::exception_ptr thrown = exchange_.take_exception(); thrown != nullptr)
    std::rethrow_exception(thrown);
}

void H1Connection::prefetch() const noexcept {
  if (!server_.outgrows_caches()) return;
  http::prefetch(this, sizeof *this);
  exchange_.prefetch_handled();
  detail::FieldWriter::prefetch(wire_.parser().head().fields);
}

/// Prepares to wait for more bytes of a head. Returns false if the connection has failed, or waits
/// without this object.
bool H1Connection::begin_receiving() noexcept {
  if (wire_.output().error()) return false;
  is_idle_ = wire_.input().bytes().empty();
  const Duration patience =
      is_idle_ && has_served_ ? options().idle_timeout : options().header_timeout;
  if (head_deadline_ == never && patience > Duration::zero())
    head_deadline_ = detail::base::saturating_add(loop_.now(), patience);
  if (is_idle_ && exchange_.may_be_destroyed()) return begin_idle_wait();
  wire_.input().begin_until(head_deadline_);
  if (is_idle_ && exchange_.is_shutting_down()) begin_drain();
  return true;
}

/// Returns false if the connection waits without this object.
bool H1Connection::begin_idle_wait() noexcept {
  is_released_ = !kept_.enter(server_);
  if (is_released_) return false;
  const TimePoint warm_until = detail::base::saturating_add(loop_.now(), warm_time);
  wire_.input().begin_until(std::min(head_deadline_, warm_until));
  if (exchange_.is_shutting_down()) begin_drain();
  return true;
}

/// Returns false if the connection has ended, or has to, or waits without this object.
bool H1Connection::end_receiving(Result<std::size_t> received) {
  const Result<std::size_t> got = wire_.input().end(received);
  kept_.leave();
  is_released_ = was_kept_ = false;
  if (got && *got > 0) [[likely]] {
    if (is_idle_ && has_served_) head_deadline_ = never;  // The first bytes of the next head.
    is_idle_ = false;
    return true;
  }
  const bool is_late = !got && got.error() == system_error(ETIMEDOUT);
  is_released_ =
      is_late && is_idle_ && exchange_.may_be_destroyed() && loop_.now() < head_deadline_;
  was_kept_ = is_released_;
  if (is_released_) {
    server_.keep_fewer();
    return false;
  }
  if (is_idle_ && has_served_) head_deadline_ = never;
  const bool was_idle = std::exchange(is_idle_, false);
  if (got) {
    const Result<> ended = wire_.parser().end_input(wire_.input().bytes());
    if (!ended && ended.error() != StreamError::eof) reject(ended.error());
  } else if (is_late && !was_idle) {
    reject(got.error());
  } else {
    wire_.socket().close();  // No response can be lost.
  }
  return false;
}

/// Lets the other connections of the loop run before the next request, which has been received
/// already. Returns false if this connection has failed, or its task was asked to stop.
Task<bool> H1Connection::wait_for_next_iteration() {
  wire_.leave_shared_memory();
  const bool is_flushed = (co_await wire_.output().flush()).has_value();
  if (is_flushed && co_await sleep_for(Duration::zero(), {})) co_return true;
  wire_.socket().close();
  co_return false;
}

void H1Connection::begin_request() noexcept {
  has_served_ = true;
  head_deadline_ = never;
  wire_.start();
  exchange_.start(wire_.parser().head());
}

/// Answers a message that is not a request.
void H1Connection::reject(const Error& error) {
  wire_.parser().keep_start_line(wire_.input().bytes());
  has_served_ = true;
  head_deadline_ = never;
  wire_.start();
  exchange_.reject(wire_.parser().head(), error);
}

/// Sends the last response. If the client may still be sending, closing at once would make the
/// kernel reset the connection, and the client might lose the response.
Task<> H1Connection::close_gracefully() {
  SocketStream& stream = wire_.socket();
  Buffer& bytes = wire_.input().bytes();
  const bool is_flushed = (co_await wire_.output().flush()).has_value();
  if (exchange_.is_broken()) stream.reset();
  if (!is_flushed || !stream.is_open()) co_return;
  const bool may_be_sending = exchange_.lingers() || exchange_.is_shutting_down() ||
                              !bytes.empty() ||
                              (wire_.parser().has_head() && !wire_.parser().is_complete());
  const bool drains = exchange_.is_shutting_down();
  const Duration limit =
      may_be_sending ? detail::net::linger_limit(options().linger, drains, options().drain_timeout)
                     : Duration::zero();
  // The end of TLS is a message, without which the client would treat the response as truncated.
  if (limit <= Duration::zero() && stream.tls() == nullptr) co_return;
  bytes.clear();
  wire_.input().begin(Duration::zero());  // A read that was destroyed may have left its timer.
  detail::net::LingeringClose closing(stream);
  closing_ = &closing;
  co_await closing.run(limit, options().write_timeout);
  closing_ = nullptr;
}

/// An idle connection stays open for a request that the client may have sent already, and one that
/// lingers for what the client is still sending.
void H1Connection::begin_drain() noexcept {
  const TimePoint deadline = detail::base::saturating_add(loop_.now(), options().drain_timeout);
  if (is_idle_) {
    head_deadline_ = std::min(head_deadline_, deadline);
    wire_.input().shorten(deadline);
  }
  if (closing_ != nullptr) closing_->end_by(deadline);
}

}  // namespace tambour::http
