// event2/util.h: the part of getaddrinfo(3) that needs no lookup, for evdns.

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

#include <event2/util.h>

#include "libevent/event/core.h"
#include "libevent/util/addrinfo.h"

namespace {

enum class Interfaces { unknown, none, v4, v6, both };

/// Examined once, as in the original.
Interfaces interfaces = Interfaces::unknown;

Interfaces examine_interfaces() noexcept {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    event_warn("Unable to call getifaddrs()");
    return Interfaces::both;
  }
  bool has_v4 = false;
  bool has_v6 = false;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* const four = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      has_v4 |= evutil_v4addr_is_local_(&four->sin_addr) == 0;
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* const six = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      has_v6 |= evutil_v6addr_is_local_(&six->sin6_addr) == 0;
    }
  }
  ::freeifaddrs(first);
  if (has_v4 == has_v6) return has_v4 ? Interfaces::both : Interfaces::none;
  return has_v4 ? Interfaces::v4 : Interfaces::v6;
}

/// Each of the socket type and the protocol follows from the other one.
void infer_protocols(evutil_addrinfo& hints) noexcept {
  if (hints.ai_protocol == 0 && hints.ai_socktype == SOCK_DGRAM) hints.ai_protocol = IPPROTO_UDP;
  if (hints.ai_protocol == 0 && hints.ai_socktype == SOCK_STREAM) hints.ai_protocol = IPPROTO_TCP;
  if (hints.ai_socktype != 0) return;
  if (hints.ai_protocol == IPPROTO_UDP) hints.ai_socktype = SOCK_DGRAM;
  if (hints.ai_protocol == IPPROTO_TCP || hints.ai_protocol == IPPROTO_SCTP)
    hints.ai_socktype = SOCK_STREAM;
}

const char* name_of_protocol(int protocol) noexcept {
  if (protocol == IPPROTO_TCP) return "tcp";
  if (protocol == IPPROTO_UDP) return "udp";
  if (protocol == IPPROTO_SCTP) return "sctp";
  return nullptr;
}

/// Returns -1 if there is no such service.
int port_of_service(const char* service, const evutil_addrinfo& hints) noexcept {
  constexpr long port_max = 65535;
  char* end = nullptr;
  const long number = std::strtol(service, &end, 10);
  if (*service != '\0' && *end == '\0' && number >= 0 && number <= port_max)
    return static_cast<int>(number);
  if ((hints.ai_flags & EVUTIL_AI_NUMERICSERV) != 0) return -1;
  servent entry;
  servent* found = nullptr;
  char buffer[1024];
  ::getservbyname_r(service, name_of_protocol(hints.ai_protocol), &entry, buffer, sizeof buffer,
                    &found);
  return found != nullptr ? ntohs(static_cast<std::uint16_t>(found->s_port)) : -1;
}

sockaddr_in v4_address(in_addr address, int port) noexcept {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<std::uint16_t>(port));
  four.sin_addr = address;
  return four;
}
sockaddr_in6 v6_address(const in6_addr& address, unsigned zone, int port) noexcept {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  six.sin6_addr = address;
  six.sin6_scope_id = zone;
  return six;
}

template <class T>
evutil_addrinfo* make_result(const T& address, const evutil_addrinfo& hints) noexcept {
  return evutil_new_addrinfo_(reinterpret_cast<const sockaddr*>(&address), sizeof address, &hints);
}

/// The addresses to bind to, or those of this host.
int without_name(const evutil_addrinfo& hints, int port, evutil_addrinfo*& result) noexcept {
  const bool is_passive = (hints.ai_flags & EVUTIL_AI_PASSIVE) != 0;
  evutil_addrinfo* six = nullptr;
  evutil_addrinfo* four = nullptr;
  if (hints.ai_family != PF_INET) {
    six = make_result(v6_address(is_passive ? in6addr_any : in6addr_loopback, 0, port), hints);
    if (six == nullptr) return EVUTIL_EAI_MEMORY;
  }
  if (hints.ai_family != PF_INET6) {
    const in_addr address{.s_addr = htonl(is_passive ? INADDR_ANY : INADDR_LOOPBACK)};
    four = make_result(v4_address(address, port), hints);
    if (four == nullptr) {
      evutil_freeaddrinfo(six);
      return EVUTIL_EAI_MEMORY;
    }
  }
  result = evutil_addrinfo_append_(four, six);
  return 0;
}

}  // namespace

