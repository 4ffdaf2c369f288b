// event2/util.h: network addresses.

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <event2/util.h>

#include "libevent/event/core.h"
#include "libevent/util/addrinfo.h"

using GetCallback = void (*)(int, evutil_addrinfo*, void*);

namespace {

using GetAddresses = evdns_getaddrinfo_request* (*)(evdns_base*, const char*, const char*,
                                                    const evutil_addrinfo*, GetCallback, void*);
using CancelAddresses = void (*)(evdns_getaddrinfo_request*);

GetAddresses get_addresses = nullptr;
CancelAddresses cancel_addresses = nullptr;

int compare(ev_uint32_t a, ev_uint32_t b) noexcept { return a < b ? -1 : a > b ? 1 : 0; }

int store(const void* address, int size, sockaddr* out, int* out_size) noexcept {
  if (size > *out_size) return -1;
  std::memset(out, 0, static_cast<std::size_t>(*out_size));
  std::memcpy(out, address, static_cast<std::size_t>(size));
  *out_size = size;
  return 0;
}

/// Returns -1 if the port is not between 1 and 65535.
int port_of(const char* text) noexcept {
  const int port = std::atoi(text);
  return port <= 0 || port > 65535 ? -1 : port;
}

}  // namespace

const char* evutil_inet_ntop(int family, const void* address, char* text, std::size_t size) {
  return ::inet_ntop(family, address, text, static_cast<socklen_t>(size));
}
int evutil_inet_pton(int family, const char* text, void* address) {
  return ::inet_pton(family, text, address);
}

int evutil_inet_pton_scope(int family, const char* text, void* address, unsigned* index) {
  *index = 0;
  const char* const zone = family == AF_INET6 ? std::strchr(text, '%') : nullptr;
  if (zone == nullptr) return evutil_inet_pton(family, text, address);
  unsigned long number = ::if_nametoindex(zone + 1);
  if (number == 0) {
    char* end;
    number = std::strtoul(zone + 1, &end, 10);
    if (*end != '\0') return 0;
  }
  *index = static_cast<unsigned>(number);
  char plain[128];
  const auto length = static_cast<std::size_t>(zone - text);
  if (length >= sizeof plain) return 0;
  std::memcpy(plain, text, length);
  plain[length] = '\0';
  return evutil_inet_pton(family, plain, address);
}

int evutil_parse_sockaddr_port(const char* text, sockaddr* out, int* out_size) {
  const char* const colon = std::strchr(text, ':');
  const char* port_text = nullptr;
  const char* begin = text;
  std::size_t length = std::strlen(text);
  bool is_ipv6 = false;
  if (*text == '[') {
    const char* const end = std::strchr(text, ']');
    if (end == nullptr) return -1;
    begin = text + 1;
    length = static_cast<std::size_t>(end - begin);
    if (end[1] == ':') port_text = end + 2;
    is_ipv6 = true;
  } else if (colon != nullptr && std::strchr(colon + 1, ':') != nullptr) {
    is_ipv6 = true;
  } else if (colon != nullptr) {
    length = static_cast<std::size_t>(colon - text);
    port_text = colon + 1;
  }
  char address[128];
  if (length >= sizeof address) return -1;
  std::memcpy(address, begin, length);
  address[length] = '\0';
  const int port = port_text != nullptr ? port_of(port_text) : 0;
  if (port < 0) return -1;
  if (is_ipv6) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(static_cast<std::uint16_t>(port));
    unsigned index = 0;
    if (evutil_inet_pton_scope(AF_INET6, address, &six.sin6_addr, &index) != 1) return -1;
    six.sin6_scope_id = index;
    return store(&six, sizeof six, out, out_size);
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<std::uint16_t>(port));
  if (evutil_inet_pton(AF_INET, address, &four.sin_addr) != 1) return -1;
  return store(&four, sizeof four, out, out_size);
}

