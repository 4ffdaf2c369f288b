#include <tambour/connector.h>

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <tambour/dns_error.h>
#include <tambour/dns_resolver.h>
#include <tambour/event_loop.h>
#include <tambour/task_event.h>
#include <tambour/task_scope.h>
#include <tambour/tcp_stream.h>
#include <tambour/timer.h>
#include <tambour/tls.h>
#include <tambour/unix_stream.h>
#include <tambour/wait.h>
#include <tambour/when.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "client/backoff.h"
#include "loop/core.h"
#include "net/tcp_options.h"
#include "task/time_limit.h"

namespace tambour {
namespace {

using Streamed = Result<SocketStream>;

/// Alternates between address families and keeps the order within each: RFC 8305, section 4.
std::vector<Endpoint> interleave(const std::vector<Endpoint>& addresses) {
  std::vector<Endpoint> ours;
  std::vector<Endpoint> others;
  for (const Endpoint& each : addresses)
    (each.family() == addresses.front().family() ? ours : others).push_back(each);
  std::vector<Endpoint> mixed;
  for (std::size_t i = 0; mixed.size() < addresses.size(); ++i) {
    if (i < ours.size()) mixed.push_back(ours[i]);
    if (i < others.size()) mixed.push_back(others[i]);
  }
  return mixed;
}

/// Concurrent connection attempts to the addresses of a host, which may become known one after the
/// other (Happy Eyeballs, RFC 8305).
class Race {
 public:
  Race(EventLoop& loop, std::stop_token stop, const ConnectOptions& options)
      : loop_(loop),
        options_(options),
        changed_(loop),
        begin_(loop, [this] { begin(); }),
        pace_(loop, [this] { start_next(); }),
        tasks_(loop, std::move(stop)) {
    tasks_.set_exception_handler([this](std::exception_ptr thrown) {
      thrown_ = std::move(thrown);
      changed_.set();
    });
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  void use(const std::vector<Endpoint>& addresses) { set_addresses(addresses, true); }
  void look_up(Resolver& resolver, std::string host, std::uint16_t port) {
    tasks_.spawn(look_up_addresses(resolver, std::move(host), port));
  }

  Task<Streamed> run() {
    for (;;) {
      if (thrown_ != nullptr) std::rethrow_exception(thrown_);
      if (winner_) co_return std::move(*winner_);
      // A failed attempt starts the next one without waiting for the delay.
      const bool may_start = std::exchange(has_failed_, false) || attempts_ == 0;
      if (has_begun_ && may_start && !left_.empty()) {
        start_next();
        continue;
      }
      if (attempts_ == 0 && left_.empty() && is_complete_) co_return std::unexpected(last_error_);
      changed_.reset();
      if (const auto waited = co_await changed_.wait(); !waited)
        co_return std::unexpected(waited.error());
    }
  }

 private:
  Task<> look_up_addresses(Resolver& resolver, std::string host, std::uint16_t port) {
    auto found = [this](const std::vector<Endpoint>& addresses, bool complete) {
      set_addresses(addresses, complete);
    };
    const auto outcome = co_await resolver.resolve_each(std::move(host), port, options_.family,
                                                        Resolver::Found(found));
    if (!outcome && tried_.empty()) last_error_ = outcome.error();
    is_complete_ = true;
    changed_.set();
  }

  /// `addresses` are all that are known so far.
  void set_addresses(const std::vector<Endpoint>& addresses, bool complete) {
    left_ = interleave(addresses);
    std::erase_if(left_, [this](const Endpoint& each) {
      return std::ranges::find(tried_, each) != tried_.end();
    });
    is_complete_ = complete;
    if (has_begun_) {
      if (!left_.empty() && !pace_.started()) pace_.start_at(started_ + options_.attempt_delay);
    } else if (complete || (!addresses.empty() && addresses.front().family() == AF_INET6)) {
      begin();
    } else if (!begin_.started()) {
      // RFC 8305, section 3: the IPv6 addresses may follow.
      begin_.start(options_.resolution_delay);
    }
    changed_.set();
  }

  void begin() {
    begin_.stop();
    has_begun_ = true;
    changed_.set();
  }

  void start_next() {
    if (left_.empty()) return;
    const Endpoint to = left_.front();
    left_.erase(left_.begin());
    tried_.push_back(to);
    started_ = loop_.now();
    if (!left_.empty()) pace_.start(options_.attempt_delay);
    ++attempts_;
    tasks_.spawn(attempt(to));
    changed_.set();
  }

  template <class S>
  static Task<Streamed> connect_as(Endpoint to) {
    auto stream = co_await S::connect(to);
    if (!stream) co_return std::unexpected(stream.error());
    co_return SocketStream(std::move(*stream));
  }

  Task<> attempt(Endpoint to) {
    // A named variable: GCC 12 destroys a conditional temporary of a co_await expression twice.
    Task<Streamed> connecting = to.is_ip() ? connect_as<TcpStream>(to) : connect_as<UnixStream>(to);
    auto stream = co_await std::move(connecting);
    --attempts_;
    if (!stream) {
      last_error_ = stream.error();
      has_failed_ = true;
    } else if (!winner_) {
      winner_ = std::move(*stream);
      pace_.stop();
    }
    changed_.set();
  }

  EventLoop& loop_;
  const ConnectOptions options_;
  std::vector<Endpoint> left_;
  std::vector<Endpoint> tried_;
  bool is_complete_ = false;  ///< No further addresses will become known.
  bool has_begun_ = false;
  TimePoint started_{};  ///< When the last attempt started.
  std::size_t attempts_ = 0;
  Error last_error_ = system_error(EINVAL);
  bool has_failed_ = false;
  std::exception_ptr thrown_;
  std::optional<SocketStream> winner_;
  TaskEvent changed_;
  Timer begin_;
  Timer pace_;
  /// Last member, because its tasks use the others. Its destructor closes the attempts that lost.
  TaskScope tasks_;
};

/// What to connect to: addresses, or a name that is still to be resolved.
struct Target {
  std::vector<Endpoint> addresses;
  std::string host{};
  std::uint16_t port = 0;
};

bool may_pass(const Error& error, const Target& target) noexcept {
  if (error.category() == resolver_category()) return error.value() == EAI_AGAIN;
  if (error.category() == dns_category()) return error == DnsError::too_many_lookups;
  // A Unix server that restarts removes its path and creates it again.
  const auto is_unix = [](const Endpoint& each) { return !each.is_ip(); };
  if (error.value() == ENOENT) return std::ranges::any_of(target.addresses, is_unix);
  constexpr int lasting[] = {EINVAL, EACCES, EPERM, EAFNOSUPPORT, ECANCELED};
  return std::ranges::find(lasting, error.value()) == std::end(lasting);
}

/// Parses "name:port".
std::optional<Target> parse_name(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  const auto port = base::parse_number<std::uint16_t>(text.substr(colon + 1));
  if (host.find_first_of(":[]") != std::string_view::npos) return std::nullopt;
  if (!port || *port == 0) return std::nullopt;
  return Target{.addresses = {}, .host = std::string(host), .port = *port};
}

Task<Streamed> try_once(Target target, ConnectOptions options) {
  const TaskContext& context = co_await this_task;
  Race race(*context.loop, context.stop, options);
  if (target.host.empty()) {
    race.use(target.addresses);
  } else {
    Resolver& resolver =
        options.resolver != nullptr ? *options.resolver : DnsResolver::of(*context.loop);
    race.look_up(resolver, std::move(target.host), target.port);
  }
  co_return co_await race.run();
}

Task<Streamed> try_rounds(Target target, ConnectOptions options) {
  const TaskContext& context = co_await this_task;
  client::Backoff backoff(options.retry_delay, options.retry_delay_max);
  for (unsigned round = 1;; ++round) {
    auto stream = co_await try_once(target, options);
    if (stream || round >= options.rounds || !may_pass(stream.error(), target)) co_return stream;
    const Duration delay = backoff.next(loop::core_of(*context.loop).backend().random());
    if (auto slept = co_await sleep_for(delay); !slept) co_return std::unexpected(slept.error());
  }
}

Task<Streamed> connect_within(Target target, ConnectOptions options) {
  const Duration limit = options.timeout;
  Streamed stream = co_await task::within(limit, try_rounds(std::move(target), options));
  const TcpOptions& tcp = options.tcp;
  const bool any_option =
      tcp.keepalive_idle > Duration::zero() || tcp.user_timeout > Duration::zero();
  if (!stream || !any_option) co_return stream;
  // A stream to a Unix endpoint has no TCP options.
  if (const auto peer = stream->peer_endpoint(); peer && peer->is_ip()) {
    backend::System& system = loop::core_of(stream->loop()).backend().system();
    if (auto set = net::set_tcp_options(system, stream->descriptor(), tcp); !set)
      co_return std::unexpected(set.error());
  }
  co_return stream;
}

}  // namespace

Task<Result<SocketStream>> connect(std::vector<Endpoint> addresses, ConnectOptions options) {
  return connect_within({.addresses = std::move(addresses)}, options);
}

Task<Result<SocketStream>> connect(std::string to, ConnectOptions options) {
  // A coroutine, so that a parse error is also returned through the task's result.
  auto literal = Endpoint::parse(to);
  std::optional<Target> target;
  if (literal) {
    target = Target{.addresses = {*literal}};
  } else {
    target = parse_name(to);
  }
  if (!target) co_return base::failure(EINVAL);
  co_return co_await connect_within(std::move(*target), options);
}

Task<Result<SocketStream>> detail::connect_to_host(std::string host, std::uint16_t port,
                                                   ConnectOptions options) {
  // Without a host there is no address either, which fails with EINVAL.
  if (port == 0) host.clear();
  return connect_within({.addresses = {}, .host = std::move(host), .port = port}, options);
}

Task<Result<SocketStream>> detail::connect_with_tls(std::string host, std::uint16_t port,
                                                    TlsClientContext tls, ConnectOptions options) {
  auto stream = co_await connect_to_host(host, port, options);
  if (!stream) co_return stream;
  const auto secured = co_await tls_connect(*stream, std::move(tls), std::move(host));
  if (!secured) co_return std::unexpected(secured.error());
  co_return stream;
}

Task<Result<SocketStream>> detail::connect_with_tls(std::string to, TlsClientContext tls,
                                                    ConnectOptions options) {
  const auto literal = Endpoint::parse(to);
  if (literal && literal->is_ip()) {
    std::string host = literal->to_string();
    host.erase(host.rfind(':'));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    const std::uint16_t port = literal->port();
    co_return co_await connect_with_tls(std::move(host), port, std::move(tls), options);
  }
  auto target = literal ? std::nullopt : parse_name(to);
  if (!target) co_return base::failure(EINVAL);
  co_return co_await connect_with_tls(std::move(target->host), target->port, std::move(tls),
                                      options);
}

}  // namespace tambour
