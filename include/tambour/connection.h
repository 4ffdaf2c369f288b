// A connected byte stream with callbacks, like muduo's TcpConnection and libevent's bufferevent.
//
// The loop reads into a buffer and invokes on_message. send() hands bytes to the kernel at once and
// keeps what the kernel does not take. A peer that does not read makes these bytes pile up: reading
// stops at the high-water mark, and ConnectionLimits bounds the rest.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <tambour/buffer.h>
#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/connection_limits.h>
#include <tambour/endpoint.h>
#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/stream.h>

namespace tambour {

class Connection;
class ConnectionOwner;
class EventLoop;

/// Callbacks are optional; leave the ones you do not need empty. They run on the connection's loop,
/// and may close the connection and destroy its server (TcpServer, UnixServer).
struct ConnectionCallbacks {
  /// The connection is open; nothing has been read yet.
  std::function<void(Connection&)> on_connection{};
  /// Bytes were received. What the callback leaves in the buffer stays for the next call.
  std::function<void(Connection&, Buffer&)> on_message{};
  /// The peer half-closed the connection (EOF): it sends no more data, but may still read. The
  /// callback may send, and then call close_after_write() or close(). If on_end is empty, the
  /// connection calls close_after_write() itself.
  std::function<void(Connection&)> on_end{};
  /// All bytes that waited to be sent have gone to the kernel. Not invoked for bytes that the
  /// kernel took at once.
  std::function<void(Connection&)> on_write_complete{};
  /// unsent() has reached `high_water_bytes`; the argument is unsent(). The connection has stopped
  /// reading until unsent() falls to ConnectionLimits::low_water_bytes; resume_reading() in this
  /// callback makes it go on at once. Zero turns the mark off.
  std::function<void(Connection&, std::size_t)> on_high_water{};
  std::size_t high_water_bytes = std::size_t{1024} * 1024;
  /// The connection is closed: without an error after close() or when the peer closed, otherwise
  /// with the reason. ETIMEDOUT, ENOBUFS and EMSGSIZE: a limit was reached (ConnectionLimits).
  /// ENOMEM: out of memory while sending. The connection is destroyed afterwards.
  std::function<void(Connection&, Error)> on_close{};
  /// The connection has arrived on another loop, by move_to(): loop() is that one, and the callback
  /// runs on its thread.
  std::function<void(Connection&)> on_move{};
  ConnectionLimits limits{};
};

/// A connected byte stream with callbacks.
///
/// Ownership: the server that accepted it owns the connection; a connection made with start() is
/// owned by its loop. The reference passed to callbacks is valid until on_close returns. Destroying
/// the owner closes the connection without invoking callbacks.
/// Thread: all member functions but loop() must be called on the loop's thread, which is checked;
/// other threads use `loop().post()`.
/// Memory: an idle connection holds no read or write buffer.
class Connection final : private Operation, private LoopOwned {
 public:
  /// Takes over `stream`, which no task may be waiting for, and invokes on_connection before it
  /// returns. Throws std::bad_alloc.
  static Connection& start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends `bytes`; copies what the kernel does not take at once.
  ///
  /// Returns true if the bytes were sent or are waiting to be sent. Returns false if they are lost:
  /// after close(), after close_after_write() (which the peer's EOF implies without on_end), and if
  /// the connection has failed or fails now (EPIPE, ECONNRESET, ENOBUFS, ENOMEM). on_close is
  /// invoked later, with the error. Throws only what on_high_water throws.
  bool send(std::span<const std::byte> bytes);
  bool send(std::string_view text) { return send(std::as_bytes(std::span(text))); }
  /// The same without copying; `bytes` is empty afterwards.
  bool send(Buffer&& bytes);

  /// False after close(), after an error and after a limit was reached: on_close follows.
  [[nodiscard]] bool is_open() const noexcept;

  /// The number of bytes that wait to be sent.
  [[nodiscard]] std::size_t unsent() const noexcept;

  /// Sends what is left, shuts down the write side (shutdown(2)), and closes when the peer has
  /// closed too; see ConnectionLimits::linger for a peer that does not. Until then, bytes that are
  /// received while reading is paused are dropped.
  void close_after_write() noexcept;
  /// Closes now; unsent bytes are lost. on_close is invoked after on_message or on_write_complete
  /// returns if close() is called there, otherwise in a later iteration.
  void close() noexcept;

  /// Stops reading: received bytes stay in the kernel, which then stops the peer.
  void pause_reading() noexcept;
  /// Continues reading, also if the connection had stopped at the high-water mark.
  void resume_reading() noexcept;

  /// Replaces ConnectionLimits::idle_timeout for this connection: closes it with ETIMEDOUT when no
  /// byte was received and the kernel took none for `time`; zero: never. Throws std::bad_alloc.
  void set_idle_timeout(Duration time);