int evutil_sockaddr_cmp(const sockaddr* a, const sockaddr* b, int with_port) {
  if (a->sa_family != b->sa_family) return a->sa_family - b->sa_family;
  if (a->sa_family == AF_INET) {
    const auto* const left = reinterpret_cast<const sockaddr_in*>(a);
    const auto* const right = reinterpret_cast<const sockaddr_in*>(b);
    if (const int order = compare(left->sin_addr.s_addr, right->sin_addr.s_addr)) return order;
    return with_port != 0 ? left->sin_port - right->sin_port : 0;
  }
  if (a->sa_family == AF_INET6) {
    const auto* const left = reinterpret_cast<const sockaddr_in6*>(a);
    const auto* const right = reinterpret_cast<const sockaddr_in6*>(b);
    if (const int order = std::memcmp(&left->sin6_addr, &right->sin6_addr, sizeof(in6_addr)))
      return order;
    return with_port != 0 ? left->sin6_port - right->sin6_port : 0;
  }
  return 1;
}

int evutil_getaddrinfo(const char* node, const char* service, const evutil_addrinfo* hints,
                       evutil_addrinfo** result) {
  return ::getaddrinfo(node, service, hints, result);
}

void evutil_freeaddrinfo(evutil_addrinfo* addresses) {
  if (addresses == nullptr) return;
  if ((addresses->ai_flags & tambour::libevent::addrinfo_is_ours) == 0)
    return ::freeaddrinfo(addresses);
  while (addresses != nullptr) {
    evutil_addrinfo* const next = addresses->ai_next;
    if (addresses->ai_canonname != nullptr) event_mm_free_(addresses->ai_canonname);
    event_mm_free_(addresses);
    addresses = next;
  }
}

const char* evutil_gai_strerror(int error) {
  return error == EVUTIL_EAI_CANCEL ? "Request canceled" : ::gai_strerror(error);
}

extern "C" {

void evutil_set_evdns_getaddrinfo_fn_(GetAddresses function) {
  if (get_addresses == nullptr) get_addresses = function;
}
void evutil_set_evdns_getaddrinfo_cancel_fn_(CancelAddresses function) {
  if (cancel_addresses == nullptr) cancel_addresses = function;
}

/// With evdns if there is a base for it, else with the C library, which blocks.
evdns_getaddrinfo_request* evutil_getaddrinfo_async_(evdns_base* dns, const char* node,
                                                     const char* service,
                                                     const evutil_addrinfo* hints,
                                                     GetCallback callback, void* argument) {
  if (dns != nullptr && get_addresses != nullptr)
    return get_addresses(dns, node, service, hints, callback, argument);
  evutil_addrinfo* result = nullptr;
  const int error = evutil_getaddrinfo(node, service, hints, &result);
  callback(error, result, argument);
  return nullptr;
}

void evutil_getaddrinfo_cancel_async_(evdns_getaddrinfo_request* request) {
  if (cancel_addresses != nullptr && request != nullptr) cancel_addresses(request);
}

evutil_addrinfo* evutil_addrinfo_append_(evutil_addrinfo* first, evutil_addrinfo* added) {
  if (first == nullptr) return added;
  evutil_addrinfo* last = first;
  while (last->ai_next != nullptr) last = last->ai_next;
  last->ai_next = added;
  return first;
}

int evutil_sockaddr_is_loopback_(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* const four = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(four->sin_addr.s_addr) & 0xff000000) == 0x7f000000 ? 1 : 0;
  }
  if (address->sa_family != AF_INET6) return 0;
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ? 1 : 0;
}

const char* evutil_format_sockaddr_port_(const sockaddr* address, char* text, std::size_t size) {
  char number[INET6_ADDRSTRLEN];
  if (address->sa_family == AF_INET) {
    const auto* const four = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &four->sin_addr, number, sizeof number);
    std::snprintf(text, size, "%s:%d", number, ntohs(four->sin_port));
  } else if (address->sa_family == AF_INET6) {
    const auto* const six = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &six->sin6_addr, number, sizeof number);
    std::snprintf(text, size, "[%s]:%d", number, ntohs(six->sin6_port));
  } else {
    std::snprintf(text, size, "<addr with socktype %d>", static_cast<int>(address->sa_family));
  }
  return text;
}

}  // extern "C"
