// systemd's event loop, sd-event(3), inside a loop, and a loop inside sd-event.
//
// Link with libsystemd (pkg-config). sd-bus connections attached to the sd_event work with both.
#pragma once

#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/hooks.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Runs the sources of an sd_event in an EventLoop, in place of sd_event_loop().
///
/// Ownership: a reference to the sd_event. Lifetime: must not be destroyed inside a callback of it.
/// Thread: the loop's.
/// Loop: while started, it keeps the loop running. After sd_event_exit(3) and the callbacks of the
/// exit, it stops; sd_event_get_exit_code(3) returns the code.
class SdEvent {
 public:
  /// Not started. Takes a reference to `event`.
  SdEvent(EventLoop& loop, sd_event* event)
      : event_(sd_event_ref(event)),
        before_wait_(loop, [this] { prepare(); }),
        timer_(loop, [this] { dispatch(); }),
        watcher_(loop, sd_event_get_fd(event), Events::read, [this](Events) { dispatch(); }) {}
  SdEvent(const SdEvent&) = delete;
  SdEvent& operator=(const SdEvent&) = delete;
  ~SdEvent() {
    stop();
    sd_event_unref(event_);
  }

  /// Fails with the error of FdWatcher::start(), or ESTALE if the sd_event has finished.
  [[nodiscard]] Result<> start() {
    if (sd_event_get_state(event_) == SD_EVENT_FINISHED)
      return std::unexpected(system_error(ESTALE));
    auto started = watcher_.start();
    if (started) before_wait_.start();
    return started;
  }
  void stop() noexcept {
    before_wait_.stop();
    timer_.stop();
    watcher_.stop();
  }
  [[nodiscard]] bool is_started() const noexcept { return before_wait_.is_started(); }

 private:
  /// Runs before each wait: any callback may add sources or change what they wait for, which
  /// sd-event notices only when it is prepared again. Costs two epoll_wait(2) that do not wait.
  void prepare() {
    if (sd_event_get_state(event_) == SD_EVENT_ARMED) static_cast<void>(sd_event_wait(event_, 0));
    if (sd_event_get_state(event_) == SD_EVENT_INITIAL) static_cast<void>(sd_event_prepare(event_));
    if (sd_event_get_state(event_) == SD_EVENT_PENDING && !timer_.is_started())
      timer_.start(Duration::zero());
  }
  void dispatch() {
    if (sd_event_get_state(event_) == SD_EVENT_ARMED) static_cast<void>(sd_event_wait(event_, 0));
    if (sd_event_get_state(event_) == SD_EVENT_PENDING)
      static_cast<void>(sd_event_dispatch(event_));
    if (sd_event_get_state(event_) == SD_EVENT_FINISHED) return stop();
    // Not left to the next iteration: a host of the loop asks for its deadline before that.
    if (is_started()) prepare();
  }

  sd_event* event_;
  Prepare before_wait_;
  Timer timer_;
  FdWatcher watcher_;
};

/// Runs an EventLoop in an sd_event: sd_event_loop() then runs the loop's timers, watchers and
/// tasks too. A microsecond is the resolution of timers.
///
/// Lifetime: destroy it before the loop. Thread: the loop's. An exception of a callback of the loop
/// ends the program.
class SdEventHost {
 public:
  /// Not started. Takes a reference to `event`.
  SdEventHost(EventLoop& loop, sd_event* event) : loop_(loop), event_(sd_event_ref(event)) {}
  SdEventHost(const SdEventHost&) = delete;
  SdEventHost& operator=(const SdEventHost&) = delete;
  ~SdEventHost() {
    stop();
    sd_event_unref(event_);
  }

  /// Fails as EventLoop::fd(), sd_event_add_io(3) and sd_event_add_time(3) do.
  [[nodiscard]] Result<> start() {
    if (io_ != nullptr) return {};
    const auto fd = loop_.fd();
    if (!fd) return std::unexpected(fd.error());
    int error = sd_event_add_io(event_, &io_, *fd, EPOLLIN, &readable, this);
    if (error >= 0)
      error = sd_event_add_time(event_, &time_, CLOCK_MONOTONIC, 0, accuracy_us, &expired, this);
    if (error >= 0) error = sd_event_source_set_prepare(io_, &prepare);
    if (error >= 0) return {};
    stop();
    return std::unexpected(system_error(-error));
  }
  void stop() noexcept {
    io_ = sd_event_source_disable_unref(io_);
    time_ = sd_event_source_disable_unref(time_);
  }

 private:
  static constexpr std::uint64_t accuracy_us = 1;

  static SdEventHost& of(void* self) noexcept { return *static_cast<SdEventHost*>(self); }

  static int prepare(sd_event_source* /*io*/, void* data) noexcept {
    SdEventHost& self = of(data);
    const TimePoint deadline = self.loop_.next_deadline();
    if (deadline == never) return sd_event_source_set_enabled(self.time_, SD_EVENT_OFF);
    const auto since_boot =
        std::chrono::ceil<std::chrono::microseconds>(deadline.time_since_epoch());
    // CLOCK_MONOTONIC, as Clock.
    sd_event_source_set_time(self.time_, static_cast<std::uint64_t>(since_boot.count()));
    return sd_event_source_set_enabled(self.time_, SD_EVENT_ONESHOT);
  }
  static int readable(sd_event_source* /*io*/, int /*fd*/, std::uint32_t /*events*/,
                      void* data) noexcept {
    of(data).loop_.run_ready();
    return 0;
  }
  static int expired(sd_event_source* /*time*/, std::uint64_t /*time_us*/, void* data) noexcept {
    of(data).loop_.run_ready();
    return 0;
  }

  EventLoop& loop_;
  sd_event* event_;
  sd_event_source* io_ = nullptr;
  sd_event_source* time_ = nullptr;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
