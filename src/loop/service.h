// The parts of a loop that only some handles need: signals, children, wall-clock timers, calls on
// worker threads and others.
//
// The first handle that needs a service opens it. The loop calls its services through this
// interface only, so a program that uses none of them does not link them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <tambour/base/result.h>

#include "base/clock.h"
#include "base/failure.h"

namespace tambour::detail::loop {

class Core;

/// A derived class overrides the functions that it needs, and is constructed with the loop's core.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  /// Called before each wait: queues what is due without a kernel event, and returns the time of
  /// the next such item, by the loop's clock.
  virtual std::int64_t before_wait() noexcept { return base::end_of_time_ns; }
  /// Called when the time that before_wait() returned has been reached: queues what is due.
  virtual void expire(std::int64_t /*now_ns*/) noexcept {}
  /// Called after Core::async_sent(): collects what other threads have sent.
  virtual void collect() noexcept {}

  /// In the child after fork(2), before any descriptor is opened. `has_all`: the child still has
  /// the loop's descriptors; see Backend::disown_if_lost().
  virtual void disown_if_lost(bool /*has_all*/) noexcept {}
  /// In the child after fork(2), when the backend has been reopened.
  virtual Result<> reopen() noexcept { return {}; }

  /// The number of tasks of the program that the service owns.
  [[nodiscard]] virtual std::size_t owned_tasks() const noexcept { return 0; }
  /// Called when the loop is destroyed, possibly more than once: destroys objects of the program,
  /// whose destructors may create further ones. Returns true if there were any.
  virtual bool drop_owned() noexcept { return false; }
  /// Called when everything else that the loop owns has been destroyed: destroys what the other
  /// objects may have referred to. Returns true if there was any.
  virtual bool drop_state() noexcept { return false; }
  /// Called once, when the loop is destroyed: stops all handles and unlinks them from the loop.
  virtual void close() noexcept = 0;

 private:
  friend class Services;
  const void* key_ = nullptr;
  std::unique_ptr<Service> next_;
};

/// The open services of a loop, at most one of each type, in the order of opening.
class Services {
 public:
  Services() = default;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  ~Services() { close(); }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

  /// Null if no such service is open.
  template <class S>
  [[nodiscard]] S* find() const noexcept {
    for (Service* service = first_.get(); service != nullptr; service = service->next_.get()) {
      if (service->key_ == &key<S>) return static_cast<S*>(service);
    }
    return nullptr;
  }

  /// Opens the service if it is not open. Fails with ENOMEM.
  template <class S>
  Result<S*> open(Core& core) noexcept {
    if (S* const open = find<S>()) return open;
    std::unique_ptr<S> service(new (std::nothrow) S(core));
    if (service == nullptr) return base::failure(ENOMEM);
    S* const opened = service.get();
    append(std::move(service), &key<S>);
    return opened;
  }

  std::int64_t before_wait() noexcept;
  void expire(std::int64_t now_ns) noexcept;
  void collect() noexcept;
  void disown_if_lost(bool has_all) noexcept;
  /// Reopens all services even if one of them fails, and returns the first error.
  Result<> reopen() noexcept;
  [[nodiscard]] std::size_t owned_tasks() const noexcept;
  bool drop_owned() noexcept;
  bool drop_state() noexcept;
  /// In the reverse order of opening: a service may use one that was opened before it.
  void close() noexcept;

 private:
  /// Its address identifies the type.
  template <class S>
  static inline char key = 0;

  void append(std::unique_ptr<Service> service, const void* type) noexcept;

  std::unique_ptr<Service> first_;
};

}  // namespace tambour::detail::loop
