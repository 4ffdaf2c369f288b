// Request and Response, which are views of an exchange.
#include "http/exchange/exchange.h"

#include <algorithm>
#include <utility>

#include <tambour/task_scope.h>

#include "base/check.h"
#include "http/coding/body_decoder.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

constexpr std::size_t piece_bytes_max = std::size_t{256} * 1024;

[[noreturn]] void fail_use(const char* function) noexcept {
  base::fail_check(
      "http::%s was called after the handler of the request had ended; a handler whose response "
      "comes from another task must be a coroutine that waits for this task",
      function);
}

class EndedExchange final : public Exchange {
 public:
  Result<> send(Buffer /*body*/) override { fail_use("Response::send()"); }
  Task<Result<>> write(Buffer /*piece*/) override { fail_use("Response::write()"); }
  Task<Result<>> write_file(const File& /*file*/, std::uint64_t /*offset*/,
                            std::uint64_t /*size*/) override {
    fail_use("Response::write_file()");
  }
  Result<> end(const Fields& /*trailers*/) override { fail_use("Response::end()"); }
  Task<Result<>> flush() override { fail_use("Response::flush()"); }
  Task<Result<ByteStream>> upgrade() override { fail_use("Response::upgrade()"); }
  TimePoint begun_at() const noexcept override { fail_use("Response::begun_at()"); }
  bool is_broken() const noexcept override { fail_use("Response::failed()"); }
  RequestHead& request_head() noexcept override { fail_use("Request::head()"); }
  const SocketStream& stream() const noexcept override { fail_use("Request::stream()"); }
  TimePoint received_at() const noexcept override { fail_use("Request::received_at()"); }
  std::stop_token disconnect_token() override { fail_use("Request::disconnect_token()"); }
  const std::stop_token& shutdown_token() const noexcept override {
    fail_use("Request::shutdown_token()");
  }
  std::optional<std::uint64_t> body_length() const noexcept override {
    fail_use("RequestBody::length()");
  }
  bool body_ended() const noexcept override { fail_use("RequestBody::ended()"); }
  const Fields& trailers() const noexcept override { fail_use("RequestBody::trailers()"); }
  void set_body_bytes_max(std::uint64_t /*bytes_max*/) noexcept override {
    fail_use("RequestBody::set_bytes_max()");
  }
  Task<Result<Buffer>> read_body(std::size_t /*bytes_max*/) override {
    fail_use("RequestBody::read()");
  }
  std::unexpected<Error> fail_body(const Error& /*error*/) noexcept override {
    fail_use("RequestBody::reject()");
  }
};

}  // namespace

Exchange& ended_exchange() noexcept {
  static EndedExchange ended;
  return ended;
}

RequestBody::RequestBody(Exchange& exchange) noexcept : exchange_(&exchange) {}
RequestBody::~RequestBody() = default;

std::optional<std::uint64_t> RequestBody::length() const noexcept {
  return decoder_ == nullptr ? exchange_->body_length() : std::nullopt;
}
bool RequestBody::ended() const noexcept {
  return decoder_ == nullptr ? exchange_->body_ended() : decoder_->has_ended();
}
const Fields& RequestBody::trailers() const noexcept { return exchange_->trailers(); }
void RequestBody::set_bytes_max(std::uint64_t bytes_max) noexcept {
  exchange_->set_body_bytes_max(bytes_max);
}

std::unexpected<Error> RequestBody::reject(const Error& error) noexcept {
  return exchange_->fail_body(error);
}

Task<Result<Buffer>> RequestBody::read(std::size_t bytes_max) {
  bytes_max = std::max<std::size_t>(bytes_max, 1);
  return decoder_ == nullptr ? exchange_->read_body(bytes_max) : read_decoded(bytes_max);
}

