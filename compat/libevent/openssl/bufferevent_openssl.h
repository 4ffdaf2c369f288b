// Bufferevents that encrypt with OpenSSL: over a socket, or over another bufferevent.
//
// OpenSSL may have to write in order to read, and to read in order to write. Then the operation is
// repeated when the socket, or the bufferevent below, is ready for what OpenSSL waits for.
//
// This library may call only the functions that libevent_core exports.
#pragma once

#include <cstddef>
#include <cstdint>

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>

#include "libevent/bufferevent/bufferevent.h"

extern "C" const bufferevent_ops bufferevent_ops_openssl;

namespace tambour::libevent {

/// The result of reading or writing once.
enum class Progress : std::uint8_t { progressed, blocked, failed };

class Openssl final : public BufferEvent {
 public:
  explicit Openssl(SSL* ssl) noexcept : BufferEvent(bufferevent_ops_openssl), ssl_(ssl) {}

  /// Returns false if there is no memory, or the handshake cannot be started.
  bool open(bufferevent* below, int fd, bufferevent_ssl_state state, int chosen) noexcept;
  /// If the object could not be opened, the caller keeps the SSL object and the bufferevent below.
  void abandon() noexcept;

  int start(short events) noexcept override;
  int stop(short events) noexcept override;
  int adjust_timeouts() noexcept override;
  void unlink() noexcept override;
  void destruct() noexcept override;
  int flush(short /*events*/, bufferevent_flush_mode /*mode*/) noexcept override { return 0; }
  bool set_fd(int fd) noexcept override;
  int fd() noexcept override;
  BufferEvent* underlying_one() noexcept override { return below_; }
  bool can_connect() const noexcept override { return true; }

  [[nodiscard]] SSL* ssl() const noexcept { return ssl_; }
  int renegotiate() noexcept;
  unsigned long take_error() noexcept { return errors_ != 0 ? error_[--errors_] : 0; }

  bool allow_dirty_shutdown = false;

 private:
  [[nodiscard]] bool is_open() const noexcept { return state_ == BUFFEREVENT_SSL_OPEN; }
  bool enter(bufferevent_ssl_state state, int fd) noexcept;
  void assign(int fd) noexcept;
  int start_reading() noexcept;
  int start_writing() noexcept;
  void stop_reading() noexcept;
  void stop_writing() noexcept;
  /// OpenSSL waits for the other direction, or no longer.
  int block_read_on_write() noexcept;
  int block_write_on_read() noexcept;
  int unblock_read() noexcept;
  int unblock_write() noexcept;

  void handshake() noexcept;
  void close(int when, int code, int result) noexcept;
  void put_error(unsigned long error) noexcept;
  void count_bytes() noexcept;
  int bytes_to_read() noexcept;
  Progress read_once(int size) noexcept;
  Progress write_once() noexcept;
  void read() noexcept;
  void write() noexcept;
  /// Reads from the loop what OpenSSL has decrypted: the socket does not become readable for it.
  void read_pending_bytes() noexcept;

  static Openssl& openssl(void* argument) noexcept {
    return static_cast<Openssl&>(of(static_cast<bufferevent*>(argument)));
  }
  static void on_output(evbuffer* output, const evbuffer_cb_info* info, void* argument);
  static void on_readable(evutil_socket_t fd, short events, void* argument);
  static void on_writable(evutil_socket_t fd, short events, void* argument);
  static void on_read_below(bufferevent* below, void* argument);
  static void on_write_below(bufferevent* below, void* argument);
  static void on_event_below(bufferevent* below, short kind, void* argument);

  static constexpr std::size_t errors_max = 3;

  SSL* ssl_;
  BufferEvent* below_ = nullptr;
  BIO* bio_ = nullptr;            ///< That of the bufferevent below.
  std::uint64_t bytes_read_ = 0;  ///< By the BIOs, as far as they were counted.
  std::uint64_t bytes_written_ = 0;
  /// The size of the write that OpenSSL must repeat, or zero.
  int repeated_write_ = 0;
  std::uint32_t error_[errors_max] = {};
  std::uint8_t errors_ = 0;
  bool read_blocked_on_write_ = false;
  bool write_blocked_on_read_ = false;
  bufferevent_ssl_state state_ = BUFFEREVENT_SSL_OPEN;
  bufferevent_ssl_state initial_state_ = BUFFEREVENT_SSL_OPEN;
};

}  // namespace tambour::libevent
