// The state and the work of a Connection, for the files of this directory only.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>

#include <tambour/detail/operation.h>
#include <tambour/detail/transport_filter.h>
#include <tambour/detail/transport_kind.h>
#include <tambour/net/connection.h>
#include <tambour/net/connection_handle.h>
#include <tambour/net/proxy_header.h>

namespace tambour::detail::io {
class Transport;
}  // namespace tambour::detail::io

namespace tambour::detail::net {

class ConnectionObserver;
class ConnectionOwner;
struct ConnectionUpgrade;

/// Each Connection is the base of one. Its public functions do what those of Connection of the same
/// name document, and check the thread.
class ConnectionCore final : private Operation, private LoopOwned, public Connection {
 public:
  [[nodiscard]] static ConnectionCore& of(Connection& connection) noexcept {
    return static_cast<ConnectionCore&>(connection);
  }
  [[nodiscard]] static const ConnectionCore& of(const Connection& connection) noexcept {
    return static_cast<const ConnectionCore&>(connection);
  }

  /// Starts a connection of `owner`, or of its loop if that is null. `function` is named if this is
  /// not the thread of the loop.
  static Connection& start(SocketStream&& stream,
                           std::shared_ptr<const ConnectionCallbacks> callbacks,
                           ConnectionOwner* owner,
                           std::source_location function = std::source_location::current());
  static Connection& start(Stream&& stream, OwnedPointer<const ProxyHeader> header,
                           std::shared_ptr<const ConnectionCallbacks> callbacks,
                           ConnectionOwner* owner,
                           std::source_location function = std::source_location::current());

  bool send(std::span<const std::byte> bytes);
  bool send(Buffer&& bytes);
  [[nodiscard]] ConnectionHandle handle();
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] std::size_t unsent() const noexcept;
  void shutdown_write() noexcept;
  void close_after_write() noexcept;
  void close() noexcept;
  void pause_reading() noexcept;
  void resume_reading() noexcept;
  void set_idle_timeout(Duration time);
  void set_deadline(Duration time);
  void move_to(EventLoop& to);
  [[nodiscard]] int fd() const noexcept;
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept;
  [[nodiscard]] const tls::Session* tls() const noexcept;
  [[nodiscard]] std::any& context() noexcept;

 private:
  friend class tambour::ConnectionHandle;
  friend class ConnectionObserver;
  friend class ConnectionOwner;
  friend struct ConnectionUpgrade;
  class Arrival;
  struct Deadlines;
  struct Extras;
  struct Upgrade;
  ConnectionCore(Stream&& stream, OwnedPointer<const ProxyHeader> header,
                 std::shared_ptr<const ConnectionCallbacks> callbacks);
  ~ConnectionCore() override;

  void check_thread(const char* function) const noexcept;
  [[noreturn]] void fail_thread_check(const char* function) const noexcept;

  static void run(ReadyNode& ready);
  void handle_events(Events events);
  template <class Function>
  void call_guarded(Function function);
  void pass_exception_on();
  void read_some();
  void offer(std::size_t received);
  void receive_end();
  void check_rest(std::size_t received, bool consumed) noexcept;
  [[nodiscard]] bool reads() const noexcept {
    return !peer_half_closed_ && ((!paused_ && !throttled_) || write_shut_down_);
  }
  void write_some();
  void close_descriptor() noexcept;
  [[nodiscard]] io::Transport transport() const noexcept;
  [[nodiscard]] io::TransportFilter* filter() const noexcept;
  [[nodiscard]] bool may_read_now() const noexcept;
  void read_again_if_possible() noexcept;
  void continue_handshake();
  void end_handshake();
  [[nodiscard]] bool note_unsent(std::size_t before);
  /// Makes one transfer. Returns how many bytes the kernel accepted. Closes the connection if it is
  /// broken.
  template <class Bytes>
  [[nodiscard]] std::size_t write_now(Bytes& bytes) noexcept;
  [[nodiscard]] bool may_send() const noexcept {
    return !ended_ && !close_requested_ && !half_closed_;
  }
  [[nodiscard]] bool pauses_at_high_water() const noexcept;
  [[nodiscard]] std::size_t unsent_bytes() const noexcept;
  [[nodiscard]] Extras& extras();
  [[nodiscard]] ConnectionHandle::Mailbox* mailbox() const noexcept;
  [[nodiscard]] bool send_later(std::span<const std::byte> bytes, Buffer* buffer,
                                std::size_t before);
  void continue_reading() noexcept;
  void watch() noexcept;
  void finish_output() noexcept;
  void end(int error) noexcept;
  void end_at_limit(int error) noexcept;
  void invoke_on_close();
  void leave() noexcept;
  void leave_observers() noexcept;
  void enter_list() noexcept;
  void leave_list() noexcept;
  void depart() noexcept;
  void arrive(ConnectionOwner* owner);

  // Time limits.
  [[nodiscard]] Deadlines* deadlines() const noexcept;
  Deadlines& make_deadlines();
  template <class Start>
  void start_deadline(Start start) noexcept;
  void start_write_timeout() noexcept;
  [[nodiscard]] std::int64_t next_deadline_ns() const noexcept;
  void start_lingering() noexcept;
  [[nodiscard]] bool lingers() const noexcept;
  [[nodiscard]] bool drains() const noexcept;
  [[nodiscard]] std::int64_t next_sample_ns() const noexcept;
  void arm_deadlines() noexcept;
  void check_deadlines() noexcept;
  [[nodiscard]] bool sample_acknowledged() noexcept;
  void note_acknowledged(std::int64_t now_ns) noexcept;
  void drop_unneeded() noexcept;
  void note_message(std::size_t received, bool consumed) noexcept;

  // Most connections of a server are idle: state that an idle connection does not need is in
  // Extras.
  ConnectionOwner* owner_;  ///< Null if the loop owns it.
  std::shared_ptr<const ConnectionCallbacks> callbacks_;
  Buffer input_;
  std::unique_ptr<Extras> extras_;  ///< Null if empty.
  std::any context_;
  std::uint32_t read_size_ = 0;  ///< The size of the next read, estimated from the last one.
  std::int16_t error_ = 0;       ///< Why the connection ended.
  bool paused_ : 1 = false;      ///< Set by pause_reading().
  bool moving_ : 1 = false;      ///< move_to() takes effect at the end of this iteration.
  /// close_after_write() was called: the write side is shut down once the output is empty.
  bool close_requested_ : 1 = false;
  bool write_shut_down_ : 1 = false;  ///< The write side is shut down.
  bool peer_half_closed_ : 1 = false;
  bool ended_ : 1 = false;
  bool throttled_ : 1 = false;     ///< Reading stopped at the high-water mark.
  bool resets_ : 1 = false;        ///< Closing discards what the kernel still has to send.
  bool idle_off_ : 1 = false;      ///< set_idle_timeout(0) has overridden the limits.
  bool half_closed_ : 1 = false;   ///< shutdown_write() was called.
  bool accepted_ : 1 = false;      ///< A server accepted it.
  io::TransportKind kind_ : 2;     ///< How its bytes are transferred.
  bool offering_ : 1 = false;      ///< on_message is running.
  bool handshaking_ : 1 = false;   ///< A handshake of TLS is in progress.
  bool offers_input_ : 1 = false;  ///< Reading was resumed; on_message gets the remaining input.
};

}  // namespace tambour::detail::net
