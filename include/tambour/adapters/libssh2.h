// libssh2, a client of SSH, on a loop: commands of a session as tasks.
//
//   auto session = co_await SshSession::open(std::move(socket));  // Connected to port 22.
//   if (session->host_key_sha256() != known) co_return;
//   auto allowed = co_await session->authenticate_with_key("user", "id.pub", "id");
//   auto result = co_await session->execute("uname -r");
//
// Link with -lssh2. Requires libssh2 1.9 or later.
#pragma once

#include <fcntl.h>
#include <libssh2.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tambour/adapters/libssh2_result.h>
#include <tambour/adapters/socket_wait.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/readiness.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A session with an SSH server.
///
/// libssh2 encrypts and checks keys on the loop's thread: a handshake takes some milliseconds.
///
/// Ownership: owns the socket. Thread: that of the loop whose tasks use it. One task at a time may
/// use it; it must not be moved or destroyed while a task waits in it.
/// Cancellation: all functions may be stopped and limited in time. libssh2 cannot abandon an
/// operation, so the session is lost then: is_usable() is false, and further calls fail with
/// ENOTCONN.
class SshSession {
 public:
  static constexpr std::size_t output_bytes_max_default = std::size_t{16} << 20;

  /// Performs the handshake on a connected socket. The host key is not checked.
  static Task<SshResult<SshSession>> open(UniqueFd socket) {
    SshSession opened(std::make_unique<State>(std::move(socket)));
    if (opened.get() == nullptr) co_return std::unexpected(SshError(system_error(ENOMEM)));
    auto handshake = [state = opened.state_.get()] {
      return libssh2_session_handshake(state->session, state->socket.get());
    };
    auto done = co_await opened.call(std::move(handshake));
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::move(opened);
  }

  SshSession(SshSession&&) noexcept = default;
  SshSession& operator=(SshSession&&) noexcept = default;

