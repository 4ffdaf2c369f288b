// The owner of open connections: the part of a server that runs on one loop.
#pragma once

#include <cstddef>
#include <memory>

#include <tambour/detail/ready_node.h>
#include <tambour/net/connection.h>

namespace tambour::detail::net {

class ConnectionCore;

/// A list of connections. Thread: the owner and its connections belong to the thread of its loop.
class ConnectionOwner {
 public:
  ConnectionOwner() = default;
  ConnectionOwner(const ConnectionOwner&) = delete;
  ConnectionOwner& operator=(const ConnectionOwner&) = delete;

  /// Throws what on_connection throws, and std::bad_alloc, in which case `stream` is still open.
  void start(SocketStream&& stream, std::shared_ptr<const ConnectionCallbacks> callbacks);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The connection that was added first, or null.
  [[nodiscard]] Connection* front() const noexcept;
  /// The connection that was added after this one, or null.
  [[nodiscard]] Connection* after(Connection& connection) const noexcept;

  /// Invokes `visit(connection)` for each connection, including those that have ended and wait for
  /// on_close, until it returns false. Unless it returns false, `visit` must not remove
  /// connections; closing one does not remove it.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (Connection* next = front(); next != nullptr; next = after(*next)) {
      if (!visit(*next)) return;
    }
  }

  /// Closes all connections and invokes on_close for each. Connections that arrive later are closed
  /// too.
  void close_all() noexcept;
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  /// From now on, a connection that has sent everything and called close_after_write() waits for
  /// its peer for at most a second.
  void begin_drain() noexcept;
  [[nodiscard]] bool drains() const noexcept { return drains_; }
  /// Closes all connections without invoking callbacks.
  void drop_all() noexcept;

 protected:
  ~ConnectionOwner() = default;

 private:
  friend class ConnectionCore;
  /// False for the connections of a client: Backpressure distinguishes them.
  [[nodiscard]] virtual bool accepts() const noexcept { return true; }
  /// Called when a connection has been removed: it has ended or moves to another loop.
  virtual void connection_removed() noexcept {}
  /// Called, on any thread, if a connection that on() has counted did not arrive.
  virtual void move_failed() noexcept {}
  /// Returns the owner of a connection that moves to `loop`, and counts the connection from now on.
  /// Null: the loop owns the connection.
  virtual ConnectionOwner* for_loop(EventLoop& /*loop*/) noexcept { return nullptr; }

  void add(ConnectionCore& connection) noexcept;
  void remove(ConnectionCore& connection) noexcept;

  detail::IntrusiveList<detail::LoopOwned> connections_;
  std::size_t size_ = 0;
  bool closing_ = false;
  bool drains_ = false;
};

/// Is told when a connection ends or moves to another loop. Thread: that of the connection's loop.
class ConnectionObserver : public detail::ListHook<ConnectionObserver> {
 public:
  ConnectionObserver(const ConnectionObserver&) = delete;
  ConnectionObserver& operator=(const ConnectionObserver&) = delete;

  /// The observer with this key, or null.
  [[nodiscard]] static ConnectionObserver* find(const Connection& connection,
                                                const void* key) noexcept;
  /// Closes a connection; on_close gets `error`, an errno value.
  static void close(Connection& connection, int error) noexcept;

 protected:
  /// `key` distinguishes the observers of a connection.
  explicit ConnectionObserver(const void* key) noexcept : key_(key) {}
  ~ConnectionObserver() = default;

  /// Destroying the observer ends the observation. Throws std::bad_alloc.
  void observe(Connection& connection);

 private:
  friend class ConnectionCore;
  /// The observer is no longer in the connection's list. May destroy the observer.
  virtual void connection_leaves() noexcept = 0;

  const void* key_;
};

}  // namespace tambour::detail::net
