// The parts of a Connection that few connections have at a time. For connection*.cpp only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tambour/connection.h>
#include <tambour/proxy_protocol.h>
#include <tambour/timer.h>

#include "base/clock.h"
#include "loop/core.h"
#include "net/connection_owner.h"

namespace tambour {

/// When the time limits of a connection are up, as times of the monotonic clock. One timer serves
/// all limits: it is armed for the earliest. Progress only stores a time; when the timer expires
/// too early for that reason, it is armed again.
struct Connection::Deadlines {
  std::int64_t idle_ns = 0;      ///< The idle timeout, a duration; 0: none.
  std::int64_t received_ns = 0;  ///< When bytes were last received, or reading was last resumed.
  std::int64_t accepted_ns = 0;  ///< When the kernel last took bytes, or first took not all.
  /// When close_after_write() was called, and then, when the write side was shut down.
  std::int64_t finishing_ns = 0;
  /// When the first bytes of the message came that is incomplete; later, where bytes that came
  /// since have earned it more time. 0: there is none.
  std::int64_t message_started_ns = 0;
  std::int64_t fixed_ns = base::end_of_time_ns;  ///< From set_deadline().
  std::optional<Timer> timer{};                  ///< Empty while it moves to another loop.
};

/// A connection on its way to another loop. One that is never opened there closes the connection.
class Connection::Arrival {
 public:
  explicit Arrival(EventLoop& to) noexcept : to_(to) {}
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  ~Arrival() {
    if (connection_ == nullptr) return;
    if (owner_ != nullptr) owner_->left();
    delete connection_;
  }

  [[nodiscard]] EventLoop& to() const noexcept { return to_; }

  void pack(Connection& connection, ConnectionOwner* owner) noexcept {
    connection_ = &connection;
    owner_ = owner;
  }
  /// It could not be posted.
  void unpack() noexcept {
    connection_ = nullptr;
    if (owner_ != nullptr) owner_->never_came();
  }
  void open() { std::exchange(connection_, nullptr)->arrive(owner_); }

 private:
  EventLoop& to_;
  Connection* connection_ = nullptr;
  ConnectionOwner* owner_ = nullptr;
};

struct Connection::Extras {
  Buffer output{};  ///< Bytes that wait to be sent.
  std::unique_ptr<Deadlines> deadlines{};
  std::unique_ptr<Arrival> arrival{};  ///< Set while it is about to move to another loop.
  std::unique_ptr<const ProxyHeader> proxy_header{};

  [[nodiscard]] bool is_default() const noexcept {
    return output.empty() && deadlines == nullptr && arrival == nullptr && proxy_header == nullptr;
  }
};

inline Connection::Deadlines* Connection::deadlines() const noexcept {
  return extras_ != nullptr ? extras_->deadlines.get() : nullptr;
}

inline std::size_t Connection::unsent_bytes() const noexcept {
  return extras_ != nullptr ? extras_->output.size() : 0;
}

inline void Connection::check_thread(const char* function) const noexcept {
  if (!loop::core_of(*loop_).in_thread()) [[unlikely]]
    fail_thread_check(function);
}

}  // namespace tambour
