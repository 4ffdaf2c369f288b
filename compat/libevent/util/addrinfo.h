// What evdns uses of the addresses of libevent_core. The names and signatures are the original's.
#pragma once

#include <netinet/in.h>

#include <cstddef>

#include <event2/util.h>

struct evdns_base;
struct evdns_getaddrinfo_request;

extern "C" {

/// Results for one address: one, or one for TCP and one for UDP if the hints do not say which.
/// Null if there is no memory.
evutil_addrinfo* evutil_new_addrinfo_(const sockaddr* address, socklen_t size,
                                      const evutil_addrinfo* hints);
evutil_addrinfo* evutil_addrinfo_append_(evutil_addrinfo* first, evutil_addrinfo* added);
/// Completes the hints. Returns 0 and a result, an error (EVUTIL_EAI_*), or addrinfo_needs_lookup
/// and the port.
int evutil_getaddrinfo_common_(const char* node, const char* service, evutil_addrinfo* hints,
                               evutil_addrinfo** result, int* port);
/// With EVUTIL_AI_ADDRCONFIG, restricts the family to that of the host's addresses.
void evutil_adjust_hints_for_addrconfig_(evutil_addrinfo* hints);
int evutil_v4addr_is_local_(const in_addr* address);
int evutil_v6addr_is_local_(const in6_addr* address);
int evutil_sockaddr_is_loopback_(const sockaddr* address);
const char* evutil_format_sockaddr_port_(const sockaddr* address, char* text, std::size_t size);
/// Reads a file into memory of event_mm_malloc_(), with a NUL byte behind it. Returns -1 if it
/// cannot be opened, -2 if it cannot be read.
int evutil_read_file_(const char* path, char** content, std::size_t* length, int is_binary);

/// Only the first functions that are set are used.
void evutil_set_evdns_getaddrinfo_fn_(evdns_getaddrinfo_request* (*function)(
    evdns_base*, const char*, const char*, const evutil_addrinfo*,
    void (*callback)(int, evutil_addrinfo*, void*), void*));
void evutil_set_evdns_getaddrinfo_cancel_fn_(void (*function)(evdns_getaddrinfo_request*));

}  // extern "C"

namespace tambour::libevent {

/// Set in ai_flags. The results of getaddrinfo(3) are the C library's; those of
/// evutil_new_addrinfo_() are not.
inline constexpr int addrinfo_is_ours = 0x40000000;
/// The original's EVUTIL_EAI_NEED_RESOLVE, which is in no installed header.
inline constexpr int addrinfo_needs_lookup = -90002;

}  // namespace tambour::libevent
