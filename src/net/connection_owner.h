// What connections belong to while they are open: a server's part on one loop.
#pragma once

#include <cstddef>
#include <memory>

#include <tambour/connection.h>
#include <tambour/operation.h>

namespace tambour {

/// Belongs to the thread of its loop, and so do its connections.
class ConnectionOwner {
 public:
  ConnectionOwner() = default;
  ConnectionOwner(const ConnectionOwner&) = delete;
  ConnectionOwner& operator=(const ConnectionOwner&) = delete;

  /// Throws what on_connection throws, and std::bad_alloc.
  void start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Closes all of them, with a callback each, and from then on those that come.
  void close_all() noexcept;
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  /// Closes all of them, silently.
  void drop_all() noexcept;

 protected:
  ~ConnectionOwner() = default;

 private:
  friend class Connection;
  /// One has gone: it has ended, or moves to another loop.
  virtual void left() noexcept {}
  /// Any thread: one that was counted by on() has not got as far as here.
  virtual void never_came() noexcept {}
  /// Whose a connection shall be that moves to `loop`, and is counted from now on. Null: that
  /// loop's own.
  virtual ConnectionOwner* on(EventLoop& /*loop*/) noexcept { return nullptr; }

  void add(Connection& connection) noexcept;
  void remove(Connection& connection) noexcept;

  LinkList connections_;
  std::size_t size_ = 0;
  bool closing_ = false;
};

}  // namespace tambour
