// What the inspector of unmodified programs sees of evhttp: see common/observation.h.

#include <algorithm>
#include <cstring>
#include <string_view>

#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>

#include <tambour/http/method.h>

#include "common/observation.h"
#include "libevent/http/connection.h"

namespace {

using tambour::compat::ObservedHttp;
using tambour::libevent::HttpState;

template <std::size_t size>
void copy(std::string_view text, char (&to)[size]) noexcept {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

const char* name_of(HttpState state) noexcept {
  switch (state) {
    case HttpState::disconnected:
      return "disconnected";
    case HttpState::connecting:
      return "connecting";
    case HttpState::idle:
      return "idle";
    case HttpState::reading_head:
      return "reading head";
    case HttpState::reading_body:
      return "reading body";
    case HttpState::reading_trailers:
      return "reading trailers";
    case HttpState::writing:
      return "writing";
  }
  return "";
}

}  // namespace

extern "C" bool tambour_describe_evhttp_1(void* bufferevent_of_connection,
                                          ObservedHttp& http) noexcept {
  const auto& bev = *static_cast<const bufferevent*>(bufferevent_of_connection);
  if (bev.readcb != &evhttp_connection::on_read && bev.errorcb != &evhttp_connection::on_event)
    return false;
  const auto& connection = *static_cast<const evhttp_connection*>(bev.cbarg);
  copy(connection.address != nullptr ? connection.address : "", http.peer);
  http.port = connection.port;
  http.is_server = connection.has(tambour::libevent::connection_flags::incoming);
  http.state = name_of(connection.state);
  const evhttp_request* const request = connection.current();
  // A server has a request before its head has arrived.
  const bool has_method = request != nullptr && connection.state != HttpState::reading_head;
  const auto* const method = has_method ? tambour::libevent::method_of(*request) : nullptr;
  copy(method != nullptr ? method->name() : std::string_view(), http.method);
  return true;
}
