// Where a Response puts its parts, and filters in front of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/file/file.h>
#include <tambour/http/message.h>
#include <tambour/http/response.h>
#include <tambour/task/task.h>

#include "http/exchange/wire.h"

namespace tambour::http::detail {

/// Gets the parts of one response, in their order. The Response has checked that the calls are
/// valid: that it has not ended, and that the body has the length that was stated.
class ResponseSink {
 public:
  /// Copying a text of this size takes less than linking its block.
  static constexpr std::size_t text_bytes_max = 1024;

  ResponseSink(const ResponseSink&) = delete;
  ResponseSink& operator=(const ResponseSink&) = delete;

  /// Fails with http::ErrorCode::bad_status or bad_reason; the response may then begin again. A
  /// filter may change the head.
  [[nodiscard]] virtual Result<> begin(ResponseHead& head, BodyPlan plan) = 0;
  /// A whole response.
  [[nodiscard]] virtual Result<> send(ResponseHead& head, BodyPlan plan, Buffer&& body) = 0;
  /// The same with a body of at most text_bytes_max bytes, which is copied.
  [[nodiscard]] virtual Result<> send_text(ResponseHead& head, BodyPlan plan,
                                           std::string_view body) {
    return send(head, plan, Buffer(body));
  }
  [[nodiscard]] virtual Task<Result<>> write(Buffer&& piece) = 0;
  [[nodiscard]] virtual Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                                  std::uint64_t size) = 0;
  [[nodiscard]] virtual Result<> end(const Fields& trailers) = 0;
  [[nodiscard]] virtual Task<Result<>> flush() = 0;

 protected:
  ResponseSink() = default;
  ~ResponseSink() = default;
};

/// A sink in front of the one that `response` has, from construction to destruction. Filters are
/// destroyed in the opposite order.
class ResponseFilter : public ResponseSink {
 protected:
  explicit ResponseFilter(Response& response) noexcept
      : response_(response), next_(*response.sink_) {
    response.sink_ = this;
  }
  ~ResponseFilter() { response_.sink_ = &next_; }

  [[nodiscard]] Response& response() const noexcept { return response_; }
  [[nodiscard]] ResponseSink& next() const noexcept { return next_; }

 private:
  Response& response_;
  ResponseSink& next_;
};

}  // namespace tambour::http::detail
