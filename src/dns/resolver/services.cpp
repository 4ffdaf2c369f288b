// dns::Resolver: the servers of services, by SRV records (RFC 2782) and HTTPS records (RFC 9460).
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <tambour/dns/resolver.h>
#include <tambour/net/ip_address.h>

#include "dns/resolver/engine.h"

namespace tambour::dns {

namespace {

using Services = Result<std::vector<ServiceTarget>>;

/// Of one service; further ones are ignored.
constexpr std::size_t servers_max = 32;
/// Of one service and family; further ones are ignored: hints only save the time of a lookup.
constexpr std::size_t hints_max = 32;
/// The length of a chain of aliases: RFC 9460, section 2.4.2.
constexpr unsigned aliases_max = 8;
constexpr std::uint16_t https_port = 443;

bool is_absence(const Error& error) noexcept {
  return error == ErrorCode::no_data || error == ErrorCode::no_such_name;
}

/// By priority, and within each by chance according to the weights: RFC 2782.
void order_services(std::vector<Srv>& targets, detail::Entropy& entropy) {
  std::ranges::stable_sort(targets, {}, &Srv::priority);
  if (targets.size() > servers_max) targets.resize(servers_max);
  for (auto next = targets.begin(); next != targets.end(); ++next) {
    const auto end = std::find_if(next, targets.end(),
                                  [&](const Srv& srv) { return srv.priority != next->priority; });
    std::uint64_t sum = 0;
    for (auto current_entry = next; current_entry != end; ++current_entry)
      sum += current_entry->weight;
    std::uint64_t chosen = entropy.next() % (sum + 1);
    auto entry = next;
    while (entry + 1 != end && chosen > entry->weight) {
      chosen -= entry->weight;
      ++entry;
    }
    std::rotate(next, entry, entry + 1);
  }
}

const SvcParam* find_param(const Svcb& record, std::uint16_t key) noexcept {
  const auto found = std::ranges::find(record.params, key, &SvcParam::key);
  return found != record.params.end() ? &*found : nullptr;
}

/// RFC 9460, section 8: a client must ignore records whose mandatory parameters it does not know.
bool is_compatible(const Svcb& record) noexcept {
  const SvcParam* const mandatory = find_param(record, SvcParam::mandatory);
  if (mandatory == nullptr) return true;
  const std::string_view keys = mandatory->value;
  for (std::size_t i = 0; i + 1 < keys.size(); i += 2) {
    const unsigned key =
        static_cast<std::uint8_t>(keys[i]) << 8U | static_cast<std::uint8_t>(keys[i + 1]);
    if (key > SvcParam::ipv6hint || key == SvcParam::ech) return false;
  }
  return true;
}

void add_hints(const SvcParam* param, bool is_v6, std::uint16_t port, std::vector<Endpoint>& into) {
  if (param == nullptr) return;
  const std::size_t size = is_v6 ? sizeof(IpAddress::V6Bytes) : sizeof(IpAddress::V4Bytes);
  const auto* const first = reinterpret_cast<const std::uint8_t*>(param->value.data());
  std::span bytes(first, std::min(param->value.size(), hints_max * size));
  for (; bytes.size() >= size; bytes = bytes.subspan(size)) {
    if (const auto address = IpAddress::from_bytes(bytes.first(size)))
      into.emplace_back(*address, port);
  }
}

std::string text_of(const Name& name) {
  std::string text = name.to_string();
  if (text.size() > 1) text.pop_back();
  return text;
}

/// `record` is a ServiceMode record of `owner`.
ServiceTarget service_of(const Svcb& record, const Name& owner, std::uint16_t port) {
  ServiceTarget service;
  service.host = text_of(record.target.is_root() ? owner : record.target);
  service.port = find_param(record, SvcParam::port) != nullptr ? record.port() : port;
  service.alpn = record.alpn();
  const std::string http = "http/1.1";
  const bool has_default = find_param(record, SvcParam::no_default_alpn) == nullptr;
  if (has_default && std::ranges::find(service.alpn, http) == service.alpn.end())
    service.alpn.push_back(http);
  add_hints(find_param(record, SvcParam::ipv6hint), true, service.port, service.address_hints);
  add_hints(find_param(record, SvcParam::ipv4hint), false, service.port, service.address_hints);
  return service;
}

/// What the HTTPS records of a message say.
struct HttpsRecords {
  HttpsRecords(const Message& message, std::uint16_t port, detail::Entropy& entropy);

