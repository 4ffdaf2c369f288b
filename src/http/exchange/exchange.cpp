// Exchange: the handler of a request, the errors that a server answers, and the end of a response.
#include "http/exchange/exchange.h"

#include <cstddef>
#include <new>
#include <string>
#include <utility>

#include "base/probe.h"
#include "http/exchange/prefetch.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"
#include "loop/core.h"
#include "server/error_reporting.h"
#include "task/scope_access.h"

namespace tambour::http {
namespace {

/// The number of Handled that an exchange sets aside.
constexpr std::size_t left_max = 16;

/// Fields that describe another body than that of an error.
constexpr const char* fields_of_bodies[] = {
    "Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition",
    "ETag",         "Last-Modified"};
/// The size of a read of a body that is discarded.
constexpr std::size_t discarded_piece_bytes = std::size_t{64} * 1024;

}  // namespace

detail::Exchange::Exchange(Wire& wire, EventLoop& loop,
                           std::shared_ptr<const ServerSettings> settings, std::stop_token shutdown,
                           std::stop_token stop)
    : wire_(wire),
      loop_(loop),
      settings_(std::move(settings)),
      shutdown_(std::move(shutdown)),
      handlers_(loop_, std::move(stop)) {
  handlers_.set_exception_handler([this](std::exception_ptr thrown) {
    if (thrown_ == nullptr) thrown_ = std::move(thrown);
  });
}

/// Durations are measured exactly if the program logs them.
void detail::Exchange::update_now() noexcept {
  if (options().on_response) loop_.update_now();
}

void detail::Exchange::prefetch_handled() const noexcept {
  prefetch(handled_.get(), sizeof(Handled));
  FieldWriter::prefetch(response().head_.fields);
}

void detail::Exchange::start(RequestHead& head) noexcept {
  update_now();
  received_at_ = loop_.now();
  head_ = &head;
  method_ = head.method;
  restart_response();
  Request& next = request();
  next.exchange_ = this;
  BodyAccess::attach(next.body_, *this);
  next.parameters_.clear();
  next.route_ = {};
  next.client_address_.reset();
  is_cut_ = false;
  body_error_ = {};
  body_bytes_ = 0;
  rejection_.reset();
  body_budget_.reset();
  expects_continue_ = false;
}

TimePoint detail::Exchange::body_deadline(std::int64_t now_ns) const noexcept {
  const std::int64_t limit_ns = options().body_timeout.count();
  if (limit_ns <= 0) return never;
  detail::net::RateBudget budget = body_budget_;
  budget.resume(now_ns);
  return TimePoint(Duration(budget.deadline_ns(limit_ns)));
}

void detail::Exchange::use_body_time(std::int64_t begin_ns, std::size_t bytes) noexcept {
  // The time of the iteration may be before the beginning of the wait.
  const std::int64_t now_ns = std::max(detail::loop::core_of(loop_).now_ns(), begin_ns);
  body_budget_.resume(begin_ns);
  body_budget_.earn(bytes, options().body_rate_min, now_ns);
  body_budget_.suspend(now_ns);
}

[[gnu::always_inline]] inline void detail::Exchange::restart_response() noexcept {
  Response& next = response();
  next.exchange_ = this;
  next.sink_ = this;
  next.head_.status = Status::ok;
  next.head_.reason.clear();
  FieldWriter::release(next.head_.fields);
  next.fields_kept_ = 0;
  next.length_.reset();
  next.body_bytes_ = 0;
  next.state_ = Response::State::none;
  has_ended_ = false;
}

void detail::Exchange::start_handler() {
  const RequestHead& head = *head_;
  TAMBOUR_PROBE2(request_begin, this, head.target.c_str());
  // RFC 9110, section 10.1.1: a request without a body has nothing to ask for.
  if (head.version != Version::http_1_0 && !wire_.is_body_complete()) {
    if (const auto expect = head.fields.get("Expect")) {
      if (!equal_ignoring_case(*expect, "100-continue")) {
        is_last_ = true;
        return answer_error(Status::expectation_failed, "only 100-continue is supported");
      }
      expects_continue_ = true;
    }
  }
  try {
    Task<> task = settings_->handler.start(request(), response());
    if (task)
      detail::task::ScopeAccess::start(handlers_, std::move(task), settings_->handler.created_at());
  } catch (...) {
    thrown_ = std::current_exception();
  }
}

void detail::Exchange::finish(bool has_failed) {
  disconnected_.reset();
  const bool is_left = !response().has_ended();
  complete_response(has_failed);
  TAMBOUR_PROBE2(request_end, this, code_of(response().status()));
  report_response();
  report_exception();
  end_use(is_left);
}

[[gnu::always_inline]] inline void detail::Exchange::complete_response(bool has_failed) {
  // What follows would make a truncated message look complete.
  if (has_failed || is_broken_) {
    is_broken_ = true;
  } else if (thrown_ != nullptr) {
    is_last_ = true;
    lingers_ = true;
    if (!response().has_begun()) return answer_error(Status::internal_server_error, {});
  } else if (!response().has_ended() && !is_tunnel_ && handlers_.stop_requested()) {
    // The handler has not decided what to send: its waits have failed.
    is_last_ = true;
    if (!response().has_begun()) return answer_error(Status::service_unavailable, {});
  } else if (!response().has_begun()) {
    if (body_error_) return answer_error(status_for(body_error_), body_error_.message());
    if (rejection_ != nullptr) return answer_error(rejection_->status, rejection_->detail);
    if (is_cut_) return answer_error(Status::bad_gateway, {});
    if (!response().send(Buffer()))
      return answer_error(Status::internal_server_error, "invalid response");
  } else if (!response().has_ended()) {
    static_cast<void>(response().end());
  }
  is_broken_ = is_broken_ || !has_ended_;
}

/// Keeps a handler that has ended from answering the next request. A handler that leaves its
/// response to another task ends before the response: its objects are set aside, so that the next
/// request has others. They are used again after `left_max` others.
[[gnu::always_inline]] inline void detail::Exchange::end_use(bool is_left) noexcept {
  request().exchange_ = nullptr;
  BodyAccess::detach(request().body_);
  response().exchange_ = nullptr;
  if (!is_left || is_last_) return;
  try {
    if (left_.size() < left_max) left_.push_back(std::make_unique<Handled>());
  } catch (const std::bad_alloc&) {
    if (left_.empty()) return;
  }
  response().head() = ResponseHead();
  if (next_left_ == left_.size()) next_left_ = 0;
  std::swap(handled_, left_[next_left_++]);
}

void detail::Exchange::reject(RequestHead& head, const Error& error) {
  start(head);
  method_ = Method::get;
  is_last_ = true;
  lingers_ = true;
  answer_error(status_for(error), error.message());
  report_response();
  report_exception();
}

/// Sends the response to an error that the handler has not answered.
void detail::Exchange::answer_error(Status status, std::string_view detail) {
  is_last_ = is_last_ || body_error_;
  response().sink_ = this;
  try {
    response().drop_handler_fields();
    if (send_error(status, detail)) return;
  } catch (...) {  // NOLINT(bugprone-empty-catch): see below.
  }
  // A renderer has thrown, or a field of the program is invalid.
  if (!response().has_begun()) {
    restart_response();
    response().set_status(status);
    render_plain(request(), response(), {.status = status});
  }
  is_broken_ = is_broken_ || !response().has_ended();
}

Result<> detail::Exchange::send_error(Status status, std::string_view detail) {
  if (response().has_begun()) return failure(ErrorCode::response_begun);
  if (class_of(status) < 4 || code_of(status) > 999) return failure(ErrorCode::bad_status);
  const std::string text(detail);  // It may be a view into a field that is removed.
  for (const char* const name : fields_of_bodies) response().headers().remove(name);
  response().head().reason.clear();
  response().length_.reset();
  response().set_status(status);
  const ErrorDescription error{.status = status, .detail = text};
  if (options().error_renderer) options().error_renderer(request(), response(), error);
  if (!response().has_begun()) render_plain(request(), response(), error);
  return response().has_begun() ? Result<>() : failure(ErrorCode::bad_reason);
}

Task<Result<>> detail::Exchange::send_interim(Status status, Fields&& fields) {
  const ResponseHead head{.status = status, .fields = std::move(fields)};
  Appending appending(is_broken_);
  const Result<> begun = wire_.begin_interim(head);
  appending.complete();
  if (!begun) co_return begun;
  co_return co_await wire_.flush();
}

std::unexpected<Error> detail::Exchange::reject_request(const Error& error, std::string detail) {
  if (rejection_ == nullptr)
    rejection_ = std::make_unique<Rejection>(Rejection{status_for(error), std::move(detail)});
  return std::unexpected(error);
}

void detail::Exchange::report_response() noexcept {
  if (!options().on_response) return;
  try {
    options().on_response(request(), response());
  } catch (...) {
    is_last_ = true;
    if (thrown_ == nullptr) thrown_ = std::current_exception();
  }
}

/// Reports the exception soon, and not when the connection has ended, which may take the time of
/// lingering. From the loop, because on_error may destroy the server, and with it this exchange. If
/// the connection ends first, its task throws the exception.
void detail::Exchange::report_exception() noexcept {
  if (thrown_ == nullptr) return;
  if (options().on_exception) {
    try {
      options().on_exception(request(), thrown_);
      settings_->reporter->add_to_count();
      thrown_ = nullptr;
      return;
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  try {
    self_ = std::make_shared<detail::Exchange*>(this);
    loop_.post([weak = std::weak_ptr<detail::Exchange*>(self_)] {
      if (const auto self = weak.lock()) (*self)->pass_exception_on();
    });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the connection throws it.
  }
}

void detail::Exchange::pass_exception_on() noexcept {
  // on_error may destroy this exchange, and with it the last reference to the settings.
  const std::shared_ptr<const ServerSettings> settings = settings_;
  settings->reporter->report(detail::loop::core_of(loop_), take_exception());
}

std::unexpected<Error> detail::Exchange::fail_body(const Error& error) noexcept {
  if (!body_error_) body_error_ = error;
  is_last_ = true;
  lingers_ = true;
  return std::unexpected(error);
}

Task<bool> detail::Exchange::discard_body() {
  const std::size_t bytes_max = options().discarded_bytes_max;
  bool is_small = wire_.body_bytes_left().value_or(0) <= bytes_max;
  std::size_t total = 0;
  while (is_small && !wire_.is_body_complete()) {
    const Result<Buffer> piece = co_await wire_.read(discarded_piece_bytes);
    total += piece ? piece->size() : 0;
    is_small = piece && total <= bytes_max;
  }
  lingers_ = !is_small;
  co_return is_small;
}

std::stop_token detail::Exchange::disconnect_token() {
  if (!disconnected_) disconnected_.emplace();
  wire_.watch();
  return disconnected_->get_token();
}

void detail::Exchange::disconnected() noexcept {
  if (disconnected_) disconnected_->request_stop();
}

/// Decides whether the connection may be used again.
[[gnu::always_inline]] inline void detail::Exchange::complete_plan(BodyPlan& plan) const noexcept {
  plan.is_sent = !is_head();
  plan.is_last = is_last_ || is_shutting_down() || method_ == Method::connect;
}

[[gnu::always_inline]] inline void detail::Exchange::note_begin() noexcept {
  update_now();
  begun_at_ = loop_.now();
}

/// A whole response was queued.
[[gnu::always_inline]] inline void detail::Exchange::note_end(std::size_t body_bytes) noexcept {
  note_begin();
  count_sent(body_bytes);
  has_ended_ = true;
}

Result<> detail::Exchange::begin(ResponseHead& head, BodyPlan plan) {
  Appending appending(is_broken_);
  complete_plan(plan);
  const Result<> begun = wire_.begin(head, plan);
  if (begun) note_begin();
  appending.complete();
  return begun;
}

Result<> detail::Exchange::send(ResponseHead& head, BodyPlan plan, Buffer&& body) {
  // A head without its body would make the client take the next response for the body.
  Appending appending(is_broken_);
  complete_plan(plan);
  const std::size_t size = body.size();
  const Result<> begun = wire_.send(head, plan, std::move(body));
  if (begun) note_end(size);
  appending.complete();
  return begun;
}

Result<> detail::Exchange::send_text(ResponseHead& head, BodyPlan plan, std::string_view body) {
  Appending appending(is_broken_);
  complete_plan(plan);
  const Result<> begun = wire_.send_text(head, plan, body);
  if (begun) note_end(body.size());
  appending.complete();
  return begun;
}

Task<Result<>> detail::Exchange::write(Buffer&& piece) {
  const std::size_t size = piece.size();
  if (size > 0 && !is_head()) {
    Appending appending(is_broken_);
    wire_.write(std::move(piece));
    appending.complete();
  }
  count_sent(size);
  return wire_.flush();
}

Task<Result<>> detail::Exchange::write_file(const File& file, std::uint64_t offset,
                                            std::uint64_t size) {
  if (!is_head()) return wire_.write_file(file, offset, size);
  count_sent(size);
  return wire_.flush();
}

Result<> detail::Exchange::end(const Fields& trailers) {
  if (!is_head()) {
    Appending appending(is_broken_);
    const Result<> ended = wire_.end(trailers);
    appending.complete();
    if (!ended) return ended;
  }
  has_ended_ = true;
  return {};
}

/// Whether the connection may become a tunnel: RFC 9110, sections 7.8 and 9.3.6.
Result<> detail::Exchange::check_tunnel() const noexcept {
  if (response().has_begun()) return failure(ErrorCode::response_begun);
  if (method_ == Method::connect)
    return is_success(response().status()) ? Result<>() : failure(ErrorCode::bad_status);
  const auto protocol = response().headers().get("Upgrade");
  const bool is_asked_for = head_->version != Version::http_1_0 && protocol &&
                            head_->fields.has_token("Connection", "upgrade") &&
                            head_->fields.has_token("Upgrade", *protocol);
  return is_asked_for ? Result<>() : failure(ErrorCode::not_an_upgrade);
}

Task<> detail::Exchange::start_continuation() {
  if (!continuation_.start) return {};
  std::unique_ptr<DetachedRequest> request;
  if (continuation_.needs_request) request = std::make_unique<DetachedRequest>(*this);
  return continuation_.start(std::move(request));
}

Task<Result<ByteStream>> detail::Exchange::upgrade() {
  if (const auto checked = check_tunnel(); !checked) co_return std::unexpected(checked.error());
  disconnected_.reset();
  wire_.stop_watching();
  if (!wire_.is_body_complete()) {
    const bool is_small = co_await discard_body();
    if (!is_small) co_return fail_body(ErrorCode::body_too_large);
  }
  if (method_ != Method::connect) response().set_status(Status::switching_protocols);
  Appending appending(is_broken_);
  const Result<> begun = wire_.begin(response().head(), {.kind = BodyPlan::Kind::tunnel});
  appending.complete();
  if (!begun) co_return std::unexpected(begun.error());
  update_now();
  begun_at_ = loop_.now();
  response().state_ = Response::State::ended;
  has_ended_ = true;
  is_last_ = true;
  const Result<> flushed = co_await wire_.flush();
  if (!flushed) co_return std::unexpected(flushed.error());
  is_tunnel_ = true;
  co_return wire_.take_stream();
}

}  // namespace tambour::http
