// HstsStore: RFC 6797.
#include <tambour/http/hsts.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "http/cookies/public_suffix.h"
#include "http_message/auth/scanner.h"
#include "http_message/characters.h"
#include "http_message/date.h"

namespace tambour::http {
namespace {

namespace base = detail::base;
using detail::auth::Scanner;
using std::chrono::sys_seconds;

constexpr std::chrono::seconds lifetime_max = std::chrono::days(3650);
constexpr std::size_t host_bytes_max = 253;
constexpr std::string_view time_format = "%Y%m%d %T";

/// In lower case, without a dot at the end. Empty if it is an address or no host name.
std::string host_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string name = base::lower_case(std::string(host));
  const bool is_name = !name.empty() && name.size() <= host_bytes_max && !name.starts_with('.') &&
                       std::ranges::all_of(name, [](char character) {
                         return is_letter(character) || is_digit(character) || character == '-' ||
                                character == '_' || character == '.';
                       });
  if (!is_name || detail::cookies::is_address(name)) return {};
  return name;
}

struct Policy {
  std::chrono::seconds max_age{};
  bool include_subdomains = false;
};

/// The RFC has two directives.
constexpr std::size_t directives_max = 64;

/// Section 6.1. No value if a directive is malformed or repeated, if there are too many, or if
/// max-age is missing.
std::optional<Policy> parse_policy(std::string_view text) {
  Policy policy;
  std::vector<std::string> names;
  Scanner scanner(text);
  for (;;) {
    scanner.skip_spaces();
    const std::string name = base::lower_case(std::string(scanner.take_token()));
    scanner.skip_spaces();
    std::optional<std::string> value;
    if (!name.empty() && scanner.take('=')) {
      scanner.skip_spaces();
      value = scanner.take_value();
      if (!value) return std::nullopt;
      scanner.skip_spaces();
    }
    if (!name.empty()) {
      const bool is_repeated = std::ranges::find(names, name) != names.end();
      if (is_repeated || names.size() == directives_max) return std::nullopt;
      names.push_back(name);
    }
    if (name == "max-age") {
      if (!value || value->empty() || !std::ranges::all_of(*value, is_digit)) return std::nullopt;
      const auto seconds = base::parse_number<std::uint64_t>(*value);
      const auto limit = static_cast<std::uint64_t>(lifetime_max.count());
      policy.max_age = std::chrono::seconds(std::min(seconds.value_or(limit), limit));
    } else if (name == "includesubdomains") {
      if (value) return std::nullopt;
      policy.include_subdomains = true;
    }
    if (scanner.is_at_end()) break;
    if (!scanner.take(';')) return std::nullopt;
  }
  if (std::ranges::find(names, "max-age") == names.end()) return std::nullopt;
  return policy;
}

WallTime after(WallTime now, std::chrono::seconds age) noexcept {
  if (age > WallTime::max() - now) return WallTime::max();
  return now + age;
}

std::optional<WallTime> parse_expiry(std::string_view text) {
  // As curl writes the end of a host that is known for good.
  if (text == "unlimited") return WallTime::max();
  const auto time = parse_time(text, time_format);
  if (!time) return std::nullopt;
  constexpr auto end = std::chrono::floor<std::chrono::seconds>(WallTime::max());
  return std::clamp(*time, sys_seconds(), end);
}

}  // namespace

HstsStore::HstsStore(HstsOptions options) : options_(options) {}

void HstsStore::store(const Url& url, const Fields& fields, WallTime now) {
  if (!equal_ignoring_case(url.scheme(), "https")) return;
  const auto field = fields.get("Strict-Transport-Security");
  if (!field) return;
  const auto policy = parse_policy(*field);
  if (!policy) return;
  if (policy->max_age > std::chrono::seconds::zero()) {
    add(url.host(), after(now, policy->max_age), policy->include_subdomains, now);
  } else if (const auto found = hosts_.find(host_name(url.host())); found != hosts_.end()) {
    remove(found);
  }
}

