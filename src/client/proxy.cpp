// URLs of proxies, and tunnels of HTTP.
#include "client/proxy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <tambour/http/url.h>

#include "client/digest_hash.h"
#include "client/socks5.h"
#include "http_message/characters.h"
#include "http_message/h1/parser.h"
#include "http_message/h1/writer.h"

namespace tambour::detail::client {
namespace {

constexpr std::uint16_t http_port = 8080;
constexpr std::uint16_t https_port = 443;
constexpr std::uint16_t socks_port = 1080;
constexpr int interim_answers_max = 8;

std::string authority_of(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

/// Asks for a tunnel: RFC 9110, section 9.3.6.
Task<Result<>> open_http_tunnel(SocketStream& stream, ProxyServer& proxy, std::string authority) {
  http::RequestHead head{.method = http::Method::connect, .form = http::TargetForm::authority};
  head.target = head.authority = std::move(authority);
  if (!proxy.authorization.empty())
    static_cast<void>(head.fields.set("Proxy-Authorization", proxy.authorization));
  Buffer output;
  if (auto written = http::detail::h1::append_head(output, head, {}); !written) co_return written;
  auto sent = co_await stream.write(output);
  if (!sent) co_return sent;
  http::detail::h1::ResponseParser parser(http::MessageLimits{});
  Buffer input;
  for (int interim = 0;;) {
    const auto parsed = parser.parse_head(input, head.method);
    if (!parsed) co_return std::unexpected(parsed.error());
    if (!*parsed) {
      // A byte at a time: what follows the head comes from the server, which may speak first.
      std::array<std::byte, 1> byte{};
      const auto got = co_await stream.read(byte);
      if (!got) co_return std::unexpected(got.error());
      if (*got == 0) co_return failure(ProxyError::bad_answer);
      input.append(byte);
      continue;
    }
    const http::Status status = parser.head().status;
    if (http::is_interim(status) && ++interim <= interim_answers_max) {
      parser.restart();
      continue;
    }
    if (status == http::Status::proxy_authentication_required) {
      proxy.challenge = parser.head().fields;
      co_return failure(ProxyError::authentication_required);
    }
    if (!http::is_success(status)) co_return failure(ProxyError::refused);
    co_return Result<>();
  }
}

std::optional<ProxyServer> of_scheme(std::string_view scheme) {
  ProxyServer proxy;
  if (http::equal_ignoring_case(scheme, "http")) {
    proxy.port = http_port;
  } else if (http::equal_ignoring_case(scheme, "https")) {
    proxy.kind = ProxyServer::Kind::https;
    proxy.port = https_port;
  } else if (http::equal_ignoring_case(scheme, "socks5") ||
             http::equal_ignoring_case(scheme, "socks5h")) {
    proxy.kind = ProxyServer::Kind::socks5;
    proxy.port = socks_port;
  } else {
    return std::nullopt;
  }
  return proxy;
}

/// Returns false if the proxy cannot be given these credentials.
bool set_credentials(ProxyServer& proxy, std::string_view userinfo) {
  auto credentials = parse_userinfo(userinfo);
  if (!credentials) return false;
  auto authorization = http::format_basic_credentials(*credentials);
  if (!authorization) return false;
  // RFC 1929 has a byte for each length.
  if (!proxy.is_http() && (credentials->user.empty() || credentials->user.size() > 255 ||
                           credentials->password.size() > 255))
    return false;
  if (proxy.is_http()) proxy.authorization = std::move(*authorization);
  proxy.credentials = std::move(*credentials);
  return true;
}

}  // namespace

Result<http::BasicCredentials> parse_userinfo(std::string_view userinfo) {
  const std::size_t colon = std::min(userinfo.find(':'), userinfo.size());
  auto user = http::percent_decode(userinfo.substr(0, colon));
  if (!user) return std::unexpected(user.error());
  auto password = http::percent_decode(userinfo.substr(std::min(colon + 1, userinfo.size())));
  if (!password) return std::unexpected(password.error());
  return http::BasicCredentials{.user = std::move(*user), .password = std::move(*password)};
}

Result<ProxyServer> parse_proxy(std::string_view text) {
  const auto url = http::Url::parse(text);
  if (!url || url->host().empty() || url->query() || url->fragment())
    return failure(ProxyError::bad_url);
  if (!url->path().empty() && url->path() != "/") return failure(ProxyError::bad_url);
  auto proxy = of_scheme(url->scheme());
  if (!proxy) return failure(ProxyError::bad_url);
  proxy->host.assign(url->host());
  proxy->port = url->port().value_or(proxy->port);
  if (proxy->port == 0) return failure(ProxyError::bad_url);
  const auto userinfo = url->userinfo();
  if (userinfo && !set_credentials(*proxy, *userinfo)) return failure(ProxyError::bad_url);
  return std::move(*proxy);
}

bool answer_challenge(ProxyServer& proxy, const std::string& host, std::uint16_t port,
                      std::array<std::uint64_t, 2> random) {
  if (!proxy.challenge || !proxy.credentials) return false;
  auto challenge =
      http::detail::auth::strongest_challenge(*proxy.challenge, "Proxy-Authenticate", digest_hash);
  if (!challenge) return false;
  http::detail::auth::DigestSession session(std::move(*challenge), digest_hash, random);
  const Buffer no_body;
  const std::string target = authority_of(host, port);
  const auto value = session.authorize(
      *proxy.credentials, {.method = http::Method::connect, .target = target, .body = &no_body});
  proxy.authorization = value.value_or("");
  return value.has_value();
}

Task<Result<>> open_tunnel(SocketStream& stream, ProxyServer& proxy, std::string host,
                           std::uint16_t port) {
  if (!proxy.is_http()) return open_socks5(stream, proxy.credentials, std::move(host), port);
  return open_http_tunnel(stream, proxy, authority_of(host, port));
}

}  // namespace tambour::detail::client
