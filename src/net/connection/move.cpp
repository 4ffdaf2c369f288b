// Moves a connection to another loop.
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/base/callback.h>

#include "base/check.h"
#include "base/current_error.h"
#include "net/connection/parts.h"

namespace tambour::detail::net {

void ConnectionCore::move_to(EventLoop& to) {
  check_thread("move_to");
  if (ended_) return;
  base::check(!handshaking_,
              "Connection::move_to() was called during a handshake of TLS; call it in the "
              "callback of tls::accept() or tls::connect()");
  if (&to != loop_) extras().arrival = std::make_unique<Arrival>(to);
  moving_ = &to != loop_;
  // First, because cancelling the watch removes the connection from the queue of this iteration.
  watch();
  loop::core_of(*loop_).queue(*this);
}

void ConnectionCore::depart() noexcept {
  loop::Core& core = loop::core_of(*loop_);
  EventLoop& from = *loop_;
  moving_ = false;
  Arrival& arrival = *extras_->arrival;
  Callback<void()> task;
  try {
    task = [arrived = std::move(extras_->arrival)]() mutable { arrived->open(); };
  } catch (const std::bad_alloc&) {
    return end(ENOMEM);
  }
  leave_observers();
  if (Deadlines* const times = deadlines()) times->timer.reset();
  EventLoop& to = arrival.to();
  ConnectionOwner* const owner = owner_;
  arrival.pack(*this, owner != nullptr ? owner->for_loop(to) : nullptr);
  core.backend().deregister(Operation::fd);
  leave_list();
  core.drop_reference();
  if (ConnectionHandle::Mailbox* const operations = mailbox()) operations->depart();
  // Set before the task is posted, because the other thread may read it at once.
  loop_ = &to;
  try {
    loop::core_of(to).post(std::move(task));
  } catch (...) {
    const int error = base::errno_of_current_exception();
    arrival.unpack();
    loop_ = &from;
    owner_ = owner != nullptr ? owner->for_loop(from) : nullptr;
    enter_list();
    core.add_reference();
    end(error);
  }
}

void ConnectionCore::arrive(ConnectionOwner* owner) {
  owner_ = owner;
  loop::Core& core = loop::core_of(*loop_);
  // This loop may still have state for an earlier file with the same descriptor.
  core.backend().invalidate(Operation::fd);
  core.add_reference();
  enter_list();
  result = 0;
  try {
    if (deadlines() != nullptr) make_deadlines();
    if (ConnectionHandle::Mailbox* const operations = mailbox()) operations->arrive(*this);
  } catch (...) {
    return end(base::errno_of_current_exception());
  }
  arm_deadlines();
  watch();
  if (offers_input_) core.queue(*this);
  read_again_if_possible();
  if (owner_ != nullptr && owner_->closing()) return end(0);
  if (callbacks_->on_move) call_guarded([this] { callbacks_->on_move(*this); });
}

}  // namespace tambour::detail::net
