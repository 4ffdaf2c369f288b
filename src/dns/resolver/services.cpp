// DnsResolver: the servers of services, by SRV records (RFC 2782) and HTTPS records (RFC 9460).
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <tambour/dns_resolver.h>
#include <tambour/ip_address.h>

#include "dns/resolver/engine.h"

namespace tambour {
namespace {

using Services = Result<std::vector<ServiceEndpoint>>;

/// Of one service; further ones are ignored.
constexpr std::size_t servers_max = 32;
/// Of one service and family; further ones are ignored: hints only save the time of a lookup.
constexpr std::size_t hints_max = 32;
/// The length of a chain of aliases: RFC 9460, section 2.4.2.
constexpr unsigned aliases_max = 8;
constexpr std::uint16_t https_port = 443;

bool is_absence(const Error& error) noexcept {
  return error == DnsError::no_data || error == DnsError::no_such_name;
}

/// By priority, and within each by chance according to the weights: RFC 2782.
void order_services(std::vector<DnsSrv>& targets, dns::Entropy& entropy) {
  std::ranges::stable_sort(targets, {}, &DnsSrv::priority);
  if (targets.size() > servers_max) targets.resize(servers_max);
  for (auto next = targets.begin(); next != targets.end(); ++next) {
    const auto end = std::find_if(
        next, targets.end(), [&](const DnsSrv& each) { return each.priority != next->priority; });
    std::uint64_t sum = 0;
    for (auto each = next; each != end; ++each) sum += each->weight;
    std::uint64_t chosen = entropy.next() % (sum + 1);
    auto each = next;
    while (each + 1 != end && chosen > each->weight) {
      chosen -= each->weight;
      ++each;
    }
    std::rotate(next, each, each + 1);
  }
}

const DnsSvcParam* find_param(const DnsSvcb& record, std::uint16_t key) noexcept {
  const auto found = std::ranges::find(record.params, key, &DnsSvcParam::key);
  return found != record.params.end() ? &*found : nullptr;
}

/// RFC 9460, section 8: a client must ignore records whose mandatory parameters it does not know.
bool is_compatible(const DnsSvcb& record) noexcept {
  const DnsSvcParam* const mandatory = find_param(record, DnsSvcParam::mandatory);
  if (mandatory == nullptr) return true;
  const std::string_view keys = mandatory->value;
  for (std::size_t i = 0; i + 1 < keys.size(); i += 2) {
    const unsigned key =
        static_cast<std::uint8_t>(keys[i]) << 8U | static_cast<std::uint8_t>(keys[i + 1]);
    if (key > DnsSvcParam::ipv6hint || key == DnsSvcParam::ech) return false;
  }
  return true;
}

void add_hints(const DnsSvcParam* param, bool is_v6, std::uint16_t port,
               std::vector<Endpoint>& into) {
  if (param == nullptr) return;
  const std::size_t size = is_v6 ? sizeof(IpAddress::V6Bytes) : sizeof(IpAddress::V4Bytes);
  const auto* const first = reinterpret_cast<const std::uint8_t*>(param->value.data());
  std::span bytes(first, std::min(param->value.size(), hints_max * size));
  for (; bytes.size() >= size; bytes = bytes.subspan(size)) {
    if (const auto address = IpAddress::from_bytes(bytes.first(size)))
      into.emplace_back(*address, port);
  }
}

std::string text_of(const DnsName& name) {
  std::string text = name.to_string();
  if (text.size() > 1) text.pop_back();
  return text;
}

/// `record` is a ServiceMode record of `owner`.
ServiceEndpoint service_of(const DnsSvcb& record, const DnsName& owner, std::uint16_t port) {
  ServiceEndpoint service;
  service.host = text_of(record.target.is_root() ? owner : record.target);
  service.port = find_param(record, DnsSvcParam::port) != nullptr ? record.port() : port;
  service.alpn = record.alpn();
  const std::string http = "http/1.1";
  const bool has_default = find_param(record, DnsSvcParam::no_default_alpn) == nullptr;
  if (has_default && std::ranges::find(service.alpn, http) == service.alpn.end())
    service.alpn.push_back(http);
  add_hints(find_param(record, DnsSvcParam::ipv6hint), true, service.port, service.address_hints);
  add_hints(find_param(record, DnsSvcParam::ipv4hint), false, service.port, service.address_hints);
  return service;
}

/// What the HTTPS records of a message say.
struct HttpsRecords {
  HttpsRecords(const DnsMessage& message, std::uint16_t port, dns::Entropy& entropy);

  std::optional<DnsName> alias;  ///< The name whose records are to be used instead.
  std::vector<ServiceEndpoint> services;
};

HttpsRecords::HttpsRecords(const DnsMessage& message, std::uint16_t port, dns::Entropy& entropy) {
  std::vector<std::pair<const DnsSvcb*, const DnsName*>> records;
  std::vector<const DnsSvcb*> aliases;
  for (const DnsRecord& each : message.answers) {
    const auto* const record = each.as<DnsSvcb>();
    if (record == nullptr) continue;
    if (record->priority == 0) aliases.push_back(record);
    if (record->priority != 0 && is_compatible(*record)) records.emplace_back(record, &each.name);
  }
  // Section 2.4.1: the others are ignored.
  if (!aliases.empty()) {
    alias = aliases[entropy.next() % aliases.size()]->target;
    return;
  }
  for (std::size_t i = records.size(); i > 1; --i)
    std::swap(records[i - 1], records[entropy.next() % i]);
  std::ranges::stable_sort(records, {}, [](const auto& each) { return each.first->priority; });
  if (records.size() > servers_max) records.resize(servers_max);
  for (const auto& [record, owner] : records) services.push_back(service_of(*record, *owner, port));
}

}  // namespace

Task<Services> DnsResolver::find_srv(std::string service) {
  const auto message = co_await query(std::move(service), DnsType::srv);
  std::vector<ServiceEndpoint> services;
  if (!message && is_absence(message.error())) co_return services;
  if (!message) co_return std::unexpected(message.error());
  std::vector<DnsSrv> targets;
  for (const DnsSrv* const each : message->answers_of<DnsSrv>()) targets.push_back(*each);
  order_services(targets, engine_->entropy());
  for (const DnsSrv& each : targets) {
    if (!each.target.is_root())
      services.push_back({.host = each.target.to_string(), .port = each.port});
  }
  // RFC 2782: a single target "." says so.
  if (services.empty() && !targets.empty())
    co_return std::unexpected(make_error_code(DnsError::no_service));
  co_return services;
}

Task<Services> DnsResolver::find_https(std::string host, std::uint16_t port) {
  std::vector<ServiceEndpoint> services;
  const bool is_address = host.empty() || Endpoint::parse(host, 0).has_value();
  if (is_address) co_return services;
  // Section 9.1.
  if (port != https_port) host.insert(0, '_' + std::to_string(port) + "._https.");
  auto name = DnsName::parse(host);
  if (!name) co_return std::unexpected(name.error());
  for (unsigned i = 0; i < aliases_max; ++i) {
    const auto message = co_await query(*name, DnsType::https);
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

Task<Result<std::vector<Endpoint>>> DnsResolver::resolve_service(std::string service,
                                                                 AddressFamily family) {
  auto found = co_await find_srv(std::move(service));
  if (!found) co_return std::unexpected(found.error());
  std::vector<Endpoint> endpoints;
  Error error = DnsError::no_data;
  for (ServiceEndpoint& each : *found) {
    auto addresses = co_await resolve(std::move(each.host), each.port, family);
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

}  // namespace tambour