extern "C" {

int evutil_v4addr_is_local_(const in_addr* address) {
  const std::uint32_t number = ntohl(address->s_addr);
  const bool is_local = number == INADDR_ANY || number >> 24U == 127 || number >> 16U == 0xa9fe ||
                        number >> 28U == 0xe;
  return is_local ? 1 : 0;
}

int evutil_v6addr_is_local_(const in6_addr* address) {
  constexpr std::uint8_t zeros[8]{};
  const std::uint8_t* const bytes = address->s6_addr;
  const bool is_local = std::memcmp(bytes, zeros, sizeof zeros) == 0 ||
                        (bytes[0] & 0xfeU) == 0xfc || bytes[0] == 0xff ||
                        (bytes[0] == 0xfe && (bytes[1] & 0x80U) != 0);
  return is_local ? 1 : 0;
}

void evutil_adjust_hints_for_addrconfig_(evutil_addrinfo* hints) {
  if ((hints->ai_flags & EVUTIL_AI_ADDRCONFIG) == 0 || hints->ai_family != PF_UNSPEC) return;
  if (interfaces == Interfaces::unknown) interfaces = examine_interfaces();
  if (interfaces == Interfaces::v4) hints->ai_family = PF_INET;
  if (interfaces == Interfaces::v6) hints->ai_family = PF_INET6;
}

evutil_addrinfo* evutil_new_addrinfo_(const sockaddr* address, socklen_t size,
                                      const evutil_addrinfo* hints) {
  if (hints->ai_socktype == 0 && hints->ai_protocol == 0) {
    evutil_addrinfo both = *hints;
    both.ai_socktype = SOCK_STREAM;
    both.ai_protocol = IPPROTO_TCP;
    evutil_addrinfo* const stream = evutil_new_addrinfo_(address, size, &both);
    if (stream == nullptr) return nullptr;
    both.ai_socktype = SOCK_DGRAM;
    both.ai_protocol = IPPROTO_UDP;
    stream->ai_next = evutil_new_addrinfo_(address, size, &both);
    if (stream->ai_next != nullptr) return stream;
    evutil_freeaddrinfo(stream);
    return nullptr;
  }
  void* const memory = event_mm_calloc_(1, sizeof(evutil_addrinfo) + size);
  if (memory == nullptr) return nullptr;
  auto* const created = static_cast<evutil_addrinfo*>(memory);
  created->ai_addr = reinterpret_cast<sockaddr*>(created + 1);
  std::memcpy(created->ai_addr, address, size);
  created->ai_addrlen = size;
  created->ai_family = address->sa_family;
  created->ai_flags = tambour::libevent::addrinfo_is_ours;
  created->ai_socktype = hints->ai_socktype;
  created->ai_protocol = hints->ai_protocol;
  return created;
}

int evutil_getaddrinfo_common_(const char* node, const char* service, evutil_addrinfo* hints,
                               evutil_addrinfo** result, int* port) {
  if (node == nullptr && service == nullptr) return EVUTIL_EAI_NONAME;
  const int family = hints->ai_family;
  if (family != PF_UNSPEC && family != PF_INET && family != PF_INET6) return EVUTIL_EAI_FAMILY;
  infer_protocols(*hints);
  const int number = service != nullptr ? port_of_service(service, *hints) : 0;
  if (number < 0) return EVUTIL_EAI_NONAME;
  if (node == nullptr) return without_name(*hints, number, *result);
  in6_addr six;
  unsigned zone = 0;
  in_addr four;
  if (family != PF_INET && evutil_inet_pton_scope(AF_INET6, node, &six, &zone) == 1) {
    *result = make_result(v6_address(six, zone, number), *hints);
  } else if (family != PF_INET6 && evutil_inet_pton(AF_INET, node, &four) == 1) {
    *result = make_result(v4_address(four, number), *hints);
  } else if ((hints->ai_flags & EVUTIL_AI_NUMERICHOST) != 0) {
    return EVUTIL_EAI_NONAME;
  } else {
    *port = number;
    return tambour::libevent::addrinfo_needs_lookup;
  }
  return *result != nullptr ? 0 : EVUTIL_EAI_MEMORY;
}

}  // extern "C"
