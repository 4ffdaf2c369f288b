// A handle to a Connection that any thread may keep and use, like muduo's TcpConnectionPtr.
//
// The handle does not own the connection: it may outlive the connection and its loop. The common
// mistake is to keep a Connection& or a Connection* for later instead; the reference is valid only
// until on_close returns.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/bytes/buffer.h>

namespace tambour::detail::net {
class ConnectionCore;
}  // namespace tambour::detail::net

#pragma GCC visibility push(default)

namespace tambour {

class Connection;

/// Refers to a connection, which may have ended. Connection::handle() returns one.
///
/// Thread: all functions may be called on any thread. On the thread of the connection's loop an
/// operation takes effect at once, unless earlier ones are still queued; on another thread it is
/// queued and wakes the loop. The operations of all handles of one connection take effect in the
/// order of the calls. They follow a connection that moves to another loop.
/// Lifetime: copyable. All copies share one small allocation, which the first call of
/// Connection::handle() makes; a connection that has no handle costs nothing. A handle does not
/// keep the connection open and does not keep run() from returning.
/// Limits: queued bytes count towards ConnectionLimits::unsent_bytes_max when the loop takes them,
/// in its next iteration. Errors: functions that queue throw like EventLoop::post(), and the
/// operation is then not queued. On the loop's thread, send() also throws what on_high_water
/// throws.
class ConnectionHandle {
 public:
  /// Refers to no connection; is like the handle of a connection that has ended.
  ConnectionHandle() = default;

  /// False after the connection has been closed or has failed. On another thread than the loop's,
  /// the answer may be outdated when the function returns.
  [[nodiscard]] bool is_open() const noexcept;

  /// Like Connection::send(). Returns false if the bytes are lost because the connection has ended.
  /// If the bytes were queued and the connection ends before it has sent them, on_close is the only
  /// report.
  bool send(std::span<const std::byte> bytes) const;
  bool send(std::string_view text) const { return send(std::as_bytes(std::span(text))); }
  /// Sends the bytes without copying them; `bytes` is empty afterwards.
  bool send(Buffer&& bytes) const;

  /// Like the functions of Connection. No effect if the connection has ended.
  void shutdown_write() const;
  void close_after_write() const;
  void close() const;

  /// Invokes `task` with the connection on the thread of its loop, in a later iteration. If the
  /// connection ends first, `task` is destroyed without being invoked, on that thread or on that of
  /// the caller. Returns false if the connection has ended. If `task` throws,
  /// ConnectionCallbacks::on_exception gets the exception and the connection is closed; without
  /// on_exception, the loop's run() throws it. The stall detector names `at`.
  bool post(Callback<void(Connection&)> task,
            std::source_location at = std::source_location::current()) const;

  /// The connection, if it is open and the calling thread is that of its loop; otherwise null.
  /// Valid as long as the reference that callbacks get.
  [[nodiscard]] Connection* get() const noexcept;

  /// Two handles are equal if they refer to the same connection.
  friend bool operator==(const ConnectionHandle&, const ConnectionHandle&) = default;
  friend std::strong_ordering operator<=>(const ConnectionHandle&,
                                          const ConnectionHandle&) = default;

 private:
  friend class detail::net::ConnectionCore;
  friend struct std::hash<ConnectionHandle>;
  class [[gnu::visibility("protected")]] Mailbox;
  explicit ConnectionHandle(std::shared_ptr<Mailbox> mailbox) noexcept
      : mailbox_(std::move(mailbox)) {}

  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace tambour

template <>
struct std::hash<tambour::ConnectionHandle> {
  std::size_t operator()(const tambour::ConnectionHandle& handle) const noexcept {
    return std::hash<std::shared_ptr<tambour::ConnectionHandle::Mailbox>>()(handle.mailbox_);
  }
};

#pragma GCC visibility pop