bool HstsStore::applies_to(std::string_view host, WallTime now) const {
  if (hosts_.empty()) return false;
  const std::string name = host_name(host);
  std::string_view above = name;
  while (!above.empty()) {
    const auto found = hosts_.find(above);
    const bool is_itself = above.size() == name.size();
    if (found != hosts_.end() && found->second.expires > now &&
        (is_itself || found->second.include_subdomains))
      return true;
    const std::size_t dot = above.find('.');
    above = dot == std::string_view::npos ? std::string_view() : above.substr(dot + 1);
  }
  return false;
}

Result<Url> HstsStore::secure(const Url& url, WallTime now) const {
  if (!equal_ignoring_case(url.scheme(), "http") || !applies_to(url.host(), now)) return url;
  UrlParts parts = url.parts();
  parts.scheme = "https";
  if (url.port() == default_port("http") && parts.authority)
    parts.authority = parts.authority->substr(0, parts.authority->rfind(':'));
  return Url::compose(parts);
}

bool HstsStore::add(std::string_view host, WallTime expires, bool include_subdomains,
                    WallTime now) {
  std::string name = host_name(host);
  if (name.empty()) return false;
  const Host entry{.expires = std::min(expires, after(now, lifetime_max)),
                   .include_subdomains = include_subdomains};
  if (const auto found = hosts_.find(name); found != hosts_.end()) {
    found->second = entry;
    return true;
  }
  if (options_.hosts_max == 0 || options_.hosts_per_site_max == 0) return true;
  const std::string site = detail::cookies::site_of(name);
  make_room(site);
  const auto counted = sites_.try_emplace(site, 0).first;
  try {
    hosts_.emplace(std::move(name), entry);
  } catch (...) {
    if (counted->second == 0) sites_.erase(counted);
    throw;
  }
  ++counted->second;
  return true;
}

void HstsStore::make_room(const std::string& site) {
  const auto ends_first = [](const auto& a, const auto& b) {
    return a.second.expires < b.second.expires;
  };
  const auto counted = sites_.find(site);
  if (counted != sites_.end() && counted->second >= options_.hosts_per_site_max) {
    auto first = hosts_.end();
    for (auto host = hosts_.begin(); host != hosts_.end(); ++host) {
      if (detail::cookies::site_of(host->first) != site) continue;
      if (first == hosts_.end() || ends_first(*host, *first)) first = host;
    }
    remove(first);
  } else if (hosts_.size() >= options_.hosts_max) {
    remove(std::ranges::min_element(hosts_, ends_first));
  }
}

void HstsStore::remove(Hosts::iterator host) {
  const auto counted = sites_.find(detail::cookies::site_of(host->first));
  if (counted != sites_.end() && --counted->second == 0) sites_.erase(counted);
  hosts_.erase(host);
}

std::string HstsStore::to_text(WallTime now) const {
  std::string text;
  for (const auto& [name, host] : hosts_) {
    if (host.expires <= now) continue;
    text.append(host.include_subdomains ? "." : "").append(name).append(" \"");
    append_time(text, std::chrono::floor<std::chrono::seconds>(host.expires), time_format);
    text.append("\"\n");
  }
  return text;
}

Result<std::size_t> HstsStore::load(std::string_view text, WallTime now) {
  std::size_t added = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return std::unexpected(system_error(EINVAL));
    std::string_view host = line.substr(0, space);
    std::string_view time = trim(line.substr(space));
    const bool include_subdomains = host.starts_with('.');
    if (include_subdomains) host.remove_prefix(1);
    if (time.size() < 2 || !time.starts_with('"') || !time.ends_with('"'))
      return std::unexpected(system_error(EINVAL));
    const auto expires = parse_expiry(time.substr(1, time.size() - 2));
    if (!expires) return std::unexpected(system_error(EINVAL));
    if (*expires > now && !add(host, *expires, include_subdomains, now))
      return std::unexpected(system_error(EINVAL));
    added += *expires > now ? 1 : 0;
  }
  return added;
}

std::size_t HstsStore::size() const noexcept { return hosts_.size(); }

void HstsStore::clear() noexcept {
  hosts_.clear();
  sites_.clear();
}

}  // namespace tambour::http
