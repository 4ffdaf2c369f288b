// Completion-based operations on a file descriptor: accept, connect, receive, send, read, write.
//
// Internal building block of streams and servers; not part of the public interface. If the backend
// reports readiness, an operation waits in its loop like a watcher, and makes its system call when
// the file descriptor is ready. Sending and connecting seldom have to wait, so they make the system
// call first; so does accepting in submit_or_finish().
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include <tambour/detail/operation.h>

namespace tambour {

class EventLoop;
namespace backend {
class System;
}
namespace loop {
class Core;
}

namespace detail {

/// The system call of an operation.
enum class IoKind : std::uint8_t {
  /// accept4(2), non-blocking and close-on-exec; fills `address` and `address_size` unless null.
  accept,
  connect,   ///< connect(2) to `address`, of *address_size bytes.
  recv,      ///< recv(2) of up to `size` bytes into `data`.
  recvmsg,   ///< recvmsg(2); `data` is the msghdr.
  send,      ///< send(2) of up to `size` bytes from `data`, never with SIGPIPE.
  sendmsg,   ///< sendmsg(2), never with SIGPIPE; `data` is the msghdr.
  recvmmsg,  ///< recvmmsg(2); `data` is the first mmsghdr, and `size` their number.
  sendmmsg,  ///< sendmmsg(2), never with SIGPIPE; parameters as for recvmmsg.
  read,      ///< read(2), for pipes and similar files. The file descriptor must be non-blocking.
  write,     ///< write(2).
};

/// An operation that completes.
///
/// Ownership: the caller owns the operation and everything that its parameters refer to.
/// Completion: each submit() completes exactly once, never inside submit(). `outcome` is then the
/// result of the system call, or a negated errno value.
/// Lifetime: may be moved until it is first submitted. It may be cancelled or destroyed at any
/// time. A cancelled operation completes with ECANCELED unless it has already finished. A destroyed
/// operation does not complete. Thread: must be used on the loop's thread.
class IoOperation : public Operation {
 public:
  using Completed = void (*)(IoOperation&);

  /// `completed` may destroy the operation, or submit it again.
  IoOperation(IoKind what, Completed completed) noexcept
      : Operation(OperationKind::poll, &run),
        io_kind(what),
        wait_first(!is_likely_at_once(what)),
        completed_(completed) {}
  IoOperation(IoOperation&&) noexcept = default;
  IoOperation& operator=(IoOperation&&) = delete;
  ~IoOperation() { abandon(); }

  /// Submits the operation on `fd`, which may refer to another open file than before; if the
  /// operation has to wait, that costs a system call to verify. Accepting always waits for
  /// readiness first, so that destroying the operation cannot lose an accepted connection. The
  /// operation must not be busy.
  void submit(EventLoop& loop, int fd) noexcept;

  /// The same, but if the operation can finish at once, it does so without invoking `completed`:
  /// returns true, with `outcome`.
  [[nodiscard]] bool submit_or_finish(EventLoop& loop, int fd) noexcept;

  void cancel() noexcept;

  /// True if it is submitted and has not completed.
  [[nodiscard]] bool busy() const noexcept { return core_ != nullptr; }

  IoKind io_kind;
  /// If true, the first system call is made only when the file descriptor is ready. The constructor
  /// sets it for operations that receive or read.
  bool wait_first;
  std::int32_t outcome = 0;
  int flags = 0;  ///< The flags of the system call.
  void* data = nullptr;
  std::size_t size = 0;
  sockaddr* address = nullptr;
  socklen_t* address_size = nullptr;

  /// If not null, called just before the system call to set `data` and `size`, so that a waiting
  /// operation holds no buffer. Must not throw. If it returns false, because of out of memory, the
  /// operation ends with ENOMEM.
  bool (*make_room)(IoOperation&) noexcept = nullptr;

 protected:
  /// submit_or_finish() without verifying the file descriptor. The caller must report every new
  /// file descriptor to the loop's backend before its first use (Backend::forget).
  [[nodiscard]] bool submit_known(EventLoop& loop, int fd) noexcept;

 private:
  static void run(ReadyNode& ready);

  /// Receiving usually has to wait for the peer; sending usually does not.
  static constexpr bool is_likely_at_once(IoKind kind) noexcept {
    return kind != IoKind::recv && kind != IoKind::recvmsg && kind != IoKind::recvmmsg &&
           kind != IoKind::read;
  }

  [[nodiscard]] Events readiness() const noexcept;
  [[nodiscard]] std::int32_t attempt(loop::Core& core) noexcept;
  [[nodiscard]] std::int32_t call(backend::System& system) noexcept;
  [[nodiscard]] std::int32_t progress(backend::System& system) noexcept;
  void begin(loop::Core& core) noexcept;
  void end() noexcept;
  void abandon() noexcept;

  Completed completed_;
  loop::Core* core_ = nullptr;  ///< The core of the loop while the operation is busy.
  bool connecting_ = false;     ///< connect(2) is in progress in the kernel.
};

}  // namespace detail
}  // namespace tambour
