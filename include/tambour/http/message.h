// The heads of HTTP messages, and the limits of received ones.
//
// A message consists of a head, a body and trailers. The model is that of RFC 9110, section 6,
// which HTTP/1.1 and HTTP/2 share: handlers do not depend on the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>
#include <tambour/http/fields.h>
#include <tambour/http/method.h>
#include <tambour/http/status.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The version of a message.
enum class Version : std::uint8_t {
  http_1_0 = 10,
  http_1_1 = 11,  ///< Also later minor versions, which are compatible (RFC 9110, section 2.5).
  http_2 = 20,
};

/// The forms of a request target: RFC 9112, section 3.2.
enum class TargetForm : std::uint8_t {
  origin,     ///< "/path?query".
  absolute,   ///< "http://example.org/path?query", as sent to proxies; servers accept it too.
  authority,  ///< "example.org:443", only for CONNECT.
  asterisk,   ///< "*", only for OPTIONS: the server as a whole.
};

/// The head of a request. `target` and `authority` do not depend on the form of the target.
struct RequestHead {
  Method method{};
  /// Path and query, percent-encoded, beginning with "/"; "*" for a request about the server as a
  /// whole; the same as `authority` for CONNECT.
  std::string target = "/";
  /// The host and the optional port to which the request is directed: from an absolute target, or
  /// the Host field. May be empty.
  std::string authority{};
  /// "http" or "https"; received over HTTP/1: empty unless the target was absolute.
  std::string scheme{};
  /// The protocol of an extended CONNECT (RFC 8441), for example "websocket"; empty for any other
  /// request. Only HTTP/2 has it.
  std::string protocol{};
  TargetForm form = TargetForm::origin;
  Version version = Version::http_1_1;
  Fields fields{};

  /// The target without its query.
  [[nodiscard]] std::string_view path() const noexcept {
    return std::string_view(target).substr(0, target.find('?'));
  }
  /// Without "?". A percent sign in it need not be followed by two digits.
  [[nodiscard]] std::optional<std::string_view> query() const noexcept {
    const std::size_t at = target.find('?');
    if (at == std::string::npos) return std::nullopt;
    return std::string_view(target).substr(at + 1);
  }
};

/// The head of a response.
struct ResponseHead {
  Status status = Status::ok;
  std::string reason{};  ///< Has no meaning. Empty when sent: reason_phrase(status).
  Version version = Version::http_1_1;
  Fields fields{};
};

/// Limits of messages of HTTP/1 that other versions do not need.
struct Http1Limits {
  /// Of the request line or status line, without its line end.
  std::size_t start_line_bytes_max = std::size_t{8} * 1024;
  /// Of the extensions of all chunks of a body: they are discarded, and so only cost time.
  std::size_t chunk_extension_bytes_max = std::size_t{4} * 1024;
};

/// Limits of a received message of any version. Exceeding one rejects the message; docs/limits.md
/// lists the answers of a server.
struct MessageLimits {
  std::size_t fields_max = 100;
  /// Of all lines with fields, without their line ends.
  std::size_t fields_bytes_max = std::size_t{32} * 1024;
  std::size_t trailers_max = 32;
  std::size_t trailers_bytes_max = std::size_t{8} * 1024;
  std::uint64_t body_bytes_max = std::uint64_t{64} * 1024 * 1024;
  Http1Limits http_1{};
};

/// The status with which a server answers a message that it rejects with `error`: 400, 408 for
/// ETIMEDOUT, 413, 414, 415, 431, 501 or 505 for errors of received messages; 500 for any other
/// error.
[[nodiscard]] Status status_for(const Error& error) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