  /// For libssh2's other functions, with call().
  [[nodiscard]] LIBSSH2_SESSION* get() const noexcept { return state_->session; }
  [[nodiscard]] bool is_usable() const noexcept {
    return state_ != nullptr && !state_->is_in_call && !state_->is_lost;
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

  /// Executes a command with the user's shell. If it prints more than `output_bytes_max`, the
  /// session is lost and the error is EMSGSIZE.
  Task<SshResult<SshOutput>> execute(std::string command,
                                     std::size_t output_bytes_max = output_bytes_max_default) {
    auto open = [this] { return libssh2_channel_open_session(get()); };
    auto opened = co_await call(std::move(open));
    if (!opened) co_return std::unexpected(std::move(opened.error()));
    LIBSSH2_CHANNEL* const channel = *opened;  // The session frees it too.
    SshOutput result;
    int steps = 0;  // That are done.
    auto run = [&] {
      int code = 0;
      if (steps == 0 && (code = libssh2_channel_exec(channel, command.c_str())) == 0) ++steps;
      if (steps == 1 && (code = read_output(channel, result, output_bytes_max)) == 0) ++steps;
      if (steps == 2 && (code = libssh2_channel_close(channel)) == 0) note_end(channel, result);
      return code;
    };
    auto done = co_await call(std::move(run));
    auto free = [channel] { return libssh2_channel_free(channel); };
    if (is_usable()) static_cast<void>(co_await call(std::move(free)));
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::move(result);
  }

  /// Calls a function of libssh2 until it does not return LIBSSH2_ERROR_EAGAIN any more, or a null
  /// pointer with this error, and waits for the socket in between.
  ///
  ///   auto open = [&] { return libssh2_sftp_init(session.get()); };
  ///   auto sftp = co_await session.call(std::move(open));
  template <std::invocable F>
  Task<SshResult<std::invoke_result_t<F&>>> call(F function) {
    State& state = *state_;
    if (!is_usable()) co_return std::unexpected(SshError(system_error(ENOTCONN)));
    state.is_in_call = true;  // It stays so if the task is destroyed or stopped.
    for (;;) {
      const auto result = function();
      const int code = code_of(result);
      if (code != LIBSSH2_ERROR_EAGAIN) {
        state.is_in_call = false;
        if (code < 0) co_return std::unexpected(error(code));
        co_return result;
      }
      const int directions = libssh2_session_block_directions(get());
      const bool writes = (directions & LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
      const bool reads = !writes || (directions & LIBSSH2_SESSION_BLOCK_INBOUND) != 0;
      const Events interest =
          (reads ? Events::read : Events::none) | (writes ? Events::write : Events::none);
      const auto ready = co_await state.watched.wait(state.socket.get(), interest);
      if (!ready) co_return std::unexpected(SshError(ready.error()));
    }
  }

 private:
  struct State {
    explicit State(UniqueFd connected)
        : socket(std::move(connected)), session(libssh2_session_init()) {
      if (session != nullptr) libssh2_session_set_blocking(session, 0);
      const int flags = ::fcntl(socket.get(), F_GETFL);
      ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      watched.forget();
      ::shutdown(socket.get(), SHUT_RDWR);  // So libssh2 cannot wait for the peer.
      constexpr int attempts_max = 100;
      for (int i = 0; session != nullptr && i < attempts_max; ++i) {
        if (libssh2_session_free(session) != LIBSSH2_ERROR_EAGAIN) return;
      }
    }

    UniqueFd socket;
    LIBSSH2_SESSION* session;
    WatchedSocket watched;
    bool is_in_call = false;
    bool is_lost = false;
  };

  explicit SshSession(std::unique_ptr<State> state) : state_(std::move(state)) {}

  static SshResult<> without_value(SshResult<int> done) {
    if (!done) return std::unexpected(std::move(done.error()));
    return {};
  }
  template <class T>
  [[nodiscard]] int code_of(const T& result) const {
    if constexpr (std::is_pointer_v<T>) {
      return result == nullptr ? std::min(libssh2_session_last_errno(get()), -1) : 0;
    } else {
      return result < 0 ? static_cast<int>(result) : 0;
    }
  }
  [[nodiscard]] SshError error(int code) {
    char* text = nullptr;
    libssh2_session_last_error(get(), &text, nullptr, 0);
    int number = EPROTO;
    if (code == LIBSSH2_ERROR_SOCKET_SEND || code == LIBSSH2_ERROR_SOCKET_RECV ||
        code == LIBSSH2_ERROR_SOCKET_DISCONNECT)
      number = ECONNRESET;
    if (code == LIBSSH2_ERROR_AUTHENTICATION_FAILED || code == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED)
      number = EACCES;
    if (code == LIBSSH2_ERROR_ALLOC) number = ENOMEM;
    if (code == output_too_long) number = EMSGSIZE;
    if (number == ECONNRESET || number == EMSGSIZE) state_->is_lost = true;
    SshError failed(system_error(number), text == nullptr ? "" : text);
    failed.code = code;
    return failed;
  }

  /// Reads what has arrived of both streams. Returns 0 at their end.
  static int read_output(LIBSSH2_CHANNEL* channel, SshOutput& result, std::size_t bytes_max) {
    std::array<char, 16'384> part;
    for (const int stream : {0, SSH_EXTENDED_DATA_STDERR}) {
      std::string& text = stream == 0 ? result.output : result.errors;
      for (;;) {
        const auto size = libssh2_channel_read_ex(channel, stream, part.data(), part.size());
        if (size == 0 || size == LIBSSH2_ERROR_EAGAIN) break;
        if (size < 0) return static_cast<int>(size);
        text.append(part.data(), static_cast<std::size_t>(size));
        if (result.output.size() + result.errors.size() > bytes_max) return output_too_long;
      }
    }
    return libssh2_channel_eof(channel) != 0 ? 0 : LIBSSH2_ERROR_EAGAIN;
  }
  void note_end(LIBSSH2_CHANNEL* channel, SshOutput& result) {
    result.exit_status = libssh2_channel_get_exit_status(channel);
    char* name = nullptr;
    std::size_t size = 0;
    libssh2_channel_get_exit_signal(channel, &name, &size, nullptr, nullptr, nullptr, nullptr);
    if (name == nullptr) return;
    result.signal.assign(name, size);
    libssh2_free(get(), name);
  }

  static constexpr int output_too_long = -10'000;  // No code of libssh2.

  std::unique_ptr<State> state_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
