// The functions of event2/dns_compat.h, which use one base of the process; messages and errors.

#include <event2/dns.h>
#include <event2/dns_compat.h>

#include "libevent/evdns/base.h"

using tambour::libevent::evdns_global_base;

namespace {

/// Some functions create the base if there is none.
evdns_base* need_base() noexcept {
  if (evdns_global_base == nullptr) evdns_global_base = evdns_base_new(nullptr, 0);
  return evdns_global_base;
}

}  // namespace

int evdns_init() {
  evdns_base* const base = evdns_base_new(nullptr, EVDNS_BASE_INITIALIZE_NAMESERVERS);
  if (base == nullptr) return -1;
  evdns_global_base = base;
  return 0;
}

evdns_base* evdns_get_global_base() { return evdns_global_base; }

void evdns_shutdown(int fail_requests) {
  evdns_base* const base = evdns_global_base;
  evdns_global_base = nullptr;
  if (base != nullptr) evdns_base_free(base, fail_requests);
  tambour::libevent::evdns_log_function = nullptr;
}

int evdns_nameserver_add(unsigned long address) {
  return evdns_base_nameserver_add(need_base(), address);
}
int evdns_nameserver_ip_add(const char* ip_as_string) {
  return evdns_base_nameserver_ip_add(need_base(), ip_as_string);
}
int evdns_count_nameservers() { return evdns_base_count_nameservers(evdns_global_base); }
int evdns_clear_nameservers_and_suspend() {
  return evdns_base_clear_nameservers_and_suspend(evdns_global_base);
}
int evdns_resume() { return evdns_base_resume(evdns_global_base); }

int evdns_resolve_ipv4(const char* name, int flags, evdns_callback_type callback, void* ptr) {
  const auto* const created =
      evdns_base_resolve_ipv4(evdns_global_base, name, flags, callback, ptr);
  return created != nullptr ? 0 : -1;
}
int evdns_resolve_ipv6(const char* name, int flags, evdns_callback_type callback, void* ptr) {
  const auto* const created =
      evdns_base_resolve_ipv6(evdns_global_base, name, flags, callback, ptr);
  return created != nullptr ? 0 : -1;
}
int evdns_resolve_reverse(const in_addr* in, int flags, evdns_callback_type callback, void* ptr) {
  const auto* const created =
      evdns_base_resolve_reverse(evdns_global_base, in, flags, callback, ptr);
  return created != nullptr ? 0 : -1;
}
int evdns_resolve_reverse_ipv6(const in6_addr* in, int flags, evdns_callback_type callback,
                               void* ptr) {
  const auto* const created =
      evdns_base_resolve_reverse_ipv6(evdns_global_base, in, flags, callback, ptr);
  return created != nullptr ? 0 : -1;
}

int evdns_set_option(const char* option, const char* val, int /*flags*/) {
  return evdns_base_set_option(need_base(), option, val);
}
int evdns_resolv_conf_parse(int flags, const char* const filename) {
  return evdns_base_resolv_conf_parse(need_base(), flags, filename);
}
void evdns_search_clear() { evdns_base_search_clear(evdns_global_base); }
void evdns_search_add(const char* domain) { evdns_base_search_add(evdns_global_base, domain); }
void evdns_search_ndots_set(const int ndots) {
  evdns_base_search_ndots_set(evdns_global_base, ndots);
}

void evdns_set_log_fn(evdns_debug_log_fn_type fn) { tambour::libevent::evdns_log_function = fn; }
// As in the original: numbers are always those of evutil_secure_rng_get_bytes().
void evdns_set_transaction_id_fn(ev_uint16_t (* /*fn*/)()) {}
void evdns_set_random_bytes_fn(void (* /*fn*/)(char*, std::size_t)) {}

const char* evdns_err_to_string(int err) {
  switch (err) {
    case DNS_ERR_NONE:
      return "no error";
    case DNS_ERR_FORMAT:
      return "misformatted query";
    case DNS_ERR_SERVERFAILED:
      return "server failed";
    case DNS_ERR_NOTEXIST:
      return "name does not exist";
    case DNS_ERR_NOTIMPL:
      return "query not implemented";
    case DNS_ERR_REFUSED:
      return "refused";
    case DNS_ERR_TRUNCATED:
      return "reply truncated or ill-formed";
    case DNS_ERR_UNKNOWN:
      return "unknown";
    case DNS_ERR_TIMEOUT:
      return "request timed out";
    case DNS_ERR_SHUTDOWN:
      return "dns subsystem shut down";
    case DNS_ERR_CANCEL:
      return "dns request canceled";
    case DNS_ERR_NODATA:
      return "no records in the reply";
    default:
      return "[Unknown error code]";
  }
}
