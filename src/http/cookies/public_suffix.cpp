// Public suffixes by libpsl; without it, no suffix is known to be public.
#include "http/cookies/public_suffix.h"

#include <tambour/net/ip_address.h>

#ifndef TAMBOUR_NO_PSL
#include <libpsl.h>
#endif

namespace tambour::http::detail::cookies {

bool is_address(const std::string& host) noexcept { return IpAddress::parse(host).has_value(); }

#ifndef TAMBOUR_NO_PSL
namespace {

/// The newer of the list of the system and the one in libpsl. It is never freed: it is used until
/// the process ends.
const psl_ctx_t* list() noexcept {
  static const psl_ctx_t* const loaded = psl_latest(nullptr);
  return loaded;
}

}  // namespace

bool is_public_suffix(const std::string& host) noexcept {
  const psl_ctx_t* const known = list();
  if (known == nullptr) return host.find('.') == std::string::npos;
  return psl_is_public_suffix(known, host.c_str()) != 0;
}

std::string registrable_domain(const std::string& host) {
  const psl_ctx_t* const known = list();
  if (known == nullptr || is_address(host)) return host;
  const char* const domain = psl_registrable_domain(known, host.c_str());
  return domain == nullptr ? host : domain;
}

std::string site_of(const std::string& host) { return registrable_domain(host); }
#else
bool is_public_suffix(const std::string& host) noexcept {
  return host.find('.') == std::string::npos;
}

std::string registrable_domain(const std::string& host) { return host; }

std::string site_of(const std::string& host) {
  const std::size_t last = host.rfind('.');
  if (last == std::string::npos || last == 0 || is_address(host)) return host;
  const std::size_t before = host.rfind('.', last - 1);
  return before == std::string::npos ? host : host.substr(before + 1);
}
#endif

}  // namespace tambour::http::detail::cookies
