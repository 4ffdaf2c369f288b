// The names that a request asks for: a search, and letters in random case.

#include <algorithm>
#include <cstring>

#include <event2/util.h>

#include "libevent/evdns/base.h"
#include "libevent/evdns/request.h"

namespace dns = tambour::dns;
using tambour::libevent::wire_of;

bool evdns_request::set_name(const char* text, bool may_search) noexcept {
  const std::size_t size = ::strnlen(text, text_.size());
  if (size == text_.size()) return false;
  std::memcpy(text_.data(), text, size + 1);
  if (!may_search || base.search == nullptr || base.search->size() == 0) return set_candidate(-1);
  search_ = base.search;
  search_->retain();
  candidate_ = -1;
  if (is_name_first()) return set_candidate(-1);
  return size != 0 && try_candidates();
}

bool evdns_request::is_name_first() const noexcept {
  const std::string_view name = text_.data();
  return std::ranges::count(name, '.') >= search_->ndots;
}

bool evdns_request::set_candidate(int index) noexcept {
  const std::string_view name = text_.data();
  tambour::libevent::NameText text;
  std::string_view candidate = name;
  if (index >= 0 && index < search_->size()) {
    const std::string_view domain = search_->at(index);
    const bool has_dot = name.ends_with('.');
    const std::size_t size = name.size() + (has_dot ? 0 : 1) + domain.size();
    if (name.empty() || size >= text.size()) return false;
    char* const end = std::ranges::copy(name, text.data()).out;
    if (!has_dot) *end = '.';
    std::ranges::copy(domain, text.data() + size - domain.size());
    candidate = {text.data(), size};
  }
  if (!wire_of(candidate, name_)) return false;
  if (base.options.randomize_case != 0) set_case();
  return true;
}

bool evdns_request::try_candidates() noexcept {
  while (++candidate_ <= search_->size()) {
    if (candidate_ == search_->size() && is_name_first()) return false;
    if (set_candidate(candidate_)) return true;
  }
  return false;
}

bool evdns_request::try_next_candidate() noexcept {
  if (!try_candidates()) return false;
  unlink();
  event_del_noblock(&event_);
  server = nullptr;
  transmissions_ = reissues_ = 0;
  submit();
  return true;
}

/// A forger has to guess it, too. No length of a label is a letter.
void evdns_request::set_case() noexcept {
  constexpr auto case_bit = 0x20U;
  constexpr std::size_t case_bytes = (dns::Name::bytes_max + 7) / 8;
  std::uint8_t random[case_bytes + 2];
  // One system call for both.
  evutil_secure_rng_get_bytes(random, sizeof random);
  next_id_ = static_cast<std::uint16_t>(random[case_bytes] << 8U | random[case_bytes + 1]);
  const std::string_view name = name_.view();
  for (std::size_t i = 0; i < name.size(); ++i) {
    const unsigned lower = static_cast<std::uint8_t>(name[i]) | case_bit;
    if (lower < 'a' || lower > 'z') continue;
    const bool is_upper = (random[i / 8] >> i % 8 & 1U) != 0;
    name_.set(i, static_cast<char>(is_upper ? lower & ~case_bit : lower));
  }
}
