// Response: the one place that checks which calls are valid.
#include <tambour/http/response.h>

#include <utility>

#include <tambour/http/body.h>

#include "http/body/checked.h"
#include "http/exchange/exchange.h"
#include "http_message/failure.h"

namespace tambour::http {

TimePoint Response::begun_at() const noexcept {
  return checked(exchange_, "Response::begun_at()").begun_at();
}

bool Response::has_failed() const noexcept {
  return checked(exchange_, "Response::has_failed()").is_broken();
}

void Response::abort() noexcept { checked(exchange_, "Response::abort()").cut_response(); }

template <class Send>
[[gnu::always_inline]] inline Result<> Response::send_whole(std::size_t size, Send send) {
  const detail::Exchange& exchange = checked(exchange_, "Response::send()");
  exchange.check_thread();
  if (state_ != State::none) return failure(ErrorCode::response_begun);
  if (class_of(head_.status) == 1) return failure(ErrorCode::interim_status);
  BodyPlan plan{.kind = BodyPlan::Kind::known, .length = size};
  if (exchange.is_bodiless(head_.status)) {
    if (size > 0) return failure(ErrorCode::response_too_long);
    plan.kind = BodyPlan::Kind::none;
  } else if (size == 0 && exchange.is_head()) {
    // A handler of HEAD need not make the body. Its size is then unknown unless it is stated.
    if (!length_) plan.kind = BodyPlan::Kind::none;
    plan.length = length_.value_or(0);
  }
  const Result<> sent = send(plan);
  if (sent) state_ = State::ended;
  return sent;
}

Result<> Response::send(Buffer body) {
  return send_whole(
      body.size(), [&](const BodyPlan& plan) { return sink_->send(head_, plan, std::move(body)); });
}

Result<> Response::send(std::string_view body) {
  if (body.size() > detail::ResponseSink::text_bytes_max) return send(Buffer(body));
  return send_whole(body.size(),
                    [&](const BodyPlan& plan) { return sink_->send_text(head_, plan, body); });
}

Result<> Response::send_error(Status status, std::string_view detail) {
  detail::Exchange& exchange = checked(exchange_, "Response::send_error()");
  exchange.check_thread();
  return exchange.send_error(status, detail);
}

Task<Result<>> Response::send_interim(Status status, Fields fields) {
  static_cast<void>(checked(exchange_, "Response::send_interim()"));
  return send_interim_checked(status, std::move(fields));
}

Task<Result<>> Response::send_interim_checked(Status status, Fields fields) {
  detail::Exchange& exchange = checked(exchange_, "Response::send_interim()");
  if (state_ != State::none) co_return failure(ErrorCode::response_begun);
  if (class_of(status) != 1 || code_of(status) < code_of(Status::processing))
    co_return failure(ErrorCode::bad_status);
  co_return co_await exchange.send_interim(status, std::move(fields));
}

void Response::drop_handler_fields() {
  if (has_begun() || head_.fields.size() <= fields_kept_) return;
  Fields kept;
  for (std::size_t i = 0; i < fields_kept_; ++i)
    static_cast<void>(kept.add(head_.fields[i].name, head_.fields[i].value));
  head_.fields = std::move(kept);
}

/// The head of a response whose body follows in pieces.
Result<> Response::begin() {
  if (class_of(head_.status) == 1) return failure(ErrorCode::interim_status);
  BodyPlan plan{.kind = BodyPlan::Kind::unknown};
  bytes_left_ = length_;
  if (exchange_->is_bodiless(head_.status)) {
    plan.kind = BodyPlan::Kind::none;
    bytes_left_ = 0;
  } else if (length_) {
    plan = {.kind = BodyPlan::Kind::known, .length = *length_};
  }
  const Result<> begun = sink_->begin(head_, plan);
  if (begun) state_ = State::begun;
  return begun;
}

/// Before `bytes` more of the body.
Result<> Response::prepare(std::uint64_t bytes) {
  if (state_ == State::ended) return failure(ErrorCode::response_ended);
  if (state_ == State::none) {
    if (auto begun = begin(); !begun) return begun;
  }
  if (!bytes_left_) return {};
  if (bytes > *bytes_left_) return failure(ErrorCode::response_too_long);
  *bytes_left_ -= bytes;
  return {};
}

Task<Result<>> Response::write(Buffer piece) {
  static_cast<void>(checked(exchange_, "Response::write()"));
  return write_checked(std::move(piece));
}

Task<Result<>> Response::write_checked(Buffer piece) {
  static_cast<void>(checked(exchange_, "Response::write()"));
  if (auto prepared = prepare(piece.size()); !prepared) co_return prepared;
  co_return co_await sink_->write(std::move(piece));
}

Task<Result<>> Response::write(std::string_view piece) {
  static_cast<void>(checked(exchange_, "Response::write()"));
  return write_checked(Buffer(piece));
}

/// Abandons a response of which a part was not sent.
class Response::AbandonUnlessComplete {
 public:
  explicit AbandonUnlessComplete(Response& response) noexcept : response_(&response) {}
  AbandonUnlessComplete(const AbandonUnlessComplete&) = delete;
  AbandonUnlessComplete& operator=(const AbandonUnlessComplete&) = delete;
  ~AbandonUnlessComplete() {
    if (response_ != nullptr && response_->exchange_ != nullptr) response_->exchange_->abandon();
  }

