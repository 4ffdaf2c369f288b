// Race: starts attempts one after the other, uses the first that succeeds, and destroys the others.
#include "client/race.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "net/connect.h"

namespace tambour::detail::client {
namespace {

/// How many addresses are tried if DNS servers name them. The servers are not trusted: the time
/// that collect() needs grows with the square of this number.
constexpr std::size_t looked_up_max = 64;

/// At most `count` addresses. Alternates between address families and keeps the order within each:
/// RFC 8305, section 4.
std::vector<Endpoint> interleave(const std::vector<Endpoint>& addresses, std::size_t count) {
  std::vector<Endpoint> ours;
  std::vector<Endpoint> others;
  for (const Endpoint& address : addresses)
    (address.family() == addresses.front().family() ? ours : others).push_back(address);
  std::vector<Endpoint> mixed;
  for (std::size_t i = 0; mixed.size() < std::min(addresses.size(), count); ++i) {
    if (i < ours.size()) mixed.push_back(ours[i]);
    if (i < others.size()) mixed.push_back(others[i]);
  }
  return mixed;
}

bool is_of(AddressFamily family, const Endpoint& address) noexcept {
  if (family == AddressFamily::any) return true;
  return (address.family() == AF_INET6) == (family == AddressFamily::v6);
}

bool is_supported(const ServiceTarget& service, const std::vector<std::string>& alpn) {
  return alpn.empty() || std::ranges::any_of(service.alpn, [&](const std::string& text) {
           return std::ranges::find(alpn, text) != alpn.end();
         });
}

}  // namespace

Race::Race(EventLoop& loop, std::stop_token stop, const ConnectOptions& options, ConnectStep& step)
    : loop_(loop),
      options_(options),
      step_(step),
      last_error_(system_error(EINVAL)),
      changed_(loop),
      begin_(loop, [this] { begin(); }),
      services_(loop,
                [this] {
                  try {
                    use_services();
                  } catch (...) {
                    fail(std::current_exception());
                  }
                }),
      pace_(loop, [this] { start_next(); }),
      tasks_(loop, std::move(stop)) {
  tasks_.set_exception_handler([this](std::exception_ptr thrown) { fail(std::move(thrown)); });
}

void Race::use(const std::vector<Endpoint>& addresses) {
  Alternative& only = *alternatives_.emplace_back(std::make_unique<Alternative>());
  only.addresses = addresses;
  only.is_complete = true;
  update();
}

void Race::look_up(Resolver& resolver, std::string host, std::uint16_t port,
                   std::vector<std::string> alpn) {
  candidates_max_ = looked_up_max;
  if (!options_.srv_service.empty()) {
    has_services_ = false;
    tasks_.spawn(look_up_srv(resolver, std::move(host), port));
    return;
  }
  has_services_ = !options_.https_records;
  add(resolver, {.host = host, .port = port});
  if (options_.https_records)
    tasks_.spawn(look_up_https(resolver, std::move(host), port, std::move(alpn)));
}

Task<ConnectResult> Race::run() {
  for (;;) {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    if (winner_) co_return std::move(*winner_);
    // A failed attempt starts the next one without waiting for the delay.
    const bool may_start = std::exchange(has_failed_, false) || attempts_ == 0;
    if (has_begun_ && may_start && !left_.empty()) {
      start_next();
      continue;
    }
    if (attempts_ == 0 && left_.empty() && is_complete_)
      co_return std::unexpected(ConnectError(last_error_, step_));
    changed_.reset();
    if (const auto waited = co_await changed_.wait(); !waited)
      co_return std::unexpected<ConnectError>(waited.error());
  }
}

Race::Alternative& Race::add(Resolver& resolver, ServiceTarget service) {
  Alternative& added = *alternatives_.emplace_back(std::make_unique<Alternative>());
  added.service = std::move(service);
  for (const Endpoint& address_hint : added.service.address_hints) {
    if (is_of(options_.family, address_hint)) added.addresses.push_back(address_hint);
  }
  tasks_.spawn(look_up_addresses(resolver, added));
  return added;
}

Task<> Race::look_up_addresses(Resolver& resolver, Alternative& alternative) {
  auto found = [this, &alternative](const std::vector<Endpoint>& addresses, bool complete) {
    alternative.addresses = addresses;
    alternative.is_complete = complete;
    update();
  };
  const auto outcome = co_await resolver.resolve_each(
      alternative.service.host, alternative.service.port, options_.family, Resolver::Found(found));
  if (!outcome && tried_.empty()) last_error_ = outcome.error();
  alternative.is_complete = true;
  update();
}

Task<> Race::look_up_https(Resolver& resolver, std::string host, std::uint16_t port,
                           std::vector<std::string> alpn) {
  auto found = co_await resolver.find_https(std::move(host), port);
  // Too late: the host itself is connected to.
  if (has_services_) co_return;
  if (found) {
    std::erase_if(*found, [&](const ServiceTarget& entry) { return !is_supported(entry, alpn); });
    for (ServiceTarget& target : *found) add(resolver, std::move(target));
    // RFC 9460, section 3: the host itself comes last.
    std::rotate(alternatives_.begin(), alternatives_.begin() + 1, alternatives_.end());
  }
  use_services();
}

Task<> Race::look_up_srv(Resolver& resolver, std::string host, std::uint16_t port) {
  auto found = co_await resolver.find_srv(options_.srv_service + '.' + host);
  if (!found) {
    last_error_ = found.error();
  } else if (found->empty()) {
    add(resolver, {.host = std::move(host), .port = port});
  } else {
    for (ServiceTarget& target : *found) add(resolver, std::move(target));
  }
  use_services();
}

void Race::use_services() {
  services_.stop();
  has_services_ = true;
  update();
}

void Race::update() {
  collect();
  if (has_begun_) {
    if (!left_.empty() && !pace_.is_started()) {
      pace_.start_at(base::saturating_add(started_, options_.attempt_delay));
    }
  } else if (!has_services_) {
    const bool has_addresses = !alternatives_.empty() && !alternatives_.front()->addresses.empty();
    if (has_addresses && !services_.is_started()) services_.start(options_.resolution_delay);
  } else if (may_begin()) {
    begin();
  } else if (!left_.empty() && !begin_.is_started()) {
    // RFC 8305, section 3: the IPv6 addresses may follow.
    begin_.start(options_.resolution_delay);
  }
  changed_.set();
}

/// Lists the addresses that may be tried, without those that were. Those of a server may be tried
/// when all addresses of the servers before it are known.
void Race::collect() {
  left_.clear();
  is_complete_ = false;
  if (!has_services_) return;
  for (const auto& alternative : alternatives_) {
    if (has_space()) add_candidates(*alternative);
    if (!alternative->is_complete) return;
  }
  is_complete_ = true;
}

void Race::add_candidates(const Alternative& alternative) {
  for (const Endpoint& address : interleave(alternative.addresses, candidates_max_)) {
    const bool is_known = std::ranges::find(tried_, address) != tried_.end() ||
                          std::ranges::find(left_, address, &Candidate::to) != left_.end();
    if (is_known) continue;
    left_.push_back({.to = address, .of = &alternative});
    if (!has_space()) return;
  }
}

bool Race::may_begin() const noexcept {
  if (is_complete_) return true;
  if (left_.empty()) return false;
  const Candidate& first = left_.front();
  return first.to.family() == AF_INET6 || first.of->is_complete ||
         !first.of->service.address_hints.empty();
}

void Race::begin() {
  begin_.stop();
  has_begun_ = true;
  changed_.set();
}

void Race::start_next() try {
  if (left_.empty()) return;
  const Candidate next = left_.front();
  left_.erase(left_.begin());
  tried_.push_back(next.to);
  started_ = loop_.now();
  step_ = ConnectStep::connect;
  if (!left_.empty()) pace_.start(options_.attempt_delay);
  Task<> trying = attempt(next);
  ++attempts_;
  tasks_.spawn(std::move(trying));
  changed_.set();
} catch (...) {
  fail(std::current_exception());
}

/// Memory is exhausted: the timers must not throw out of the loop.
void Race::fail(std::exception_ptr thrown) noexcept {
  thrown_ = std::move(thrown);
  changed_.set();
}

Task<> Race::attempt(Candidate candidate) {
  auto stream = co_await net::connect_stream(candidate.to, options_.local, &options_.bind);
  --attempts_;
  if (!stream) {
    last_error_ = stream.error();
    has_failed_ = true;
  } else if (!winner_) {
    // Unlike a Unix-domain stream, it delays small messages otherwise.
    if (candidate.to.is_ip()) static_cast<void>(stream->set_option(IPPROTO_TCP, TCP_NODELAY, 1));
    winner_ = ConnectedStream(std::move(*stream), candidate.of->service);
    pace_.stop();
  }
  changed_.set();
}

}  // namespace tambour::detail::client
