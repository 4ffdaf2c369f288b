// What SshSession does with its socket, and the operations that are in flight in it.
#pragma once

#include <fcntl.h>
#include <libssh2.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/adapters/libssh2_operation.h>
#include <tambour/adapters/libssh2_result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Owns the socket and the session. libssh2 writes into a buffer, which never refuses anything: so
/// an operation is never in the middle of a packet, and others may be continued. No operation is
/// continued while more than `output_bytes_max` bytes are unsent.
///
/// When the socket is readable, each operation is continued once: libssh2 hands what it reads to
/// the channel that it belongs to, whichever operation has read it. Nothing is read at other times,
/// because an operation that waits would not learn of it.
class SshTransport {
 public:
  explicit SshTransport(UniqueFd socket)
      : socket_(std::move(socket)),
        session_(libssh2_session_init_ex(nullptr, nullptr, nullptr, this)) {
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
    if (session_ == nullptr) return;
    libssh2_session_set_blocking(session_, 0);
    set_callbacks();
  }
  SshTransport(const SshTransport&) = delete;
  SshTransport& operator=(const SshTransport&) = delete;
  ~SshTransport() {
    if (is_destroyed_ != nullptr) *is_destroyed_ = true;
    is_closing_ = true;
    watcher_.reset();
    for (SshOperation* const operation : std::exchange(operations_, {})) operation->drop();
    constexpr int attempts_max = 100;
    for (int i = 0; session_ != nullptr && i < attempts_max; ++i) {
      if (libssh2_session_free(session_) != LIBSSH2_ERROR_EAGAIN) return;
    }
  }