Task<Result<Buffer>> RequestBody::read_decoded(std::size_t bytes_max) {
  Buffer piece;
  for (;;) {
    const auto got = decoder_->read(piece, bytes_max);
    if (!got) co_return exchange_->fail_body(got.error());
    if (*got > 0 || decoder_->has_ended()) co_return piece;
    if (exchange_->body_ended()) {
      if (const auto ended = decoder_->end(); !ended) co_return exchange_->fail_body(ended.error());
      co_return piece;
    }
    auto received = co_await exchange_->read_body(piece_bytes_max);
    if (!received) co_return received;
    if (decoder_ == nullptr) fail_use("RequestBody::read()");
    decoder_->append(std::move(*received));
  }
}

void RequestBody::stop_decoding() noexcept { decoder_.reset(); }

Result<> RequestBody::decode(const DecodingLimits& limits) {
  if (decoder_ != nullptr) return {};
  Fields& fields = exchange_->request_head().fields;
  const auto codings = coding::codings_of(fields);
  if (!codings) return exchange_->fail_body(codings.error());
  if (!codings->empty()) {
    decoder_ = std::make_unique<coding::BodyDecoder>(*codings, limits);
    fields.remove("Content-Length");
  }
  fields.remove("Content-Encoding");
  return {};
}

Task<Result<Buffer>> RequestBody::read_all(std::size_t bytes_max) {
  if (length().value_or(0) > bytes_max) co_return exchange_->fail_body(HttpError::body_too_large);
  Buffer all;
  while (!ended()) {
    // One byte more than the limit, to notice that there are more.
    const std::size_t left = std::min(bytes_max - all.size(), piece_bytes_max) + 1;
    Result<Buffer> piece = co_await read(left);
    if (!piece) co_return std::unexpected(piece.error());
    all.append(std::move(*piece));
    if (all.size() > bytes_max) co_return exchange_->fail_body(HttpError::body_too_large);
  }
  co_return all;
}

RequestHead& Request::head() noexcept { return exchange_->request_head(); }
const RequestHead& Request::head() const noexcept { return exchange_->request_head(); }
const SocketStream& Request::stream() const noexcept { return exchange_->stream(); }
TimePoint Request::received_at() const noexcept { return exchange_->received_at(); }

std::stop_token Request::disconnect_token() const { return exchange_->disconnect_token(); }
std::stop_token Request::shutdown_token() const noexcept { return exchange_->shutdown_token(); }

Task<> Request::while_connected(Task<> work) const {
  const TaskContext& context = co_await this_task;
  TaskScope scope(*context.loop, context.stop);
  const std::stop_callback disconnected(exchange_->disconnect_token(),
                                        [&scope] { scope.request_stop(); });
  scope.spawn(std::move(work), context.spawned_at);
  co_await scope.join();
}

std::string_view Request::parameter(std::string_view name) const noexcept {
  for (const auto& [each, value] : parameters_) {
    if (each == name) return value;
  }
  return {};
}

void Request::set_parameter(std::string_view name, std::string value) {
  for (auto& [each, old] : parameters_) {
    if (each == name) {
      old = std::move(value);
      return;
    }
  }
  parameters_.emplace_back(name, std::move(value));
}

TimePoint Response::begun_at() const noexcept { return responder_->begun_at(); }
bool Response::failed() const noexcept { return responder_->is_broken(); }
Result<> Response::send(Buffer body) { return responder_->send(std::move(body)); }
Task<Result<>> Response::write(Buffer piece) { return responder_->write(std::move(piece)); }
Task<Result<>> Response::write(std::string_view piece) { return responder_->write(Buffer(piece)); }
Task<Result<>> Response::write_file(const File& file, std::uint64_t offset, std::uint64_t size) {
  return responder_->write_file(file, offset, size);
}
Result<> Response::end(const Fields& trailers) { return responder_->end(trailers); }
Task<Result<>> Response::flush() { return responder_->flush(); }
Task<Result<ByteStream>> Response::upgrade() { return responder_->upgrade(); }

}  // namespace tambour::http
