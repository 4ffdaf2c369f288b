// Parses resolv.conf(5) and the variables LOCALDOMAIN and RES_OPTIONS, with the limits of glibc.
#include "dns_message/resolv_conf.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/parse_number.h"
#include "dns_message/words.h"

namespace tambour::dns::detail {
namespace {

std::optional<Endpoint> parse_server(std::string_view text) {
  if (auto address = Endpoint::parse(text, ResolvConf::port)) return *address;
  // glibc also accepts the notations of inet_aton(3).
  in_addr v4;
  if (::inet_aton(std::string(text).c_str(), &v4) == 0) return std::nullopt;
  return Endpoint(IpAddress(std::bit_cast<IpAddress::V4Bytes>(v4)), ResolvConf::port);
}

/// Sets `value` if `option` is "NAME:number".
bool set_number(std::string_view option, std::string_view name, unsigned max, unsigned& value) {
  if (!option.starts_with(name) || option.size() <= name.size() || option[name.size()] != ':')
    return false;
  const auto number = base::parse_number<unsigned>(option.substr(name.size() + 1));
  if (number) value = std::min(*number, max);
  return true;
}

}  // namespace

void ResolvConf::apply_file(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.starts_with(';') || line.starts_with('#')) continue;
    // Keywords are at the beginning of a line.
    if (line.empty() || is_blank(line.front())) continue;
    const std::string_view keyword = take_word(line);
    if (keyword == "nameserver") {
      const auto server = parse_server(take_word(line));
      if (server && servers.size() < servers_max) servers.push_back(*server);
    } else if (keyword == "domain") {
      set_search(take_word(line));
    } else if (keyword == "search") {
      set_search(line);
    } else if (keyword == "options") {
      apply_options(line);
    }
  }
}

void ResolvConf::set_search(std::string_view text) {
  search.clear();
  has_search = true;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    // Some tools write `.example.org`. The root alone is a name.
    if (word.size() > 1 && word.front() == '.') word.remove_prefix(1);
    const auto name = dns::Name::parse(word);
    if (name && search.size() < search_max) search.push_back(*name);
  }
}

void ResolvConf::apply_options(std::string_view text) {
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    unsigned seconds = 0;
    if (set_number(word, "ndots", ndots_max, ndots)) continue;
    if (set_number(word, "attempts", attempts_max, attempts)) {
      attempts = std::max(attempts, 1U);
    } else if (set_number(word, "timeout", timeout_max_s, seconds)) {
      timeout = std::chrono::seconds(std::max(seconds, 1U));
    } else if (word == "rotate") {
      rotate = true;
    } else if (word == "edns0") {
      edns0 = true;
    } else if (word == "trust-ad") {
      trust_ad = true;
    } else if (word == "use-vc") {
      use_vc = true;
    } else if (word == "no-aaaa") {
      no_aaaa = true;
    } else if (word == "single-request" || word == "single-request-reopen") {
      single_request = true;
    }
  }
}

}  // namespace tambour::dns::detail
