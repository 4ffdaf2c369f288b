// Cookies: RFC 6265bis (draft-ietf-httpbis-rfc6265bis).
//
// Servers read the Cookie field with cookie_named() and set cookies with add_cookie(), which
// rejects what could inject another field or attribute. Clients keep cookies in a CookieJar: see
// ClientOptions::cookies.
//
// The most likely mistake: a session cookie without `secure` and `http_only`. Both are set by
// default; clear them only for a service without TLS, or for cookies that scripts have to read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>
#include <tambour/http/fields.h>
#include <tambour/http/url.h>

#pragma GCC visibility push(default)

namespace tambour::http {

// Servers.

/// The value of the first cookie with this name in the Cookie fields of a request, as the client
/// has sent it: also quotation marks and percent signs. Names are case-sensitive. The view refers
/// to the fields.
[[nodiscard]] std::optional<std::string_view> cookie_named(const Fields& fields,
                                                           std::string_view name) noexcept;

/// All cookies in their order: names may repeat. Elements without "=" are ignored. The views refer
/// to the fields. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> parse_cookies(
    const Fields& fields);

/// Whether a cookie is sent with requests that another site has caused.
enum class SameSite : std::uint8_t {
  unset,   ///< As the client decides; browsers treat it like `lax`.
  strict,  ///< Never.
  lax,     ///< Only when the user follows a link.
  none,    ///< Always. Requires `secure`.
};

/// A cookie that a response sets. Not an aggregate: see ClientRequest.
struct SetCookie {
  SetCookie() = default;
  /// A cookie of the client's session, for the host of the server and all paths.
  SetCookie(std::string given_name, std::string its_value)
      : name(std::move(given_name)), value(std::move(its_value)) {}

  /// A token. A name that begins with "__Secure-" requires `secure`; "__Host-" also the path "/"
  /// and no domain.
  std::string name{};
  /// Visible ASCII characters except quotation marks, commas, semicolons and backslashes. Encode
  /// other text, for example with percent_encode().
  std::string value{};
  /// Also sent to hosts below this one, which must be the host of the server or above it. Empty: to
  /// the host of the server only.
  std::string domain{};
  /// Sent only with requests for this path and those below it. Empty: the client uses the path of
  /// the request without its last segment.
  std::string path = "/";
  /// The end of the cookie; `max_age` takes precedence. Neither: the end of the client's session.
  std::optional<std::chrono::sys_seconds> expires{};
  std::optional<std::chrono::seconds> max_age{};
  SameSite same_site = SameSite::lax;
  bool secure = true;     ///< Sent over TLS only.
  bool http_only = true;  ///< Invisible to scripts.
};

/// The value of the field Set-Cookie. Fails with http::ErrorCode::bad_cookie if a part has a
/// character that it must not contain, if name and value have more than 4096 bytes or another part
/// more than 1024, or if a rule of prefixes or of SameSite is broken. Throws std::bad_alloc.
[[nodiscard]] Result<std::string> format_set_cookie(const SetCookie& cookie);

/// Adds a Set-Cookie field to those of a response. Fails like format_set_cookie().
Result<> add_cookie(Fields& fields, const SetCookie& cookie);

/// Adds a field that removes a cookie. Domain and path must be those with which it was set. Fails
/// like format_set_cookie().
Result<> remove_cookie(Fields& fields, std::string_view name, std::string_view path = "/",
                       std::string_view domain = {});

// Clients.

/// Parses the value of Set-Cookie (section 5.6): attributes that are unknown or malformed are
/// ignored. `path` is empty if it is missing or does not begin with "/"; `domain` is in lower case
/// and without its leading dot. Fails with http::ErrorCode::bad_cookie if there is no name, if name
/// and value have more than 4096 bytes, or if there is a control character. Throws std::bad_alloc.
[[nodiscard]] Result<SetCookie> parse_set_cookie(std::string_view text);

/// The limits of a CookieJar.
struct CookieJarOptions {
  std::size_t cookies_max = 3000;
  /// Of one site: a registrable domain and the hosts below it.
  std::size_t cookies_per_site_max = 180;
  /// Of the Cookie field that is sent. Cookies for which there is no room are not sent; those with
  /// the longest paths come first.
  std::size_t field_bytes_max = std::size_t{8} * 1024;
};

/// The cookies of a client.
///
/// Domains: with libpsl, a server cannot set cookies for a public suffix ("co.uk", "github.io").
/// Without it (TAMBOUR_PSL=OFF), only those for domains with a single label are rejected: do not
/// use one jar for sites that do not trust each other then.
/// Limits: see CookieJarOptions. If one is exceeded, expired cookies are removed first, and then
/// those that were not used for the longest time. A cookie lives for at most 400 days.
/// Time: the caller passes it. The client uses the clock of its loop.
/// Thread: must be used by one thread at a time. Clients on one loop may share a jar.
class CookieJar {
 public:
  /// A cookie in the jar.
  struct Entry {
    std::string name{};
    std::string value{};
    std::string domain{};  ///< In lower case.
    std::string path{};
    WallTime expires{};  ///< WallTime::max(): the end of the session.
    WallTime created{};
    WallTime used{};
    SameSite same_site = SameSite::unset;
    bool host_only = false;  ///< Not sent to hosts below `domain`.
    bool secure = false;
    bool http_only = false;
  };

  explicit CookieJar(CookieJarOptions options = {});

  /// Stores the cookies that a response from `url` sets. Those that must not be set are ignored
  /// (section 5.7): for another domain, with a prefix whose rule is broken, secure ones without
  /// TLS. Returns how many were stored or removed. Throws std::bad_alloc.
  std::size_t store(const Url& url, const Fields& fields, WallTime now);

  /// The Cookie field for a request; empty if there is none. `is_cross_site` means that another
  /// site has caused the request, for example by a redirect: cookies with SameSite `strict` are not
  /// sent then, and others only if they have `none` or if the method is safe. Throws
  /// std::bad_alloc.
  [[nodiscard]] std::string field_for(const Url& url, WallTime now, bool is_cross_site = false,
                                      bool is_safe = true);

  /// Adds a cookie, for example from a file. Replaces one with the same name, domain and path.
  /// Fails with http::ErrorCode::bad_cookie if name, value, domain or path is malformed.
  Result<> add(Entry entry, WallTime now);
  /// All cookies, for example to save them. Those without `expires` belong to the session.
  [[nodiscard]] std::vector<Entry> entries() const;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Removes all cookies.
  void clear() noexcept;
  /// Removes the cookies that have expired at `now`. store() does it when the jar is full.
  void remove_expired(WallTime now) noexcept;

  /// True if both URLs have the scheme and the registrable domain in common.
  [[nodiscard]] static bool is_same_site(const Url& a, const Url& b);

 private:
  using Site = std::vector<Entry>;

  bool store_one(const Url& url, SetCookie cookie, WallTime now);
  void insert(Entry entry, WallTime now);
  void make_room(Site& site, WallTime now);
  void evict_oldest() noexcept;

  CookieJarOptions options_;
  std::map<std::string, Site, std::less<>> sites_;
  std::size_t size_ = 0;
};

}  // namespace tambour::http

#pragma GCC visibility pop
