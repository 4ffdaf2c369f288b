// A connected byte stream in the callback style: muduo's TcpConnection, libevent's bufferevent.
//
// The loop reads what comes into a buffer, and calls back; what is sent goes to the kernel at once
// as far as that takes it, and waits in a buffer as far as it does not. The trap: a peer that does
// not read makes the latter grow; `on_high_water` says when.
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
#include <tambour/endpoint.h>
#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/stream.h>

namespace tambour {

class Connection;
class ConnectionOwner;
class EventLoop;

/// Whoever is not interested leaves a function empty. All run on the connection's loop, and may
/// close the connection, and destroy its server (TcpServer, UnixServer).
struct ConnectionCallbacks {
  /// It is there, and nothing has been read.
  std::function<void(Connection&)> on_connection{};
  /// Bytes have come. What is left in the buffer stays for the next time.
  std::function<void(Connection&, Buffer&)> on_message{};
  /// The peer says no more, but may still listen; it has closed, or has shut down its side. An
  /// answer may follow, and then close_after_write() or close(); that the peer has gone shows when
  /// something is sent. Where this is empty, the connection does close_after_write() by itself.
  std::function<void(Connection&)> on_end{};
  /// All that waited to be sent has gone to the kernel; not called for what goes there at once.
  std::function<void(Connection&)> on_write_complete{};
  /// What waits to be sent has grown to `high_water_bytes`, or beyond: to so many bytes.
  std::function<void(Connection&, std::size_t)> on_high_water{};
  std::size_t high_water_bytes = std::size_t{64} * 1024 * 1024;
  /// It is closed: without an error where close() or the peer did that, else with the reason.
  /// ETIMEDOUT: nothing has come for the idle timeout. The connection is gone afterwards.
  std::function<void(Connection&, Error)> on_close{};
  /// It has arrived on another loop, by move_to(): loop() is that one, whose thread this is.
  std::function<void(Connection&)> on_move{};
};

/// Owned by its server, or else its loop, until it is closed; callbacks get a reference, which is
/// good until on_close has returned. Who is destroyed closes what it owns, silently. Belongs to the
/// thread of its loop. An idle one holds no memory for bytes.
class Connection final : private Operation, private LoopOwned {
 public:
  /// Takes over `stream`, for which nobody may be waiting, and calls on_connection before it
  /// returns. Throws std::bad_alloc.
  static Connection& start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends bytes, which are copied as far as the kernel does not take them at once. Nothing is sent
  /// after close_after_write(), which a peer that says no more brings about too (on_end). What goes
  /// wrong is told by on_close, later. Throws std::bad_alloc.
  void send(std::span<const std::byte> bytes);
  void send(std::string_view text) { send(std::as_bytes(std::span(text))); }
  /// The same without copying; `bytes` is empty then.
  void send(Buffer&& bytes);

  /// Bytes that wait to be sent.
  [[nodiscard]] std::size_t unsent() const noexcept;

  /// Sends what waits, tells the peer that nothing more will come (shutdown(2)), and closes when
  /// the peer has closed too. Until then, what comes while reading is paused is dropped.
  void close_after_write() noexcept;
  /// Closes now; what waits is lost. on_close comes when on_message or on_write_complete has
  /// returned that says so, else in a later turn.
  void close() noexcept { end(0); }

  /// Lets what comes wait in the kernel, and the peer with it.
  void pause_reading() noexcept;
  void resume_reading() noexcept;

  /// Closes it when nothing has come for so long; zero: never, as at first. Throws std::bad_alloc.
  void set_idle_timeout(Duration time);

  /// Goes on on another loop: on_move is called there, and from then on everything else. Bytes and
  /// idle timeout go with it; what comes meanwhile waits in the kernel. Until the callback that
  /// says this returns, it is still here, and may be used; then it is `to`'s, and no longer to be
  /// touched on this thread. It leaves its server, which counts it no more, unless that serves on
  /// `to` too (TcpServerGroup). Not in a simulation from one machine to another. Throws
  /// std::bad_alloc; on_close is told ENOMEM where there is no memory on the way.
  void move_to(EventLoop& to);

  [[nodiscard]] int descriptor() const noexcept { return fd; }
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// Of a proxied connection, whose the proxy says it is; see Socket::proxy_header().
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept;

  /// Whatever the program keeps with it.
  [[nodiscard]] std::any& context() noexcept { return context_; }

 private:
  friend class ConnectionOwner;
  class Arrival;
  struct Idle;
  static Connection& start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks,
                           ConnectionOwner* owner);

  struct Extras;

  Connection(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks);
  ~Connection() override;

  static void run(Ready& ready);
  void read_some();
  [[nodiscard]] bool reads() const noexcept { return !peer_finished_ && (!paused_ || finished_); }
  void write_some();
  /// How much the kernel takes now; ends the connection where it is broken.
  [[nodiscard]] std::size_t send_now(std::span<const std::byte> bytes) noexcept;
  /// The same for what is in the buffer, as much as goes at a time; drops what was taken.
  [[nodiscard]] std::size_t send_from(Buffer& bytes) noexcept;
  [[nodiscard]] std::size_t sent(auto&& call) noexcept;
  [[nodiscard]] bool may_send() const noexcept { return !ended_ && !finishing_; }
  [[nodiscard]] Extras& extras();
  void wait_to_send(std::size_t unsent_before);
  void watch() noexcept;
  void finish_output() noexcept;
  void end(int error) noexcept;
  void tell_end();
  void leave() noexcept;
  void enter_list() noexcept;
  void leave_list() noexcept;
  void depart() noexcept;
  void arrive(ConnectionOwner* owner, std::unique_ptr<Idle> idle);
  void set_idle(std::unique_ptr<Idle> idle);

  // There are many of these, and most of them idle: what an idle one does not need is elsewhere.
  EventLoop* loop_;
  ConnectionOwner* owner_;  ///< Null: the loop.
  std::shared_ptr<const ConnectionCallbacks> callbacks_;
  Buffer input_;
  std::unique_ptr<Extras> extras_;  ///< What few have; null where it has none of that.
  std::any context_;
  std::uint32_t read_size_ = 0;  ///< What the last read suggests for the next.
  std::int16_t error_ = 0;       ///< Why it ended.
  bool paused_ : 1 = false;
  bool moving_ : 1 = false;     ///< To another loop, when this turn has come to it.
  bool finishing_ : 1 = false;  ///< Nothing more is sent once the output is empty.
  bool finished_ : 1 = false;   ///< The peer was told so.
  bool peer_finished_ : 1 = false;
  bool ended_ : 1 = false;
};

}  // namespace tambour
