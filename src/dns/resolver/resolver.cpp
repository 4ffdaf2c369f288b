// dns::Resolver.
#include <tambour/dns/resolver.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/failure.h"
#include "dns/resolver/answer.h"
#include "dns/resolver/engine.h"
#include "dns/resolver/host_lookup.h"
#include "dns/resolver/service.h"

namespace tambour::dns {

namespace {

using detail::AnswerPointer;
using detail::HostLookup;

std::vector<Endpoint> endpoints_of(const std::vector<IpAddress>& addresses, std::uint16_t port) {
  std::vector<Endpoint> endpoints;
  endpoints.reserve(addresses.size());
  for (const IpAddress& address : addresses) endpoints.emplace_back(address, port);
  return endpoints;
}

/// The wait of a task for one answer.
class OneAnswer final : public detail::Waiter {
 public:
  explicit OneAnswer(EventLoop& loop) noexcept : event(loop) {}
  void answered(AnswerPointer with) noexcept override {
    answer = std::move(with);
    event.set();
  }
  AnswerPointer answer;
  TaskEvent event;
};

Result<std::vector<std::string>> names_in(Result<Message> message) {
  if (!message) return std::unexpected(message.error());
  std::vector<std::string> names;
  for (const Ptr* const ptr : message->answers_of<Ptr>()) {
    std::string name = ptr->target.to_string();
    if (name.size() > 1) name.pop_back();
    names.push_back(std::move(name));
  }
  if (names.empty()) return std::unexpected(make_error_code(ErrorCode::no_data));
  return names;
}

}  // namespace

Resolver::Resolver(EventLoop& loop, ResolverOptions options, std::source_location created_at) {
  detail::loop::core_of(loop).check_thread(created_at);
  engine_ = std::make_unique<detail::Engine>(loop, std::move(options));
}

Resolver::~Resolver() = default;

Resolver& Resolver::of(EventLoop& loop) {
  detail::loop::Core& core = detail::loop::core_of(loop);
  core.check_thread();
  auto service = core.open_service<detail::Service>();
  if (!service) throw std::bad_alloc();
  return (*service)->default_resolver(loop);
}

Task<Result<std::vector<Endpoint>>> Resolver::resolve(std::string host, std::uint16_t port,
                                                      AddressFamily family) {
  HostLookup lookup(*engine_, host, family, HostLookup::Report::all);
  lookup.start();
  while (lookup.state() == HostLookup::State::pending) {
    lookup.changed().reset();
    if (const auto waited = co_await lookup.changed().wait(); !waited)
      co_return std::unexpected(waited.error());
    lookup.proceed();
  }
  if (lookup.state() == HostLookup::State::fallback) {
    engine_->count_fallback();
    tambour::Resolver* const other = engine_->options().fallback;
    tambour::Resolver& fallback = other != nullptr ? *other : tambour::Resolver::system();
    co_return co_await fallback.resolve(std::move(host), port, family);
  }
  if (lookup.error()) co_return std::unexpected(lookup.error());
  co_return endpoints_of(lookup.addresses(), port);
}

Task<Result<>> Resolver::resolve_each(std::string host, std::uint16_t port, AddressFamily family,
                                      Found found) {
  HostLookup lookup(*engine_, host, family, HostLookup::Report::each_family);
  lookup.start();
  std::size_t reported = 0;
  while (lookup.state() == HostLookup::State::pending) {
    lookup.changed().reset();
    if (const auto waited = co_await lookup.changed().wait(); !waited)
      co_return std::unexpected(waited.error());
    if (lookup.proceed() != HostLookup::State::pending) break;
    if (lookup.addresses().size() == reported) continue;
    reported = lookup.addresses().size();
    found(endpoints_of(lookup.addresses(), port), false);
    // It may have destroyed the resolver.
    lookup.proceed();
  }
  if (lookup.state() == HostLookup::State::fallback) {
    engine_->count_fallback();
    tambour::Resolver* const other = engine_->options().fallback;
    tambour::Resolver& fallback = other != nullptr ? *other : tambour::Resolver::system();
    co_return co_await fallback.resolve_each(std::move(host), port, family, std::move(found));
  }
  if (lookup.error()) co_return std::unexpected(lookup.error());
  found(endpoints_of(lookup.addresses(), port), true);
  co_return {};
}

Task<Result<Message>> Resolver::query(Name name, Type type) {
  engine_->refresh();
  const detail::EngineReference engine(*engine_);
  const detail::QuestionKey key(name.wire(), type);
  OneAnswer wait(engine->loop());
  detail::Cache::Hit hit = engine->look_up(key, wait);
  if (hit.answer == nullptr) {
    if (const auto waited = co_await wait.event.wait(); !waited)
      co_return std::unexpected(waited.error());
    // The resolver was destroyed. Those that await this task use `engine_` if it succeeds.
    if (!engine) co_return detail::base::failure(ECANCELED);
    hit.answer = std::move(wait.answer);
  }
  if (hit.answer->error != detail::no_error)
    co_return std::unexpected(make_error_code(hit.answer->error));
  constexpr std::int64_t second_ns = 1'000'000'000;
  co_return detail::message_of(*hit.answer, key.view(),
                               static_cast<std::uint32_t>(hit.age_ns / second_ns));
}

Task<Result<Message>> Resolver::query(std::string name, Type type) {
  auto parsed = Name::parse(name);
  if (!parsed) co_return std::unexpected(parsed.error());
  co_return co_await query(std::move(*parsed), type);
}

Task<Result<std::vector<std::string>>> Resolver::reverse(Endpoint address) {
  const std::optional<IpAddress> plain = address.ip_address();
  if (!plain) co_return detail::base::failure(EAFNOSUPPORT);
  engine_->refresh();
  std::vector<std::string> names = engine_->configuration().hosts().names_of(*plain);
  if (!names.empty()) co_return names;
  auto message = co_await query(Name::for_address(std::as_bytes(plain->bytes())), Type::ptr);
  co_return names_in(std::move(message));
}

void Resolver::clear_cache() noexcept { engine_->clear_cache(); }

ResolverStats Resolver::stats() const noexcept { return engine_->stats(); }

std::vector<NameServerStats> Resolver::name_server_stats() const {
  std::vector<NameServerStats> stats;
  if (engine_->servers() == nullptr) return stats;
  for (const auto& server : engine_->servers()->servers) stats.push_back(server->stats());
  return stats;
}

std::vector<Endpoint> Resolver::servers() {
  engine_->refresh();
  return engine_->configuration().resolv_conf().servers;
}

}  // namespace tambour::dns
