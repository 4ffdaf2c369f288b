// HTTP Strict Transport Security for clients: RFC 6797. After a response with the field
// Strict-Transport-Security, the client sends requests to that host only over TLS.
// http::strict_transport_security() in http/https.h sends the field.
//
//   http::ClientOptions options;
//   options.hsts = std::make_shared<http::HstsStore>();
//   options.hsts->load(text_of_a_file, now);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>
#include <tambour/http/url.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The limits of an HstsStore.
struct HstsOptions {
  std::size_t hosts_max = 10'000;
  /// Of one site: a registrable domain and the hosts below it, as for cookies.
  std::size_t hosts_per_site_max = 100;
};

/// The hosts to which a client sends requests only over TLS.
/// Limits: see HstsOptions. If one is exceeded, the hosts that expire first are removed. A host is
/// remembered for at most ten years.
/// Time: the caller passes it. The client uses the clock of its loop.
/// Thread: must be used by one thread at a time. Clients on one loop may share a store.
/// Certificates: a client whose TLS context verifies nothing (insecure_skip_verify) must have no
/// store, because what it receives may come from another server (section 8.1).
class HstsStore {
 public:
  explicit HstsStore(HstsOptions options = {});

  /// Processes the field of a response from `url` (section 8.1): "max-age=0" removes the host.
  /// Fields are ignored if the response was received without TLS, if the host is an IP address, if
  /// they are malformed, and after the first one. Throws std::bad_alloc.
  void store(const Url& url, const Fields& fields, WallTime now);

  /// True if a host, or one above it with includeSubDomains, must be requested with TLS. Throws
  /// std::bad_alloc.
  [[nodiscard]] bool applies_to(std::string_view host, WallTime now) const;
  /// The URL to request instead of `url` (section 8.3): with the scheme "https", and port 443
  /// instead of 80; `url` itself unless it has the scheme "http" and applies_to() its host. Fails
  /// with http::ErrorCode::url_too_long. Throws std::bad_alloc.
  [[nodiscard]] Result<Url> secure(const Url& url, WallTime now) const;

  /// Adds a host, for example one that the program knows. Returns false if it is an IP address or
  /// no host name. Throws std::bad_alloc.
  bool add(std::string_view host, WallTime expires, bool include_subdomains, WallTime now);

  /// One line for each host whose time has not ended, in the format of curl(1), option --hsts:
  ///
  ///   example.org "20270101 00:00:00"
  ///   .example.com "20270101 00:00:00"
  ///
  /// A dot in front means includeSubDomains. Times are UTC. Throws std::bad_alloc.
  [[nodiscard]] std::string to_text(WallTime now) const;
  /// Adds the hosts of such a text, and ignores empty lines and those that begin with "#". Returns
  /// how many were added. Fails with EINVAL if a line is malformed; the lines before it have been
  /// added then. Throws std::bad_alloc.
  Result<std::size_t> load(std::string_view text, WallTime now);

  /// Includes expired hosts until they are removed to make room.
  [[nodiscard]] std::size_t size() const noexcept;
  void clear() noexcept;

 private:
  struct Host {
    WallTime expires{};
    bool include_subdomains = false;
  };
  using Hosts = std::map<std::string, Host, std::less<>>;

  void remove(Hosts::iterator host);
  void make_room(const std::string& site);

  HstsOptions options_;
  Hosts hosts_;  ///< In lower case, without a dot at the end.
  std::map<std::string, std::size_t, std::less<>> sites_;  ///< The number of hosts of each.
};

}  // namespace tambour::http

#pragma GCC visibility pop
