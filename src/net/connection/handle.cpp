// Connections that are used from other threads and after their end: ConnectionHandle.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/net/connection_handle.h>

#include "base/current_error.h"
#include "loop/core.h"
#include "net/connection/mailbox.h"
#include "net/connection/parts.h"

namespace tambour {

ConnectionHandle::Mailbox::Mailbox(Connection& connection) noexcept
    : connection_(connection.is_open() ? &connection : nullptr),
      loop_(connection.is_open() ? &connection.loop() : nullptr),
      open_(connection.is_open()) {}

Connection* ConnectionHandle::Mailbox::connection_here() const noexcept {
  const std::lock_guard lock(mutex_);
  return loop_ != nullptr && detail::loop::core_of(*loop_).in_group_thread() ? connection_
                                                                             : nullptr;
}

Connection* ConnectionHandle::Mailbox::connection_for_direct_call() const noexcept {
  const std::lock_guard lock(mutex_);
  const bool is_here = loop_ != nullptr && detail::loop::core_of(*loop_).in_group_thread();
  return is_here && operations_.empty() ? connection_ : nullptr;
}

// Each function posts before it queues: if there is no memory to queue, the drain finds nothing.

bool ConnectionHandle::Mailbox::queue_bytes(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return false;
  post_drain();
  if (operations_.empty() || operations_.back().action != Action::send)
    operations_.push_back({.action = Action::send});
  operations_.back().bytes.append(bytes);
  return true;
}

bool ConnectionHandle::Mailbox::queue_bytes(Buffer&& bytes) {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return false;
  post_drain();
  if (operations_.empty() || operations_.back().action != Action::send)
    operations_.push_back({.action = Action::send});
  operations_.back().bytes.append(std::move(bytes));
  return true;
}

bool ConnectionHandle::Mailbox::queue(Action action, Callback<void(Connection&)> task,
                                      const std::source_location& queued_at) {
  // Allocated, and on failure destroyed, without the mutex: destroying a task runs code of the
  // program.
  std::list<Operation> last;
  last.push_back({.action = action, .task = std::move(task), .queued_at = queued_at});
  const std::lock_guard lock(mutex_);
  if (!is_open()) return false;
  post_drain();
  operations_.splice(operations_.end(), last);
  return true;
}

void ConnectionHandle::Mailbox::post_drain() {
  // Without a loop, arrive() posts.
  if (drain_posted_ || loop_ == nullptr) return;
  detail::loop::core_of(*loop_).post([self = shared_from_this(), at = loop_] { self->drain(*at); });
  drain_posted_ = true;
}

void ConnectionHandle::Mailbox::Operation::perform(Connection& connection) {
  switch (action) {
    case Action::send:
      connection.send(std::move(bytes));
      return;
    case Action::shutdown_write:
      return connection.shutdown_write();
    case Action::close_after_write:
      return connection.close_after_write();
    case Action::close:
      return connection.close();
    case Action::call:
      return task(connection);
  }
}

/// Performs what is queued now. `at` is the loop that runs this; if the connection has moved on, it
/// has posted another drain to its new loop.
void ConnectionHandle::Mailbox::drain(EventLoop& at) {
  // Operations that are queued meanwhile wait for the next iteration, so that they cannot starve
  // the loop.
  std::size_t count = SIZE_MAX;
  for (std::list<Operation> next; count > 0; --count, next.clear()) {
    detail::net::ConnectionCore* connection = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (loop_ != &at || operations_.empty()) break;
      count = std::min(count, operations_.size());
      connection = &detail::net::ConnectionCore::of(*connection_);
      next.splice(next.end(), operations_, operations_.begin());
    }
    detail::loop::core_of(at).name_callback(next.front().queued_at);
    try {
      connection->call_guarded([&] { next.front().perform(*connection); });
    } catch (...) {
      finish_drain(at);
      throw;
    }
  }
  finish_drain(at);
}

void ConnectionHandle::Mailbox::finish_drain(EventLoop& at) noexcept {
  int error = 0;
  Connection* connection = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (loop_ != &at) return;
    drain_posted_ = false;
    if (operations_.empty()) return;
    try {
      return post_drain();
    } catch (...) {
      error = detail::base::errno_of_current_exception();
      connection = connection_;  // Ended below, without the mutex.
    }
  }
  // Operations of the program must not be dropped silently.
  detail::net::ConnectionCore::of(*connection).end(error);
}

void ConnectionHandle::Mailbox::close() noexcept {
  const std::lock_guard lock(mutex_);
  connection_ = nullptr;
  loop_ = nullptr;
  open_.store(false, std::memory_order_release);
}

void ConnectionHandle::Mailbox::clear() noexcept {
  std::list<Operation> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(operations_);
}

void ConnectionHandle::Mailbox::depart() noexcept {
  const std::lock_guard lock(mutex_);
  connection_ = nullptr;
  loop_ = nullptr;
}

void ConnectionHandle::Mailbox::arrive(Connection& connection) {
  const std::lock_guard lock(mutex_);
  connection_ = &connection;
  loop_ = &connection.loop();
  // A drain that was posted before the move has found, or will find, another loop.
  drain_posted_ = false;
  if (!operations_.empty()) post_drain();
}

bool ConnectionHandle::is_open() const noexcept {
  return mailbox_ != nullptr && mailbox_->is_open();
}

bool ConnectionHandle::send(std::span<const std::byte> bytes) const {
  if (mailbox_ == nullptr) return false;
  if (Connection* const here = mailbox_->connection_for_direct_call()) return here->send(bytes);
  return mailbox_->queue_bytes(bytes);
}

bool ConnectionHandle::send(Buffer&& bytes) const {
  if (mailbox_ != nullptr) {
    if (Connection* const here = mailbox_->connection_for_direct_call())
      return here->send(std::move(bytes));
    // Leaves the bytes if the connection is closed.
    if (mailbox_->queue_bytes(static_cast<Buffer&&>(bytes))) return true;
  }
  bytes.clear();
  return false;
}

void ConnectionHandle::shutdown_write() const {
  if (mailbox_ == nullptr) return;
  if (Connection* const here = mailbox_->connection_for_direct_call())
    return here->shutdown_write();
  mailbox_->queue(Mailbox::Action::shutdown_write);
}

void ConnectionHandle::close_after_write() const {
  if (mailbox_ == nullptr) return;
  if (Connection* const here = mailbox_->connection_for_direct_call())
    return here->close_after_write();
  mailbox_->queue(Mailbox::Action::close_after_write);
}

void ConnectionHandle::close() const {
  if (mailbox_ == nullptr) return;
  if (Connection* const here = mailbox_->connection_for_direct_call()) return here->close();
  mailbox_->queue(Mailbox::Action::close);
}

bool ConnectionHandle::post(Callback<void(Connection&)> task, std::source_location at) const {
  return mailbox_ != nullptr && mailbox_->queue(Mailbox::Action::call, std::move(task), at);
}

Connection* ConnectionHandle::get() const noexcept {
  return mailbox_ != nullptr ? mailbox_->connection_here() : nullptr;
}

ConnectionHandle detail::net::ConnectionCore::handle() {
  check_thread("handle");
  std::shared_ptr<ConnectionHandle::Mailbox>& mailbox = extras().mailbox;
  if (mailbox == nullptr) mailbox = std::make_shared<ConnectionHandle::Mailbox>(*this);
  return ConnectionHandle(mailbox);
}

}  // namespace tambour
