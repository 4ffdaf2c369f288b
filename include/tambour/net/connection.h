// A connected byte stream with callbacks, like muduo's TcpConnection and libevent's bufferevent.
//
// The loop reads into a buffer and invokes on_message. send() passes bytes to the kernel at once
// and buffers the rest. If the peer does not read, buffered bytes accumulate: an accepted
// connection stops reading at the high-water mark, and ConnectionLimits bounds the rest.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/net/connection_handle.h>
#include <tambour/net/connection_limits.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/stream.h>

namespace tambour::detail::net {
class ConnectionCore;
}  // namespace tambour::detail::net

#pragma GCC visibility push(default)

namespace tambour {

class Connection;
class EventLoop;
namespace tls {
class Session;
}  // namespace tls

/// The callbacks and limits of a Connection. All are optional; leave the ones you do not need
/// empty. They run on the connection's loop, and may close the connection and destroy its server
/// (TcpServer, UnixServer).
///
/// A callback may be move-only, so it can own what it uses, for example a std::unique_ptr; the
/// structure is therefore move-only too. All connections of a server share one object, which is
/// const: a callback keeps state of its own only if it is `mutable`, and a TcpServerGroup then
/// invokes it on several threads at once. State of one connection belongs in Connection::context().
struct ConnectionCallbacks {
  /// The connection is open; nothing has been read yet.
  Callback<void(Connection&)> on_connection{};
  /// Data was received. Bytes that the callback does not consume stay in the buffer for the next
  /// call.
  Callback<void(Connection&, Buffer&)> on_message{};
  /// The peer half-closed the connection (EOF): it sends no more data, but may still read. The
  /// callback may send, and then call close_after_write() or close(). If on_end is empty, the
  /// connection calls close_after_write() itself.
  Callback<void(Connection&)> on_end{};
  /// The kernel has accepted all buffered bytes. Not invoked for bytes that the kernel accepted
  /// during send().
  Callback<void(Connection&)> on_write_complete{};
  /// unsent() has reached `high_water_bytes`; the argument is unsent(). Depending on
  /// ConnectionLimits::backpressure, the connection has stopped reading until unsent() falls to
  /// ConnectionLimits::low_water_bytes; if reading is not paused, calling resume_reading() in this
  /// callback resumes it at once. Zero disables the mark.
  Callback<void(Connection&, std::size_t)> on_high_water{};
  std::size_t high_water_bytes = std::size_t{1024} * 1024;
  /// The connection is closed: without an error after close() or when the peer closed, otherwise
  /// with the reason, which may be a tls::ErrorCode. ETIMEDOUT, ENOBUFS and EMSGSIZE mean that a
  /// limit was reached (ConnectionLimits); ENOMEM means out of memory while sending. The connection
  /// is destroyed after the callback returns.
  Callback<void(Connection&, Error)> on_close{};
  /// move_to() has moved the connection to another loop. loop() returns the new loop, and the
  /// callback runs on its thread.
  Callback<void(Connection&)> on_move{};
  /// One of the callbacks above has thrown. The connection has been closed; on_close follows,
  /// unless it is what has thrown. A server sets it, if it is empty, to report the exception: see
  /// ListenOptions::on_error. Without it, the exception leaves run(), or the function that has
  /// invoked the callback, and the connection stays open. An exception that it throws leaves run().
  Callback<void(std::exception_ptr)> on_exception{};
  ConnectionLimits limits{};
  /// What the stall detector names. A server and a StreamClient replace it by the place in which
  /// they got the callbacks.
  std::source_location created_at = std::source_location::current();
};

/// A connected byte stream with callbacks.
///
/// Ownership: the server that accepted it owns the connection; a connection made with start() is
/// owned by its loop. The reference passed to callbacks is valid until on_close returns. Destroying
/// the owner closes the connection without invoking callbacks.
/// Thread: all member functions except loop() must be called on the loop's thread, which is
/// checked. Other threads use a handle().
/// Memory: an idle connection holds no read or write buffer.
class Connection {
 public:
  /// Takes ownership of `stream` and invokes on_connection before it returns. No task may be
  /// waiting on `stream`. Throws std::bad_alloc.
  static Connection& start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks);
  /// Like start(Stream, ...); the connection also takes over the PROXY header of `stream`.
  static Connection& start(SocketStream stream,
                           std::shared_ptr<const ConnectionCallbacks> callbacks);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends `bytes`; copies the bytes that the kernel does not accept at once.
  ///
  /// Returns true if the bytes were sent or buffered. Returns false if they are lost: after
  /// close(), after shutdown_write() and close_after_write() (which the peer's EOF implies if
  /// on_end is empty), and if the connection has failed or fails now (EPIPE, ECONNRESET, ENOBUFS,
  /// ENOMEM). on_close is invoked later, with the error, so a program may ignore the result. Throws
  /// only what on_high_water throws, if on_exception is empty.
  bool send(std::span<const std::byte> bytes);
  bool send(std::string_view text) { return send(std::as_bytes(std::span(text))); }
  /// Sends the bytes without copying them; `bytes` is empty afterwards. Otherwise like send(span).
  bool send(Buffer&& bytes);

