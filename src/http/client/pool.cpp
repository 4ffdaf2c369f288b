// Pool: free slots, the limits of connections, and the requests that wait for a slot.
#include "http/client/pool.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <ranges>
#include <utility>

#include "base/clock.h"

namespace tambour::http::detail::client {
namespace {

/// How many waiting requests are looked at, to find one that can use a connection.
constexpr std::size_t looked_at_max = 256;

/// How many origins are remembered to speak HTTP/2, and how many to refuse it.
constexpr std::size_t versions_max = 1000;

}  // namespace

IdleRead::IdleRead(Pool& pool, PooledConnection& pooled) noexcept
    : ReadBuffer(pooled.connection->stream, pooled.connection->input, 1),
      pool_(pool),
      pooled_(pooled) {}

bool IdleRead::start(std::source_location at) noexcept {
  if (try_now_or_wait()) return false;
  set_created_at(at);
  return true;
}

void IdleRead::completed() {
  leave();
  pool_.close(pooled_);  // Destroys this object.
}

/// A waiting request, in a queue until it has been granted a lease or has ended.
class Pool::Waiting {
 public:
  Waiting(Pool& pool, const Origin& origin, WaiterQueue& queue) noexcept
      : pool_(pool), queue_(queue), waiter_(pool.loop_, origin) {
    queue_.push_back(waiter_);
    ++pool_.waiting_;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    --pool_.waiting_;
    if (!waiter_.granted.is_set()) {
      queue_.remove(waiter_);
    } else if (waiter_.has_promise) {
      // The task ended before it opened a connection.
      take_promise();
      pool_.wake_blocked();
    } else if (waiter_.lease && waiter_.lease.is_connected()) {
      // The task ended before it used the connection.
      waiter_.lease.release();
    }
  }

  [[nodiscard]] Waiter& waiter() noexcept { return waiter_; }
  void take_promise() noexcept {
    waiter_.has_promise = false;
    --pool_.promised_;
  }

 private:
  Pool& pool_;
  WaiterQueue& queue_;
  Waiter waiter_;
};

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  close();
  pool_ = std::move(other.pool_);
  pooled_ = other.pooled_;
  return *this;
}

void Lease::release() noexcept {
  const std::shared_ptr<Pool> pool = std::exchange(pool_, nullptr);
  if (pooled_->connection) {
    pooled_->connection->parser.restart();
    pooled_->connection->was_used = true;
  }
  --pooled_->slots_used;
  pool->released(*pooled_);
}

void Lease::connected(std::unique_ptr<Connection> connection) noexcept {
  // One that has ended is replaced.
  if (pooled_->connection) ++pooled_->origin.opening;
  pooled_->connection = std::move(connection);
  if (pooled_->connection) pool_->opened(*pooled_, false);
}

void Lease::connected_multiplexed(SocketStream stream) {
  pool_->connect_multiplexed(*pooled_, std::move(stream));
}

void Lease::close() noexcept {
  if (pool_ == nullptr) return;
  if (pooled_->multiplexed) return release();
  const std::shared_ptr<Pool> pool = std::exchange(pool_, nullptr);
  --pooled_->slots_used;
  pool->close(*pooled_);
}

Task<Result<Lease>> Pool::acquire(std::shared_ptr<Pool> pool, Origin origin) {
  for (bool is_next = false;; is_next = true) {
    if (auto lease = pool->try_acquire(origin, is_next)) co_return std::move(*lease);
    if (pool->waiting_ >= pool->options_.waiting_max)
      co_return std::unexpected(system_error(EAGAIN));
    if (pool->is_full(origin) || pool->is_opening_multiplexed(origin)) {
      OriginState& state = pool->state_of(origin);
      if (state.waiting.size() >= pool->options_.waiting_per_origin_max)
        co_return std::unexpected(system_error(EAGAIN));
      Waiting waiting(*pool, origin, state.waiting);
      if (auto granted = co_await waiting.waiter().granted.wait(); !granted)
        co_return std::unexpected(granted.error());
      co_return std::move(waiting.waiter().lease);
    }
    Waiting waiting(*pool, origin, pool->blocked_);
    if (auto granted = co_await waiting.waiter().granted.wait(); !granted)
      co_return std::unexpected(granted.error());
    if (waiting.waiter().lease) co_return std::move(waiting.waiter().lease);
    waiting.take_promise();
  }
}

std::optional<Lease> Pool::try_acquire(const Origin& origin, bool is_next) {
  // If the request opens no connection, or there is no memory, another one may open it.
  struct WakeNext {
    Pool& pool;
    ~WakeNext() { pool.wake_blocked(); }
  };
  const WakeNext wake_next{*this};
  if (PooledConnection* const idle = find_idle(origin); idle != nullptr) {
    end_idle(*idle);
    return Lease(shared_from_this(), *idle);
  }
  if (is_full(origin) || is_opening_multiplexed(origin) || !make_room(is_next)) return std::nullopt;
  return Lease(shared_from_this(), add(state_of(origin)));
}

