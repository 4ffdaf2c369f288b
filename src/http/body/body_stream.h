// Where the bytes of an incoming body come from: an exchange of a server or of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/body.h>
#include <tambour/http/message.h>
#include <tambour/task/task.h>

#include "http/coding/codec.h"

namespace tambour::http::detail {

/// A body with its content codings. The functions are those of IncomingBody without decoding.
class BodyStream {
 public:
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;

  /// The fields of the message. IncomingBody::decode() removes those that describe the codings.
  [[nodiscard]] virtual Fields& body_fields() noexcept = 0;
  [[nodiscard]] virtual std::optional<std::uint64_t> body_length() const noexcept = 0;
  [[nodiscard]] virtual bool is_body_complete() const noexcept = 0;
  [[nodiscard]] virtual const Fields& body_trailers() const noexcept = 0;
  virtual void set_body_bytes_max(std::uint64_t bytes_max) noexcept = 0;
  /// `bytes_max` is at least 1.
  [[nodiscard]] virtual Task<Result<Buffer>> read_body(std::size_t bytes_max) = 0;
  /// The message holds so many bytes more, of decoders for example, until its end.
  virtual void hold_memory(std::size_t /*bytes*/) noexcept {}
  /// Records that the body cannot be used; returns `error`.
  virtual std::unexpected<Error> fail_body(const Error& error) noexcept = 0;

 protected:
  BodyStream() = default;
  ~BodyStream() = default;
};

/// What exchanges do with the bodies that they hand out.
struct BodyAccess {
  [[nodiscard]] static bool is_decoded(const IncomingBody& body) noexcept {
    return body.decoder_ != nullptr;
  }
  static void attach(IncomingBody& body, BodyStream& stream) noexcept { body.stream_ = &stream; }
  /// Ends the use of the body: a later one aborts with a message. Frees the memory of its decoder.
  static void detach(IncomingBody& body) noexcept;
  /// Like IncomingBody::decode(), with codings that are known already.
  static void decode(IncomingBody& body, const std::vector<Coding>& codings,
                     const DecodingLimits& limits, coding::RawDeflate raw);
};

}  // namespace tambour::http::detail