  /// Returns a handle for use by other threads, and for use after the connection may have ended.
  /// The first call allocates; throws std::bad_alloc.
  [[nodiscard]] ConnectionHandle handle();

  /// False after close(), after an error, and after a limit was reached; on_close follows.
  [[nodiscard]] bool is_open() const noexcept;

  /// The number of buffered bytes that have not been sent.
  [[nodiscard]] std::size_t unsent() const noexcept;

  /// Half-close: sends the remaining bytes and shuts down the write side (shutdown(2)). The
  /// connection continues reading, without a time limit of its own, and respects pause_reading().
  /// It closes without an error when the peer has half-closed too, after on_end. Use it to forward
  /// EOF, as a proxy does. A pipe or a terminal has no write side of its own: see
  /// close_after_write().
  void shutdown_write() noexcept;
  /// Use it if the last answer is complete and further input can be discarded. Sends the remaining
  /// bytes, shuts down the write side, and closes when the peer has closed too;
  /// ConnectionLimits::linger bounds the wait for the peer. Until then, bytes that are received
  /// while reading is paused are dropped. A pipe or a terminal is closed once the bytes are sent.
  void close_after_write() noexcept;
  /// Closes now; unsent bytes are lost. on_close is invoked after on_message or on_write_complete
  /// returns if close() is called there, otherwise in a later iteration.
  void close() noexcept;

  /// Stops reading. Received bytes stay in the kernel, whose flow control then stops the peer.
  void pause_reading() noexcept;
  /// Ends a pause. Bytes that on_message has left in the buffer are offered again: on_message is
  /// invoked in a later iteration, even if nothing more is received. If reading is not paused but
  /// has stopped at the high-water mark, resumes it. Otherwise has no effect.
  void resume_reading() noexcept;

  /// Replaces ConnectionLimits::idle_timeout for this connection: closes it with ETIMEDOUT if for
  /// `time` no byte was received and sending made no progress. Zero disables the timeout. Throws
  /// std::bad_alloc.
  void set_idle_timeout(Duration time);

  /// Closes the connection with ETIMEDOUT `time` from now, regardless of activity; zero removes the
  /// deadline. Use it for a login or a request that must be completed in time. Throws
  /// std::bad_alloc.
  void set_deadline(Duration time);

  /// Moves the connection to another loop. on_move and all later callbacks are invoked there.
  /// Buffered bytes and timeouts move too; bytes that arrive during the move stay in the kernel.
  /// Until the callback that calls move_to() returns, the connection is still on this loop and may
  /// be used; afterwards this thread must not access it. The connection leaves its server, which no
  /// longer counts it, unless the server also serves on `to` (TcpServerGroup). In a simulation,
  /// both loops must be on the same host. Throws std::bad_alloc. If memory runs out during the
  /// move, on_close gets ENOMEM; if the queue of `to` is full (EventLoop::post()), EAGAIN.
  void move_to(EventLoop& to);

  /// The file descriptor, which the connection still owns.
  [[nodiscard]] int fd() const noexcept;
  /// Its thread is not checked, so that another thread can call post() on the loop. That thread
  /// must ensure that the connection is open and is not being moved; a handle() ensures that.
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// For a proxied connection, the endpoint that the proxy reports; see
  /// SocketStream::proxy_header().
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept;

  /// The TLS session, or null if the connection does not use TLS. Valid until on_close returns.
  [[nodiscard]] const tls::Session* tls() const noexcept;

  /// Arbitrary data of the application.
  [[nodiscard]] std::any& context() noexcept;

 private:
  friend class detail::net::ConnectionCore;
  explicit Connection(EventLoop& loop) noexcept : loop_(&loop) {}
  ~Connection() = default;
  [[nodiscard]] detail::net::ConnectionCore& core() noexcept;
  [[nodiscard]] const detail::net::ConnectionCore& core() const noexcept;

  EventLoop* loop_;  ///< The rest of its state is in ConnectionCore.
};

}  // namespace tambour

#pragma GCC visibility pop
