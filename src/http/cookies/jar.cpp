// CookieJar: RFC 6265bis, sections 5.7 and 5.8.
#include <algorithm>

#include <tambour/http/cookie.h>

#include "base/clock.h"
#include "http/cookies/public_suffix.h"
#include "http/cookies/rules.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace detail::cookies {
namespace {

constexpr auto lifetime_max = std::chrono::days(400);

std::string host_of(const Url& url) {
  std::string host = base::lower_case(std::string(url.host()));
  // "example.org." is the same host.
  if (host.ends_with('.')) host.pop_back();
  return host;
}

bool is_secure(const Url& url) noexcept {
  return equal_ignoring_case(url.scheme(), "https") || equal_ignoring_case(url.scheme(), "wss");
}

/// Section 5.1.3.
bool domain_matches(const std::string& host, std::string_view domain) noexcept {
  if (host == domain) return true;
  return host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.' && !is_address(host);
}

/// Section 5.1.4.
std::string default_path(const Url& url) {
  const std::string_view path = url.path();
  const std::size_t last = path.rfind('/');
  if (!path.starts_with('/') || last == 0) return "/";
  return std::string(path.substr(0, last));
}

bool path_matches(std::string_view path, std::string_view of_cookie) noexcept {
  if (path.empty()) path = "/";
  if (!path.starts_with(of_cookie)) return false;
  return path.size() == of_cookie.size() || of_cookie.ends_with('/') ||
         path[of_cookie.size()] == '/';
}

bool is_valid(const CookieJar::Entry& entry) noexcept {
  return !entry.name.empty() && all_are(entry.name, value_char) &&
         entry.name.find_first_of("=;") == std::string::npos &&
         (entry.value.empty() || all_are(entry.value, value_char)) &&
         entry.value.find(';') == std::string::npos &&
         entry.name.size() + entry.value.size() <= cookie_bytes_max && !entry.domain.empty() &&
         entry.domain.size() <= attribute_bytes_max && entry.path.starts_with('/') &&
         entry.path.size() <= attribute_bytes_max;
}

bool is_same(const CookieJar::Entry& a, const CookieJar::Entry& b) noexcept {
  return a.name == b.name && a.domain == b.domain && a.host_only == b.host_only && a.path == b.path;
}

/// Section 5.7, step 16: a server without TLS must not replace, or hide, a secure cookie.
bool hides_secure(const std::vector<CookieJar::Entry>& site, const CookieJar::Entry& entry) {
  return std::ranges::any_of(site, [&entry](const CookieJar::Entry& current_entry) {
    return current_entry.secure && current_entry.name == entry.name &&
           (domain_matches(current_entry.domain, entry.domain) ||
            domain_matches(entry.domain, current_entry.domain)) &&
           path_matches(entry.path, current_entry.path);
  });
}

WallTime expiry_of(const SetCookie& cookie, WallTime now) noexcept {
  const WallTime latest = base::saturating_add(now, lifetime_max);
  if (cookie.max_age) {
    if (*cookie.max_age <= std::chrono::seconds(0)) return WallTime::min();
    return *cookie.max_age < lifetime_max ? base::saturating_add(now, *cookie.max_age) : latest;
  }
  if (!cookie.expires) return WallTime::max();
  // Nanoseconds end in the year 2262.
  return *cookie.expires < std::chrono::floor<std::chrono::seconds>(latest)
             ? WallTime(std::max(*cookie.expires, std::chrono::sys_seconds()))
             : latest;
}

}  // namespace
}  // namespace detail::cookies

CookieJar::CookieJar(CookieJarOptions options) : options_(options) {}

bool CookieJar::is_same_site(const Url& a, const Url& b) {
  return detail::cookies::is_secure(a) == detail::cookies::is_secure(b) &&
         detail::cookies::registrable_domain(detail::cookies::host_of(a)) ==
             detail::cookies::registrable_domain(detail::cookies::host_of(b));
}

std::size_t CookieJar::store(const Url& url, const Fields& fields, WallTime now) {
  std::size_t stored = 0;
  for (std::size_t at = fields.find("Set-Cookie"); at != fields.size();
       at = fields.find("Set-Cookie", at + 1)) {
    auto cookie = parse_set_cookie(fields[at].value);
    if (cookie && store_one(url, std::move(*cookie), now)) ++stored;
  }
  return stored;
}

