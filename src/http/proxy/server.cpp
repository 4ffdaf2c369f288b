// Server: ejection after failures, and health checks.
#include "http/proxy/server.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <new>
#include <utility>

#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>

#include "base/clock.h"
#include "http/client/h1_exchange.h"
#include "http_message/failure.h"
#include "loop/core.h"

namespace tambour::http::detail::proxy {
namespace {

ClientOptions client_options(const ReverseProxyOptions& options, const Target& target) {
  ClientOptions client;
  client.version = VersionChoice::http_1;
  client.connect = options.connect;
  if (client.connect.tls_host.empty() && target.is_name) client.connect.tls_host = target.host;
  client.limits = options.limits;
  client.connections_per_origin_max = options.connections_max;
  client.waiting_per_origin_max = options.waiting_max;
  client.connections_max = options.connections_max;
  client.waiting_max = options.waiting_max;
  client.idle_connections_max = options.idle_connections_max;
  client.idle_timeout = options.idle_connection_timeout;
  return client;
}

ClientOptions check_options(const ReverseProxyOptions& options, const Target& target) {
  ClientOptions client = client_options(options, target);
  client.connections_per_origin_max = 1;
  client.idle_connections_max = 0;
  client.connect.retry = {};
  return client;
}

}  // namespace

Server::Server(EventLoop& loop, const ReverseProxyOptions& options, const Target& target,
               std::string host)
    : loop_(loop),
      options_(options),
      target_(target),
      origin_{.host = std::move(host), .port = target.port, .is_secure = target.is_secure},
      client_(std::make_shared<client::Shared>(loop, client_options(options, target))),
      hash_(std::hash<std::string>()(target.url + " " + origin_.host)) {}

Server::~Server() { client_->pool->shut_down(); }

void Server::start_checks() {
  if (options_.health_check.path.empty()) return;
  check_client_ = std::make_shared<client::Shared>(loop_, check_options(options_, target_));
  checks_ = std::make_unique<TaskScope>(loop_);
  checks_->spawn(check());
}

void Server::stop() {
  checks_.reset();
  client_->pool->shut_down();
}

void Server::failed() noexcept {
  ++errors_;
  const EjectionOptions& ejection = options_.ejection;
  if (ejection.failures_max == 0 || ++failures_ < ejection.failures_max) return;
  // When it is used again, one more failure ejects it again.
  failures_ = ejection.failures_max - 1;
  Duration delay = ejection.delay;
  for (unsigned i = 0; i < ejections_ && delay < ejection.delay_max; ++i)
    delay = Duration(base::saturating_multiply(delay.count(), 2));
  ++ejections_;
  ++all_ejections_;
  ejected_until_ = base::saturating_add(loop_.now(), std::min(delay, ejection.delay_max));
}

UpstreamStatus Server::status() const {
  UpstreamStatus status;
  status.url = target_.url;
  status.address = target_.is_unix() ? origin_.host.substr(origin_.host.find(':') + 1)
                                     : origin_.host + ":" + std::to_string(origin_.port);
  status.is_healthy = is_healthy_;
  status.is_ejected = is_ejected(loop_.now());
  status.is_draining = is_draining;
  status.active = active;
  status.connections = client_->pool->open();
  status.requests = requests;
  status.errors = errors_;
  status.retries = retries;
  status.ejections = all_ejections_;
  status.failed_checks = failed_checks_;
  return status;
}

Task<> Server::check() {
  const HealthCheckOptions& options = options_.health_check;
  const double jitter = std::clamp(options.jitter, 0.0, 1.0);
  for (;;) {
    const double random =
        static_cast<double>(loop::core_of(loop_).backend().random() >> 11U) * 0x1p-53;
    const double part = 1.0 + jitter * (random - 0.5);
    const auto slept = co_await sleep_for(
        Duration(static_cast<std::int64_t>(static_cast<double>(options.interval.count()) * part)));
    if (!slept) co_return;
    bool is_success = false;
    try {
      const auto result = co_await timeout(options.timeout, probe());
      is_success = result.has_value();
    } catch (const std::bad_alloc&) {
      continue;  // It says nothing about the server.
    }
    count_check(is_success);
  }
}

Task<Result<>> Server::probe() {
  auto lease = co_await check_client_->connect(origin_, nullptr);
  if (!lease) co_return std::unexpected(lease.error());
  RequestHead head;
  head.target = options_.health_check.path;
  head.authority =
      options_.health_check.host.empty() ? target_.authority : options_.health_check.host;
  client::H1Exchange exchange(loop_, std::move(*lease), client::ReadLimits{});
  const auto begun = co_await exchange.begin(head, client::OutgoingBody());
  if (!begun) co_return begun;
  const int status_class = class_of(exchange.head().status);
  if (status_class != 2 && status_class != 3) co_return failure(ErrorCode::bad_status);
  co_return {};
}

void Server::count_check(bool is_success) noexcept {
  if (!is_success) ++failed_checks_;
  if (is_success == is_healthy_) {
    checks_in_row_ = 0;
    return;
  }
  const HealthCheckOptions& options = options_.health_check;
  const unsigned threshold = is_success ? options.healthy_threshold : options.unhealthy_threshold;
  if (++checks_in_row_ < threshold) return;
  checks_in_row_ = 0;
  is_healthy_ = is_success;
  // The checks know better than the last requests.
  if (is_success) succeeded();
}

}  // namespace tambour::http::detail::proxy
