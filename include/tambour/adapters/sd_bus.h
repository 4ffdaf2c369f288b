// sd-bus, systemd's client of D-Bus, on a loop: method calls as awaitables.
//
//   SdBus bus(loop, opened);  // Of sd_bus_open_user(3), for example.
//   if (const auto started = bus.start(); !started) ...
//   const auto reply = co_await bus.call_method("org.freedesktop.DBus", "/org/freedesktop/DBus",
//                                               "org.freedesktop.DBus", "GetNameOwner", "s", name);
//
// Link with libsystemd (pkg-config). Requires libsystemd 240 or later. A bus that is attached to
// an sd_event needs <tambour/adapters/sd_event.h> instead.
#pragma once

#include <poll.h>
#include <systemd/sd-bus.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <tambour/adapters/call.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/hooks.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A message, usually a reply.
using SdBusMessage = std::unique_ptr<sd_bus_message, decltype(&sd_bus_message_unref)>;

/// An Error, with the name and text of a D-Bus error: the error is that which
/// sd_bus_error_get_errno(3) returns for the name.
struct SdBusError {
  /// Of the bus library, or of a wait.
  SdBusError(const Error& code) : error(code) {}            // NOLINT(google-explicit-constructor)
  operator const Error&() const noexcept { return error; }  // NOLINT(google-explicit-constructor)

  Error error;
  std::string name;  ///< Empty if the bus library itself failed.
  std::string message;
};
/// The result of a call over a bus.
template <class T>
using SdBusResult = Result<T, SdBusError>;

/// Processes the messages of a connection to a bus, in place of sd_bus_attach_event(3): those of
/// call(), and those of sd_bus_add_match(3), sd_bus_add_object_vtable(3) and others too.
///
/// Ownership: a reference to the connection. Lifetime: may be destroyed at any time; calls in
/// flight then end with ECANCELED. Thread: the loop's.
/// Loop: while started, it keeps the loop running.
/// Reconnection: none. When the connection is lost, calls in flight fail, and is_started() becomes
/// false: open another bus.
/// Cancellation: a wait that is stopped or has timed out fails at once; the peer executes the call,
/// and the reply is dropped. Calls end by the time limit of sd_bus_set_method_call_timeout(3) too,
/// which is 25 s, with ETIMEDOUT.
class SdBus {
 public:
  /// What call() returns: an `SdBusResult<SdBusMessage>` when it is awaited.
  using Reply = Call<SdBusMessage, SdBusError>::Wait;

  /// Not started. Takes a reference to `bus`.
  SdBus(EventLoop& loop, sd_bus* bus)
      : loop_(loop),
        bus_(sd_bus_ref(bus)),
        before_wait_(loop, [this] { prepare(); }),
        timer_(loop, [this] { process(); }) {}
  SdBus(const SdBus&) = delete;
  SdBus& operator=(const SdBus&) = delete;
  ~SdBus() {
    if (is_destroyed_ != nullptr) *is_destroyed_ = true;
    stop();
    fail_all(ECANCELED);
    sd_bus_unref(bus_);
  }

  /// For functions of the bus library.
  [[nodiscard]] sd_bus* get() const noexcept { return bus_; }

  /// Fails as sd_bus_get_fd(3) and FdWatcher::start() do.
  [[nodiscard]] Result<> start() {
    const int fd = sd_bus_get_fd(bus_);
    if (fd < 0) return std::unexpected(system_error(-fd));
    watcher_.emplace(loop_, fd, Events::read, [this](Events) { process(); });
    auto started = watcher_->start();
    if (started) before_wait_.start();
    return started;
  }
  /// Call it before sd_bus_close(3).
  void stop() noexcept {
    before_wait_.stop();
    timer_.stop();
    watcher_.reset();
  }
  [[nodiscard]] bool is_started() const noexcept { return before_wait_.is_started(); }

