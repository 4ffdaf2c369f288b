// Source: connects, reads events, and connects again.
#include "http/event_source/source.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <limits>
#include <string_view>
#include <utility>

#include <tambour/task/sleep.h>

#include "http/client/temporary.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "loop/core.h"
#include "task/scope_access.h"

namespace tambour::http::detail::event_source {
namespace {

using client::is_temporary;

/// The shortest delay that a server can ask for.
constexpr std::chrono::milliseconds retry_min(100);

bool is_event_stream(const Fields& fields) noexcept {
  std::string_view type = fields.get("Content-Type").value_or("");
  type = type.substr(0, type.find(';'));
  type = type.substr(0, type.find_last_not_of(" \t") + 1);
  return equal_ignoring_case(type, "text/event-stream");
}

RetryPolicy with_delay(RetryPolicy policy, Duration delay) noexcept {
  policy.delay = delay;
  return policy;
}

}  // namespace

Source::Source(Client& client, std::string url, EventSourceOptions options)
    : client_(client),
      url_(std::move(url)),
      options_(std::move(options)),
      returned_event_id_(options_.last_event_id),
      last_event_id_(options_.last_event_id),
      delay_(options_.retry.delay),
      delays_(options_.retry) {}

Task<Source::Received> Source::next() {
  if (!reading_) {
    const TaskContext& context = co_await this_task;
    reading_.emplace(*context.loop);
  }
  if (!received_ && thrown_ == nullptr) {
    if (reading_->scope.empty()) tambour::detail::task::ScopeAccess::start(reading_->scope, read());
    const auto waited = co_await reading_->has_received.wait();
    if (!waited) co_return std::unexpected(waited.error());
  }
  if (thrown_ != nullptr) {
    reading_->has_received.reset();
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  if (*received_) returned_event_id_ = received_->value() ? (**received_)->id : last_event_id_;
  Received received(*std::move(received_));
  received_.reset();
  reading_->has_received.reset();
  reading_->is_wanted.set();
  co_return received;
}

Task<> Source::read() {
  try {
    for (bool goes_on = true; goes_on;) {
      reading_->is_wanted.reset();
      received_.emplace(co_await receive());
      goes_on = received_->has_value() && received_->value().has_value();
      reading_->has_received.set();
      if (!goes_on) break;
      const auto wanted = co_await reading_->is_wanted.wait();
      if (!wanted) break;
    }
  } catch (...) {
    // The stream cannot be continued where it was: the next call of next() connects again.
    thrown_ = std::current_exception();
    reader_.reset();
    response_.reset();
    was_tried_ = false;
    reading_->has_received.set();
  }
}

Task<Source::Received> Source::receive() {
  std::optional<ReceivedEvent> none;
  for (;;) {
    if (has_ended_) co_return none;
    if (!reader_) {
      const auto opened = co_await open();
      if (!opened) co_return std::unexpected(opened.error());
      continue;
    }
    auto event = co_await reader_->next();
    if (event && *event) {
      last_event_id_ = (*event)->id;
      co_return event;
    }
    end_stream();
    if (!event && !is_temporary(event.error())) {
      was_tried_ = false;
      co_return event;
    }
  }
}

Task<Result<>> Source::open() {
  for (;;) {
    if (const auto waited = co_await wait(); !waited) co_return waited;
    auto wanted = request();
    if (!wanted) co_return std::unexpected(wanted.error());
    auto response = co_await client_.send(std::move(*wanted));
    if (response) {
      status_ = response->status();
      if (!is_temporary(*status_)) co_return accept(std::move(*response));
    }
    const Error error =
        response ? make_error_code(http::ErrorCode::unexpected_status) : response.error();
    const bool is_last = ++failed_attempts_ >= std::max(options_.retry.attempts_max, 1U);
    if (response ? !is_last : (!is_last && is_temporary(error))) {
      was_tried_ = true;
      continue;
    }
    failed_attempts_ = 0;
    was_tried_ = false;
    co_return std::unexpected(error);
  }
}

Result<> Source::accept(ClientResponse response) {
  failed_attempts_ = 0;
  delays_ = tambour::detail::client::RetryDelays(with_delay(options_.retry, delay_));
  was_tried_ = false;
  if (response.status() == Status::no_content) {
    has_ended_ = true;
    return {};
  }
  if (response.status() != Status::ok) return failure(http::ErrorCode::unexpected_status);
  if (!is_event_stream(response.headers())) return failure(http::ErrorCode::not_an_event_stream);
  // What has arrived of a stream has no limit, only each event of it.
  response_.emplace(std::move(response));
  response_->body().set_bytes_max(std::numeric_limits<std::uint64_t>::max());
  reader_.emplace(response_->body(), options_.limits, last_event_id_);
  ++connections_;
  return {};
}

Result<ClientRequest> Source::request() const {
  ClientRequest request(url_);
  request.fields = options_.fields;
  // The tokens are field values.
  static_cast<void>(request.fields.set("Accept", "text/event-stream"));
  static_cast<void>(request.fields.set("Cache-Control", "no-store"));
  if (!last_event_id_.empty()) {
    // The standard allows ids that no field can contain; the server cannot expect to get those.
    const auto set = request.fields.set("Last-Event-ID", last_event_id_);
    if (!set && set.error() != http::ErrorCode::bad_field_value)
      return std::unexpected(set.error());
  }
  request.total_timeout = Duration::zero();
  request.read_timeout = options_.idle_timeout;
  request.body_rate_min = 0;
  return request;
}

Task<Result<>> Source::wait() {
  if (!was_tried_) co_return {};
  const TaskContext& context = co_await this_task;
  const Duration delay = delays_.next(loop::core_of(*context.loop).backend().random());
  co_return co_await sleep_for(delay);
}

void Source::end_stream() {
  // An id may have arrived without an event.
  last_event_id_ = reader_->last_event_id();
  if (const auto retry = reader_->retry()) {
    // So that a server, and each proxy that answers for it, cannot make the client busy-loop.
    const Duration delay_max = std::max(options_.retry.delay_max, Duration::zero());
    delay_ = std::min<Duration>(std::max(*retry, retry_min), delay_max);
    delays_ = tambour::detail::client::RetryDelays(with_delay(options_.retry, delay_));
  }
  reader_.reset();
  response_.reset();
  was_tried_ = true;
}

}  // namespace tambour::http::detail::event_source

namespace tambour::http {

EventSource::EventSource(Client& client, std::string url, EventSourceOptions options)
    : source_(std::make_unique<detail::event_source::Source>(client, std::move(url),
                                                             std::move(options))) {}
EventSource::EventSource(EventSource&& other) noexcept = default;
EventSource& EventSource::operator=(EventSource&& other) noexcept = default;
EventSource::~EventSource() = default;

CancelSafeTask<Result<std::optional<ReceivedEvent>>> EventSource::next() {
  return cancel_safe(source_->next());
}
const std::string& EventSource::last_event_id() const noexcept { return source_->last_event_id(); }
std::optional<Status> EventSource::status() const noexcept { return source_->status(); }
std::uint64_t EventSource::connections() const noexcept { return source_->connections(); }

}  // namespace tambour::http
