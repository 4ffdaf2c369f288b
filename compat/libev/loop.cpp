// One iteration of a libev loop: in the order of libev's ev_run(), hooks, the wait, timers,
// periodics, and the pending callbacks.
#include "loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/system_call.h"
#include "common/hosted_backend.h"
#include "common/observation.h"

namespace tambour::libev {
namespace {

/// How often the wall clock is checked, in seconds, if the kernel cannot report that it was set.
constexpr ev_tstamp longest_unwatched_wait = 59.743;

/// Rounds up and adds a margin, because a timer is due only after its time has passed. A negative
/// result means no timeout.
std::int64_t nanoseconds(ev_tstamp seconds) noexcept {
  constexpr ev_tstamp longest = 1e9;
  if (!(seconds > 0.)) return 0;
  if (seconds >= longest) return -1;
  constexpr std::int64_t margin_ns = 500;
  return static_cast<std::int64_t>(std::ceil(seconds * 1e9)) + margin_ns;
}

constexpr ev_tstamp without_end = 1e13;

}  // namespace

[[gnu::always_inline]] inline ev_tstamp Loop::time_to_deadline() noexcept {
  ev_tstamp seconds = without_end;
  if (!timers.empty()) seconds = std::min(seconds, timers.next() - clock.monotonic);
  if (!periodics.empty()) {
    seconds = std::min(seconds, periodics.next() - clock.wall);
    if (!timerfd_.is_open()) seconds = std::min(seconds, longest_unwatched_wait);
  }
  return std::max(seconds, timeout_interval);
}

/// What follows the wait. `was_fed`: the messenger was pending before it.
[[gnu::always_inline]] inline void Loop::take_results(bool was_fed) noexcept {
  if (!was_fed && messenger_.pending != 0) feed_wakeup_last();
  ready_.reset_any_ran();
  if (!ready_.empty()) ready_.run_all();
  if (messages_.load(std::memory_order_acquire)) {
    messages_.store(false, std::memory_order_seq_cst);
    pendings.feed(base_of(&messenger_), EV_CUSTOM);
  }
  update_time();
}

/// The first part of an iteration. Returns false if a callback has called ev_break().
[[gnu::always_inline]] inline bool Loop::invoke_before_wait() {
  if ((flags & EVFLAG_FORKCHECK) != 0 && ::getpid() != process) [[unlikely]] {
    process = ::getpid();
    forked = true;
  }
  if (forked && forks.count() != 0) [[unlikely]] {
    forks.feed_all(pendings, EV_FORK);
    invoke_pending();
  }
  if (prepares.count() != 0) [[unlikely]] {
    prepares.feed_all(pendings, EV_PREPARE);
    invoke_pending();
  }
  if (break_how != EVBREAK_CANCEL) return false;
  if (forked) [[unlikely]]
    reopen();
  return true;
}

/// The last part of an iteration.
[[gnu::always_inline]] inline void Loop::expire_and_invoke() {
  timers.expire();
  periodics.expire();
  if (idle_count != 0) feed_idles();
  if (checks.count() != 0) checks.feed_all(pendings, EV_CHECK);
  invoke_pending();
}

int Loop::run(int mode) {
  ++depth;
  break_how = EVBREAK_CANCEL;
  invoke_pending();
  do {
    if (!invoke_before_wait()) break;
    wait(mode);
    expire_and_invoke();
  } while (references != 0 && break_how == EVBREAK_CANCEL &&
           (mode & (EVRUN_ONCE | EVRUN_NOWAIT)) == 0);
  if (break_how == EVBREAK_ONE) break_how = EVBREAK_CANCEL;
  if (--depth == 0) poller->release_unwatched_fds();
  return references;
}

void Loop::wait(int mode) {
  const bool timed = !timers.empty() || !periodics.empty();
  const bool may_block = (mode & EVRUN_NOWAIT) == 0 && idle_count == 0 && references != 0;
  ++iterations;
  signals.before_wait();
  ev_tstamp seconds = 0.;
  if (may_block) {
    const ev_tstamp before = clock.monotonic;
    // Without deadlines the time is not needed before the wait.
    if (timed || io_interval > 0.) update_time();
    seconds = time_to_wait(before);
  }
  const bool was_fed = messenger_.pending != 0;
  poll(seconds);
  take_results(was_fed);
}

std::int64_t Loop::prepare_for_host() {
  ++depth;
  break_how = EVBREAK_CANCEL;
  const bool goes_on = invoke_before_wait();
  --depth;
  ++iterations;
  signals.before_wait();
  return goes_on ? deadline_for_host() : 0;
}

std::int64_t Loop::deadline_for_host() noexcept {
  descriptors.begin_poll();
  hosted->collect(ready_);
  if (ready_.any_came() || idle_count != 0 || pendings.count() != 0) return 0;
  if (messages_.load(std::memory_order_seq_cst)) return 0;
  if (timers.empty() && periodics.empty()) return INT64_MAX;
  update_time();
  const std::int64_t timeout_ns = nanoseconds(time_to_deadline());
  if (timeout_ns < 0) return INT64_MAX;
  return static_cast<std::int64_t>(clock.monotonic * 1e9) + timeout_ns;
}

bool Loop::run_for_host() {
  ++depth;
  const bool was_broken = break_how != EVBREAK_CANCEL;  // By a callback of prepare_for_host().
  const bool was_fed = messenger_.pending != 0;
  descriptors.begin_poll();
  hosted->collect(ready_);
  take_results(was_fed);
  expire_and_invoke();
  const bool is_broken = was_broken || break_how != EVBREAK_CANCEL;
  break_how = EVBREAK_CANCEL;
  if (--depth == 0) poller->release_unwatched_fds();
  return is_broken;
}

ev_tstamp Loop::time_to_wait(ev_tstamp before) noexcept {
  ev_tstamp seconds = time_to_deadline();
  // If a message was sent, there is no pause.
  if (io_interval > 0. && !messages_.load(std::memory_order_relaxed)) [[unlikely]] {
    const ev_tstamp pause = std::min(io_interval - (clock.monotonic - before), seconds);
    if (pause > 0.) {
      ev_sleep(pause);
      seconds -= pause;
    }
  }
  return seconds;
}

void Loop::poll(ev_tstamp seconds) noexcept {
  std::int64_t timeout_ns = nanoseconds(seconds);
  if (timeout_ns != 0) {
    needs_wakeup_.store(true, std::memory_order_seq_cst);
    if (messages_.load(std::memory_order_seq_cst)) timeout_ns = 0;
  }
  if ((release_cb != nullptr || acquire_cb != nullptr) && hosted == nullptr) [[unlikely]] {
    poll_released(timeout_ns);
  } else {
    descriptors.begin_poll();
    poller->poll(timeout_ns, ready_);
  }
  needs_wakeup_.store(embedded_, std::memory_order_relaxed);
}

/// While the loop is released, other threads may start and stop watchers. Therefore this function
/// does not access the loop's data in the meantime, and only waits until there is an event.
void Loop::poll_released(std::int64_t timeout_ns) noexcept {
  descriptors.begin_poll();
  poller->poll(0, ready_);
  bool block = timeout_ns != 0 && !ready_.any_came();
  const int count = block ? list_descriptors() : 0;
  // list_descriptors() may have consumed the wakeup of a message.
  if (messages_.load(std::memory_order_seq_cst)) block = false;
  if (release_cb != nullptr) release_cb(handle());
  if (block) {
    const timespec timeout = detail::base::to_timespec(timeout_ns < 0 ? 0 : timeout_ns);
    detail::base::system_call(detail::base::Call::ppoll, ::ppoll, &released_[0],
                              static_cast<nfds_t>(count), timeout_ns < 0 ? nullptr : &timeout,
                              nullptr);
  }
  if (acquire_cb != nullptr) acquire_cb(handle());
  if (!block) return;
  descriptors.begin_poll();
  poller->poll(0, ready_);
}

/// Lists what poll_released() waits for: the backend's descriptor, or if it has none, all watched
/// descriptors and the eventfd that wakes up the loop.
int Loop::list_descriptors() noexcept {
  released_.need(1);
  if (const auto descriptor = poller->fd()) {
    released_[0] = {.fd = *descriptor, .events = POLLIN, .revents = 0};
    return 1;
  }
  std::uint64_t wakes;
  detail::base::system_call(detail::base::Call::eventfd_read, ::read, waker_.get(), &wakes,
                            sizeof wakes);
  int count = 0;
  released_[count++] = {.fd = waker_.get(), .events = POLLIN, .revents = 0};
  descriptors.for_each([&](int fd, const FdRecord& record) {
    if (record.first == nullptr) return;
    released_.need(count + 1);
    released_[count++] = {.fd = fd, .events = static_cast<short>(record.events), .revents = 0};
  });
  return count;
}

void Loop::prepare_to_be_released() noexcept {
  // Other threads may start the first ev_async watcher while the loop waits.
  accept_messages();
  if (poller->fd()) return;
  waker_ = UniqueFd(detail::base::system_call(detail::base::Call::eventfd, ::eventfd, 0,
                                              EFD_CLOEXEC | EFD_NONBLOCK));
}

void Loop::accept_messages() noexcept {
  if (accepts_messages_) return;
  if (auto opened = poller->open_wake_up(); !opened) {
    errno = opened.error().value();
    system_error_occurred("(libev) error creating signal/async pipe");
    return;
  }
  accepts_messages_ = true;
}

void Loop::wake_up() noexcept {
  // Dekker-style handshake: the loop publishes `needs_wakeup_` and then checks `messages_`; the
  // sender publishes `messages_` and then checks `needs_wakeup_`. With sequentially consistent
  // operations at least one of them sees the other.
  messages_.store(true, std::memory_order_seq_cst);
  if (!needs_wakeup_.load(std::memory_order_seq_cst)) return;
  poller->wake();
  if (!waker_.is_open()) return;
  const int saved = errno;
  const std::uint64_t one = 1;
  detail::base::system_call(detail::base::Call::eventfd_write, ::write, waker_.get(), &one,
                            sizeof one);
  errno = saved;
}

/// Makes the messenger the first callback of the iteration, so that messages sent by callbacks are
/// processed in the next iteration.
void Loop::feed_wakeup_last() noexcept {
  if (pendings.is_last(base_of(&messenger_))) return;
  pendings.feed(base_of(&messenger_), take_back(&messenger_));
}

void Loop::feed_idles() noexcept {
  for (int priority = EV_MAXPRI; priority >= EV_MINPRI; --priority) {
    if (pendings.any(priority)) return;
    Watchers<ev_idle>& those = idles[priority - EV_MINPRI];
    if (those.count() == 0) continue;
    those.feed_all(pendings, EV_IDLE);
    return;
  }
}

void Loop::start_own(ev_io& io, int fd) noexcept {
  ev_io_set(&io, fd, EV_READ);
  io.active = active_own;
  descriptors.add(io);
}

void Loop::stop_own(ev_io& io) noexcept {
  take_back(&io);
  if (io.active == 0) return;
  descriptors.remove(io);
  io.active = 0;
}

void Loop::on_message(struct ev_loop* loop, ev_io*, int events) {
  loop->take_messages((events & EV_READ) != 0);
}

void Loop::take_messages(bool fd_is_readable) noexcept {
  messages_.store(false, std::memory_order_seq_cst);
  signals.take_messages(fd_is_readable);
  if (observed != nullptr) compat::observer()->answer(observed);
  if (!async_sent.exchange(false, std::memory_order_seq_cst)) return;
  for (int i = asyncs.count(); i-- > 0;) {
    ev_async* const async = asyncs[i];
    if (__atomic_exchange_n(&async->sent, 0, __ATOMIC_SEQ_CST) == 0) continue;
    pendings.feed(base_of(async), EV_ASYNC);
  }
}

void Loop::watch_wall_clock() noexcept {
  if (!use_timerfd_ || timerfd_.is_open()) return;
  open_timerfd();
}

void Loop::open_timerfd() noexcept {
  using detail::base::Call;
  timerfd_ = UniqueFd(detail::base::system_call(Call::timerfd_create, ::timerfd_create,
                                                CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timerfd_.is_open()) {
    use_timerfd_ = false;
    return;
  }
  ev_init(&timerfd_io_, &on_wall_clock_set);
  ev_set_priority(&timerfd_io_, EV_MINPRI);
  start_own(timerfd_io_, timerfd_.get());
  arm_timerfd();
  // The clock is read again, because changes before this point are not reported.
  clock.synchronise();
}

/// Arms the timer for the latest possible time: only its cancellation matters.
void Loop::arm_timerfd() noexcept {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<std::int32_t>::max();
  constexpr int mode = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
  const auto arm = [&] {
    return detail::base::system_call(detail::base::Call::timerfd_set, ::timerfd_settime,
                                     timerfd_.get(), mode, &never, nullptr);
  };
  // ECANCELED: the clock was set since it was last read. The callers read it again.
  if (arm() != 0 && errno == ECANCELED) arm();
}

void Loop::on_wall_clock_set(struct ev_loop* loop, ev_io*, int) {
  std::uint64_t expirations;
  detail::base::system_call(detail::base::Call::timerfd_read, ::read, loop->timerfd_.get(),
                            &expirations, sizeof expirations);
  loop->arm_timerfd();
  loop->clock.synchronise();
  loop->periodics.reschedule();
}

}  // namespace tambour::libev
