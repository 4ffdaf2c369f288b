// One request and its response, on a connection of any version of HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

#include <tambour/buffer.h>
#include <tambour/clock.h>
#include <tambour/http_message.h>
#include <tambour/http_request.h>
#include <tambour/http_response.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>

namespace tambour::http {

/// What a Response asks: of its connection, or of a middleware that changes the response.
class Responder {
 public:
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // The functions of Response with the same names.
  virtual Result<> send(Buffer body) = 0;
  [[nodiscard]] virtual Task<Result<>> write(Buffer piece) = 0;
  [[nodiscard]] virtual Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                                  std::uint64_t size) = 0;
  virtual Result<> end(const Fields& trailers) = 0;
  [[nodiscard]] virtual Task<Result<>> flush() = 0;
  [[nodiscard]] virtual Task<Result<ByteStream>> upgrade() = 0;
  [[nodiscard]] virtual TimePoint begun_at() const noexcept = 0;
  /// True if the response cannot be completed, or sent.
  [[nodiscard]] virtual bool is_broken() const noexcept = 0;

 protected:
  using ResponseState = Response::State;

  Responder() = default;
  ~Responder() = default;

  /// Prepares `response` for the next request, which `responder` answers.
  static void restart(Response& response, Responder& responder) noexcept {
    response.responder_ = &responder;
    response.head_.status = Status::ok;
    response.head_.reason.clear();
    response.head_.fields.clear();
    response.length_.reset();
    response.body_bytes_ = 0;
    response.state_ = ResponseState::none;
  }
  /// Ends the use of `response` by the program. It keeps what it has until restart().
  static void end_use(Response& response, Responder& ended) noexcept {
    response.responder_ = &ended;
  }
  static void set_state(Response& response, ResponseState state) noexcept {
    response.state_ = state;
  }
  static void add_body_bytes(Response& response, std::uint64_t bytes) noexcept {
    response.body_bytes_ += bytes;
  }
};

/// What Request and Response ask of their connection.
class Exchange : public Responder {
 public:
  [[nodiscard]] virtual RequestHead& request_head() noexcept = 0;
  [[nodiscard]] virtual const SocketStream& stream() const noexcept = 0;
  [[nodiscard]] virtual TimePoint received_at() const noexcept = 0;
  [[nodiscard]] virtual std::stop_token disconnect_token() = 0;
  [[nodiscard]] virtual const std::stop_token& shutdown_token() const noexcept = 0;

  [[nodiscard]] virtual std::optional<std::uint64_t> body_length() const noexcept = 0;
  [[nodiscard]] virtual bool body_ended() const noexcept = 0;
  [[nodiscard]] virtual const Fields& trailers() const noexcept = 0;
  virtual void set_body_bytes_max(std::uint64_t bytes_max) noexcept = 0;
  [[nodiscard]] virtual Task<Result<Buffer>> read_body(std::size_t bytes_max) = 0;
  /// Records that the body cannot be used; returns `error`.
  virtual std::unexpected<Error> fail_body(const Error& error) noexcept = 0;

 protected:
  using Responder::end_use;
  using Responder::restart;

  Exchange() = default;
  ~Exchange() = default;

  /// Prepares `request` for the next one of `exchange`.
  static void restart(Request& request, Exchange& exchange) noexcept {
    request.exchange_ = request.body_.exchange_ = &exchange;
    request.parameters_.clear();
  }
  /// Frees the memory of its decoder.
  static void end_use(Request& request, Exchange& ended) noexcept {
    request.exchange_ = request.body_.exchange_ = &ended;
    request.body_.stop_decoding();
  }
};

/// The exchange of a Request or a Response whose handler has ended: each use by a program that has
/// kept a reference aborts with a message.
[[nodiscard]] Exchange& ended_exchange() noexcept;

}  // namespace tambour::http
