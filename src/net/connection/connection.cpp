// The life of connections, sending, closing and the dispatch of events. The other parts of
// ConnectionCore are in the files next to this one.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "backend/system.h"
#include "base/check.h"
#include "io/transport.h"
#include "net/connection/core.h"
#include "net/connection/parts.h"
#include "net/outcome.h"
#include "net/socket_calls.h"

namespace tambour::detail::net {

Connection& ConnectionCore::start(SocketStream&& stream,
                                  std::shared_ptr<const ConnectionCallbacks> callbacks,
                                  ConnectionOwner* owner, std::source_location function) {
  auto header = std::move(stream.proxy_header_);
  return start(std::move(stream), std::move(header), std::move(callbacks), owner, function);
}

Connection& ConnectionCore::start(Stream&& stream, OwnedPointer<const ProxyHeader> header,
                                  std::shared_ptr<const ConnectionCallbacks> callbacks,
                                  ConnectionOwner* owner, std::source_location function) {
  if (callbacks == nullptr) [[unlikely]]
    base::fail_check(
        "Connection::start() was called with null callbacks for the stream of descriptor %d; pass "
        "std::make_shared<const ConnectionCallbacks>(...), whose functions are optional",
        stream.fd());
  base::check(
      stream.has_loop(),
      "Connection::start() was called with a default-constructed stream, which has no loop; "
      "pass a stream that is open");
  loop::core_of(stream.loop()).check_thread(function);
  auto* self = new ConnectionCore(std::move(stream), std::move(header), std::move(callbacks));
  self->owner_ = owner;
  self->accepted_ = owner != nullptr && owner->accepts();
  // A stream that a task has used may have bytes in the kernel's queue.
  if (!self->accepted_ && self->deadlines() != nullptr)
    static_cast<void>(self->sample_acknowledged());
  loop::core_of(*self->loop_).add_reference();
  self->enter_list();
  self->watch();
  // TLS may have something to send: tickets, or the answer to a new key.
  if (self->unsent_bytes() > 0) self->start_write_timeout();
  self->read_again_if_possible();
  // Before the callback, which may throw.
  self->arm_deadlines();
  if (owner != nullptr && owner->closing()) self->close();
  if (self->callbacks_->on_connection)
    self->call_guarded([self] { self->callbacks_->on_connection(*self); });
  return *self;
}

ConnectionCore::ConnectionCore(Stream&& stream, OwnedPointer<const ProxyHeader> header,
                               std::shared_ptr<const ConnectionCallbacks> callbacks)
    : Operation(OperationKind::poll, &run, callbacks->created_at),
      Connection(stream.loop()),
      owner_(nullptr),
      callbacks_(std::move(callbacks)),
      read_size_(stream.read_size_),
      kind_(stream.kind_) {
  if (header != nullptr) extras().proxy_header = std::move(header);
  if (stream.filter_ != nullptr) extras().filter = std::move(stream.filter_);
  const ConnectionLimits& limits = callbacks_->limits;
  if (limits.idle_timeout > Duration::zero() || limits.read_timeout > Duration::zero())
    make_deadlines();
  Operation::fd = stream.hand_over();
}

void ConnectionCore::fail_thread_check(const char* function) const noexcept {
  base::fail_check(
      "Connection::%s: connection fd %d was used from thread %d, which is not the thread of its "
      "loop; call loop().post() and use the connection there",
      function, Operation::fd, int(::gettid()));
}

ConnectionCore::Extras& ConnectionCore::extras() {
  if (extras_ == nullptr) extras_ = std::make_unique<Extras>();
  return *extras_;
}

int ConnectionCore::fd() const noexcept {
  check_thread("descriptor");
  return Operation::fd;
}

std::any& ConnectionCore::context() noexcept {
  check_thread("context");
  return context_;
}

bool ConnectionCore::is_open() const noexcept {
  check_thread("is_open");
  return !ended_;
}

const tls::Session* ConnectionCore::tls() const noexcept {
  check_thread("tls");
  const io::TransportFilter* const used = filter();
  return used != nullptr ? &used->session() : nullptr;
}

const ProxyHeader* ConnectionCore::proxy_header() const noexcept {
  check_thread("proxy_header");
  return extras_ != nullptr ? extras_->proxy_header.get() : nullptr;
}

void ConnectionCore::enter_list() noexcept {
  if (owner_ != nullptr) return owner_->add(*this);
  loop::core_of(*loop_).owned().push_back(static_cast<LoopOwned&>(*this));
}

void ConnectionCore::leave_list() noexcept {
  if (ConnectionOwner* owner = std::exchange(owner_, nullptr)) {
    owner->remove(*this);
  } else {
    static_cast<LoopOwned*>(this)->unlink();
  }
}

ConnectionCore::~ConnectionCore() {
  if (ConnectionHandle::Mailbox* const operations = mailbox()) {
    operations->close();
    operations->clear();
  }
  leave_observers();
  if (Operation::fd < 0) return;
  backend::Backend& backend = loop::core_of(*loop_).backend();
  if (submitted()) backend.cancel(*this);
  close_descriptor();
}

void ConnectionCore::close_descriptor() noexcept {
  transport().before_close();
  loop::core_of(*loop_).backend().close(std::exchange(Operation::fd, -1));
}

void ConnectionCore::watch() noexcept {
  Events wanted = Events::none;
  if (reads()) wanted |= Events::read;
  if (unsent_bytes() > 0) wanted |= Events::write;
  if (handshaking_) wanted = Events::read | extras_->upgrade->handshake.awaited();
  if (moving_) wanted = Events::none;
  if (wanted == events && (submitted()) == (wanted != Events::none)) return;
  events = wanted;
  backend::Backend& backend = loop::core_of(*loop_).backend();
  if (wanted != Events::none) {
    backend.submit(*this);
  } else if (submitted()) {
    backend.cancel(*this);
  }
}

void ConnectionCore::run(ReadyNode& ready) {
  auto& self = static_cast<ConnectionCore&>(ready);
  if (self.ended_) return self.call_guarded([&self] { self.invoke_on_close(); });
  if (self.moving_) return self.depart();
  if (self.result < 0) return self.end(-self.result);
  const Events got = Events(std::uint16_t(std::exchange(self.result, 0)));
  self.call_guarded([&self, got] { self.handle_events(got); });
  // No callback of this connection is on the stack here, so on_close need not wait for the next
  // iteration. If a callback destroyed the server, the connection is already unlinked.
  if (!self.ended_ || !ready.linked()) return;
  ready.unlink();
  self.call_guarded([&self] { self.invoke_on_close(); });
}

inline void ConnectionCore::handle_events(Events got) {
  if (handshaking_) continue_handshake();
  // Before reading, so that EOF does not overtake the bytes. If reading has been paused again, the
  // next resume_reading() queues the connection again.
  if (offers_input_ && reads()) offer(0);
  // If the descriptor has an error, reading or writing returns it.
  const bool broken = has(got, Events::error);
  const bool may_read = broken || has(got, Events::read) || may_read_now();
  if (!ended_ && !handshaking_ && !moving_ && reads() && may_read) read_some();
  if (!ended_ && !handshaking_ && unsent_bytes() > 0 && (broken || has(got, Events::write)))
    write_some();
}

/// Called while an exception of a callback is handled. The connection exists until the end of the
/// iteration, although the callback may have destroyed its owner.
void ConnectionCore::pass_exception_on() {
  // on_exception may destroy the server, and with it the connection if no loop runs.
  const std::shared_ptr<const ConnectionCallbacks> callbacks = callbacks_;
  if (!callbacks->on_exception) throw;
  loop::Core& core = loop::core_of(*loop_);
  end(0);
  try {
    callbacks->on_exception(std::current_exception());
  } catch (...) {
    core.throw_out_of_run(std::current_exception());
  }
}

io::Transport ConnectionCore::transport() const noexcept {
  return {loop::core_of(*loop_).backend().system(), Operation::fd, kind_, filter()};
}

template <class Bytes>
std::size_t ConnectionCore::write_now(Bytes& bytes) noexcept {
  const std::int32_t answer = transport().write(bytes);
  if (answer < 0) {
    if (answer != -EAGAIN) end(-answer);
    if (filter() == nullptr) return 0;
  }
  const std::int64_t accepted = filter() != nullptr ? filter()->take_progress() : answer;
  if (Deadlines* const times = deadlines(); times != nullptr && accepted > 0) {
    times->sending.accept(accepted, loop::core_of(*loop_).now_ns());
  }
  return answer > 0 ? static_cast<std::size_t>(answer) : 0;
}

std::size_t ConnectionCore::unsent() const noexcept {
  check_thread("unsent");
  return unsent_bytes();
}

bool ConnectionCore::send(std::span<const std::byte> bytes) {
  check_thread("send");
  if (!may_send()) return false;
  if (bytes.empty()) return true;
  const std::size_t before = unsent_bytes();
  if (before == 0 && !handshaking_) {
    std::size_t taken = 0;
    do {
      taken = write_now(bytes);
      bytes = bytes.subspan(taken);
      // TLS accepts a part of the bytes at a time. If the kernel has accepted all of that part, it
      // probably has space for the next, which need not be copied then.
    } while (taken > 0 && !bytes.empty() && filter() != nullptr && unsent_bytes() == 0);
    if (bytes.empty()) return unsent_bytes() == 0 || note_unsent(before);
  }
  return send_later(bytes, nullptr, before);
}

bool ConnectionCore::send(Buffer&& bytes) {
  check_thread("send");
  if (may_send()) {
    const std::size_t before = unsent_bytes();
    while (before == 0 && !handshaking_ && !bytes.empty() && !ended_ && write_now(bytes) > 0) {
    }
    if (bytes.empty()) return unsent_bytes() == before || note_unsent(before);
    if (send_later({}, &bytes, before)) return true;
  }
  bytes.clear();
  return false;
}

/// Queues what the kernel did not accept: `bytes`, or all of `buffer`. A part of the message may
/// have been sent already, so if there is no memory for the rest, the connection is closed with
/// ENOMEM. `before` is the number of bytes that waited before this message.
bool ConnectionCore::send_later(std::span<const std::byte> bytes, Buffer* buffer,
                                std::size_t before) {
  if (ended_) return false;
  const std::size_t size = buffer != nullptr ? buffer->size() : bytes.size();
  const std::size_t limit = callbacks_->limits.unsent_bytes_max;
  if (before > 0 && size > limit - std::min(before, limit)) {
    end_at_limit(ENOBUFS);
    return false;
  }
  try {
    Buffer& output = extras().output;
    if (buffer != nullptr) {
      output.append(std::move(*buffer));
    } else {
      output.append(bytes);
    }
  } catch (const std::exception&) {
    end(ENOMEM);
    return false;
  }
  return note_unsent(before);
}

/// Called when bytes begin to wait, or when more do: `before` is the number that waited before.
bool ConnectionCore::note_unsent(std::size_t before) {
  if (before == 0) {
    start_write_timeout();
    if (ended_) return false;
  }
  const std::size_t mark = callbacks_->high_water_bytes;
  const bool reaches_mark = before < mark && unsent_bytes() >= mark;
  if (reaches_mark && pauses_at_high_water()) throttled_ = true;
  watch();
  if (reaches_mark && callbacks_->on_high_water)
    call_guarded([this] { callbacks_->on_high_water(*this, unsent_bytes()); });
  return !ended_;
}

void ConnectionCore::write_some() {
  static_cast<void>(write_now(extras_->output));
  if (ended_) return;
  // What the peer had acknowledged until now is not progress later.
  if (deadlines() != nullptr) static_cast<void>(sample_acknowledged());
  const std::size_t low =
      std::min(callbacks_->limits.low_water_bytes, callbacks_->high_water_bytes / 2);
  if (throttled_ && unsent_bytes() <= low) continue_reading();
  if (unsent_bytes() > 0) return;
  extras_->output = {};
  finish_output();
  if (ended_) return;
  drop_unneeded();
  watch();
  if (callbacks_->on_write_complete) callbacks_->on_write_complete(*this);
}

void ConnectionCore::close() noexcept {
  check_thread("close");
  end(0);
}

void ConnectionCore::shutdown_write() noexcept {
  check_thread("shutdown_write");
  if (ended_ || close_requested_ || half_closed_) return;
  half_closed_ = true;
  if (unsent_bytes() == 0) finish_output();
}

bool ConnectionCore::pauses_at_high_water() const noexcept {
  const Backpressure when = callbacks_->limits.backpressure;
  return when == Backpressure::all || (when == Backpressure::accepted && accepted_);
}

void ConnectionCore::close_after_write() noexcept {
  check_thread("close_after_write");
  if (ended_) return;
  const bool is_first = !close_requested_;
  close_requested_ = true;
  if (unsent_bytes() == 0) return finish_output();
  if (is_first) start_lingering();
}

void ConnectionCore::finish_output() noexcept {
  // The end of TLS can be sent only after the handshake, which calls this function when it is
  // complete.
  if (ended_ || handshaking_ || unsent_bytes() > 0 || (!close_requested_ && !half_closed_)) return;
  const bool is_ended = filter() == nullptr || write_shut_down_;
  if (io::is_file(kind_) || (peer_half_closed_ && is_ended)) return end(0);
  if (write_shut_down_) return;
  // The end of TLS is a message, for which the socket may have no space: once it has been sent,
  // this function is called again.
  if (transport().shutdown_write() == -EAGAIN) {
    start_write_timeout();
    if (close_requested_ && !ended_) start_lingering();
    return ended_ ? void() : watch();
  }
  if (peer_half_closed_) return end(0);
  // After shutdown_write() the connection goes on reading, as long as the peer sends.
  if (!close_requested_) return;
  write_shut_down_ = true;
  start_lingering();
  if (ended_) return;
  // Even if reading is paused, the connection waits for the peer's EOF.
  watch();
}

Result<Endpoint> ConnectionCore::local_endpoint() const noexcept {
  check_thread("local_endpoint");
  return net::local_endpoint(loop::core_of(*loop_).backend().system(), Operation::fd);
}

Result<Endpoint> ConnectionCore::peer_endpoint() const noexcept {
  check_thread("peer_endpoint");
  if (const ProxyHeader* header = proxy_header(); header != nullptr && header->source)
    return *header->source;
  return net::peer_endpoint(loop::core_of(*loop_).backend().system(), Operation::fd);
}

void ConnectionCore::end(int error) noexcept {
  if (ended_) return;
  ended_ = true;
  error_ = static_cast<std::int16_t>(error);
  moving_ = false;
  if (ConnectionHandle::Mailbox* const operations = mailbox()) operations->close();
  if (extras_ != nullptr) {
    extras_->deadlines.reset();
    extras_->arrival.reset();
    if (extras_->upgrade != nullptr) extras_->upgrade->handshake.stop();
  }
  leave_observers();
  loop::Core& core = loop::core_of(*loop_);
  if (submitted()) core.backend().cancel(*this);
  core.queue(*this);
}

void ConnectionCore::leave_observers() noexcept {
  while (ConnectionObserver* const observer =
             extras_ != nullptr ? extras_->observers.front() : nullptr) {
    observer->unlink();
    observer->connection_leaves();
  }
}

/// Resets the connection on close if the peer does not read: the unsent bytes would otherwise stay
/// in the kernel for minutes after close(2).
void ConnectionCore::end_at_limit(int error) noexcept {
  resets_ = unsent_bytes() > 0 || close_requested_;
  end(error);
}

void ConnectionCore::invoke_on_close() {
  // Also runs if on_close throws.
  const struct Ending {
    ConnectionCore& self;
    ~Ending() { self.leave(); }
  } ending{*this};
  leave_list();
  if (callbacks_->on_close) callbacks_->on_close(*this, error_ != 0 ? error_of(error_) : Error());
}

void ConnectionCore::leave() noexcept {
  loop::Core& core = loop::core_of(*loop_);
  backend::System& system = core.backend().system();
  if (resets_) reset_on_close(system, Operation::fd);
  close_descriptor();
  core.drop_reference();
  core.defer_delete(this);
}

}  // namespace tambour::detail::net
