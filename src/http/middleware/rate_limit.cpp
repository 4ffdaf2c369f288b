// RateLimiter: token buckets by the generic cell rate algorithm, in a table of bounded size.
//
// A bucket is one time: the theoretical arrival time (TAT), at which it is full again. Each request
// moves it by the interval of a token, and is refused if that would exceed the size of the bucket.
#include <tambour/http/rate_limit.h>

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tambour/loop/event_loop.h>

#include "base/clock.h"
#include "base/failure.h"
#include "bytes/siphash.h"

namespace tambour::http {
namespace {

constexpr std::size_t ways = 8;    ///< Of a set of clients, one of which is replaced.
constexpr std::size_t locks = 32;  ///< Each protects the sets with the same remainder.
constexpr std::int64_t ns_per_s = 1'000'000'000;

struct Slot {
  std::uint64_t client = 0;  ///< The hash of its key.
  std::int64_t full_at_ns = 0;
};

tambour::detail::bytes::SipKey random_key() {
  tambour::detail::bytes::SipKey key;
  const bool is_complete = ::getrandom(&key, sizeof key, 0) == ssize_t{sizeof key};
  if (is_complete) return key;
  std::random_device device;
  key.first = (std::uint64_t{device()} << 32U) | device();
  key.second = (std::uint64_t{device()} << 32U) | device();
  return key;
}

/// Rounded up.
std::int64_t seconds_of(Duration duration) noexcept {
  return duration.count() / ns_per_s + (duration.count() % ns_per_s > 0 ? 1 : 0);
}

/// The address, of IPv6 the network that belongs to one customer.
std::string address_key(const Request& request) {
  constexpr std::size_t network_bytes = 8;
  const Result<IpAddress> address = request.client_address();
  if (!address) return {};
  std::span<const std::uint8_t> bytes = address->bytes();
  if (address->is_v6()) bytes = bytes.first(network_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

class RateLimiter::Table {
 public:
  explicit Table(RateLimitOptions options)
      : options_(std::move(options)),
        key_(random_key()),
        interval_ns_(std::max<std::int64_t>(
            options_.period.count() / static_cast<std::int64_t>(options_.requests), 1)),
        burst_(static_cast<std::int64_t>(options_.burst)),
        sets_(std::bit_ceil(std::max<std::size_t>(options_.clients_max / ways, 1))),
        slots_(sets_ * ways) {
    if (options_.policy.empty()) return;
    policy_.append("\"").append(options_.policy).append("\";q=");
    policy_.append(std::to_string(options_.requests)).append(";w=");
    policy_.append(std::to_string(seconds_of(options_.period)));
  }

  RateLimitDecision take(std::string_view key, TimePoint now) noexcept {
    const std::uint64_t client = tambour::detail::bytes::siphash(key_, key) | 1U;  // Zero: none.
    const std::size_t set = (client >> 8U) & (sets_ - 1);
    const std::int64_t now_ns = now.time_since_epoch().count();
    RateLimitDecision decision;
    {
      const std::lock_guard lock(mutexes_[set % locks]);
      decision = take_from(find(set, client, now_ns), now_ns);
    }
    (decision.is_allowed ? allowed_ : refused_).fetch_add(1, std::memory_order_relaxed);
    return decision;
  }

  [[nodiscard]] RateLimitStats stats() const noexcept {
    return {.allowed = allowed_.load(std::memory_order_relaxed),
            .refused = refused_.load(std::memory_order_relaxed),
            .evicted = evicted_.load(std::memory_order_relaxed)};
  }

  /// Returns false if it has answered.
  bool admit(const Request& request, Response& response) {
    const std::string key = options_.key ? options_.key(request) : address_key(request);
    const RateLimitDecision decision = take(key, request.connection().loop().now());
    if (!policy_.empty()) {
      std::string state = "\"" + options_.policy + "\";r=" + std::to_string(decision.requests_left);
      state.append(";t=").append(std::to_string(seconds_of(decision.reset_after)));
      static_cast<void>(response.headers().set("RateLimit-Policy", policy_));
      static_cast<void>(response.headers().set("RateLimit", state));
    }
    if (decision.is_allowed) return true;
    static_cast<void>(response.headers().set(
        "Retry-After",
        std::to_string(std::max<std::int64_t>(seconds_of(decision.retry_after), 1))));
    static_cast<void>(response.send_error(Status::too_many_requests));
    return false;
  }

 private:
  /// The slot of a client. A new one replaces the client whose bucket is the fullest.
  Slot& find(std::size_t set, std::uint64_t client, std::int64_t now_ns) noexcept {
    const std::span<Slot> entries = std::span(slots_).subspan(set * ways, ways);
    Slot* fullest = entries.data();
    for (Slot& slot : entries) {
      if (slot.client == client) return slot;
      if (slot.full_at_ns < fullest->full_at_ns) fullest = &slot;
    }
    if (fullest->client != 0 && fullest->full_at_ns > now_ns)
      evicted_.fetch_add(1, std::memory_order_relaxed);
    *fullest = {.client = client, .full_at_ns = now_ns};
    return *fullest;
  }

  RateLimitDecision take_from(Slot& slot, std::int64_t now_ns) const noexcept {
    std::int64_t used_ns = std::max<std::int64_t>(slot.full_at_ns - now_ns, 0);
    const std::int64_t size_ns = burst_ * interval_ns_;
    RateLimitDecision decision{.is_allowed = used_ns + interval_ns_ <= size_ns};
    if (decision.is_allowed) {
      used_ns += interval_ns_;
      slot.full_at_ns = detail::base::saturating_add(now_ns, used_ns);
    }
    decision.requests_left = static_cast<std::uint64_t>((size_ns - used_ns) / interval_ns_);
    if (decision.requests_left == 0)
      decision.retry_after = Duration(used_ns + interval_ns_ - size_ns);
    decision.reset_after = Duration(used_ns);
    return decision;
  }

  RateLimitOptions options_;
  tambour::detail::bytes::SipKey key_;
  std::int64_t interval_ns_;
  std::int64_t burst_;
  std::size_t sets_;  ///< A power of two.
  std::vector<Slot> slots_;
  std::array<std::mutex, locks> mutexes_;
  std::string policy_;
  std::atomic<std::uint64_t> allowed_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> evicted_{0};
};

RateLimiter::RateLimiter(std::shared_ptr<Table> table) noexcept : table_(std::move(table)) {}
RateLimiter::RateLimiter(const RateLimiter& other) noexcept = default;
RateLimiter& RateLimiter::operator=(const RateLimiter& other) noexcept = default;
RateLimiter::~RateLimiter() = default;

Result<RateLimiter> RateLimiter::create(RateLimitOptions options) {
  constexpr std::uint64_t requests_max = 1'000'000'000;
  constexpr std::size_t clients_max = std::size_t{1} << 26U;
  constexpr Duration period_max = std::chrono::hours(24 * 400);
  if (options.burst == 0) options.burst = options.requests;
  const bool has_name = std::ranges::all_of(
      options.policy, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  const bool is_valid = options.requests >= 1 && options.requests <= requests_max &&
                        options.period >= std::chrono::milliseconds(1) &&
                        options.period <= period_max && options.burst <= requests_max &&
                        options.clients_max >= 1 && options.clients_max <= clients_max && has_name;
  if (!is_valid) return detail::base::failure(EINVAL);
  // The time in which a bucket is filled must be representable.
  const std::int64_t interval_ns =
      options.period.count() / static_cast<std::int64_t>(options.requests) + 1;
  if (static_cast<std::int64_t>(options.burst) > INT64_MAX / 4 / interval_ns)
    return detail::base::failure(EINVAL);
  return RateLimiter(std::make_shared<Table>(std::move(options)));
}

Middleware RateLimiter::middleware() const {
  return [table = table_](Request& request, Response& response, const Handler& next) -> Task<> {
    return table->admit(request, response) ? next.start(request, response) : Task<>();
  };
}

RateLimitDecision RateLimiter::take(std::string_view key, TimePoint now) noexcept {
  return table_->take(key, now);
}

RateLimitStats RateLimiter::stats() const noexcept { return table_->stats(); }

}  // namespace tambour::http
