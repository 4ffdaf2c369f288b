// One transfer or set-up on a descriptor, which is complete when it is done: accept, connect,
// receive, send, read, write.
//
// What streams and servers stand on; programs use those. Where a backend reports readiness, an
// operation waits in its loop as a watcher does, and makes its system call when the descriptor is
// ready; sending and connecting, which seldom have to wait, try first, and so does accepting in
// submit_or_finish().
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include <tambour/operation.h>

namespace tambour {

class EventLoop;
namespace backend {
class System;
}
namespace loop {
class Core;
}

enum class IoKind : std::uint8_t {
  accept,    ///< accept4(2), non-blocking, close-on-exec; `address` and `address_size` if not null.
  connect,   ///< connect(2) to `address`, of *address_size bytes.
  recv,      ///< recv(2) of up to `size` bytes into `data`.
  recvmsg,   ///< recvmsg(2); `data` is the msghdr.
  send,      ///< send(2) of up to `size` bytes from `data`, never with SIGPIPE.
  sendmsg,   ///< sendmsg(2), never with SIGPIPE; `data` is the msghdr.
  recvmmsg,  ///< recvmmsg(2); `data` is the first mmsghdr, and `size` how many there are.
  sendmmsg,  ///< sendmmsg(2), never with SIGPIPE; the same.
  read,      ///< read(2): for pipes and the like. The descriptor must be non-blocking.
  write,     ///< write(2).
};

/// Owned by whoever submits it, with all that its parameters point to. Completes exactly once for
/// each submit, never from inside it; `outcome` is then what the system call returned, or an errno
/// value, negated. Destroying or cancelling it at any time is allowed: destroyed, it falls silent;
/// cancelled, it completes with ECANCELED, unless it was done. Stays where it is while submitted.
/// Belongs to the thread of its loop.
class IoOperation : public Operation {
 public:
  using Completed = void (*)(IoOperation&);

  /// `completed` may destroy the operation, or submit it again.
  IoOperation(IoKind what, Completed completed) noexcept
      : Operation(OperationKind::poll, &run),
        io_kind(what),
        wait_first(!is_likely_at_once(what)),
        completed_(completed) {}
  IoOperation(const IoOperation&) = delete;
  IoOperation& operator=(const IoOperation&) = delete;
  ~IoOperation() { abandon(); }

  /// Starts it, on `fd`, which may mean another file than last time: where it has to wait, the
  /// kernel is asked, for a system call. Accepting always waits, so that no stream is lost with an
  /// operation that is destroyed. It must not be busy.
  void submit(EventLoop& loop, int fd) noexcept;

  /// The same, but where it can be done at once, it is, and does not complete: true, with
  /// `outcome`. For callers who can go on without being called back.
  [[nodiscard]] bool submit_or_finish(EventLoop& loop, int fd) noexcept;

  void cancel() noexcept;

  /// Submitted and not complete.
  [[nodiscard]] bool busy() const noexcept { return core_ != nullptr; }

  IoKind io_kind;
  /// The first attempt is made when the descriptor is ready, not at once. From the constructor: for
  /// what receives and reads.
  bool wait_first;
  std::int32_t outcome = 0;
  int flags = 0;  ///< Those of the system call.
  void* data = nullptr;
  std::size_t size = 0;
  sockaddr* address = nullptr;
  socklen_t* address_size = nullptr;

  /// Where set, is called just before the system call to say where it shall read to or write from:
  /// `data` and `size`. An operation that waits then holds no memory. Must not throw; false, where
  /// there is no memory, ends the operation with ENOMEM.
  bool (*make_room)(IoOperation&) noexcept = nullptr;

 protected:
  /// submit_or_finish() without asking, for an owner of descriptors who tells the loop's backend of
  /// each of them before it is first used (Backend::forget).
  [[nodiscard]] bool submit_known(EventLoop& loop, int fd) noexcept;

 private:
  static void run(Ready& ready);

  /// Data that a peer will send is seldom there already; what we have to say can mostly be said.
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
  loop::Core* core_ = nullptr;  ///< Of the loop where it is busy.
  bool connecting_ = false;     ///< connect(2) is under way in the kernel.
};

}  // namespace tambour
