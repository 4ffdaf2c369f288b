// Access records and their formats.
#include <tambour/http/access_log.h>

#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/net/socket_stream.h>

#include "http_message/date.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

void append_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      to.append(1, '\\').append(1, c);
    } else if (byte >= 0x20 && byte < 0x7F) {
      to += c;
    } else {
      constexpr std::string_view digits = "0123456789abcdef";
      to.append("\\x").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
    }
  }
}

void append_quoted(std::string& to, std::string_view text) {
  to += " \"";
  append_escaped(to, text.empty() ? "-" : text);
  to += '"';
}

std::string_view name_of(Version version) noexcept {
  switch (version) {
    case Version::http_1_0:
      return "HTTP/1.0";
    case Version::http_1_1:
      return "HTTP/1.1";
    case Version::http_2:
      return "HTTP/2.0";
  }
  return "HTTP/1.1";
}

}  // namespace

AccessRecord access_record(const Request& request, const Response& response) {
  const RequestHead& head = request.head();
  AccessRecord record;
  if (const auto peer = request.connection().peer_endpoint()) record.peer = *peer;
  if (const auto client = request.client_address()) record.client = *client;
  if (!head.target.empty()) record.method = head.method.name();
  record.target = head.target;
  record.version = head.version;
  record.host = head.authority;
  record.referer = head.fields.get("Referer").value_or("");
  record.user_agent = head.fields.get("User-Agent").value_or("");
  record.status = response.status();
  if (head.method != Method::head) record.body_bytes = response.body_bytes();
  record.failed = response.has_failed();
  EventLoop& loop = request.connection().loop();
  // Not loop.now(), which is the time before the handler has computed.
  const TimePoint now(Duration(detail::loop::core_of(loop).clock_ns()));
  record.time_total = now - request.received_at();
  record.time_to_head = record.time_total;
  if (response.has_begun()) record.time_to_head = response.begun_at() - request.received_at();
  const std::chrono::nanoseconds wall(detail::loop::core_of(loop).wall_ns());
  record.received_at = WallTime(wall - record.time_total);
  return record;
}

std::function<void(const Request&, const Response&)> access_log(
    std::function<void(const AccessRecord&)> write) {
  return [write = std::move(write)](const Request& request, const Response& response) {
    write(access_record(request, response));
  };
}

std::string format_common(const AccessRecord& record) {
  std::string line;
  std::string client = "-";
  if (record.client) {
    client = record.client->to_string();
  } else if (record.peer && record.peer->is_ip()) {
    client = record.peer->address();
  }
  append_escaped(line, client);
  line += " - - [";
  append_time(line, std::chrono::floor<std::chrono::seconds>(record.received_at),
              "%d/%b/%Y:%T +0000");
  line += ']';
  std::string request;
  if (!record.method.empty()) {
    request.append(record.method).append(" ").append(record.target);
    request.append(" ").append(name_of(record.version));
  }
  append_quoted(line, request);
  line.append(" ").append(std::to_string(code_of(record.status)));
  line.append(" ").append(record.body_bytes > 0 ? std::to_string(record.body_bytes) : "-");
  return line;
}

std::string format_combined(const AccessRecord& record) {
  std::string line = format_common(record);
  append_quoted(line, record.referer);
  append_quoted(line, record.user_agent);
  return line;
}

}  // namespace tambour::http
