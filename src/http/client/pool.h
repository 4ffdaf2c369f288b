// The connections of a client, and the requests that wait for one.
//
// An origin owns its connections. A connection has slots, one for each request that may use it at
// the same time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/stream.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>

#include "http/h2/client_connection.h"
#include "http_message/h1/parser.h"

namespace tambour::http::detail::client {

struct Origin {
  /// In lower case; an IPv6 address without brackets; or "unix:" and a path.
  std::string host{};
  std::uint16_t port = 0;
  bool is_secure = false;
  std::string proxy{};  ///< The URL of the proxy to it; empty: none.
  /// For requests that HTTP/2 cannot transfer, such as those with the field Upgrade.
  bool needs_http_1 = false;

  [[nodiscard]] bool is_unix() const noexcept { return host.starts_with("unix:"); }
  auto operator<=>(const Origin&) const = default;
};

/// A connection of HTTP/1.1: its stream, the bytes that have arrived, and their parser.
struct Connection {
  Connection(SocketStream opened, const MessageLimits& limits) noexcept
      : stream(std::move(opened)), parser(limits) {}

  SocketStream stream;
  Buffer input;
  h1::ResponseParser parser;
  bool was_used = false;
};

class Pool;
struct OriginState;
struct PooledConnection;

/// Reads from a connection of HTTP/1 that is not in use, and closes it when something arrives:
/// neither data nor the end of the stream belongs to a response. Not a task, because it begins and
/// ends with each request.
class IdleRead final : public Stream::ReadBuffer {
 public:
  IdleRead(Pool& pool, PooledConnection& pooled) noexcept;

  /// Returns false if something has arrived already.
  [[nodiscard]] bool start(std::source_location at = std::source_location::current()) noexcept;

 private:
  void completed() override;

  Pool& pool_;
  PooledConnection& pooled_;
};

/// A connection of an origin, which is being opened, in use, or idle. Each request that uses it has
/// one of its slots.
struct PooledConnection {
  explicit PooledConnection(OriginState& owner)
      : origin(owner), order({this}), order_position(order.begin()) {}

  [[nodiscard]] bool has_free_slot() const noexcept { return slots_used < slots_max; }
  [[nodiscard]] bool is_idle() const noexcept { return is_in_idle_list; }
  [[nodiscard]] bool is_usable() const noexcept {
    return multiplexed ? multiplexed->can_open() : is_idle();
  }
  [[nodiscard]] bool is_connected() const noexcept { return connection || multiplexed; }

  OriginState& origin;
  std::list<PooledConnection>::iterator position;  ///< Among the connections of the origin.
  /// One element, which is in the list of idle connections of the pool while this one is idle, so
  /// that releasing a connection allocates nothing.
  std::list<PooledConnection*> order;
  std::list<PooledConnection*>::iterator order_position;  ///< Of that element, in either list.
  // Both are null while it is being opened.
  std::unique_ptr<Connection> connection;           ///< Of HTTP/1.
  std::unique_ptr<H2ClientConnection> multiplexed;  ///< Of HTTP/2.
  std::size_t slots_max = 1;                        ///< HTTP/1: requests do not share a connection.
  std::size_t slots_used = 0;
  bool is_in_idle_list = false;
  TimePoint idle_until = never;  ///< While it is idle.
  /// While it is idle. Destroyed before the connection. One of HTTP/2 reads always.
  std::optional<IdleRead> idle_read;
};

/// A slot of a connection, which may have to be opened first.
class Lease {
 public:
  Lease() noexcept = default;
  /// Uses a free slot.
  Lease(std::shared_ptr<Pool> pool, PooledConnection& pooled) noexcept
      : pool_(std::move(pool)), pooled_(&pooled) {
    ++pooled.slots_used;
  }
  Lease(Lease&& other) noexcept : pool_(std::move(other.pool_)), pooled_(other.pooled_) {}
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { close(); }

  explicit operator bool() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] Connection* operator->() const noexcept { return pooled_->connection.get(); }
  [[nodiscard]] H2ClientConnection* multiplexed() const noexcept {
    return pooled_->multiplexed.get();
  }
  [[nodiscard]] bool is_connected() const noexcept { return pooled_->is_connected(); }
  /// Replaces a connection that has ended, too.
  void connected(std::unique_ptr<Connection> connection) noexcept;

  /// The connection speaks HTTP/2. Its free slots are given to requests that wait. Throws
  /// std::bad_alloc.
  void connected_multiplexed(SocketStream stream);

  /// Frees the slot, and keeps the connection open for the next request. There must be one.
  void release() noexcept;
  /// Closes a connection of HTTP/1, or one that is being opened, and frees a slot of one of HTTP/2.
  void close() noexcept;

 private:
  std::shared_ptr<Pool> pool_;
  PooledConnection* pooled_ = nullptr;
};

/// A request that waits for a slot.
struct Waiter : tambour::detail::ListHook<Waiter> {
  Waiter(EventLoop& loop, const Origin& wanted) : origin(wanted), granted(loop) {}
  const Origin& origin;
  TaskEvent granted;
  Lease lease;
  bool has_promise = false;  ///< Instead of a lease: the request may open a connection.
};

