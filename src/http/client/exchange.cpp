// What exchanges of all versions share: decoding, and the time limits of bodies.
#include "http/client/exchange.h"

#include <algorithm>

#include "base/clock.h"
#include "http/coding/body_decoder.h"

namespace tambour::http::detail::client {

void Exchange::decode(const DecodingLimits& limits) {
  if (is_body_complete()) return;
  const auto codings = coding::codings_of(head_.fields);
  if (!codings || codings->empty()) return;
  BodyAccess::decode(incoming_, *codings, limits, coding::RawDeflate::accepted);
}

std::optional<Duration> BodyPatience::begin(TimePoint since) noexcept {
  std::optional<Duration> limit;
  const TimePoint now = loop_.now();
  if (limits_.timeout > Duration::zero()) limit = limits_.timeout - (now - since);
  if (limits_.deadline != never) {
    const Duration left = limits_.deadline - now;
    limit = limit ? std::min(*limit, left) : left;
  }
  if (limits_.rate_min == 0) return limit;
  rate_budget_.resume(now_ns());
  const Duration left(
      base::saturating_add(rate_budget_.deadline_ns(limits_.rate_period.count()), -now_ns()));
  return limit ? std::min(*limit, left) : left;
}

void BodyPatience::end(std::size_t bytes) noexcept {
  if (limits_.rate_min == 0) return;
  const std::int64_t now = now_ns();
  rate_budget_.earn(bytes, limits_.rate_min, now);
  rate_budget_.suspend(now);
}

}  // namespace tambour::http::detail::client
