// What <tambour/adapters/libev.h> and <tambour/adapters/libevent.h> share: an EventLoop that waits
// for a loop of a drop-in.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <new>

#include <tambour/adapters/drop_in_descriptors.h>
#include <tambour/base/result.h>
#include <tambour/detail/guest_calls.h>
#include <tambour/loop/async.h>
#include <tambour/loop/control.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/hooks.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// The host of a loop of a drop-in, the guest.
///
/// An iteration of the EventLoop: before the wait, the guest tells what it waits for. Watchers of
/// high priority note the descriptors that are ready. When the other callbacks with the default
/// priority have run, one iteration of the guest does, which takes the ready descriptors.
class DropInHost {
 public:
  DropInHost(const DropInHost&) = delete;
  DropInHost& operator=(const DropInHost&) = delete;

 protected:
  explicit DropInHost(EventLoop& loop)
      : loop_(loop),
        descriptors_(loop),
        before_wait_(loop, [this] { prepare(); }),
        after_wait_(loop, [this] { schedule(); }),
        runner_(loop, [this] { run(false); }),
        message_(loop, [this] { run(true); }),
        forked_(loop, [this] { guest_.after_fork(guest_.loop); }),
        closing_(loop, [this] { release(); }) {}
  ~DropInHost() { close(); }

  /// Calls the function `symbol` of the drop-in.
  [[nodiscard]] Result<> open(const char* symbol) {
    if (guest_.loop != nullptr) return {};
    if (loop_.backend().kind == BackendKind::simulated)
      return std::unexpected(system_error(EOPNOTSUPP));
    const auto open_guest =
        reinterpret_cast<tambour::detail::OpenGuest>(::dlsym(RTLD_DEFAULT, symbol));
    if (open_guest == nullptr) return std::unexpected(system_error(ENOSYS));
    const tambour::detail::HostCalls calls{
        .data = this,
        .backend = static_cast<std::uint8_t>(loop_.backend().kind),
        .watch = &watch,
        .take_event = &take_event,
        .wait = &wait,
        .wake = &wake,
        .detach = &detach};
    if (const int error = open_guest(calls, guest_); error != 0)
      return std::unexpected(system_error(error));
    before_wait_.start();
    after_wait_.start();
    message_.start();
    forked_.start();
    closing_.start();
    return {};
  }
  /// Destroys the guest.
  void close() {
    if (guest_.loop != nullptr) guest_.destroy(guest_.loop);
  }
  [[nodiscard]] void* guest() const noexcept { return guest_.loop; }

 private:
  /// While the guest waits inside a function of its own, its callbacks must not run.
  class Waiting {
   public:
    explicit Waiting(DropInHost& host) : host_(host) {
      ++host_.waits_;
      host_.loop_.ref();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() {
      host_.loop_.unref();
      --host_.waits_;
    }

   private:
    DropInHost& host_;
  };
  static constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

  static DropInHost& of(void* data) noexcept { return *static_cast<DropInHost*>(data); }

  static int watch(void* data, int fd, std::uint16_t events, bool edge_triggered,
                   tambour::detail::FileIdentity identity) noexcept {
    try {
      return of(data).watch(fd, Events(events), edge_triggered ? Trigger::edge : Trigger::level,
                            identity);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
  }
  int watch(int fd, Events events, Trigger trigger, tambour::detail::FileIdentity identity) {
    if (is_released_) return events == Events::none ? 0 : ENODEV;
    return descriptors_.watch(fd, events, trigger, identity);
  }
  static bool take_event(void* data, int* fd, std::int32_t* result) noexcept {
    return of(data).descriptors_.take_event(*fd, *result);
  }

  static bool wait(void* data, std::int64_t timeout_ns) {
    DropInHost& self = of(data);
    if (self.is_released_) return false;
    const Waiting waiting(self);
    if (timeout_ns == 0) {
      self.loop_.run_ready();
      return true;
    }
    if (timeout_ns < 0) {
      self.runner_.stop();
    } else {
      self.runner_.start(Duration(timeout_ns));
    }
    self.loop_.run_once();
    return true;
  }
  static void wake(void* data) noexcept { of(data).message_.send(); }

  static void detach(void* data) noexcept {
    DropInHost& self = of(data);
    self.guest_ = {};
    if (!self.is_released_) self.release();
    self.is_released_ = false;
  }
  /// Stops everything: the EventLoop or the guest is being destroyed.
  void release() noexcept {
    is_released_ = true;
    before_wait_.stop();
    after_wait_.stop();
    runner_.stop();
    message_.stop();
    forked_.stop();
    closing_.stop();
    descriptors_.clear();
  }

  void prepare() {
    if (waits_ != 0) return;
    bool must_run = false;
    const std::int64_t deadline_ns = guest_.prepare(guest_.loop, &must_run);
    must_run_ = must_run;
    set_deadline(deadline_ns);
  }
  /// Runs after the wait, before the timers.
  void schedule() {
    if (guest_.update_time != nullptr) guest_.update_time(guest_.loop);
    if (waits_ != 0) return;
    if (must_run_ || (!descriptors_.is_empty() && pending_count(loop_) != 0))
      runner_.start_at(loop_.now());
  }
  void run(bool is_message) {
    if (waits_ != 0) return;
    if (is_message || must_run_ || descriptors_.has_event() || deadline_ns_ <= now_ns()) {
      if (guest_.run(guest_.loop)) loop_.stop();
    }
    // A callback may have destroyed the guest. A host of the loop asks for its deadline next.
    if (guest_.loop != nullptr && !is_released_) set_deadline(guest_.deadline(guest_.loop));
  }
  [[nodiscard]] std::int64_t now_ns() const noexcept {
    return loop_.now().time_since_epoch().count();
  }
  void set_deadline(std::int64_t deadline_ns) {
    if (guest_.loop == nullptr || is_released_) return;
    deadline_ns_ = deadline_ns;
    if (deadline_ns == no_deadline) {
      runner_.stop();
    } else {
      runner_.start_at(TimePoint(Duration(deadline_ns)));
    }
  }

  EventLoop& loop_;
  tambour::detail::GuestCalls guest_;
  GuestDescriptors descriptors_;
  Prepare before_wait_;
  Check after_wait_;
  Timer runner_;
  Async message_;
  ForkHook forked_;
  CleanupHook closing_;
  std::int64_t deadline_ns_ = no_deadline;
  int waits_ = 0;
  bool must_run_ = false;
  bool is_released_ = false;  ///< The EventLoop was destroyed before the guest.
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
