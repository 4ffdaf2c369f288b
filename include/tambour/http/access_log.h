// Access logs: one record for each response.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/net/endpoint.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// What a log says about a request and its response. Text is as the client has sent it, and may
/// contain any byte but line ends; it is valid only as long as the request.
struct AccessRecord {
  /// The client, or what the PROXY header says; no value if the connection is closed already.
  std::optional<Endpoint> peer{};
  /// Request::client_address(): the peer, or the client behind trusted proxies; no value on a Unix
  /// socket. The formats print it.
  std::optional<IpAddress> client{};
  /// The time at which the head of the request was complete, or the request was rejected.
  WallTime received_at{};
  std::string_view method{};  ///< Empty if the client has sent no valid request line.
  std::string_view target{};
  Version version = Version::http_1_1;
  std::string_view host{};
  std::string_view referer{};
  std::string_view user_agent{};
  Status status = Status::ok;
  /// The size of the body that was sent, without the framing of chunks.
  std::uint64_t body_bytes = 0;
  Duration time_to_head{};  ///< From received_at until the head of the response was made.
  Duration time_total{};    ///< From received_at until the response was complete.
  bool failed = false;      ///< The client has not received the whole response.
};

/// The record of a response that is complete.
[[nodiscard]] AccessRecord access_record(const Request& request, const Response& response);

/// A function for ServerOptions::on_response, which is invoked for each response, also for those to
/// rejected requests, which no middleware sees:
///
///   options.on_response = http::access_log([&log](const http::AccessRecord& record) {
///     log << http::format_combined(record) << '\n';
///   });
///
/// A server on a group of loops invokes `write` on several threads. Writing to a disk blocks the
/// loop: collect the lines, and write them on another thread or with File::append().
[[nodiscard]] std::function<void(const Request&, const Response&)> access_log(
    std::function<void(const AccessRecord&)> write);

/// The line of a record in the Common Log Format of NCSA and Apache, in UTC, without a line end.
/// Quotes, backslashes, control characters and bytes from 0x80 are escaped ("\x0a"), so that no
/// client can forge a line. Throws std::bad_alloc.
[[nodiscard]] std::string format_common(const AccessRecord& record);
/// The line of format_common() with the fields Referer and User-Agent (Combined Log Format).
[[nodiscard]] std::string format_combined(const AccessRecord& record);

}  // namespace tambour::http

#pragma GCC visibility pop
