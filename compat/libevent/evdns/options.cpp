// Options by name, and resolv.conf(5) with the options of evdns.

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <event2/util.h>

#include "dns_message/words.h"
#include "libevent/evdns/base.h"
#include "libevent/util/addrinfo.h"

using tambour::libevent::HeldLock;
using tambour::libevent::SearchList;
namespace dns = tambour::dns;

namespace {

constexpr int no_file = 1;
constexpr int unreadable_file = 2;
constexpr int no_nameservers = 6;

/// -1 is not a value: the original returns it for text that is not a number.
std::optional<int> parse_int(const char* text) noexcept {
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (*end != '\0' || number == -1) return std::nullopt;
  return static_cast<int>(std::clamp<long>(number, INT_MIN, INT_MAX));
}

std::optional<timeval> parse_seconds(const char* text) noexcept {
  constexpr double limit = 1e9;
  constexpr double us_per_s = 1e6;
  char* end = nullptr;
  double seconds = std::strtod(text, &end);
  constexpr double least = 0.001;
  if (*end != '\0' || !(seconds >= least)) return std::nullopt;
  seconds = std::min(seconds, limit);
  const auto whole = static_cast<time_t>(seconds);
  return timeval{.tv_sec = whole,
                 .tv_usec = static_cast<suseconds_t>((seconds - double(whole)) * us_per_s)};
}

using Options = evdns_base::Options;

/// An option that is a number between two limits.
struct NumberOption {
  std::string_view name;
  int Options::* value;
  int least;
  int largest;
};
constexpr NumberOption number_options[] = {
    {"max-timeouts:", &Options::timeouts_max, 1, 255},
    {"attempts:", &Options::attempts, INT_MIN, 255},
    {"randomize-case:", &Options::randomize_case, INT_MIN, INT_MAX},
    {"so-rcvbuf:", &Options::receive_buffer, INT_MIN, INT_MAX},
    {"so-sndbuf:", &Options::send_buffer, INT_MIN, INT_MAX},
};

struct TimeOption {
  std::string_view name;
  timeval Options::* value;
  time_t most_s;
};
constexpr TimeOption time_options[] = {
    {"timeout:", &Options::timeout, INT_MAX},
    {"getaddrinfo-allow-skew:", &Options::allowed_skew, INT_MAX},
    {"initial-probe-timeout:", &Options::probe_timeout, 3600},
};

/// Options end with a colon, which may be omitted; in a file, the value follows.
bool is_option(std::string_view given, std::string_view name) noexcept {
  return given.size() + 1 >= name.size() && name.starts_with(given.substr(0, name.size()));
}

int set_number(evdns_base& base, const NumberOption& option, const char* value, int flags) {
  const auto number = parse_int(value);
  if (!number) return -1;
  if ((flags & DNS_OPTION_MISC) != 0)
    base.options.*option.value = std::clamp(*number, option.least, option.largest);
  return 0;
}

int set_time(evdns_base& base, const TimeOption& option, const char* value, int flags) {
  auto time = parse_seconds(value);
  if (!time) return -1;
  if (time->tv_sec > option.most_s) time->tv_sec = option.most_s;
  if ((flags & DNS_OPTION_MISC) != 0) base.options.*option.value = *time;
  return 0;
}

int set_ndots(evdns_base& base, const char* value, int flags) {
  const auto ndots = parse_int(value);
  if (!ndots) return -1;
  if ((flags & DNS_OPTION_SEARCH) == 0) return 0;
  SearchList* const search = base.own_search();
  if (search == nullptr) return -1;
  search->ndots = *ndots;
  return 0;
}

int set_in_flight(evdns_base& base, const char* value, int flags) {
  constexpr int limit = 65000;
  const auto number = parse_int(value);
  if (!number) return -1;
  if ((flags & DNS_OPTION_MISC) == 0) return 0;
  return base.set_in_flight_max(std::clamp(*number, 1, limit)) ? 0 : -1;
}

/// Applies to nameservers that are added later.
int set_bind_to(evdns_base& base, const char* value, int flags) {
  if ((flags & DNS_OPTION_NAMESERVERS) == 0) return 0;
  int size = sizeof base.options.bind_to;
  auto* const address = reinterpret_cast<sockaddr*>(&base.options.bind_to);
  if (evutil_parse_sockaddr_port(value, address, &size) != 0) return -1;
  base.options.bind_to_size = size;
  return 0;
}

/// A word of a file, with a NUL byte behind it.
class Word {
 public:
  explicit Word(std::string_view word) noexcept {
    if (word.size() < sizeof text_) word.copy(text_, word.size());
  }
  [[nodiscard]] const char* text() const noexcept { return text_; }

 private:
  char text_[256]{};
};

void parse_options(evdns_base& base, std::string_view line, int flags) {
  for (auto word = dns::detail::take_word(line); !word.empty();
       word = dns::detail::take_word(line)) {
    const auto colon = word.find(':');
    const Word value(colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1));
    base.set_option(word, value.text(), flags);
  }
}

