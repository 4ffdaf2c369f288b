// State that few connections need at any one time, allocated on demand. For the files of this
// directory only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tambour/detail/transport_filter.h>
#include <tambour/loop/timer.h>
#include <tambour/net/proxy_header.h>

#include "base/clock.h"
#include "loop/core.h"
#include "net/connection/core.h"
#include "net/connection/mailbox.h"
#include "net/connection/owner.h"
#include "net/handshake.h"
#include "net/pace/lingering_close.h"
#include "net/pace/rate_budget.h"
#include "net/pace/send_progress.h"

namespace tambour::detail::net {

/// The deadlines of a connection, as times of the monotonic clock. One timer serves all limits: it
/// is armed for the earliest. Progress only stores a time; if the timer expires too early for that
/// reason, it is armed again.
struct ConnectionCore::Deadlines {
  std::int64_t idle_ns = 0;  ///< The idle timeout, a duration; 0: none.
  std::int64_t received_ns;  ///< When bytes were last received, or reading was last resumed.
  SendProgress sending;
  LingerTime linger{};   ///< After close_after_write().
  RateBudget message{};  ///< Of an incomplete message; stopped if there is none.
  std::int64_t fixed_ns = base::end_of_time_ns;  ///< The deadline of set_deadline().
  /// Empty while the connection moves to another loop.
  std::optional<Timer> timer{};

  explicit Deadlines(std::int64_t now_ns) noexcept : received_ns(now_ns), sending(now_ns) {}
};

/// A connection that is being moved to another loop. If it is destroyed before open(), it closes
/// the connection.
class ConnectionCore::Arrival {
 public:
  explicit Arrival(EventLoop& to) noexcept : to_(to) {}
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  ~Arrival() {
    if (connection_ == nullptr) return;
    if (owner_ != nullptr) owner_->connection_removed();
    delete connection_;
  }

  [[nodiscard]] EventLoop& to() const noexcept { return to_; }

  void pack(ConnectionCore& connection, ConnectionOwner* owner) noexcept {
    connection_ = &connection;
    owner_ = owner;
  }
  /// Called when the task could not be posted.
  void unpack() noexcept {
    connection_ = nullptr;
    if (owner_ != nullptr) owner_->move_failed();
  }
  void open() { std::exchange(connection_, nullptr)->arrive(owner_); }

 private:
  EventLoop& to_;
  ConnectionCore* connection_ = nullptr;
  ConnectionOwner* owner_ = nullptr;
};

/// A handshake on a connection that is open already. `filter` of the extras performs it.
struct ConnectionCore::Upgrade {
  Upgrade(ConnectionCore& connection, Duration limit, Callback<void(Connection&, Error)> callback);

  Callback<void(Connection&, Error)> done;
  Handshake handshake;  ///< Has failed already if it cannot begin.
};

struct ConnectionCore::Extras {
  Buffer output{};  ///< Bytes that wait to be sent.
  std::unique_ptr<Deadlines> deadlines{};
  /// Set while the connection is about to move to another loop.
  std::unique_ptr<Arrival> arrival{};
  OwnedPointer<const ProxyHeader> proxy_header{};
  OwnedPointer<io::TransportFilter> filter{};            ///< Of TLS.
  std::unique_ptr<Upgrade> upgrade{};                    ///< Null if none is in progress.
  std::shared_ptr<ConnectionHandle::Mailbox> mailbox{};  ///< Null if handle() was never called.

  IntrusiveList<ConnectionObserver> observers{};

  [[nodiscard]] bool is_default() const noexcept {
    return output.empty() && deadlines == nullptr && arrival == nullptr &&
           proxy_header == nullptr && filter == nullptr && mailbox == nullptr && observers.empty();
  }
};

inline ConnectionCore::Deadlines* ConnectionCore::deadlines() const noexcept {
  return extras_ != nullptr ? extras_->deadlines.get() : nullptr;
}

inline ConnectionHandle::Mailbox* ConnectionCore::mailbox() const noexcept {
  return extras_ != nullptr ? extras_->mailbox.get() : nullptr;
}

inline io::TransportFilter* ConnectionCore::filter() const noexcept {
  return extras_ != nullptr ? extras_->filter.get() : nullptr;
}

/// Includes the encoded bytes that a filter holds.
inline std::size_t ConnectionCore::unsent_bytes() const noexcept {
  if (extras_ == nullptr) return 0;
  const std::size_t encoded = extras_->filter != nullptr ? extras_->filter->unsent() : 0;
  return extras_->output.size() + encoded;
}

/// Returns whether a filter has something to return although the socket is not readable.
inline bool ConnectionCore::may_read_now() const noexcept {
  const io::TransportFilter* const used = filter();
  return used != nullptr && used->may_read_now();
}

/// Calls a function that invokes callbacks, and passes what it throws to on_exception.
template <class Function>
void ConnectionCore::call_guarded(Function function) {
  try {
    function();
  } catch (...) {
    pass_exception_on();
  }
}

inline void ConnectionCore::check_thread(const char* function) const noexcept {
  if (!loop::core_of(*loop_).in_group_thread()) [[unlikely]]
    fail_thread_check(function);
}

}  // namespace tambour::detail::net
