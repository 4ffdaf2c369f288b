// HostLookup: goes through literals, localhost, the sources of nsswitch.conf and the search
// domains, and reports addresses as they become known.
#include "dns/resolver/host_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/failure.h"
#include "base/probe.h"
#include "dns_message/wire_name.h"

namespace tambour::dns::detail {
namespace {

/// The EAI_ value of one answer, as getaddrinfo(3) has it. 0: it has addresses.
int eai_of(const Answer& answer) noexcept {
  if (answer.error == no_error) return answer.addresses.empty() ? EAI_NODATA : 0;
  if (answer.error == dns::ErrorCode::no_data) return EAI_NODATA;
  return answer.error == dns::ErrorCode::no_such_name ? EAI_NONAME : EAI_AGAIN;
}

std::string_view without_dot(std::string_view host) noexcept {
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool is_below(std::string_view host, std::string_view domain) noexcept {
  host = without_dot(host);
  if (host.size() <= domain.size()) return equal_ignoring_case(host, domain);
  const std::size_t at = host.size() - domain.size();
  return host[at - 1] == '.' && equal_ignoring_case(host.substr(at), domain);
}

/// True if the text has only the characters of numbers. inet_aton(3) accepts any text after white
/// space (CVE-2016-10739), so other texts must not be passed to it.
bool has_only_numbers(std::string_view host) noexcept {
  return host.size() < INET6_ADDRSTRLEN && host.front() >= '0' && host.front() <= '9' &&
         host.find_first_not_of("0123456789abcdefABCDEFxX.") == std::string_view::npos;
}

Error eai_error(int value) noexcept { return {value, resolver_category()}; }

}  // namespace

HostLookup::HostLookup(Engine& engine, std::string_view host, AddressFamily family, Report report)
    : engine_(engine), host_(host), family_(family), report_(report) {}

HostLookup::State HostLookup::start() {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the size follows.
  TAMBOUR_PROBE3(lookup_begin, this, host_.data(), host_.size());
  // For getaddrinfo(3), a name ends at its first null byte.
  if (host_.empty() || host_.contains('\0')) {
    finish(eai_error(EAI_NONAME));
  } else if (!use_literal()) {
    const auto is_ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
    if (!std::ranges::all_of(host_, is_ascii)) {
      finish(dns::ErrorCode::non_ascii_name);
    } else {
      engine_->refresh();
      sources_ = engine_->configuration().sources();
      next_source();
    }
  }
  if (state_ == State::pending) changed_.emplace(engine_->loop());
  return state_;
}

bool HostLookup::wants(bool is_v6) const noexcept {
  return family_ != (is_v6 ? AddressFamily::v4 : AddressFamily::v6);
}

bool HostLookup::use_literal() {
  IpAddress address;
  in_addr v4;
  if (const auto literal = IpAddress::parse(host_)) {
    address = *literal;
  } else if (has_only_numbers(host_) && ::inet_aton(std::string(host_).c_str(), &v4) != 0) {
    // The short notations of IPv4, such as "127.1".
    address = IpAddress(std::bit_cast<IpAddress::V4Bytes>(v4));
  } else {
    return false;
  }
  if (wants(address.is_v6())) addresses_.push_back(address);
  finish(addresses_.empty() ? eai_error(EAI_ADDRFAMILY) : Error());
  return true;
}

bool HostLookup::use_localhost() {
  if (!is_below(host_, "localhost")) return false;
  // RFC 6761, section 6.3.
  if (wants(true)) addresses_.push_back(IpAddress::loopback_v6());
  if (wants(false)) addresses_.push_back(IpAddress::loopback_v4());
  finish({});
  return true;
}

void HostLookup::next_source() {
  while (state_ == State::pending) {
    if (source_ >= sources_->size()) return finish(eai_error(source_error_));
    switch ((*sources_)[source_].kind) {
      case Source::Kind::files:
        source_error_ = EAI_NONAME;
        end_source(ask_hosts());
        break;
      case Source::Kind::dns:
        if (use_localhost()) return;
        return begin_dns();
      case Source::Kind::local_only:
        if (is_below(host_, "local")) {
          return fall_back();
        }
        end_source(Status::unavailable);
        break;
      case Source::Kind::other:
        return fall_back();
    }
  }
}

Status HostLookup::ask_hosts() {
  std::vector<IpAddress> found;
  engine_->configuration().hosts().find(host_, found);
  for (const IpAddress& ip_address : found) {
    if (wants(ip_address.is_v6())) addresses_.push_back(ip_address);
  }
  return addresses_.empty() ? Status::not_found : Status::success;
}

void HostLookup::end_source(Status status) {
  const Source& source = (*sources_)[source_];
  if (status == Status::success) {
    is_unsorted_ = true;
    return finish({});
  }
  ++source_;
  if (source.ends_with(status)) finish(eai_error(source_error_));
}

void HostLookup::begin_dns() {
  if (!engine_->configuration().has_servers()) return fall_back();
  if (const dns::ErrorCode error = parse_name(host_, name_); error != no_error) {
    source_error_ = EAI_NONAME;
    end_source(Status::not_found);
    return next_source();
  }
  // A search keeps the configuration of its start.
  conf_ = engine_->servers()->conf;
  is_absolute_ = host_.ends_with('.');
  const auto dots = static_cast<unsigned>(std::ranges::count(host_, '.'));
  as_is_first_ = is_absolute_ || dots >= conf_->ndots;
  next_candidate();
}

/// Returns false if there is no candidate with the number `candidate_`.
bool HostLookup::make_candidate(WireName& into) const {
  const auto& search = conf_->search;
  unsigned number = candidate_;
  into = name_;
  if (as_is_first_ && number-- == 0) return true;
  if (is_absolute_ || number > search.size()) return false;
  if (number == search.size()) {
    // The name as it is, at last, unless the root was in the search list.
    return !as_is_first_ && std::ranges::none_of(search, &dns::Name::is_root);
  }
  into = {};
  const std::string_view suffix = search[number].wire();
  const std::string_view name = name_.view();
  const bool fits =
      into.append(name.data(), name.size() - 1) && into.append(suffix.data(), suffix.size());
  if (!fits) into.clear();
  return true;
}

void HostLookup::next_candidate() {
  // Answers that are in the cache do not recurse.
  while (state_ == State::pending) {
    WireName name;
    if (ends_search_ || !make_candidate(name)) {
      source_error_ = search_error();
      end_source(source_error_ == EAI_AGAIN ? Status::try_again : Status::not_found);
      if (state_ == State::pending) next_source();
      return;
    }
    ++candidate_;
    if (name.empty()) continue;  // Too long.
    ask_candidate(name);
    if (!is_answered()) return;
    end_candidate();
  }
}

void HostLookup::ask_candidate(const WireName& name) {
  QuestionKey key(name.view(), dns::Type::a);
  constexpr std::array types{dns::Type::aaaa, dns::Type::a};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.type = types[i];
    part.answer = nullptr;
    const bool is_v6 = part.type == dns::Type::aaaa;
    part.is_queried = wants(is_v6) && !(is_v6 && conf_->no_aaaa);
    part.is_answered = !part.is_queried;
    if (!part.is_queried) continue;
    key.set_type(part.type);
    Cache::Hit hit = engine_->look_up(key, part);
    if (hit.answer == nullptr) continue;
    part.is_answered = true;
    part.answer = std::move(hit.answer);
  }
}

void HostLookup::Part::answered(AnswerPointer with) noexcept {
  is_answered = true;
  answer = std::move(with);
  const bool is_reported = lookup.report_ == Report::each_family || lookup.is_answered();
  if (is_reported && lookup.changed_) lookup.changed_->set();
}

HostLookup::State HostLookup::proceed() {
  // An answer that arrived before the resolver was destroyed does not count either: what follows
  // needs the engine.
  if (!engine_) finish(system_error(ECANCELED));
  if (state_ == State::pending && is_answered()) {
    end_candidate();
    next_candidate();
  }
  return state_;
}

void HostLookup::end_candidate() {
  const auto has_addresses = [](const Part& entry) {
    return entry.answer != nullptr && eai_of(*entry.answer) == 0;
  };
  if (std::ranges::any_of(parts_, has_addresses)) return finish({});
  int eai = EAI_NONAME;
  for (const Part& part : parts_) {
    if (!part.is_queried) continue;
    if (part.answer->error == dns::ErrorCode::too_many_lookups)
      return finish(make_error_code(part.answer->error));
    const int value = eai_of(*part.answer);
    if (value == EAI_AGAIN || eai == EAI_NONAME) eai = value;
    // Servers that do not answer will not answer for the next candidate.
    if (part.answer->error == dns::ErrorCode::timeout) ends_search_ = true;
  }
  if (as_is_first_ && candidate_ == 1) as_is_error_ = eai;
  any_no_data_ = any_no_data_ || eai == EAI_NODATA;
  any_failure_ = any_failure_ || eai == EAI_AGAIN;
}

int HostLookup::search_error() const noexcept {
  const bool is_conclusive = as_is_error_ || any_no_data_;
  if (ends_search_ || (any_failure_ && !is_conclusive)) return EAI_AGAIN;
  return is_conclusive ? as_is_error_.value_or(EAI_NODATA) : EAI_NONAME;
}

void HostLookup::finish(Error error) {
  if (state_ != State::pending) return;
  state_ = State::done;
  error_ = error;
  TAMBOUR_PROBE2(lookup_end, this, error.value());
}

void HostLookup::fall_back() noexcept {
  state_ = State::fallback;
  TAMBOUR_PROBE2(lookup_end, this, 0);
}

const std::vector<IpAddress>& HostLookup::addresses() {
  bool is_new = std::exchange(is_unsorted_, false);
  for (Part& part : parts_) {
    if (part.is_used || part.answer == nullptr || eai_of(*part.answer) != 0) continue;
    addresses_.insert(addresses_.end(), part.answer->addresses.begin(),
                      part.answer->addresses.end());
    part.is_used = is_new = true;
  }
  if (is_new) engine_->sort(addresses_);
  return addresses_;
}

}  // namespace tambour::dns::detail