  /// Sends a method call and waits for the reply. Fails with the error of the reply, or at once
  /// with ENOTCONN if the bus is not started, or as sd_bus_call_async(3).
  Reply call(sd_bus_message* message) {
    if (!is_started()) return failed(-ENOTCONN);
    const auto sent = in_flight_.emplace(in_flight_.end(), *this);
    sent->position = sent;
    auto [call, reply] = Call<SdBusMessage, SdBusError>::begin();
    sent->call = call;
    const int error = sd_bus_call_async(bus_, &sent->slot, message, &replied, &*sent, 0);
    if (error < 0) {
      in_flight_.erase(sent);
      call->finish(std::unexpected(SdBusError(system_error(-error))));
    }
    return std::move(reply);
  }
  /// `types` and `values` as for sd_bus_message_append(3).
  template <class... Values>
  Reply call_method(const char* destination, const char* path, const char* interface,
                    const char* member, const char* types = "", Values... values) {
    sd_bus_message* created = nullptr;
    int error =
        sd_bus_message_new_method_call(bus_, &created, destination, path, interface, member);
    const SdBusMessage message(created, &sd_bus_message_unref);
    // A function with "..." of C, which takes numbers and pointers.
    if (error >= 0 && *types != '\0') error = sd_bus_message_append(created, types, values...);
    return error < 0 ? failed(error) : call(created);
  }

 private:
  struct InFlight {
    explicit InFlight(SdBus& sender) : bus(sender) {}
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    ~InFlight() { sd_bus_slot_unref(slot); }

    SdBus& bus;
    std::list<InFlight>::iterator position;
    Call<SdBusMessage, SdBusError>* call = nullptr;
    sd_bus_slot* slot = nullptr;
  };

  static Reply failed(int error) {
    return Call<SdBusMessage, SdBusError>::failed(SdBusError(system_error(-error)));
  }
  /// Exceptions must not leave functions that the bus calls.
  static SdBusError error_of(const sd_bus_error& failed) noexcept {
    SdBusError error = system_error(sd_bus_error_get_errno(&failed));
    try {
      error.name = failed.name;
      if (failed.message != nullptr) error.message = failed.message;
    } catch (const std::bad_alloc&) {
      error.message.clear();
    }
    return error;
  }
  static int replied(sd_bus_message* message, void* data, sd_bus_error* /*error*/) {
    InFlight& sent = *static_cast<InFlight*>(data);
    auto* const call = sent.call;
    sent.bus.in_flight_.erase(sent.position);
    if (const sd_bus_error* const error = sd_bus_message_get_error(message))
      call->finish(std::unexpected(error_of(*error)));
    else
      call->finish(SdBusMessage(sd_bus_message_ref(message), &sd_bus_message_unref));
    return 1;
  }
  void fail_all(int error) noexcept {
    while (!in_flight_.empty()) {
      auto* const call = in_flight_.front().call;
      in_flight_.pop_front();
      call->finish_later(std::unexpected(SdBusError(system_error(error))));
    }
  }

  /// Runs before each wait: any callback may send messages, or add what has a time limit.
  void prepare() {
    const int events = sd_bus_get_events(bus_);
    std::uint64_t until_us = 0;
    if (events < 0 || sd_bus_get_timeout(bus_, &until_us) < 0)
      return timer_.start(Duration::zero());  // It was closed.
    const Events interest = ((events & POLLIN) != 0 ? Events::read : Events::none) |
                            ((events & POLLOUT) != 0 ? Events::write : Events::none);
    if (watcher_->interest() != interest) watcher_->set(interest);
    if (until_us == UINT64_MAX) return timer_.stop();
    // CLOCK_MONOTONIC, as Clock; 0 if messages are left in the queue.
    timer_.start_at(TimePoint(std::chrono::microseconds(until_us)));
  }
  void process() {
    // A resumed task may destroy this object.
    bool is_destroyed = false;
    bool* const outer = std::exchange(is_destroyed_, &is_destroyed);
    constexpr int messages_max = 100;
    int result = 1;
    for (int i = 0; i < messages_max && result > 0; ++i) {
      result = sd_bus_process(bus_, nullptr);
      if (is_destroyed) {
        if (outer != nullptr) *outer = true;
        return;
      }
    }
    is_destroyed_ = outer;
    if (result >= 0 || result == -EBUSY) return;  // EBUSY: inside a callback of the bus.
    stop();
    fail_all(ECONNRESET);
  }

  EventLoop& loop_;
  sd_bus* bus_;
  Prepare before_wait_;
  Timer timer_;
  std::optional<FdWatcher> watcher_;
  std::list<InFlight> in_flight_;
  bool* is_destroyed_ = nullptr;  ///< Of process(), while it runs.
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