  void complete() noexcept { response_ = nullptr; }

 private:
  Response* response_;
};

Task<Result<>> Response::write_file(const File& file, std::uint64_t offset, std::uint64_t size) {
  static_cast<void>(checked(exchange_, "Response::write_file()"));
  if (auto prepared = prepare(size); !prepared) co_return prepared;
  // If a part is missing, the client must not take the rest for the whole, not even if the handler
  // ignores the error or was destroyed.
  AbandonUnlessComplete guard(*this);
  const Result<> written = co_await sink_->write_file(file, offset, size);
  if (written) guard.complete();
  co_return written;
}

Result<> Response::end(const Fields& trailers) {
  const detail::Exchange& exchange = checked(exchange_, "Response::end()");
  exchange.check_thread();
  if (state_ == State::ended) return failure(ErrorCode::response_ended);
  if (exchange.is_broken()) return failure(ErrorCode::response_too_short);
  if (state_ == State::none) {
    if (auto begun = begin(); !begun) return begun;
  }
  if (bytes_left_.value_or(0) > 0 && !exchange.is_head())
    return failure(ErrorCode::response_too_short);
  const Result<> ended = sink_->end(trailers);
  if (ended) state_ = State::ended;
  return ended;
}

Task<Result<>> Response::flush() {
  static_cast<void>(checked(exchange_, "Response::flush()"));
  return sink_->flush();
}

Task<Result<ByteStream>> Response::upgrade() {
  return checked(exchange_, "Response::upgrade()").upgrade();
}

Task<Result<>> Response::forward(IncomingBody& body) {
  const detail::Exchange& exchange = checked(exchange_, "Response::forward()");
  // The response to HEAD has no body, which says nothing about the length of that to GET.
  if (exchange.is_head() && !has_begun() && body.is_complete()) co_return send(Buffer());
  if (!has_begun() && body.length()) set_length(*body.length());
  // A body without a length may arrive slowly, as events do: its head does not wait for it.
  if (!body.length() && !body.is_complete()) {
    const Result<> begun = co_await write(Buffer());
    if (!begun) co_return begun;
  }
  while (!body.is_complete()) {
    auto piece = co_await body.read();
    if (!piece) {
      // The client must not treat a truncated response as complete.
      checked(exchange_, "Response::forward()").cut_response();
      co_return std::unexpected(piece.error());
    }
    const Result<> written = co_await write(std::move(*piece));
    if (!written) co_return written;
  }
  co_return end(body.trailers());
}

}  // namespace tambour::http
