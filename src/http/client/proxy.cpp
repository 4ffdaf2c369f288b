#include "http/client/proxy.h"

#include <algorithm>
#include <utility>

#include <tambour/http_url.h>
#include <tambour/stream_error.h>

#include "http/client/pool.h"
#include "http/client/redirect.h"
#include "http/client/socks5.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/h1/parser.h"
#include "http_message/h1/writer.h"
#include "task/time_limit.h"

namespace tambour::http::client {
namespace {

constexpr std::uint16_t http_port = 8080;
constexpr std::uint16_t socks_port = 1080;
constexpr int interim_answers_max = 8;

std::string authority_of_origin(const Origin& origin) {
  const bool is_ipv6 = origin.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + origin.host + "]" : origin.host) + ":" + std::to_string(origin.port);
}

/// Asks for a tunnel: RFC 9110, section 9.3.6.
Task<Result<>> open_http_tunnel(SocketStream& stream, const ProxyServer& proxy,
                                const Origin& origin, const MessageLimits& limits) {
  RequestHead head{.method = Method::connect, .form = TargetForm::authority};
  head.target = head.authority = authority_of_origin(origin);
  if (!proxy.authorization.empty())
    static_cast<void>(head.fields.set("Proxy-Authorization", proxy.authorization));
  Buffer output;
  if (auto written = h1::append_head(output, head, {}); !written) co_return written;
  auto sent = co_await stream.write(output);
  if (!sent) co_return sent;
  h1::ResponseParser parser(limits);
  Buffer input;
  for (int interim = 0;;) {
    const auto parsed = parser.parse_head(input, head.method);
    if (!parsed) co_return std::unexpected(parsed.error());
    if (!*parsed) {
      const auto got = co_await stream.read(input);
      if (!got) co_return std::unexpected(got.error());
      if (*got == 0) co_return failure(HttpError::proxy_bad_answer);
      continue;
    }
    const Status status = parser.head().status;
    if (is_interim(status) && ++interim <= interim_answers_max) {
      parser.restart();
      continue;
    }
    if (status == Status::proxy_authentication_required)
      co_return failure(HttpError::proxy_authentication_required);
    if (!is_success(status)) co_return failure(HttpError::proxy_refused);
    // The origin must not send anything before the client does.
    if (!input.empty()) co_return failure(HttpError::proxy_bad_answer);
    co_return {};
  }
}

Task<Result<SocketStream>> connect_and_ask(ProxyServer proxy, Origin origin, ConnectOptions options,
                                           MessageLimits limits) {
  auto stream = co_await connect(proxy.host, proxy.port, options);
  if (!stream) co_return stream;
  Result<> opened;
  if (proxy.kind == ProxyServer::Kind::socks5) {
    opened = co_await open_socks5(*stream, proxy.credentials, origin.host, origin.port);
  } else {
    opened = co_await open_http_tunnel(*stream, proxy, origin, limits);
  }
  if (!opened) co_return std::unexpected(opened.error());
  co_return stream;
}

}  // namespace

Result<ProxyServer> parse_proxy(std::string_view text) {
  const auto url = Url::parse(text);
  if (!url || url->host().empty() || url->query() || url->fragment())
    return failure(HttpError::bad_proxy);
  if (!url->path().empty() && url->path() != "/") return failure(HttpError::bad_proxy);
  ProxyServer proxy;
  if (equal_ignoring_case(url->scheme(), "socks5") || equal_ignoring_case(url->scheme(), "socks5h"))
    proxy.kind = ProxyServer::Kind::socks5;
  else if (!equal_ignoring_case(url->scheme(), "http"))
    return failure(HttpError::bad_proxy);
  const bool is_http = proxy.kind == ProxyServer::Kind::http;
  proxy.host.assign(url->host());
  proxy.port = url->port().value_or(is_http ? http_port : socks_port);
  if (proxy.port == 0) return failure(HttpError::bad_proxy);
  if (const auto userinfo = url->userinfo()) {
    auto credentials = parse_userinfo(*userinfo);
    if (!credentials) return std::unexpected(credentials.error());
    auto authorization = format_basic_credentials(*credentials);
    if (!authorization) return failure(HttpError::bad_proxy);
    // RFC 1929 has a byte for each length.
    if (!is_http && (credentials->user.empty() || credentials->user.size() > 255 ||
                     credentials->password.size() > 255))
      return failure(HttpError::bad_proxy);
    if (is_http) proxy.authorization = std::move(*authorization);
    proxy.credentials = std::move(*credentials);
  }
  return proxy;
}

Task<Result<SocketStream>> connect_through(ProxyServer proxy, Origin origin, ConnectOptions options,
                                           MessageLimits limits) {
  const Duration limit = options.timeout;
  return task::within(limit, connect_and_ask(std::move(proxy), std::move(origin), options, limits));
}

}  // namespace tambour::http::client
