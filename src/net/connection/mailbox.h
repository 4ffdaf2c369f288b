// What the handles of a connection share with it: the queue of operations from other threads, and
// the loop that performs them. For the files of this directory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <source_location>
#include <span>

#include <tambour/net/connection.h>
#include <tambour/net/connection_handle.h>

namespace tambour {

/// Thread: the mutex guards all members except the atomic one. Posting to the loop happens while
/// the mutex is held, and the connection clears `loop_` before its loop can end; therefore no
/// thread posts to a loop that has been destroyed.
class ConnectionHandle::Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  enum class Action : std::uint8_t { send, shutdown_write, close_after_write, close, call };

  explicit Mailbox(Connection& connection) noexcept;

  // For handles, on any thread.

  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  /// The connection if it is on the calling thread's loop; otherwise null.
  [[nodiscard]] Connection* connection_here() const noexcept;
  /// connection_here(), or null if operations are queued, which must take effect first.
  [[nodiscard]] Connection* connection_for_direct_call() const noexcept;
  /// Each returns false if the connection has ended. Throws std::bad_alloc; nothing is queued then.
  bool queue_bytes(std::span<const std::byte> bytes);
  bool queue_bytes(Buffer&& bytes);
  bool queue(Action action, Callback<void(Connection&)> task = {},
             const std::source_location& queued_at = {});

  // For the connection, on the thread of its loop.

  /// The connection has ended: refuses all further operations. Keeps the queued ones until clear(),
  /// because destroying them may run code of the program.
  void close() noexcept;
  void clear() noexcept;
  /// The connection leaves its loop. Until it arrives, operations are queued.
  void depart() noexcept;
  /// Throws std::bad_alloc if the queued operations cannot be posted.
  void arrive(Connection& connection);

 private:
  struct Operation {
    Action action;
    Buffer bytes{};
    Callback<void(Connection&)> task{};
    std::source_location queued_at{};

    void perform(Connection& connection);
  };

  /// Requires the mutex.
  void post_drain();
  void drain(EventLoop& at);
  void finish_drain(EventLoop& at) noexcept;

  mutable std::mutex mutex_;
  /// Both are null during a move and after the end of the connection.
  Connection* connection_;
  EventLoop* loop_;
  std::list<Operation> operations_;
  bool drain_posted_ = false;
  std::atomic<bool> open_;
};

}  // namespace tambour
