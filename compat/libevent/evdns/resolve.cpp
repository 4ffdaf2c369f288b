// The functions of event2/dns.h that make requests, and those for nameservers.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdio>
#include <cstring>

#include <event2/util.h>

#include "libevent/evdns/base.h"
#include "libevent/evdns/nameserver.h"
#include "libevent/event/log.h"

namespace dns = tambour::dns;
using tambour::IpAddress;
using tambour::libevent::HeldLock;
using tambour::libevent::Nameserver;

namespace {

/// Answers from the hosts files if they have the name. Returns null if not.
evdns_request* resolve_in_hosts(evdns_base& base, dns::Type type, const char* name,
                                evdns_callback_type callback, void* argument) noexcept {
  std::vector<IpAddress> addresses;
  base.find_host(name, addresses);
  const bool is_v6 = type == dns::Type::aaaa;
  std::erase_if(addresses,
                [=](const IpAddress& ip_address) { return ip_address.is_v6() != is_v6; });
  if (addresses.empty()) return nullptr;
  evdns_request* const created = evdns_request::make(base, type, callback, argument);
  if (created != nullptr) created->finish_with(addresses.data(), addresses.size());
  return created;
}

evdns_request* resolve(evdns_base& base, dns::Type type, const char* name, int flags,
                       evdns_callback_type callback, void* argument) noexcept {
  tambour::libevent::evdns_log(EVENT_LOG_DEBUG, "Resolve requested for %s", name);
  const HeldLock locked(base.lock);
  evdns_request* const known = resolve_in_hosts(base, type, name, callback, argument);
  if (known != nullptr) return known;
  return base.resolve(type, name, (flags & DNS_QUERY_NO_SEARCH) == 0, callback, argument);
}

evdns_request* resolve_reverse(evdns_base& base, std::span<const std::byte> address,
                               evdns_callback_type callback, void* argument) noexcept {
  char name[sizeof "f." * 32 + sizeof "ip6.arpa"];
  char* at = name;
  for (std::size_t i = address.size(); i-- != 0;) {
    const auto byte = static_cast<unsigned>(address[i]);
    at += address.size() == 4 ? std::sprintf(at, "%u.", byte)
                              : std::sprintf(at, "%x.%x.", byte & 0xfU, byte >> 4U);
  }
  std::sprintf(at, "%s", address.size() == 4 ? "in-addr.arpa" : "ip6.arpa");
  tambour::libevent::evdns_log(EVENT_LOG_DEBUG, "Resolve requested for %s (reverse)", name);
  const HeldLock locked(base.lock);
  return base.resolve(dns::Type::ptr, name, false, callback, argument);
}

std::uint16_t& port_of(sockaddr* address) noexcept {
  return address->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(address)->sin_port;
}

constexpr std::uint16_t dns_port = 53;

}  // namespace

evdns_request* evdns_base_resolve_ipv4(evdns_base* base, const char* name, int flags,
                                       evdns_callback_type callback, void* ptr) {
  return resolve(*base, dns::Type::a, name, flags, callback, ptr);
}

evdns_request* evdns_base_resolve_ipv6(evdns_base* base, const char* name, int flags,
                                       evdns_callback_type callback, void* ptr) {
  return resolve(*base, dns::Type::aaaa, name, flags, callback, ptr);
}

evdns_request* evdns_base_resolve_reverse(evdns_base* base, const in_addr* in, int /*flags*/,
                                          evdns_callback_type callback, void* ptr) {
  return resolve_reverse(*base, std::as_bytes(std::span(in, 1)), callback, ptr);
}

evdns_request* evdns_base_resolve_reverse_ipv6(evdns_base* base, const in6_addr* in, int /*flags*/,
                                               evdns_callback_type callback, void* ptr) {
  return resolve_reverse(*base, std::as_bytes(std::span(in, 1)), callback, ptr);
}

int evdns_base_nameserver_sockaddr_add(evdns_base* base, const sockaddr* sa, ev_socklen_t len,
                                       unsigned /*flags*/) {
  const HeldLock locked(base->lock);
  return base->add_nameserver(sa, len);
}

int evdns_base_nameserver_add(evdns_base* base, unsigned long address) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(dns_port);
  four.sin_addr.s_addr = static_cast<in_addr_t>(address);
  return evdns_base_nameserver_sockaddr_add(base, reinterpret_cast<const sockaddr*>(&four),
                                            sizeof four, 0);
}

int evdns_base_nameserver_ip_add(evdns_base* base, const char* ip_as_string) {
  constexpr int is_not_an_address = 4;
  sockaddr_storage storage{};
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  int size = sizeof storage;
  if (evutil_parse_sockaddr_port(ip_as_string, address, &size) != 0) {
    tambour::libevent::evdns_log(EVENT_LOG_WARN, "Unable to parse nameserver address %s",
                                 ip_as_string);
    return is_not_an_address;
  }
  if (port_of(address) == 0) port_of(address) = htons(dns_port);
  return evdns_base_nameserver_sockaddr_add(base, address, static_cast<ev_socklen_t>(size), 0);
}

int evdns_base_count_nameservers(evdns_base* base) {
  const HeldLock locked(base->lock);
  int count = 0;
  while (base->nameserver(count) != nullptr) ++count;
  return count;
}

int evdns_base_get_nameserver_addr(evdns_base* base, int idx, sockaddr* sa, ev_socklen_t len) {
  const HeldLock locked(base->lock);
  const Nameserver* const server = base->nameserver(idx);
  if (server == nullptr) return -1;
  const ev_socklen_t size = server->address_size();
  if (size <= len) std::memcpy(sa, server->address(), size);
  return static_cast<int>(size);
}

int evdns_base_clear_nameservers_and_suspend(evdns_base* base) {
  const HeldLock locked(base->lock);
  base->clear_nameservers();
  return 0;
}

int evdns_base_resume(evdns_base* base) {
  const HeldLock locked(base->lock);
  base->pump();
  return 0;
}