/// Requests that wait, the first one the longest. A request that ends early leaves in constant
/// time.
class WaiterQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Null if the queue is empty.
  [[nodiscard]] Waiter* front() const noexcept { return waiters_.front(); }
  /// Null after the last one.
  [[nodiscard]] Waiter* after(const Waiter& waiter) const noexcept {
    return waiters_.after(waiter);
  }

  void push_back(Waiter& waiter) noexcept {
    waiters_.push_back(waiter);
    ++size_;
  }
  void remove(Waiter& waiter) noexcept {
    waiter.unlink();
    --size_;
  }

 private:
  tambour::detail::IntrusiveList<Waiter> waiters_;
  std::size_t size_ = 0;
};

struct OriginState {
  std::map<Origin, OriginState>::iterator position;
  std::list<PooledConnection> connections;  ///< The one that was released last is the last.
  WaiterQueue waiting;
  std::size_t opening = 0;  ///< Connections that are not connected yet.
};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(EventLoop& loop, const ClientOptions& options) : loop_(loop), options_(options) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { close_idle(); }

  /// Returns a free slot: that of an idle connection, or of one to be opened. Waits if the origin
  /// has too many connections.
  [[nodiscard]] static Task<Result<Lease>> acquire(std::shared_ptr<Pool> pool, Origin origin);

  /// An idle connection, or an empty lease.
  [[nodiscard]] static Lease take_idle(const std::shared_ptr<Pool>& pool,
                                       const Origin& origin) noexcept;

  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_.size(); }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  void close_idle() noexcept;
  void close_idle(const Origin& origin) noexcept;
  /// Connections are closed from now on when they are released.
  void shut_down() noexcept;
  [[nodiscard]] const Http2ClientStats& http_2_stats() const noexcept { return stats_; }
  /// The server has refused HTTP/2 (HTTP_1_1_REQUIRED). Throws std::bad_alloc.
  void require_http_1(const Origin& origin);
  [[nodiscard]] bool requires_http_1(const Origin& origin) const noexcept {
    return requiring_http_1_.contains(origin);
  }
  void count_repetition() noexcept { ++stats_.requests_repeated; }

 private:
  friend class IdleRead;
  friend class Lease;
  class Waiting;

  [[nodiscard]] OriginState& state_of(const Origin& origin);
  /// Null: all are in use.
  [[nodiscard]] PooledConnection* find_idle(OriginState& origin) noexcept;
  /// An idle connection, also one of HTTP/1.1 that was negotiated for any request if the origin is
  /// one that needs it. Null if there is none. Throws std::bad_alloc.
  [[nodiscard]] PooledConnection* find_idle(const Origin& origin);
  [[nodiscard]] PooledConnection& add(OriginState& origin);
  /// A slot of an idle connection, or of one that is added; no value: the request must wait.
  /// `is_next`: it has waited for the limit of all origins.
  [[nodiscard]] std::optional<Lease> try_acquire(const Origin& origin, bool is_next);
  /// True if a connection may be opened, for which the oldest idle one may have been closed.
  [[nodiscard]] bool make_room(bool is_next) noexcept;
  [[nodiscard]] bool is_full(const Origin& origin) const noexcept;
  /// True if a connection is being opened whose slots many requests will share.
  [[nodiscard]] bool is_opening_multiplexed(const Origin& origin) const noexcept;
  void connect_multiplexed(PooledConnection& pooled, SocketStream stream);
  /// The connection of HTTP/2 allows another number of streams, or none.
  void slots_changed(PooledConnection& pooled) noexcept;
  /// The version of the connection is known.
  void opened(PooledConnection& pooled, bool is_multiplexed) noexcept;
  /// Lets requests that wait open connections, as many as they may.
  void open_for_waiting(OriginState& origin) noexcept;
  /// A connection may be opened: lets the next request try that has waited for it.
  void wake_blocked() noexcept;
  /// Gives a free slot to a request for the same origin that waits for the limit of all origins.
  [[nodiscard]] bool grant_to_blocked(PooledConnection& pooled) noexcept;
  /// Gives a free slot to the next request that waits. Returns false if there is none.
  [[nodiscard]] bool grant(PooledConnection& pooled) noexcept;
  void released(PooledConnection& pooled) noexcept;
  /// Returns false if the connection has ended already.
  [[nodiscard]] bool begin_idle(PooledConnection& pooled) noexcept;
  void end_idle(PooledConnection& pooled) noexcept;
  /// Closes those that have been idle for too long.
  void close_expired() noexcept;
  void arm_expiry() noexcept;
  /// Closes the connection. A request that waits may open another one in its place.
  void close(PooledConnection& pooled) noexcept;

  EventLoop& loop_;
  const ClientOptions& options_;
  Http2ClientStats stats_;  ///< Before the connections, which refer to it.
  std::map<Origin, OriginState> origins_;
  /// Origins that have spoken HTTP/2. One connection at a time is opened to them.
  std::set<Origin> multiplexing_;
  std::set<Origin> requiring_http_1_;
  /// The one that was released last is the last, and expires last.
  std::list<PooledConnection*> idle_;
  std::optional<Timer> expiry_;  ///< Of the first one in `idle_`, or earlier.
  std::size_t open_ = 0;
  /// Requests that wait until there are fewer connections to all origins. Not in the queue of their
  /// origin, which may have no connection that could wake them up.
  WaiterQueue blocked_;
  std::size_t promised_ = 0;  ///< Connections that requests may open which were woken up.
  std::size_t waiting_ = 0;   ///< Requests of all queues.
  bool shut_down_ = false;
};

}  // namespace tambour::http::detail::client