bool Pool::is_full(const Origin& origin) const noexcept {
  const auto known = origins_.find(origin);
  return known != origins_.end() &&
         known->second.connections.size() >=
             std::max<std::size_t>(options_.connections_per_origin_max, 1);
}

bool Pool::is_opening_multiplexed(const Origin& origin) const noexcept {
  const auto known = origins_.find(origin);
  return known != origins_.end() && known->second.opening > 0 && multiplexing_.contains(origin);
}

bool Pool::make_room(bool is_next) noexcept {
  if (!is_next && !blocked_.empty()) return false;
  const std::size_t limit = std::max<std::size_t>(options_.connections_max, 1);
  if (open_ + promised_ >= limit && !idle_.empty()) close(*idle_.front());
  return open_ + promised_ < limit;
}

void Pool::wake_blocked() noexcept {
  if (blocked_.empty()) return;  // The client, which has the options, may have been destroyed.
  const std::size_t limit = std::max<std::size_t>(options_.connections_max, 1);
  if (open_ + promised_ >= limit) return;
  Waiter& next = *blocked_.front();
  blocked_.remove(next);
  next.has_promise = true;
  ++promised_;
  next.granted.set();
}

bool Pool::grant_to_blocked(PooledConnection& pooled) noexcept {
  Waiter* found = blocked_.front();
  for (std::size_t seen = 1; found != nullptr; ++seen, found = blocked_.after(*found)) {
    if (found->origin == pooled.origin.position->first) break;
    if (seen == looked_at_max) return false;
  }
  if (found == nullptr) return false;
  Waiter& next = *found;
  blocked_.remove(next);
  next.lease = Lease(shared_from_this(), pooled);
  next.granted.set();
  return true;
}

Lease Pool::take_idle(const std::shared_ptr<Pool>& pool, const Origin& origin) noexcept {
  // The pools of a proxy have one origin.
  const bool has_one = pool->origins_.size() == 1 && pool->origins_.begin()->first == origin;
  const auto found = has_one ? pool->origins_.begin() : pool->origins_.find(origin);
  if (found == pool->origins_.end()) return {};
  PooledConnection* const idle = pool->find_idle(found->second);
  if (idle == nullptr) return {};
  pool->end_idle(*idle);
  return Lease(pool, *idle);
}

OriginState& Pool::state_of(const Origin& origin) {
  const auto [position, is_new] = origins_.try_emplace(origin);
  if (is_new) position->second.position = position;
  return position->second;
}

PooledConnection* Pool::find_idle(OriginState& origin) noexcept {
  if (origin.connections.empty()) return nullptr;
  // The one that was used last is the least likely to be closed by its server.
  for (PooledConnection& pooled : std::views::reverse(origin.connections)) {
    if (pooled.is_usable() && pooled.has_free_slot()) return &pooled;
  }
  return nullptr;
}

PooledConnection* Pool::find_idle(const Origin& origin) {
  const auto known = origins_.find(origin);
  PooledConnection* const idle = known != origins_.end() ? find_idle(known->second) : nullptr;
  if (idle != nullptr || !origin.needs_http_1) return idle;
  Origin negotiated = origin;
  negotiated.needs_http_1 = false;
  PooledConnection* const other = find_idle(negotiated);
  return other != nullptr && other->connection ? other : nullptr;
}

PooledConnection& Pool::add(OriginState& origin) {
  try {
    origin.connections.emplace_back(origin);
  } catch (const std::bad_alloc&) {
    if (origin.connections.empty()) origins_.erase(origin.position);
    throw;
  }
  PooledConnection& added = origin.connections.back();
  added.position = std::prev(origin.connections.end());
  ++origin.opening;
  ++open_;
  return added;
}

bool Pool::grant(PooledConnection& pooled) noexcept {
  WaiterQueue& waiting = pooled.origin.waiting;
  if (waiting.empty()) return false;
  Waiter& next = *waiting.front();
  waiting.remove(next);
  next.lease = Lease(shared_from_this(), pooled);
  next.granted.set();
  return true;
}

void Pool::released(PooledConnection& pooled) noexcept {
  std::list<PooledConnection>& connections = pooled.origin.connections;
  connections.splice(connections.end(), connections, pooled.position);
  if (pooled.has_free_slot() && (grant(pooled) || grant_to_blocked(pooled))) return;
  // Others use the connection, too.
  if (pooled.slots_used > 0) return;
  if (pooled.multiplexed && !pooled.multiplexed->can_open()) return close(pooled);
  // Requests for other origins need the place of this connection.
  if (shut_down_ || options_.idle_connections_max == 0 || !blocked_.empty()) return close(pooled);
  if (!begin_idle(pooled)) return close(pooled);
  if (idle_.size() > options_.idle_connections_max) close(*idle_.front());
}

