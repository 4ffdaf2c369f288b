// Socket: the bufferevent of a socket.
#pragma once

#include <event2/buffer.h>

#include "libevent/bufferevent/bufferevent.h"

extern "C" void bufferevent_socket_set_conn_address_fd_(bufferevent* bev, int fd);

namespace tambour::libevent {

class Socket final : public BufferEvent {
 public:
  Socket() noexcept;

  /// Returns false if there is no memory.
  bool open(int fd) noexcept;

  int start(short events) noexcept override;
  int stop(short events) noexcept override;
  int adjust_timeouts() noexcept override { return adjust_socket_events(); }
  void destruct() noexcept override;
  int flush(short events, bufferevent_flush_mode mode) noexcept override;
  bool set_fd(int fd) noexcept override;
  int fd() noexcept override;
  bool can_connect() const noexcept override { return true; }
  /// Returns whether `function` is that of an event of a socket, whose argument is the bufferevent.
  static bool is_callback(event_callback_fn function) noexcept {
    return function == &on_readable || function == &on_writable;
  }

 private:
  void assign(int fd) noexcept;
  void read(int fd, short events) noexcept;
  void write(int fd, short events) noexcept;
  /// Returns whether the socket is connected and may be written to.
  bool finish_connecting(int fd) noexcept;
  void fail_reading(int kind) noexcept;
  void fail_writing(int kind) noexcept;
  void cancel_lookup() noexcept;
  /// How much to transfer, under the limits.
  ev_ssize_t read_size() noexcept;
  ev_ssize_t write_size() noexcept;
  static void on_output(evbuffer* output, const evbuffer_cb_info* info, void* argument);
  static void on_readable(evutil_socket_t fd, short events, void* argument);
  static void on_writable(evutil_socket_t fd, short events, void* argument);

  bool bulk_ = false;  ///< The last read got as much as it asked for.
};

}  // namespace tambour::libevent
