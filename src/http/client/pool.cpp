// Pool: free slots, the limits of connections, and the requests that wait for a slot.
#include "http/client/pool.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <ranges>
#include <utility>

namespace tambour::http::detail::client {
namespace {

/// A waiting request, in the queue of its origin until it has been granted a lease or has ended.
class Waiting {
 public:
  Waiting(EventLoop& loop, OriginState& origin) : origin_(origin), waiter_(loop) {
    origin_.waiting.push_back(&waiter_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (!waiter_.granted.is_set()) {
      std::erase(origin_.waiting, &waiter_);
    } else if (waiter_.lease && waiter_.lease.is_connected()) {
      // The task ended before it used the connection.
      waiter_.lease.release();
    }
  }

  [[nodiscard]] Waiter& waiter() noexcept { return waiter_; }

 private:
  OriginState& origin_;
  Waiter waiter_;
};

Task<> watch(PooledConnection& pooled) {
  // Neither data nor the end of the stream belongs to a response, and an error ends it, too.
  static_cast<void>(co_await pooled.connection->stream.read(pooled.connection->input, 1));
  pooled.watch->end.start(Duration::zero());
}

}  // namespace

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  close();
  pool_ = std::move(other.pool_);
  pooled_ = other.pooled_;
  return *this;
}

void Lease::release() noexcept {
  const std::shared_ptr<Pool> pool = std::exchange(pool_, nullptr);
  pooled_->connection->parser.restart();
  pooled_->connection->was_used = true;
  --pooled_->slots_used;
  pool->released(*pooled_);
}

void Lease::close() noexcept {
  if (pool_ == nullptr) return;
  const std::shared_ptr<Pool> pool = std::exchange(pool_, nullptr);
  --pooled_->slots_used;
  pool->close(*pooled_);
}

Task<Result<Lease>> Pool::acquire(std::shared_ptr<Pool> pool, Origin origin) {
  OriginState& state = pool->state_of(origin);
  if (PooledConnection* const idle = pool->find_idle(state); idle != nullptr) {
    pool->end_idle(*idle);
    co_return Lease(pool, *idle);
  }
  const std::size_t limit = std::max<std::size_t>(pool->options_.connections_per_origin_max, 1);
  if (state.connections.size() < limit) {
    PooledConnection& added = pool->add(state);
    co_return Lease(pool, added);
  }
  if (state.waiting.size() >= pool->options_.waiting_per_origin_max)
    co_return std::unexpected(system_error(EAGAIN));
  Waiting waiting(pool->loop_, state);
  if (auto granted = co_await waiting.waiter().granted.wait(); !granted)
    co_return std::unexpected(granted.error());
  co_return std::move(waiting.waiter().lease);
}

Lease Pool::take_idle(const std::shared_ptr<Pool>& pool, const Origin& origin) noexcept {
  const auto found = pool->origins_.find(origin);
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
  // The one that was used last is the least likely to be closed by its server.
  for (PooledConnection& pooled : std::views::reverse(origin.connections)) {
    if (pooled.is_usable() && pooled.has_free_slot()) return &pooled;
  }
  return nullptr;
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
  ++open_;
  return added;
}

bool Pool::grant(PooledConnection& pooled) noexcept {
  std::deque<Waiter*>& waiting = pooled.origin.waiting;
  if (waiting.empty()) return false;
  Waiter& next = *waiting.front();
  waiting.pop_front();
  next.lease = Lease(shared_from_this(), pooled);
  next.granted.set();
  return true;
}

void Pool::released(PooledConnection& pooled) noexcept {
  std::list<PooledConnection>& connections = pooled.origin.connections;
  connections.splice(connections.end(), connections, pooled.position);
  if (grant(pooled)) return;
  if (shut_down_ || options_.idle_connections_max == 0) return close(pooled);
  try {
    begin_idle(pooled);
  } catch (const std::bad_alloc&) {
    return close(pooled);
  }
  if (idle_.size() > options_.idle_connections_max) close(*idle_.front());
}

void Pool::begin_idle(PooledConnection& pooled) {
  pooled.watch.emplace(loop_, [this, &pooled] { close(pooled); });
  idle_.splice(idle_.end(), pooled.order);
  if (options_.idle_timeout > Duration::zero()) pooled.watch->end.start(options_.idle_timeout);
  pooled.watch->scope.spawn(watch(pooled));
}

void Pool::end_idle(PooledConnection& pooled) noexcept {
  if (!pooled.is_idle()) return;
  pooled.order.splice(pooled.order.end(), idle_, std::ranges::find(idle_, &pooled));
  pooled.watch.reset();
}

void Pool::close(PooledConnection& pooled) noexcept {
  end_idle(pooled);
  pooled.connection.reset();
  if (grant(pooled)) return;
  OriginState& origin = pooled.origin;
  --open_;
  origin.connections.erase(pooled.position);
  if (origin.connections.empty()) origins_.erase(origin.position);
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
