// What is known about a server: its round-trip time, errors, cookies and EDNS; and its sockets.
#include "dns/transport/server.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/log/log_site.h"
#include "dns/resolver/engine.h"
#include "loop/core.h"

namespace tambour::dns::detail {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t lead_ns = 10 * ms;
constexpr std::int64_t timeout_unknown_ns = 400 * ms;
constexpr std::int64_t timeout_min_ns = 100 * ms;
constexpr std::int64_t probe_interval_ns = 1000 * ms;
constexpr unsigned probe_queries = 32;
constexpr std::int64_t cookie_regression_ns = 120'000 * ms;
constexpr std::int64_t without_edns_ns = 600'000 * ms;

void log_server(base::LogSite& site, const Endpoint& endpoint) noexcept {
  if (!base::LogSite::is_enabled()) return;
  try {
    site.write({{"server", endpoint.to_string()}});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the statistics have it.
  }
}

}  // namespace

Server::Server(Engine& engine, Endpoint endpoint, std::size_t number, bool is_tcp_only)
    : engine_(engine),
      endpoint_(endpoint),
      number_(number),
      is_tcp_only_(is_tcp_only),
      tcp_(engine, *this) {
  const std::uint64_t client_cookie = engine.entropy().next();
  cookie_.resize(client_cookie_bytes);
  std::memcpy(cookie_.data(), &client_cookie, client_cookie_bytes);
}

UdpPort* Server::port(Error& error) {
  // One system call sends what is queued on one port, and its answers are received with one.
  for (const auto& current_port : ports_) {
    if (current_port->is_queued() && !current_port->is_spent()) return current_port.get();
  }
  const auto may_serve = [](const auto& current_object) { return !current_object->is_spent(); };
  const auto open = static_cast<std::size_t>(std::ranges::count_if(ports_, may_serve));
  if (open < ports_open) {
    std::erase_if(ports_, [](const auto& current_entry) {
      return current_entry->is_spent() && current_entry->is_idle();
    });
    auto added = std::make_unique<UdpPort>(engine_, *this);
    if (const auto opened = added->open()) {
      ports_.push_back(std::move(added));
      return ports_.back().get();
    } else if (open == 0) {
      error = opened.error();
      return nullptr;
    }
  }
  std::size_t chosen = engine_.entropy().next() % open;
  for (const auto& entry : ports_) {
    if (may_serve(entry) && chosen-- == 0) return entry.get();
  }
  return nullptr;
}

void Server::answered(std::int64_t round_trip_ns) noexcept {
  if (is_dead()) {
    static constinit base::LogSite site(LogLevel::info, "dns", "a name server answers again");
    log_server(site, endpoint_);
  }
  ++responses_;
  failures_ = 0;
  // RFC 6298, section 2.
  if (smoothed_ns_ == 0) {
    smoothed_ns_ = std::max<std::int64_t>(round_trip_ns, 1);
    deviation_ns_ = round_trip_ns / 2;
    return;
  }
  const std::int64_t difference = round_trip_ns - smoothed_ns_;
  deviation_ns_ += (std::abs(difference) - deviation_ns_) / 4;
  smoothed_ns_ = std::max<std::int64_t>(smoothed_ns_ + difference / 8, 1);
}

void Server::refused(std::int64_t now_ns) noexcept {
  if (!is_dead()) log_death();
  failures_ = std::max(failures_, failures_max);
  probed_ns_ = now_ns;
}

void Server::log_death() const noexcept {
  static constinit base::LogSite site(LogLevel::warning, "dns", "a name server does not answer");
  log_server(site, endpoint_);
}

std::int64_t Server::cost_ns() const noexcept {
  return smoothed_ns_ + static_cast<std::int64_t>(number_) * lead_ns;
}

std::int64_t Server::timeout_ns() const noexcept {
  if (smoothed_ns_ == 0) return timeout_unknown_ns;
  return std::max(2 * smoothed_ns_ + 4 * deviation_ns_, timeout_min_ns);
}

bool Server::wants_probe(std::int64_t now_ns) noexcept {
  if (!is_dead() || ++queries_since_probe_ < probe_queries) return false;
  if (now_ns - probed_ns_ < probe_interval_ns) return false;
  queries_since_probe_ = 0;
  probed_ns_ = now_ns;
  return true;
}

bool Server::has_edns() const noexcept { return engine_.core().now_ns() >= without_edns_until_ns_; }

void Server::disable_edns() noexcept {
  without_edns_until_ns_ = base::saturating_add(engine_.core().now_ns(), without_edns_ns);
}

bool Server::accept_cookie(std::string_view received, std::int64_t now_ns) {
  const std::string_view ours = std::string_view(cookie_).substr(0, client_cookie_bytes);
  if (received.empty()) {
    // The server has sent cookies before: an answer without one may be forged. After two minutes,
    // it is believed that the server has stopped to send them.
    if (cookie_.size() == client_cookie_bytes) return true;
    if (without_cookie_ns_ == 0) without_cookie_ns_ = now_ns;
    if (now_ns - without_cookie_ns_ < cookie_regression_ns) return false;
    cookie_.resize(client_cookie_bytes);
    without_cookie_ns_ = 0;
    return true;
  }
  constexpr std::size_t bytes_min = 16;
  constexpr std::size_t bytes_max = 40;
  if (received.size() < bytes_min || received.size() > bytes_max) return false;
  if (received.substr(0, client_cookie_bytes) != ours) return false;
  without_cookie_ns_ = 0;
  if (cookie_ != received) cookie_.assign(received);
  return true;
}

void Server::examine_socket(int fd) noexcept {
  if (can_segment_) return;
  // Kernels before 4.18 ignore the ancillary data, and would send one large datagram.
  int value = 0;
  socklen_t size = sizeof value;
  can_segment_ = engine_.system().getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &size) == 0;
}

std::int64_t Server::close_idle(std::int64_t since_ns) {
  std::erase_if(ports_, [&](const auto& entry) {
    return entry->is_idle() && (entry->is_spent() || entry->used_ns() <= since_ns);
  });
  std::int64_t next_ns = tcp_.close_if_idle(since_ns);
  for (const auto& port : ports_) next_ns = std::min(next_ns, port->used_ns());
  return next_ns;
}

void Server::disown() noexcept {
  for (const auto& port : ports_) port->disown();
  tcp_.disown();
}

void Server::close_all() noexcept {
  ports_.clear();
  tcp_.close();
}

}  // namespace tambour::dns::detail
