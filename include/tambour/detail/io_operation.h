// An operation on a file descriptor that waits in its loop between its system calls.
//
// Internal building block of streams and servers; not part of the public interface.
#pragma once

#include <cstdint>

#include <tambour/detail/operation.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
}

namespace detail {

/// When an operation makes its first system call.
enum class FirstCall : std::uint8_t {
  when_ready,     ///< When the descriptor is ready. Receiving usually has to wait for the peer.
  within_budget,  ///< Immediately, unless this iteration has exhausted its I/O budget.
  at_once,        ///< Always immediately. For descriptors that may be impossible to watch.
};

/// An operation that completes. A derived class implements step().
///
/// Ownership: the caller owns the operation and everything that it refers to.
/// Completion: an operation that start() did not finish completes exactly once, by completed(),
/// with `outcome`: a result that is not negative, or a negated errno value.
/// Lifetime: may be moved until it is first started. It may be cancelled or destroyed at any time.
/// A cancelled operation completes with ECANCELED unless it has already finished. A destroyed
/// operation does not complete.
/// Thread: must be used on the loop's thread.
class IoOperation : public Operation {
 public:
  /// `readiness` is what the operation waits for between two calls of step().
  IoOperation(Events readiness, FirstCall first) noexcept
      : Operation(OperationKind::poll, &run), first_call_(first) {
    events = readiness;
  }
  IoOperation(IoOperation&&) noexcept = default;
  IoOperation& operator=(IoOperation&&) = delete;

  /// Starts the operation on `fd`. Returns true if it finished at once, with `outcome`; completed()
  /// is then not called. The operation must not be busy. The caller must report every new
  /// descriptor to the loop's backend before its first use (Backend::invalidate).
  [[nodiscard]] bool start(EventLoop& loop, int fd) noexcept;

  void cancel() noexcept;

  /// True if it is started and has not completed.
  [[nodiscard]] bool busy() const noexcept { return core_ != nullptr; }

  std::int32_t outcome = 0;

 protected:
  virtual ~IoOperation() { abandon(); }

  /// Makes the next system calls on `fd`. Returns true if the operation has finished, with
  /// `outcome`, and false if it has to wait until `fd` is ready.
  [[nodiscard]] virtual bool step(loop::Core& core) noexcept = 0;

  /// Called when the operation has completed; never inside start(). May destroy the operation, or
  /// start it again.
  virtual void completed() = 0;

  /// For step(), after each system call. Returns false if it would have blocked (EAGAIN); otherwise
  /// sets `outcome`, and returns true.
  [[nodiscard]] bool finish(std::int32_t answer) noexcept;
  /// For step(), between two system calls that each made progress: returns false if the operation
  /// has to wait, so that it starves no other.
  [[nodiscard]] bool may_continue(loop::Core& core) const noexcept;

 private:
  static void run(ReadyNode& ready);

  void begin(loop::Core& core) noexcept;
  void end() noexcept;
  void abandon() noexcept;

  FirstCall first_call_;
  loop::Core* core_ = nullptr;  ///< The core of the loop while the operation is busy.
};

}  // namespace detail
}  // namespace tambour
