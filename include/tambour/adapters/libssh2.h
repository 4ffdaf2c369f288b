// libssh2, a client of SSH, on a loop: commands of a session as tasks.
//
//   auto session = co_await SshSession::open(std::move(socket));  // Connected to port 22.
//   if (session->host_key_sha256() != known) co_return;
//   auto allowed = co_await session->authenticate_with_key("user", "id.pub", "id");
//   auto result = co_await session->execute("uname -r");
//
// Link with -lssh2. Requires libssh2 1.9 or later.
#pragma once

#include <libssh2.h>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <tambour/adapters/libssh2_call.h>
#include <tambour/adapters/libssh2_execution.h>
#include <tambour/adapters/libssh2_result.h>
#include <tambour/adapters/libssh2_transport.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A session with an SSH server. Several tasks may use it at the same time: each command has a
/// channel of its own. A server limits the channels of a session (OpenSSH: MaxSessions, 10 by
/// default), and refuses more with LIBSSH2_ERROR_CHANNEL_FAILURE.
///
/// libssh2 encrypts and checks keys on the loop's thread: a handshake takes some milliseconds.
///
/// Ownership: owns the socket. Thread: that of the loop whose tasks use it. It must not be
/// destroyed while a task waits in it.
/// Cancellation: all functions may be stopped and limited in time. execute() closes its channel
/// then, and the session remains usable. call() and what is built on it lose the session:
/// is_usable() is false, and further calls fail with ENOTCONN.
class SshSession {
 public:
  static constexpr std::size_t output_bytes_max_default = std::size_t{16} << 20;

  /// Performs the handshake on a connected socket. The host key is not checked.
  static Task<SshResult<SshSession>> open(UniqueFd socket) {
    const int fd = socket.get();
    SshSession opened(std::make_unique<detail::SshTransport>(std::move(socket)));
    if (opened.get() == nullptr) co_return std::unexpected(SshError(system_error(ENOMEM)));
    auto handshake = [session = opened.get(), fd] {
      return libssh2_session_handshake(session, fd);
    };
    auto done = co_await opened.call(std::move(handshake));
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::move(opened);
  }

  SshSession(SshSession&&) noexcept = default;
  SshSession& operator=(SshSession&&) noexcept = default;

  /// For libssh2's other functions, with call() and call_concurrently().
  [[nodiscard]] LIBSSH2_SESSION* get() const noexcept { return transport_->session(); }
  [[nodiscard]] bool is_usable() const noexcept {
    return transport_ != nullptr && !transport_->is_lost();
  }

  /// The SHA-256 hash of the server's key, 32 bytes: compare it before you authenticate, or use
  /// libssh2_knownhost_check().
  [[nodiscard]] std::string host_key_sha256() const {
    constexpr std::size_t hash_bytes = 32;
    const char* const hash = libssh2_hostkey_hash(get(), LIBSSH2_HOSTKEY_HASH_SHA256);
    return hash == nullptr ? std::string() : std::string(hash, hash_bytes);
  }

  /// Authenticates with the key in two files, which are read with blocking calls.
  Task<SshResult<>> authenticate_with_key(std::string user, std::string public_file,
                                          std::string private_file, std::string passphrase = {}) {
    auto step = [&] {
      return libssh2_userauth_publickey_fromfile_ex(
          get(), user.c_str(), static_cast<unsigned>(user.size()), public_file.c_str(),
          private_file.c_str(), passphrase.c_str());
    };
    auto done = co_await call(std::move(step));
    co_return without_value(std::move(done));
  }
  Task<SshResult<>> authenticate_with_password(std::string user, std::string password) {
    auto step = [&] {
      return libssh2_userauth_password_ex(get(), user.c_str(), static_cast<unsigned>(user.size()),
                                          password.c_str(), static_cast<unsigned>(password.size()),
                                          nullptr);
    };
    auto done = co_await call(std::move(step));
    co_return without_value(std::move(done));
  }

  /// Executes a command with the user's shell. If it prints more than `output_bytes_max`, its
  /// channel is closed and the error is EMSGSIZE. A command whose channel is closed learns of it
  /// when it writes.
  Task<SshResult<SshOutput>> execute(std::string command,
                                     std::size_t output_bytes_max = output_bytes_max_default) {
    if (!is_usable()) co_return std::unexpected(SshError(system_error(ENOTCONN)));
    detail::SshExecution::Wait wait(
        std::make_unique<detail::SshExecution>(*transport_, std::move(command), output_bytes_max));
    auto result = co_await std::move(wait);
    co_return std::move(result);
  }

  /// Calls a function of libssh2 until it does not return LIBSSH2_ERROR_EAGAIN any more, or a null
  /// pointer with this error, and waits for the socket in between. The result is an awaitable of
  /// SshResult with the value of the function. Calls of several tasks are performed one after the
  /// other, because libssh2 keeps the state of many functions in the session, such as
  /// libssh2_sftp_init() and libssh2_channel_open_session(). If it is stopped, the session is lost.
  ///
  ///   auto open = [&] { return libssh2_sftp_init(session.get()); };
  ///   auto sftp = co_await session.call(std::move(open));
  template <std::invocable F>
  [[nodiscard]] detail::SshCall<F> call(F function) {
    return {transport_.get(), true, std::move(function)};
  }
  /// As call(), at the same time as others: for functions of a channel, an SFTP session or a handle
  /// of one, which no other task uses. A function that was stopped is left in the middle: call it
  /// again, which continues it, or free the channel or the SFTP session.
  template <std::invocable F>
  [[nodiscard]] detail::SshCall<F> call_concurrently(F function) {
    return {transport_.get(), false, std::move(function)};
  }

 private:
  explicit SshSession(std::unique_ptr<detail::SshTransport> transport)
      : transport_(std::move(transport)) {}

  template <class Done>
  static SshResult<> without_value(Done done) {
    if (!done) return std::unexpected(std::move(done.error()));
    return {};
  }

  std::unique_ptr<detail::SshTransport> transport_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