bool Pool::begin_idle(PooledConnection& pooled) noexcept {
  if (pooled.connection && !pooled.idle_read.emplace(*this, pooled).start()) return false;
  pooled.is_in_idle_list = true;
  pooled.idle_until = options_.idle_timeout > Duration::zero()
                          ? base::saturating_add(loop_.now(), options_.idle_timeout)
                          : never;
  idle_.splice(idle_.end(), pooled.order);
  if (idle_.front() == &pooled) arm_expiry();
  return true;
}

void Pool::end_idle(PooledConnection& pooled) noexcept {
  pooled.idle_read.reset();
  if (!std::exchange(pooled.is_in_idle_list, false)) return;
  pooled.order.splice(pooled.order.end(), idle_, pooled.order_position);
  if (idle_.empty() && expiry_) expiry_->stop();
}

void Pool::close_expired() noexcept {
  while (!idle_.empty() && idle_.front()->idle_until <= loop_.now()) close(*idle_.front());
  arm_expiry();
}

/// If the first connection is used, the timer expires too early for the next one, and is armed
/// again then.
void Pool::arm_expiry() noexcept {
  if (idle_.empty() || idle_.front()->idle_until == never) return;
  if (!expiry_) expiry_.emplace(loop_, [this] { close_expired(); });
  expiry_->start_at(idle_.front()->idle_until);
}

void Pool::close(PooledConnection& pooled) noexcept {
  end_idle(pooled);
  OriginState& origin = pooled.origin;
  if (pooled.is_connected()) ++origin.opening;
  pooled.connection.reset();
  pooled.multiplexed.reset();
  pooled.slots_max = 1;
  if (grant(pooled)) return;
  --origin.opening;
  --open_;
  origin.connections.erase(pooled.position);
  if (origin.connections.empty()) origins_.erase(origin.position);
  wake_blocked();
}

void Pool::connect_multiplexed(PooledConnection& pooled, SocketStream stream) {
  auto connection =
      std::make_unique<H2ClientConnection>(std::move(stream), options_.http_2, options_.limits,
                                           stats_, [this, &pooled] { slots_changed(pooled); });
  connection->start();
  const Origin& origin = pooled.origin.position->first;
  if (multiplexing_.size() < versions_max || multiplexing_.contains(origin))
    multiplexing_.insert(origin);
  ++stats_.connections;
  pooled.multiplexed = std::move(connection);
  pooled.slots_max = pooled.multiplexed->streams_max();
  opened(pooled, true);
}

void Pool::slots_changed(PooledConnection& pooled) noexcept {
  if (!pooled.multiplexed) return;  // It is being started.
  pooled.slots_max = pooled.multiplexed->streams_max();
  while (pooled.has_free_slot() && !shut_down_) {
    if (!grant(pooled) && !grant_to_blocked(pooled)) break;
    end_idle(pooled);
  }
  if (pooled.multiplexed->can_open()) return;
  if (!pooled.is_idle()) return open_for_waiting(pooled.origin);
  // The task of the connection calls: it must not destroy its own scope.
  pooled.idle_until = TimePoint::min();
  idle_.splice(idle_.begin(), idle_, pooled.order_position);
  arm_expiry();
}

void Pool::require_http_1(const Origin& origin) {
  if (requiring_http_1_.size() >= versions_max) requiring_http_1_.clear();
  requiring_http_1_.insert(origin);
}

void Pool::opened(PooledConnection& pooled, bool is_multiplexed) noexcept {
  OriginState& origin = pooled.origin;
  --origin.opening;
  if (!is_multiplexed) multiplexing_.erase(origin.position->first);
  if (shut_down_) return;
  while (is_multiplexed && pooled.has_free_slot() && (grant(pooled) || grant_to_blocked(pooled))) {
  }
  open_for_waiting(origin);
}

void Pool::open_for_waiting(OriginState& origin) noexcept {
  const Origin& name = origin.position->first;
  try {
    while (!origin.waiting.empty() && !is_full(name) && !is_opening_multiplexed(name) &&
           make_room(true)) {
      Waiter& next = *origin.waiting.front();
      PooledConnection& added = add(origin);
      origin.waiting.remove(next);
      next.lease = Lease(shared_from_this(), added);
      next.granted.set();
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    // The requests wait for a connection that becomes free.
  }
}

void Pool::close_idle() noexcept {
  while (!idle_.empty()) close(*idle_.front());
}

void Pool::close_idle(const Origin& origin) noexcept {
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return;
  // Closing the last connection erases the state.
  std::list<PooledConnection>& connections = found->second.connections;
  auto next = connections.begin();
  for (std::size_t left = connections.size(); left > 0; --left) {
    PooledConnection& pooled = *next++;
    if (pooled.is_idle()) close(pooled);
  }
}

void Pool::shut_down() noexcept {
  shut_down_ = true;
  close_idle();
}

}  // namespace tambour::http::detail::client