  std::optional<Name> alias;  ///< The name whose records are to be used instead.
  std::vector<ServiceTarget> services;
};

HttpsRecords::HttpsRecords(const Message& message, std::uint16_t port, detail::Entropy& entropy) {
  std::vector<std::pair<const Svcb*, const Name*>> records;
  std::vector<const Svcb*> aliases;
  for (const Record& answer : message.answers) {
    const auto* const record = answer.as<Svcb>();
    if (record == nullptr) continue;
    if (record->priority == 0) aliases.push_back(record);
    if (record->priority != 0 && is_compatible(*record)) records.emplace_back(record, &answer.name);
  }
  // Section 2.4.1: the others are ignored.
  if (!aliases.empty()) {
    alias = aliases[entropy.next() % aliases.size()]->target;
    return;
  }
  for (std::size_t i = records.size(); i > 1; --i)
    std::swap(records[i - 1], records[entropy.next() % i]);
  std::ranges::stable_sort(records, {}, [](const auto& entry) { return entry.first->priority; });
  if (records.size() > servers_max) records.resize(servers_max);
  for (const auto& [record, owner] : records) services.push_back(service_of(*record, *owner, port));
}

}  // namespace

Task<Services> Resolver::find_srv(std::string service) {
  const auto message = co_await query(std::move(service), Type::srv);
  std::vector<ServiceTarget> services;
  if (!message && is_absence(message.error())) co_return services;
  if (!message) co_return std::unexpected(message.error());
  std::vector<Srv> targets;
  for (const Srv* const entry : message->answers_of<Srv>()) targets.push_back(*entry);
  order_services(targets, engine_->entropy());
  for (const Srv& target : targets) {
    if (!target.target.is_root())
      services.push_back({.host = target.target.to_string(), .port = target.port});
  }
  // RFC 2782: a single target "." says so.
  if (services.empty() && !targets.empty())
    co_return std::unexpected(make_error_code(ErrorCode::no_service));
  co_return services;
}

Task<Services> Resolver::find_https(std::string host, std::uint16_t port) {
  std::vector<ServiceTarget> services;
  const bool is_address = host.empty() || Endpoint::parse(host, 0).has_value();
  if (is_address) co_return services;
  // Section 9.1.
  if (port != https_port) host.insert(0, '_' + std::to_string(port) + "._https.");
  auto name = Name::parse(host);
  if (!name) co_return std::unexpected(name.error());
  for (unsigned i = 0; i < aliases_max; ++i) {
    const auto message = co_await query(*name, Type::https);
    if (!message && !is_absence(message.error())) co_return std::unexpected(message.error());
    if (!message) {
      // The addresses of an alias are used even if it has no HTTPS records.
      if (i > 0) services.push_back({.host = text_of(*name), .port = port});
      co_return services;
    }
    HttpsRecords records(*message, port, engine_->entropy());
    if (!records.alias) co_return std::move(records.services);
    // Section 2.5.1: the service is not available, which is only advice.
    if (records.alias->is_root()) co_return services;
    *name = std::move(*records.alias);
  }
  co_return services;
}

Task<Result<std::vector<Endpoint>>> Resolver::resolve_service(std::string service,
                                                              AddressFamily family) {
  auto found = co_await find_srv(std::move(service));
  if (!found) co_return std::unexpected(found.error());
  std::vector<Endpoint> endpoints;
  Error error = ErrorCode::no_data;
  for (ServiceTarget& target : *found) {
    auto addresses = co_await resolve(std::move(target.host), target.port, family);
    if (!addresses) {
      error = addresses.error();
      if (error == system_error(ECANCELED)) break;
      continue;
    }
    endpoints.insert(endpoints.end(), addresses->begin(), addresses->end());
  }
  if (endpoints.empty() || error == system_error(ECANCELED)) co_return std::unexpected(error);
  co_return endpoints;
}

}  // namespace tambour::dns
