// Forwarding: attempts, and the response.
#include "http/proxy/forwarding.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>

#include "base/parse_number.h"
#include "http/proxy/fields.h"
#include "http/proxy/tunnel.h"
#include "http_message/characters.h"
#include "http_message/field_writer.h"
#include "task/scope_access.h"
#include "task/time_limit.h"

namespace tambour::http::detail::proxy {
namespace {

/// The size of the pieces in which a body is passed on.
constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

/// The status of nginx for clients that have gone. It is only in logs.
constexpr Status client_closed_request{499};

}  // namespace

Forwarding::Forwarding(State& state) : state_(state), watchdog_(state.loop, state.options) {}

void Forwarding::begin(Request& request, Response& response) noexcept {
  request_ = &request;
  response_ = &response;
  watchdog_.begin_request(request);
  ++state_.stats.requests;
  ++state_.stats.active;
}

void Forwarding::end() noexcept {
  watchdog_.end_request();
  leave();
  tried_.clear();
  modified_.reset();
  head_.form = TargetForm::origin;
  has_body_failed_ = false;
  --state_.stats.active;
}

ForwardingUse::ForwardingUse(std::shared_ptr<State> state, Request& request, Response& response)
    : state_(std::move(state)) {
  if (state_->unused.empty()) {
    forwarding_ = std::make_unique<Forwarding>(*state_);
  } else {
    forwarding_ = std::move(state_->unused.back());
    state_->unused.pop_back();
  }
  forwarding_->begin(request, response);
}

ForwardingUse::~ForwardingUse() {
  if (forwarding_ == nullptr) return;  // It was moved from.
  forwarding_->end();
  if (state_->unused.size() < state_->unused.capacity())
    state_->unused.push_back(std::move(forwarding_));
}

/// Most requests use an unused connection and get a short response: they need the frame of this
/// task, and that of Exchange::begin().
Task<> Forwarding::run([[maybe_unused]] ForwardingUse use) {
  if (!prepare()) co_return;
  if (state_.unresolved > 0 && state_.servers.empty()) {
    const bool has_time = co_await wait_for_names();
    if (!has_time) co_return;
  }
  state_.earn_retry();
  auto server = state_.is_shut_down ? nullptr : state_.choose(*request_, tried_);
  if (server == nullptr) co_return fail(Status::service_unavailable, system_error(ENOENT));
  while (server != nullptr) {
    enter(std::move(server));
    if (const auto directed = direct(); !directed)
      co_return fail(status_for(directed.error()), directed.error());
    Result<> result;
    for (bool is_stale = true; is_stale; is_stale = was_stale(result)) {
      discard_attempt();
      Result<client::Lease> lease = take_idle();
      if (lease && !*lease) lease = co_await connect();
      result = {};
      if (lease) {
        begin_exchange(std::move(*lease));
        result = co_await exchange_->begin(sent_head(), body());
      } else {
        result = std::unexpected(lease.error());
      }
      if (!result) watchdog_.end();
    }
    count(result);
    if (watchdog_.is_client_gone()) co_return fail(client_closed_request, system_error(ECANCELED));
    // The exchange of the server has an answer for that.
    if (!result && has_body_failed_) co_return;
    server = next_after(result);
    if (server == nullptr && !result) co_return fail(result.error());
  }
  if (exchange_->head().status == Status::switching_protocols) co_return co_await tunnel();
  Buffer piece;
  if (!respond_at_once(piece)) co_await pass_body(std::move(piece));
}

template <class T>
Task<T> Forwarding::while_client_stays(Task<T> work) {
  const TaskContext& context = co_await this_task;
  TaskScope scope(state_.loop, context.stop);
  const Watchdog::Connecting connecting(watchdog_, scope);
  std::optional<T> result;
  auto storing = [](Task<T> task, std::optional<T>& into) -> Task<> {
    into.emplace(co_await std::move(task));
  };
  scope.spawn(storing(std::move(work), result));
  co_await tambour::detail::task::ScopeAccess::join_to_end(scope);
  co_return std::move(*result);
}

Task<bool> Forwarding::wait_for_names() {
  const Duration limit = watchdog_.limit_within_request(state_.options.queue_timeout);
  auto waiting = while_client_stays(task::within(limit, as_task(state_.is_resolved.wait())));
  const auto resolved = co_await std::move(waiting);
  static_cast<void>(resolved);  // Without servers, the response is 503.
  if (watchdog_.is_client_gone()) {
    fail(client_closed_request, system_error(ECANCELED));
    co_return false;
  }
  if (!watchdog_.is_late()) co_return true;
  fail(Status::gateway_timeout, system_error(ETIMEDOUT));
  co_return false;
}

void Forwarding::enter(std::shared_ptr<Server> server) {
  leave();
  server_ = std::move(server);
  ++server_->active;
  ++server_->requests;
  if (!tried_.empty()) ++server_->retries;
}

void Forwarding::leave() noexcept {
  watchdog_.end();
  exchange_.reset();
  if (server_ != nullptr) --server_->active;
  server_ = nullptr;
}

Task<Result<client::Lease>> Forwarding::connect() {
  // The time of connecting has a limit of its own.
  const bool waits = server_->active > state_.options.connections_max;
  const Duration limit =
      watchdog_.limit_within_request(waits ? state_.options.queue_timeout : Duration::zero());
  auto connecting = while_client_stays(
      task::within(limit, server_->client().connect(server_->origin(), nullptr)));
  auto lease = co_await std::move(connecting);
  is_refused_ =
      !lease && (lease.error() == system_error(EAGAIN) ||
                 (waits && limit > Duration::zero() && lease.error() == system_error(ETIMEDOUT)));
  co_return lease;
}

void Forwarding::discard_attempt() noexcept {
  // The server has probably closed all connections that were idle.
  if (exchange_) server_->client().pool->close_idle(server_->origin());
  watchdog_.end();
  exchange_.reset();
  is_sent_ = false;
  is_refused_ = false;
}

Result<client::Lease> Forwarding::take_idle() {
  if (watchdog_.is_late()) return std::unexpected(system_error(ETIMEDOUT));
  return server_->client().take_idle(server_->origin(), !is_repeatable());
}

void Forwarding::begin_exchange(client::Lease lease) {
  is_sent_ = true;
  was_kept_ = lease->was_used;
  exchange_.emplace(state_.loop, std::move(lease),
                    client::ReadLimits{.read_bytes_max = piece_bytes});
  exchange_->set_interim_sink(*this);
  if (!modified_) exchange_->set_upgrade(keeps_upgrade_);
  watchdog_.begin(*exchange_);
}

/// The server may have closed a connection that was kept open before it saw the request.
bool Forwarding::was_stale(const Result<>& result) const noexcept {
  if (!was_kept_ || !is_sent_ || !is_repeatable()) return false;
  if (result) return exchange_->head().status == Status::request_timeout;
  return !exchange_->has_received() && client::is_stale(result.error());
}

void Forwarding::count(const Result<>& result) noexcept {
  if (result) {
    server_->succeeded();
  } else if (!watchdog_.is_client_gone() && !is_refused_ && !has_body_failed_ &&
             result.error() != system_error(ECANCELED)) {
    server_->failed();
  }
}

bool Forwarding::is_repeatable() const noexcept {
  return !has_body_ && !keeps_upgrade_ && is_idempotent_;
}

std::shared_ptr<Server> Forwarding::next_after(const Result<>& result) {
  const UpstreamRetryOptions& retry = state_.options.retry;
  if (result) {
    if (std::ranges::count(retry.statuses, exchange_->head().status) == 0) return nullptr;
  } else if (result.error() == system_error(ECANCELED) ||
             (is_sent_ &&
              (exchange_->has_received() || result.error() == system_error(ETIMEDOUT)))) {
    return nullptr;
  }
  if (is_sent_ && !is_repeatable()) return nullptr;
  if (watchdog_.is_late()) return nullptr;
  if (tried_.size() + 1 >= retry.attempts_max || state_.is_shut_down) return nullptr;
  tried_.push_back(server_);
  auto next = state_.choose(*request_, tried_);
  return next != nullptr && state_.take_retry() ? std::move(next) : nullptr;
}

void Forwarding::fail(const Error& error) {
  if (is_refused_ && !watchdog_.is_late()) {
    ++state_.stats.queue_refused;
    return fail(Status::service_unavailable, error);
  }
  const bool is_late = error == system_error(ETIMEDOUT);
  fail(is_late ? Status::gateway_timeout : Status::bad_gateway, error);
}

void Forwarding::fail(Status status, const Error& error) {
  if (status == client_closed_request) {
    ++state_.stats.client_aborts;
  } else {
    ++state_.stats.failures;
  }
  if (state_.options.on_error) {
    const std::string upstream = server_ != nullptr ? server_->target().url : std::string();
    state_.options.on_error(*request_, *response_,
                            {.status = status, .error = error, .upstream = upstream});
  }
  if (!response_->has_begun()) static_cast<void>(response_->send_error(status));
}

Task<> Forwarding::pass_interim(ResponseHead& head) {
  if (code_of(head.status) < code_of(Status::processing)) co_return;
  remove_hop_by_hop(head.fields, false);
  // The server has to wait as long as the client does not read. Only the limit for the whole
  // request ends that: the response cannot be sent then.
  watchdog_.end_wait();
  auto sending = task::within(watchdog_.limit_within_request(Duration::zero()),
                              response_->send_interim(head.status, std::move(head.fields)));
  const auto sent = co_await std::move(sending);
  static_cast<void>(sent);  // If the client has gone, the response is not sent either.
  watchdog_.end_upload_wait();
}

/// Fields that outer middleware has set stay, and replace those of the server.
void Forwarding::write_response_head() {
  ResponseHead& head = exchange_->head();
  remove_hop_by_hop(head.fields, head.status == Status::switching_protocols);
  if (state_.options.modify_response) state_.options.modify_response(*request_, head);
  response_->set_status(head.status);
  response_->head().reason = std::move(head.reason);
  Fields& fields = response_->headers();
  // The exchange uses the memory of the fields of earlier responses for the next one.
  if (fields.empty()) return FieldWriter::swap(fields, head.fields);
  const Fields before = fields;
  for (const Field field : head.fields) {
    const bool is_added = equal_ignoring_case(field.name, "Set-Cookie") ||
                          equal_ignoring_case(field.name, "Vary") || !before.contains(field.name);
    if (is_added) static_cast<void>(fields.add(field.name, field.value));
  }
}

bool Forwarding::respond_at_once(Buffer& piece) {
  watchdog_.end_head_wait();
  if (is_head_) {
    const auto stated = exchange_->head().fields.get("Content-Length");
    const auto length = base::parse_number<std::uint64_t>(stated.value_or(""));
    if (length) response_->set_length(*length);
  }
  write_response_head();
  const Result<bool> taken = exchange_->take_body(piece, piece_bytes);
  if (!taken) {
    truncate();
    return true;
  }
  if (!exchange_->is_complete() || !exchange_->body().trailers().empty()) return false;
  watchdog_.end();
  static_cast<void>(response_->send(std::move(piece)));
  return true;
}

void Forwarding::truncate() noexcept {
  ++state_.stats.truncated;
  // The client must not treat a truncated response as complete.
  response_->abort();
}

Task<> Forwarding::pass_body(Buffer piece) {
  IncomingBody& incoming = exchange_->body();
  if (incoming.length()) response_->set_length(*incoming.length());
  // A body that arrives soon is sent with its head. One without a length may arrive slowly, as
  // events do: its head does not wait for it.
  bool is_whole = piece.empty() && incoming.length();
  if (!is_whole) {
    const auto written = co_await response_->write(std::move(piece));
    if (!written) co_return;
  }
  while (!incoming.is_complete()) {
    watchdog_.begin_body_wait();
    auto next = co_await exchange_->read_body(piece_bytes);
    watchdog_.end_wait();
    if (!next) co_return truncate();
    if (is_whole && incoming.is_complete() && incoming.trailers().empty()) {
      watchdog_.end();
      static_cast<void>(response_->send(std::move(*next)));
      co_return;
    }
    is_whole = false;
    const auto written = co_await response_->write(std::move(*next));
    if (!written) co_return;
  }
  watchdog_.end();
  static_cast<void>(response_->end(incoming.trailers()));
}

Task<> Forwarding::tunnel() {
  watchdog_.end();
  auto server = exchange_->upgrade();
  if (!server) co_return fail(server.error());
  write_response_head();
  auto client = co_await response_->upgrade();
  if (!client) co_return fail(client.error());
  ++state_.stats.tunnels;
  co_await run_tunnel(std::move(*client), std::move(*server), state_.options.tunnel_idle_timeout);
}

}  // namespace tambour::http::detail::proxy
