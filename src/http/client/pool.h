// The connections of a client: in use, idle, and requests that wait for one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http_message/h1/parser.h"

namespace tambour::http::detail::client {

struct Origin {
  /// In lower case; an IPv6 address without brackets; or "unix:" and a path.
  std::string host{};
  std::uint16_t port = 0;
  bool is_secure = false;
  std::string proxy{};  ///< The URL of the proxy to it; empty: none.

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

/// The right to have one connection to an origin, and the connection once it is open.
class Lease {
 public:
  Lease() noexcept = default;
  Lease(std::shared_ptr<Pool> pool, OriginState& origin,
        std::unique_ptr<Connection> connection = nullptr) noexcept
      : pool_(std::move(pool)), origin_(&origin), connection_(std::move(connection)) {}
  Lease(Lease&& other) noexcept
      : pool_(std::move(other.pool_)),
        origin_(other.origin_),
        connection_(std::move(other.connection_)) {}
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { close(); }

  explicit operator bool() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] Connection* operator->() const noexcept { return connection_.get(); }
  [[nodiscard]] bool is_connected() const noexcept { return connection_ != nullptr; }
  /// Replaces a connection that has ended, too.
  void connected(std::unique_ptr<Connection> connection) noexcept {
    connection_ = std::move(connection);
  }

  /// Keeps the connection open for the next request. There must be one.
  void release() noexcept;
  /// Closes the connection.
  void close() noexcept;

 private:
  std::shared_ptr<Pool> pool_;
  OriginState* origin_ = nullptr;
  std::unique_ptr<Connection> connection_;
};

/// A request that waits for a connection, or for the right to open one.
struct Waiter {
  explicit Waiter(EventLoop& loop) : granted(loop) {}
  TaskEvent granted;
  Lease lease;
};

/// A connection that is not in use. A task reads from it: whatever arrives makes it useless.
struct Idle {
  Idle(Pool& pool, OriginState& origin, std::unique_ptr<Connection> unused);

  [[nodiscard]] bool is_usable() const noexcept { return !watch.empty(); }

  OriginState& origin;
  std::unique_ptr<Connection> connection;
  /// Expires when the connection has been idle for too long, or has become useless. The task cannot
  /// destroy its own scope.
  Timer end;
  TaskScope watch;  ///< Destroyed before the connection.
  std::list<Idle>::iterator position;
};

struct OriginState {
  std::map<Origin, OriginState>::iterator position;
  std::size_t open = 0;  ///< Leases and idle connections.
  std::vector<Idle*> idle;
  std::deque<Waiter*> waiting;
};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(EventLoop& loop, const ClientOptions& options) : loop_(loop), options_(options) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { close_idle(); }

  /// Returns an idle connection, or the right to open one. Waits if the origin has too many.
  [[nodiscard]] static Task<Result<Lease>> acquire(std::shared_ptr<Pool> pool, Origin origin);

  /// An idle connection, or an empty lease.
  [[nodiscard]] static Lease take_idle(const std::shared_ptr<Pool>& pool,
                                       const Origin& origin) noexcept;

  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_.size(); }
  void close_idle() noexcept;
  void close_idle(const Origin& origin) noexcept;
  /// Connections are closed from now on when they are released.
  void shut_down() noexcept;

 private:
  friend class Lease;
  friend struct Idle;

  [[nodiscard]] OriginState& state_of(const Origin& origin);
  [[nodiscard]] std::unique_ptr<Connection> take_idle(OriginState& origin) noexcept;
  void add_idle(OriginState& origin, std::unique_ptr<Connection> connection);
  /// The connection stays counted in `open`.
  [[nodiscard]] std::unique_ptr<Connection> remove(Idle& idle) noexcept;
  void drop(Idle& idle) noexcept;
  /// A connection of the origin was closed: a waiting request may open one.
  void closed_one(OriginState& origin) noexcept;

  EventLoop& loop_;
  const ClientOptions& options_;
  std::map<Origin, OriginState> origins_;
  std::list<Idle> idle_;  ///< The one that was released last is the last.
  std::size_t open_ = 0;
  bool shut_down_ = false;
};

}  // namespace tambour::http::detail::client