  [[nodiscard]] LIBSSH2_SESSION* session() const noexcept { return session_; }
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }

  /// Makes the first step. Returns its code if the operation has ended; LIBSSH2_ERROR_EAGAIN: it is
  /// in flight until end(), drop() or remove_unfinished(). Throws std::bad_alloc.
  int begin(SshOperation& operation, EventLoop& loop) {
    if (!watcher_) {
      watcher_.emplace(loop, socket_.get(), Events::read,
                       [this](Events events) { handle(events); });
    }
    operations_.push_back(&operation);
    operation.is_awaited_ = true;
    ++awaited_;
    const int code = attempt(operation);
    if (code != LIBSSH2_ERROR_EAGAIN) remove(operation);
    settle();
    return code;
  }
  /// Ends an operation that is in flight. If it has begun and needs the session, that is lost.
  void remove_unfinished(SshOperation& operation) noexcept {
    if (operation.has_begun() && operation.needs_session()) lose();
    remove(operation);
    settle();
  }
  /// No task waits for the operation any more: continues it now, and then while others are in
  /// flight. Returns whether it has ended.
  bool abandon(SshOperation& operation) noexcept {
    --awaited_;
    operation.is_awaited_ = false;
    const bool is_ended = attempt(operation) != LIBSSH2_ERROR_EAGAIN;
    if (is_ended) remove(operation);
    settle();
    return is_ended;
  }
  /// Ends the connection. All operations fail.
  void lose() noexcept {
    if (std::exchange(is_lost_, true)) return;
    ::shutdown(socket_.get(), SHUT_RDWR);  // The watcher reports that.
  }

 private:
  static constexpr std::size_t output_bytes_max = 262'144;

  using SendFunction = LIBSSH2_SEND_FUNC((*));
  using ReceiveFunction = LIBSSH2_RECV_FUNC((*));

  void set_callbacks() noexcept {
    const SendFunction on_send = &SshTransport::send;
    const ReceiveFunction on_receive = &SshTransport::receive;
#if LIBSSH2_VERSION_NUM >= 0x010b01
    using Function = libssh2_cb_generic*;
    libssh2_session_callback_set2(session_, LIBSSH2_CALLBACK_SEND, Function(on_send));
    libssh2_session_callback_set2(session_, LIBSSH2_CALLBACK_RECV, Function(on_receive));
#else
    libssh2_session_callback_set(session_, LIBSSH2_CALLBACK_SEND, reinterpret_cast<void*>(on_send));
    libssh2_session_callback_set(session_, LIBSSH2_CALLBACK_RECV,
                                 reinterpret_cast<void*>(on_receive));
#endif
  }
  static SshTransport& of(void** data) { return *static_cast<SshTransport*>(*data); }
  static ssize_t send(libssh2_socket_t /*socket*/, const void* bytes, std::size_t size,
                      int /*flags*/, void** data) {
    SshTransport& self = of(data);
    if (self.is_closing_) return static_cast<ssize_t>(size);
    try {
      self.output_.append(static_cast<const char*>(bytes), size);
    } catch (const std::bad_alloc&) {
      return -ENOMEM;
    }
    return static_cast<ssize_t>(size);
  }
  static ssize_t receive(libssh2_socket_t socket, void* bytes, std::size_t size, int /*flags*/,
                         void** data) {
    SshTransport& self = of(data);
    if (self.is_closing_) return 0;
    if (!self.is_readable_) return -EAGAIN;
    const ssize_t received = ::recv(socket, bytes, size, MSG_DONTWAIT);
    // The watcher reports what arrives later.
    if (received != 0 && received < static_cast<ssize_t>(size)) self.is_readable_ = false;
    return received < 0 ? -errno : received;
  }

  /// Makes a step, if that is possible now.
  int attempt(SshOperation& operation) noexcept {
    if (is_lost_) return LIBSSH2_ERROR_SOCKET_DISCONNECT;
    if (output_.size() > output_bytes_max) {
      is_output_full_ = true;
      return LIBSSH2_ERROR_EAGAIN;
    }
    if (operation.needs_session()) {
      if (in_session_ != nullptr && in_session_ != &operation) return LIBSSH2_ERROR_EAGAIN;
      in_session_ = &operation;
    }
    operation.has_begun_ = true;
    operation.round_ = round_;
    const int code = operation.step();
    if (in_session_ == &operation && !operation.needs_session()) in_session_ = nullptr;
    if (is_ssh_connection_error(code)) lose();
    return code;
  }
  void remove(SshOperation& operation) noexcept {
    const auto at = std::ranges::find(operations_, &operation);
    if (at == operations_.end()) return;
    if (static_cast<std::size_t>(at - operations_.begin()) < next_) --next_;
    operations_.erase(at);
    if (operation.is_awaited_) --awaited_;
    if (in_session_ == &operation) in_session_ = nullptr;
  }

  void handle(Events events) {
    if (is_destroyed_ != nullptr) return;  // A callback runs the loop.
    if (watcher_->error()) lose();
    bool is_destroyed = false;
    is_destroyed_ = &is_destroyed;
    is_readable_ = events != Events::write;
    ++round_;
    do {
      send_output();
      is_output_full_ = false;
      for (next_ = 0; next_ < operations_.size();) {
        SshOperation& operation = *operations_[next_++];
        if (operation.round_ == round_ && !is_lost_) continue;  // It had its step.
        const int code = attempt(operation);
        if (code == LIBSSH2_ERROR_EAGAIN) continue;
        remove(operation);
        operation.end(code);
        if (is_destroyed) return;
      }
      if (is_output_full_) send_output();
    } while (is_output_full_ && output_.size() <= output_bytes_max && !is_lost_);
    next_ = 0;
    is_readable_ = false;
    is_destroyed_ = nullptr;
    settle();
  }
  /// After steps: what they have written in a round is sent together.
  void settle() noexcept {
    if (is_destroyed_ != nullptr || !watcher_) return;
    send_output();
    if (output_.empty() && awaited_ == 0) return watcher_->stop();
    const Events interest = output_.empty() ? Events::read : Events::read | Events::write;
    if (watcher_->interest() != interest) watcher_->set(interest);
    static_cast<void>(watcher_->start());  // A failure is reported to its callback.
  }
  void send_output() noexcept {
    std::size_t sent = 0;
    while (sent < output_.size() && !is_lost_) {
      const ssize_t count = ::send(socket_.get(), output_.data() + sent, output_.size() - sent,
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0) {
        sent += static_cast<std::size_t>(count);
      } else if (errno != EINTR) {
        if (errno != EAGAIN) lose();
        break;
      }
    }
    output_.erase(0, sent);
    if (is_lost_) output_.clear();
  }

  UniqueFd socket_;
  LIBSSH2_SESSION* session_;
  std::optional<FdWatcher> watcher_;
  std::string output_;  ///< That is not sent.
  std::vector<SshOperation*> operations_;
  std::size_t awaited_ = 0;             ///< Operations that are not abandoned.
  std::size_t next_ = 0;                ///< Of a round: an index in operations_.
  SshOperation* in_session_ = nullptr;  ///< The one in the middle that needs the session.
  std::uint64_t round_ = 1;
  bool* is_destroyed_ = nullptr;  ///< Of handle(), while it runs.
  bool is_readable_ = false;
  bool is_output_full_ = false;  ///< An operation was not continued.
  bool is_lost_ = false;
  bool is_closing_ = false;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
