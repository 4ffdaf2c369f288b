// Parses the URLs of upstreams.
#include "http/proxy/target.h"

#include <cerrno>
#include <utility>

#include <tambour/http/url.h>
#include <tambour/net/endpoint.h>

#include "http/client/redirect.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http::detail::proxy {
namespace {

constexpr std::size_t upstreams_max = 1000;

Result<Target> parse_unix(const std::string& url) {
  const auto endpoint = Endpoint::parse(url);
  if (!endpoint) return std::unexpected(endpoint.error());
  Target target;
  target.host = url;
  target.authority = "localhost";
  return target;
}

Result<Target> parse(const Upstream& upstream) {
  if (upstream.url.starts_with("unix:")) return parse_unix(upstream.url);
  const auto url = client::parse_request_url(upstream.url);
  if (!url) return std::unexpected(url.error());
  if (url->query() || url->fragment() || url->userinfo())
    return failure(ErrorCode::url_bad_character);
  client::Origin origin = client::origin_of(*url);
  Target target;
  target.host = std::move(origin.host);
  target.port = origin.port;
  target.is_secure = origin.is_secure;
  target.is_name = !Endpoint::parse(target.host, target.port).has_value();
  target.authority = client::authority_of(*url);
  target.path = url->path();
  while (target.path.ends_with('/')) target.path.pop_back();
  return target;
}

}  // namespace

Result<std::vector<Target>> parse_targets(const std::vector<Upstream>& upstreams) {
  if (upstreams.empty() || upstreams.size() > upstreams_max)
    return std::unexpected(system_error(EINVAL));
  std::vector<Target> targets;
  targets.reserve(upstreams.size());
  for (const Upstream& upstream : upstreams) {
    if (upstream.weight == 0) return std::unexpected(system_error(EINVAL));
    auto target = parse(upstream);
    if (!target) return std::unexpected(target.error());
    target->url = upstream.url;
    target->weight = upstream.weight;
    target->index = targets.size();
    targets.push_back(std::move(*target));
  }
  return targets;
}

}  // namespace tambour::http::detail::proxy