bool CookieJar::store_one(const Url& url, SetCookie cookie, WallTime now) {
  const std::string host = detail::cookies::host_of(url);
  const bool is_secure = detail::cookies::is_secure(url);
  if (host.empty() || (cookie.secure && !is_secure)) return false;
  if (!detail::cookies::obeys_prefix(cookie)) return false;
  // A public suffix may set cookies for itself only: github.io is a host, too.
  if (!cookie.domain.empty() && cookie.domain == host && detail::cookies::is_public_suffix(host))
    cookie.domain.clear();
  if (!cookie.domain.empty() && (!detail::cookies::domain_matches(host, cookie.domain) ||
                                 detail::cookies::is_public_suffix(cookie.domain)))
    return false;
  Entry entry{.name = std::move(cookie.name),
              .value = std::move(cookie.value),
              .domain = cookie.domain.empty() ? host : cookie.domain,
              .path = cookie.path.empty() ? detail::cookies::default_path(url) : cookie.path,
              .expires = detail::cookies::expiry_of(cookie, now),
              .created = now,
              .used = now,
              .same_site = cookie.same_site,
              .host_only = cookie.domain.empty() || detail::cookies::is_address(host),
              .secure = cookie.secure,
              .http_only = cookie.http_only};
  if (!detail::cookies::is_valid(entry)) return false;
  if (!is_secure) {
    const auto site = sites_.find(detail::cookies::site_of(host));
    if (site != sites_.end() && detail::cookies::hides_secure(site->second, entry)) return false;
  }
  insert(std::move(entry), now);
  return true;
}

Result<> CookieJar::add(Entry entry, WallTime now) {
  if (!detail::cookies::is_valid(entry)) return failure(ErrorCode::bad_cookie);
  insert(std::move(entry), now);
  return {};
}

/// Replaces the same cookie. One that has expired only removes it.
void CookieJar::insert(Entry entry, WallTime now) {
  const auto position = sites_.try_emplace(detail::cookies::site_of(entry.domain)).first;
  Site& site = position->second;
  const auto old = std::ranges::find_if(site, [&entry](const Entry& current_entry) {
    return detail::cookies::is_same(current_entry, entry);
  });
  const bool has_expired = entry.expires <= now;
  if (old != site.end() && has_expired) {
    site.erase(old);
    --size_;
  } else if (old != site.end()) {
    entry.created = old->created;
    *old = std::move(entry);
  } else if (!has_expired) {
    site.push_back(std::move(entry));
    ++size_;
    return make_room(site, now);
  }
  if (site.empty()) sites_.erase(position);
}

void CookieJar::make_room(Site& site, WallTime now) {
  if (site.size() > options_.cookies_per_site_max) {
    size_ -= std::erase_if(site, [now](const Entry& entry) { return entry.expires <= now; });
    while (site.size() > options_.cookies_per_site_max) {
      site.erase(std::ranges::min_element(site, {}, &Entry::used));
      --size_;
    }
  }
  if (size_ <= options_.cookies_max) return;
  remove_expired(now);
  while (size_ > options_.cookies_max) evict_oldest();
}

void CookieJar::evict_oldest() noexcept {
  auto oldest_site = sites_.end();
  Site::iterator oldest;
  for (auto site = sites_.begin(); site != sites_.end(); ++site) {
    const auto first = std::ranges::min_element(site->second, {}, &Entry::used);
    if (first == site->second.end()) continue;
    if (oldest_site != sites_.end() && first->used >= oldest->used) continue;
    oldest_site = site;
    oldest = first;
  }
  oldest_site->second.erase(oldest);
  if (oldest_site->second.empty()) sites_.erase(oldest_site);
  --size_;
}

std::string CookieJar::field_for(const Url& url, WallTime now, bool is_cross_site, bool is_safe) {
  const std::string host = detail::cookies::host_of(url);
  const auto site = sites_.find(detail::cookies::site_of(host));
  if (site == sites_.end()) return {};
  const bool is_secure = detail::cookies::is_secure(url);
  const auto is_sent = [&](const Entry& current_object) {
    if (current_object.expires <= now || (current_object.secure && !is_secure)) return false;
    if (is_cross_site && current_object.same_site != SameSite::none &&
        (current_object.same_site == SameSite::strict || !is_safe))
      return false;
    const bool is_for_host = current_object.host_only
                                 ? host == current_object.domain
                                 : detail::cookies::domain_matches(host, current_object.domain);
    return is_for_host && detail::cookies::path_matches(url.path(), current_object.path);
  };
  std::vector<Entry*> sent;
  for (Entry& current_entry : site->second) {
    if (is_sent(current_entry)) sent.push_back(&current_entry);
  }
  std::ranges::stable_sort(sent, [](const Entry* a, const Entry* b) {
    return a->path.size() != b->path.size() ? a->path.size() > b->path.size()
                                            : a->created < b->created;
  });
  std::string field;
  for (Entry* const entry : sent) {
    if (field.size() + entry->name.size() + entry->value.size() + 3 > options_.field_bytes_max)
      continue;
    entry->used = now;
    field.append(field.empty() ? "" : "; ").append(entry->name).append("=").append(entry->value);
  }
  return field;
}

std::vector<CookieJar::Entry> CookieJar::entries() const {
  std::vector<Entry> all;
  for (const auto& [domain, site] : sites_) all.insert(all.end(), site.begin(), site.end());
  return all;
}

void CookieJar::clear() noexcept {
  sites_.clear();
  size_ = 0;
}

void CookieJar::remove_expired(WallTime now) noexcept {
  for (auto site = sites_.begin(); site != sites_.end();) {
    size_ -=
        std::erase_if(site->second, [now](const Entry& entry) { return entry.expires <= now; });
    site = site->second.empty() ? sites_.erase(site) : std::next(site);
  }
}

}  // namespace tambour::http
