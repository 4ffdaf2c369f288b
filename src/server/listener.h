// A listening socket of a server.
#pragma once

#include <cstdint>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/listen_options.h>
#include <tambour/net/socket.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

#include "server/error_reporting.h"
#include "server/unix_name.h"

namespace tambour::detail::server {

/// Owns the socket and, if it created one, the file of its Unix path. Closing it makes
/// accept() fail with ECANCELED. Must not be moved while a task waits in accept().
class Listener {
 public:
  /// Binds and listens. Fails as documented at StreamServer::listen().
  static Result<Listener> open(EventLoop& loop, const Endpoint& at, const ListenOptions& options,
                               bool reuse_port);
  /// Takes over a descriptor that listens already. Fails as documented at StreamServer::adopt().
  static Result<Listener> adopt(EventLoop& loop, UniqueFd fd, bool (*supports)(const Endpoint&));

  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }
  /// The number of streams that accept() has returned.
  [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }

  /// Waits for one connection. Errors of a single connection are ignored; if descriptors or memory
  /// run out, it pauses, which `reporter` counts, and tries again. Any other error is one of the
  /// listener.
  Task<Result<SocketStream>> accept(ErrorReporter& reporter);

  void keep_path() noexcept { name_.leave(); }
  /// Removes the Unix path, unless keep_path() was called, and closes the socket.
  void close() noexcept;

 private:
  Listener(Socket socket, UnixName name, const Endpoint& at) noexcept
      : socket_(std::move(socket)), name_(std::move(name)), endpoint_(at) {}

  Socket socket_;
  UnixName name_;
  Endpoint endpoint_;
  std::uint64_t accepted_ = 0;
  std::uint64_t accepted_in_iteration_ = 0;  ///< The iteration of the last accept.
  /// Set if two consecutive iterations accepted a stream: more are likely pending, so the server
  /// calls accept(2) until it returns EAGAIN. A single connection is spared that extra call.
  bool in_a_row_ = false;
  bool sets_no_delay_ = false;
};

}  // namespace tambour::detail::server