  /// Closes the connection with ETIMEDOUT `time` from now, whatever happens until then; zero takes
  /// the deadline back. For a login or a request that must be complete in time. Throws
  /// std::bad_alloc.
  void set_deadline(Duration time);

  /// Moves the connection to another loop: on_move is invoked there, and from then on every other
  /// callback. Buffered bytes and timeouts move too; bytes that arrive meanwhile stay in the
  /// kernel. Until the callback that calls this returns, the connection is still on this loop and
  /// may be used; afterwards it must not be touched on this thread. The connection leaves its
  /// server, which no longer counts it, unless the server serves on `to` too (TcpServerGroup).
  /// Within a simulation, not from one host to another. Throws std::bad_alloc; if memory runs out
  /// on the way, on_close gets ENOMEM.
  void move_to(EventLoop& to);

  /// The file descriptor; the connection keeps it.
  [[nodiscard]] int descriptor() const noexcept;
  /// Not checked for its thread, so that another thread can post() to it. That thread must know
  /// that the connection is open and does not move.
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// For a proxied connection, the endpoint that the proxy reports; see Socket::proxy_header().
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept;

  /// Data of the program.
  [[nodiscard]] std::any& context() noexcept;

 private:
  friend class ConnectionOwner;
  class Arrival;
  struct Deadlines;
  struct Extras;
  static Connection& start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks,
                           ConnectionOwner* owner);

  Connection(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks);
  ~Connection() override;

  void check_thread(const char* function) const noexcept;
  [[noreturn]] void fail_thread_check(const char* function) const noexcept;

  static void run(Ready& ready);
  void read_some();
  void receive_end();
  void check_rest(std::size_t received, bool consumed) noexcept;
  [[nodiscard]] bool reads() const noexcept {
    return !peer_finished_ && ((!paused_ && !throttled_) || finished_);
  }
  void write_some();
  /// Returns how much the kernel takes now; ends the connection if it is broken.
  [[nodiscard]] std::size_t send_now(std::span<const std::byte> bytes) noexcept;
  /// The same for the bytes of a buffer, as many as one call sends; drops what was taken.
  [[nodiscard]] std::size_t send_from(Buffer& bytes) noexcept;
  [[nodiscard]] std::size_t sent(auto&& call) noexcept;
  [[nodiscard]] bool may_send() const noexcept { return !ended_ && !finishing_; }
  [[nodiscard]] std::size_t unsent_bytes() const noexcept;
  [[nodiscard]] Extras& extras();
  [[nodiscard]] bool send_later(std::span<const std::byte> bytes, Buffer* buffer);
  void let_reading_continue() noexcept;
  void watch() noexcept;
  void finish_output() noexcept;
  void end(int error) noexcept;
  void end_at_limit(int error) noexcept;
  void tell_end();
  void leave() noexcept;
  void enter_list() noexcept;
  void leave_list() noexcept;
  void depart() noexcept;
  void arrive(ConnectionOwner* owner);

  // Time limits.
  [[nodiscard]] Deadlines* deadlines() const noexcept;
  Deadlines& make_deadlines();
  void start_deadlines(std::int64_t Deadlines::* since) noexcept;
  [[nodiscard]] std::int64_t next_deadline_ns() const noexcept;
  void arm_deadlines() noexcept;
  void check_deadlines() noexcept;
  void drop_unneeded() noexcept;
  void note_message(std::size_t received, bool consumed) noexcept;

  // There are many connections, and most are idle: state that an idle one does not need is in
  // Extras.
  EventLoop* loop_;
  ConnectionOwner* owner_;  ///< Null: the loop.
  std::shared_ptr<const ConnectionCallbacks> callbacks_;
  Buffer input_;
  std::unique_ptr<Extras> extras_;  ///< Null if there is nothing in it.
  std::any context_;
  std::uint32_t read_size_ = 0;  ///< What the last read suggests for the next.
  std::int16_t error_ = 0;       ///< Why it ended.
  bool paused_ : 1 = false;      ///< By pause_reading().
  bool moving_ : 1 = false;      ///< To another loop, at the end of this iteration.
  bool finishing_ : 1 = false;   ///< Nothing more is sent once the output is empty.
  bool finished_ : 1 = false;    ///< The write side is shut down.
  bool peer_finished_ : 1 = false;
  bool ended_ : 1 = false;
  bool throttled_ : 1 = false;  ///< Reading stopped at the high-water mark.
  bool resets_ : 1 = false;     ///< Closing discards what the kernel still has to send.
  bool idle_off_ : 1 = false;   ///< set_idle_timeout(0) has overridden the limits.
};

}  // namespace tambour
