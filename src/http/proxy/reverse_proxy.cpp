// ReverseProxy: options, and the handler.
#include <tambour/http/reverse_proxy.h>

#include <cerrno>
#include <utility>

#include "http/proxy/state.h"

namespace tambour::http {
namespace {

bool are_valid(const ReverseProxyOptions& options) noexcept {
  const HealthCheckOptions& check = options.health_check;
  const bool has_checks = !check.path.empty();
  return options.connections_max > 0 && options.addresses_max > 0 && options.retry.budget >= 0 &&
         options.retry.budget <= 100 &&
         (options.strip_prefix.empty() ||
          (options.strip_prefix.starts_with('/') && !options.strip_prefix.ends_with('/'))) &&
         (!has_checks || (check.path.starts_with('/') && check.interval > Duration::zero() &&
                          check.timeout > Duration::zero() && check.healthy_threshold > 0 &&
                          check.unhealthy_threshold > 0));
}

}  // namespace

ReverseProxy::ReverseProxy(std::shared_ptr<detail::proxy::State> state) noexcept
    : state_(std::move(state)) {}
ReverseProxy::ReverseProxy(ReverseProxy&& other) noexcept = default;
ReverseProxy& ReverseProxy::operator=(ReverseProxy&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->shut_down();
  state_ = std::move(other.state_);
  return *this;
}
ReverseProxy::~ReverseProxy() {
  if (state_ != nullptr) state_->shut_down();
}

Result<ReverseProxy> ReverseProxy::create(EventLoop& loop, ReverseProxyOptions options) {
  if (!are_valid(options)) return std::unexpected(system_error(EINVAL));
  auto targets = detail::proxy::parse_targets(options.upstreams);
  if (!targets) return std::unexpected(targets.error());
  ReverseProxy proxy(std::make_shared<detail::proxy::State>(loop, std::move(options)));
  proxy.state_->set_targets(std::move(*targets));
  return proxy;
}

Handler ReverseProxy::handler() {
  return [state = state_](Request& request, Response& response) {
    return detail::proxy::forward(state, request, response);
  };
}

Result<> ReverseProxy::set_upstreams(std::vector<Upstream> upstreams) {
  auto targets = detail::proxy::parse_targets(upstreams);
  if (!targets) return std::unexpected(targets.error());
  state_->options.upstreams = std::move(upstreams);
  state_->set_targets(std::move(*targets));
  return {};
}

void ReverseProxy::set_draining(std::string_view url, bool is_draining) noexcept {
  for (const auto& server : state_->servers) {
    if (server->target().url == url) server->is_draining = is_draining;
  }
}

std::vector<UpstreamStatus> ReverseProxy::upstreams() const {
  std::vector<UpstreamStatus> all;
  for (const auto& server : state_->servers) all.push_back(server->status());
  return all;
}

const ReverseProxyStats& ReverseProxy::stats() const noexcept { return state_->stats; }

}  // namespace tambour::http
