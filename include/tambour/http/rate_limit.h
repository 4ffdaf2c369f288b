// Rate limits: how many requests each client may make.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// How many requests a RateLimiter allows each client.
struct RateLimitOptions {
  std::uint64_t requests = 100;               ///< In each `period`, on average; between 1 and 10^9.
  Duration period = std::chrono::minutes(1);  ///< From 1 ms to 400 days.
  /// The requests that a client may make at once; 0: `requests`.
  std::uint64_t burst = 0;
  /// Returns the key to which a limit applies, for example a user or an API key. Empty: the
  /// client's address (Request::client_address()), or the first 64 bits of an IPv6 address. Clients
  /// without an address share one limit.
  std::function<std::string(const Request&)> key{};
  /// The number of clients in the table, at most 2^26. Each takes 16 bytes, allocated by create().
  std::size_t clients_max = 65'536;
  /// The name in the fields RateLimit and RateLimit-Policy: printable ASCII without quotes and
  /// backslashes. Empty: no such fields.
  std::string policy = "default";
};

/// The decision for one request.
struct RateLimitDecision {
  bool is_allowed = false;
  std::uint64_t requests_left = 0;  ///< Further requests that are allowed at this time.
  Duration retry_after{};  ///< Until the next request is allowed; zero if `requests_left` is not.
  Duration reset_after{};  ///< Until the client may make a whole burst again.
};

/// Counts of a RateLimiter since it was made.
struct RateLimitStats {
  std::uint64_t allowed = 0;
  std::uint64_t refused = 0;
  /// Clients that were removed from the table before their bucket was full, because of too many
  /// other clients.
  std::uint64_t evicted = 0;
};

/// Token buckets, one for each client: a bucket has `burst` tokens, each request takes one, and
/// `requests` are added in each `period`.
///
/// Memory: bounded by clients_max. With more clients, a new client replaces the one of eight whose
/// bucket is the fullest; the replaced client starts again with a full bucket. So an attacker with
/// more addresses is not limited. Clients are distinguished by 64 bits of a keyed hash (SipHash).
/// Thread: any; the loops of a group share the limits. Copies share them too.
class RateLimiter {
 public:
  /// Fails with EINVAL if an option is outside its range. Throws std::bad_alloc.
  [[nodiscard]] static Result<RateLimiter> create(RateLimitOptions options = {});
  RateLimiter(const RateLimiter& other) noexcept;
  RateLimiter& operator=(const RateLimiter& other) noexcept;
  ~RateLimiter();

  /// Middleware that answers refused requests with 429 and Retry-After. Responses have the fields
  /// RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10).
  ///
  ///   const auto limiter = or_throw(http::RateLimiter::create({.requests = 60}));
  ///   router.use(limiter.middleware());
  [[nodiscard]] Middleware middleware() const;

  /// Takes a token of the client's bucket, for limits of other operations. `now` is
  /// EventLoop::now().
  RateLimitDecision take(std::string_view key, TimePoint now) noexcept;
  [[nodiscard]] RateLimitStats stats() const noexcept;

 private:
  class [[gnu::visibility("hidden")]] Table;

  explicit RateLimiter(std::shared_ptr<Table> table) noexcept;

  std::shared_ptr<Table> table_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
