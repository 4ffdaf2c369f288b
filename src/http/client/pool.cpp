// Pool: idle connections by origin, the limits of connections, and the requests that wait for one.
#include "http/client/pool.h"

#include <algorithm>
#include <cerrno>
#include <new>
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
    } else if (waiter_.lease.is_connected()) {
      // The task ended before it used the connection.
      waiter_.lease.release();
    }
  }

  [[nodiscard]] Waiter& waiter() noexcept { return waiter_; }

 private:
  OriginState& origin_;
  Waiter waiter_;
};

Task<> watch(Idle& idle) {
  // Neither data nor the end of the stream belongs to a response, and an error ends it, too.
  static_cast<void>(co_await idle.connection->stream.read(idle.connection->input, 1));
  idle.end.start(Duration::zero());
}

}  // namespace

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  close();
  pool_ = std::move(other.pool_);
  origin_ = other.origin_;
  connection_ = std::move(other.connection_);
  return *this;
}

void Lease::release() noexcept {
  const std::shared_ptr<Pool> pool = std::exchange(pool_, nullptr);
  connection_->parser.restart();
  connection_->was_used = true;
  if (!origin_->waiting.empty()) {
    Waiter& next = *origin_->waiting.front();
    origin_->waiting.pop_front();
    next.lease = Lease(pool, *origin_, std::move(connection_));
    return next.granted.set();
  }
  if (!pool->shut_down_ && pool->options_.idle_connections_max > 0) {
    try {
      return pool->add_idle(*origin_, std::move(connection_));
    } catch (const std::bad_alloc&) {
      connection_.reset();
    }
  }
  connection_.reset();
  pool->closed_one(*origin_);
}

void Lease::close() noexcept {
  if (pool_ == nullptr) return;
  const std::shared_ptr<Pool> pool = std::exchange(pool_, nullptr);
  connection_.reset();
  pool->closed_one(*origin_);
}

Idle::Idle(Pool& pool, OriginState& origin_state, std::unique_ptr<Connection> unused)
    : origin(origin_state),
      connection(std::move(unused)),
      end(pool.loop_, [this, &pool] { pool.drop(*this); }),
      watch(pool.loop_) {
  if (pool.options_.idle_timeout > Duration::zero()) end.start(pool.options_.idle_timeout);
}

Task<Result<Lease>> Pool::acquire(std::shared_ptr<Pool> pool, Origin origin) {
  OriginState& state = pool->state_of(origin);
  if (auto connection = pool->take_idle(state)) co_return Lease(pool, state, std::move(connection));
  const std::size_t limit = std::max<std::size_t>(pool->options_.connections_per_origin_max, 1);
  if (state.open < limit) {
    ++state.open;
    ++pool->open_;
    co_return Lease(pool, state);
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
  auto connection = pool->take_idle(found->second);
  if (connection == nullptr) return {};
  return Lease(pool, found->second, std::move(connection));
}

OriginState& Pool::state_of(const Origin& origin) {
  const auto [position, is_new] = origins_.try_emplace(origin);
  if (is_new) position->second.position = position;
  return position->second;
}

std::unique_ptr<Connection> Pool::take_idle(OriginState& origin) noexcept {
  // The one that was used last is the least likely to be closed by its server.
  for (std::size_t i = origin.idle.size(); i > 0; --i) {
    Idle& idle = *origin.idle[i - 1];
    if (idle.is_usable()) return remove(idle);
  }
  return nullptr;
}

void Pool::add_idle(OriginState& origin, std::unique_ptr<Connection> connection) {
  origin.idle.reserve(origin.idle.size() + 1);
  Idle& idle = idle_.emplace_back(*this, origin, std::move(connection));
  idle.position = std::prev(idle_.end());
  origin.idle.push_back(&idle);
  try {
    idle.watch.spawn(watch(idle));
  } catch (const std::bad_alloc&) {
    return drop(idle);
  }
  if (idle_.size() > options_.idle_connections_max) drop(idle_.front());
}

std::unique_ptr<Connection> Pool::remove(Idle& idle) noexcept {
  std::erase(idle.origin.idle, &idle);
  std::list<Idle> removed;
  removed.splice(removed.begin(), idle_, idle.position);
  // The task that reads from it is destroyed with `removed`, before the caller uses it.
  return std::move(idle.connection);
}

void Pool::drop(Idle& idle) noexcept {
  OriginState& origin = idle.origin;
  remove(idle).reset();
  closed_one(origin);
}

void Pool::closed_one(OriginState& origin) noexcept {
  if (!origin.waiting.empty()) {
    Waiter& next = *origin.waiting.front();
    origin.waiting.pop_front();
    next.lease = Lease(shared_from_this(), origin);
    return next.granted.set();
  }
  --open_;
  if (--origin.open == 0) origins_.erase(origin.position);
}

void Pool::close_idle() noexcept {
  while (!idle_.empty()) drop(idle_.front());
}

void Pool::close_idle(const Origin& origin) noexcept {
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return;
  // The last call of drop() may erase the state.
  for (std::size_t left = found->second.idle.size(); left > 0; --left)
    drop(*found->second.idle.front());
}

void Pool::shut_down() noexcept {
  shut_down_ = true;
  close_idle();
}

}  // namespace tambour::http::detail::client