void parse_line(evdns_base& base, std::string_view line, int flags) {
  const std::string_view keyword = dns::detail::take_word(line);
  const bool may_search = (flags & DNS_OPTION_SEARCH) != 0;
  if (keyword == "options") return parse_options(base, line, flags);
  std::string_view word = dns::detail::take_word(line);
  if (keyword == "nameserver" && (flags & DNS_OPTION_NAMESERVERS) != 0) {
    if (!word.empty()) evdns_base_nameserver_ip_add(&base, Word(word).text());
  } else if (keyword == "domain" && may_search && !word.empty()) {
    base.clear_search();
    if (SearchList* const search = base.own_search()) search->add(word);
  } else if (keyword == "search" && may_search) {
    base.clear_search();
    SearchList* const search = base.own_search();
    if (search == nullptr) return;
    for (; !word.empty(); word = dns::detail::take_word(line)) search->add(word);
    search->reverse();
  }
}

void set_defaults(evdns_base& base, int flags, bool adds_default) {
  if ((flags & DNS_OPTION_SEARCH) != 0) base.search_domain_of_host();
  if (adds_default) evdns_base_nameserver_ip_add(&base, "127.0.0.1");
}

}  // namespace

int evdns_base::set_option(std::string_view name, const char* value, int flags) noexcept {
  for (const NumberOption& number_option : number_options)
    if (is_option(name, number_option.name)) return set_number(*this, number_option, value, flags);
  for (const TimeOption& time_option : time_options)
    if (is_option(name, time_option.name)) return set_time(*this, time_option, value, flags);
  if (is_option(name, "ndots:")) return set_ndots(*this, value, flags);
  if (is_option(name, "max-inflight:")) return set_in_flight(*this, value, flags);
  if (is_option(name, "bind-to:")) return set_bind_to(*this, value, flags);
  return 0;
}

int evdns_base::parse_resolv_conf(int flags, const char* path) noexcept {
  const bool adds_default =
      (flags & DNS_OPTION_NAMESERVERS) != 0 && (flags & DNS_OPTION_NAMESERVERS_NO_DEFAULT) == 0;
  if ((flags & DNS_OPTION_HOSTSFILE) != 0) load_hosts("/etc/hosts");
  char* text = nullptr;
  std::size_t size = 0;
  const int read = path != nullptr ? evutil_read_file_(path, &text, &size, 0) : -1;
  if (read == -1) {
    set_defaults(*this, flags, adds_default);
    return no_file;
  }
  if (read < 0) return unreadable_file;
  int error = 0;
  // As in the original, a NUL byte ends the file.
  for (std::string_view left(text, ::strnlen(text, size)); !left.empty();)
    parse_line(*this, dns::detail::take_line(left), flags);
  if (servers == nullptr && adds_default) {
    evdns_base_nameserver_ip_add(this, "127.0.0.1");
    error = no_nameservers;
  }
  if ((flags & DNS_OPTION_SEARCH) != 0 && (search == nullptr || search->size() == 0))
    search_domain_of_host();
  event_mm_free_(text);
  return error;
}

SearchList* evdns_base::own_search() noexcept {
  if (search != nullptr && !search->is_shared()) return search;
  SearchList* const search_list = search != nullptr ? search->copy() : SearchList::make();
  if (search_list == nullptr) return nullptr;
  if (search != nullptr) search->release();
  return search = search_list;
}

void evdns_base::clear_search() noexcept {
  if (search != nullptr) search->release();
  search = nullptr;
}

void evdns_base::search_domain_of_host() noexcept {
  char name[256];
  clear_search();
  if (::gethostname(name, sizeof name) != 0) return;
  name[sizeof name - 1] = '\0';
  const char* const domain = std::strchr(name, '.');
  SearchList* const list = domain != nullptr ? own_search() : nullptr;
  if (list != nullptr) list->add(domain);
}

int evdns_base_set_option(evdns_base* base, const char* option, const char* val) {
  const HeldLock locked(base->lock);
  return base->set_option(option, val, DNS_OPTIONS_ALL);
}

int evdns_base_resolv_conf_parse(evdns_base* base, int flags, const char* const filename) {
  const HeldLock locked(base->lock);
  return base->parse_resolv_conf(flags, filename);
}

void evdns_base_search_clear(evdns_base* base) {
  const HeldLock locked(base->lock);
  base->clear_search();
}

void evdns_base_search_add(evdns_base* base, const char* domain) {
  const HeldLock locked(base->lock);
  if (SearchList* const list = base->own_search()) list->add(domain);
}

void evdns_base_search_ndots_set(evdns_base* base, const int ndots) {
  const HeldLock locked(base->lock);
  if (SearchList* const list = base->own_search()) list->ndots = ndots;
}
