// ev_signal: the process-wide table of signals, and how a loop receives them: by the signal
// handler, or by a signalfd.
#include "signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>

#include "base/check.h"
#include "loop.h"

namespace tambour::libev {
namespace {

using SignalSlot = tambour::detail::events::SignalSlot;

/// The loop that a signal belongs to. Signal handlers may read `loop` at any time.
struct Owner {
  std::atomic<Loop*> loop{nullptr};
  ev_signal* first = nullptr;
};
std::array<Owner, SignalSlot::number_max + 1> owners;

/// The signals that have arrived and were not processed by a loop. As in libev, they belong to no
/// loop: a signal that arrives before its last watcher is stopped stays here until it has a watcher
/// again whose loop processes messages.
std::atomic<std::uint64_t> arrived{0};

Owner& owner_of(int number) noexcept { return owners[static_cast<std::size_t>(number)]; }

bool is_signal(int number) noexcept { return number > 0 && number <= SignalSlot::number_max; }

ev_signal* after(const ev_signal* watcher) noexcept {
  return reinterpret_cast<ev_signal*>(watcher->next);
}

void set_mask(int mode, int number) noexcept {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  ::pthread_sigmask(mode, &one, nullptr);
}

}  // namespace

Signals::Signals(Loop& loop, bool use_signalfd) noexcept
    : loop_(loop), use_signalfd_(use_signalfd) {
  ev_init(&signalfd_io_, &on_signalfd);
  ev_set_priority(&signalfd_io_, EV_MAXPRI);
  sigemptyset(&blocked_);
}

Signals::~Signals() {
  // Watchers that outlive their loop are never invoked again. Their signals stay caught or blocked,
  // as in libev, so that a signal during shutdown does not terminate the process.
  for (Owner& owner : owners) {
    if (owner.loop.load() != &loop_) continue;
    owner.first = nullptr;
    owner.loop = nullptr;
  }
  if (slot_ != nullptr) slot_->release();
}

void Signals::add(ev_signal& watcher) noexcept {
  const int number = watcher.signum;
  detail::base::check(is_signal(number), "ev_signal_start: illegal signal number");
  Owner& owner = owner_of(number);
  Loop* const whose = owner.loop.load();
  detail::base::check(whose == nullptr || whose == &loop_,
                      "ev_signal_start: a signal must not be attached to two different loops");
  owner.loop = &loop_;
  loop_.start(&watcher, 1);
  watcher.next = reinterpret_cast<ev_watcher_list*>(owner.first);
  owner.first = &watcher;
  if (watcher.next == nullptr) install(number);
}

void Signals::remove(ev_signal& watcher) noexcept {
  const int number = watcher.signum;
  Owner& owner = owner_of(number);
  ev_signal* before = nullptr;
  ev_signal* entry = owner.first;
  while (entry != nullptr && entry != &watcher) entry = after(before = entry);
  if (entry != nullptr && before == nullptr) owner.first = after(&watcher);
  if (entry != nullptr && before != nullptr) before->next = watcher.next;
  loop_.stop(&watcher);
  if (owner.first != nullptr) return;
  uninstall(number);
  owner.loop = nullptr;
}

void Signals::install(int number) noexcept {
  if (use_signalfd_ && open_signalfd()) {
    sigaddset(&blocked_, number);
    set_mask(SIG_BLOCK, number);
    ::signalfd(signalfd_.get(), &blocked_, 0);
    return;
  }
  if (!open_slot()) return;
  // A signal that cannot be caught (SIGKILL) is never received.
  if (!slot_->watch(number)) return;
  by_slot_ |= SignalSlot::bit_of(number);
  // libev does the opposite of what its manual says. Do the same, because programs were tested with
  // libev.
  if ((loop_.flags & EVFLAG_NOSIGMASK) != 0) set_mask(SIG_UNBLOCK, number);
}

void Signals::uninstall(int number) noexcept {
  if (signalfd_.is_open() && sigismember(&blocked_, number) == 1) {
    sigdelset(&blocked_, number);
    ::signalfd(signalfd_.get(), &blocked_, 0);
    set_mask(SIG_UNBLOCK, number);
    return;
  }
  if ((by_slot_ & SignalSlot::bit_of(number)) == 0) return;
  by_slot_ &= ~SignalSlot::bit_of(number);
  if (slot_->unwatch(number)) {
    arrived.fetch_or(SignalSlot::bit_of(number), std::memory_order_seq_cst);
    any_arrived_.store(true, std::memory_order_seq_cst);
    loop_.wake_up();
  }
  // As documented, the previous disposition is not restored.
  std::signal(number, SIG_DFL);
}

bool Signals::open_slot() noexcept {
  if (slot_ != nullptr) return true;
  auto taken = SignalSlot::acquire();
  if (!taken) {
    errno = taken.error().value();
    system_error_occurred("(libev) error creating signal/async pipe");
    return false;
  }
  slot_ = *taken;
  loop_.watch_for_messages(slot_->fd());
  loop_.accept_messages();  // For raise().
  return true;
}

bool Signals::open_signalfd() noexcept {
  if (signalfd_.is_open()) return true;
  signalfd_ = UniqueFd(::signalfd(-1, &blocked_, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signalfd_.is_open()) {
    use_signalfd_ = false;
    return false;
  }
  loop_.start_own(signalfd_io_, signalfd_.get());
  return true;
}

void Signals::on_signalfd(struct ev_loop* loop, ev_io*, int) { loop->signals.read_signalfd(); }

void Signals::read_signalfd() noexcept {
  std::array<signalfd_siginfo, 16> infos;
  for (;;) {
    const ssize_t bytes = ::read(signalfd_.get(), infos.data(), sizeof infos);
    if (bytes <= 0) return;
    const auto count = static_cast<std::size_t>(bytes) / sizeof infos[0];
    for (std::size_t i = 0; i < count; ++i) feed(static_cast<int>(infos[i].ssi_signo));
    if (count < infos.size()) return;
  }
}

void Signals::feed(int number) noexcept {
  if (!is_signal(number) || owner_of(number).loop.load() != &loop_) return;
  const std::uint64_t others = ~SignalSlot::bit_of(number);
  arrived.fetch_and(others, std::memory_order_seq_cst);
  if (slot_ != nullptr) slot_->clear_pending(number);
  for (ev_signal* entry = owner_of(number).first; entry != nullptr; entry = after(entry))
    loop_.pendings.feed(base_of(entry), EV_SIGNAL);
}

void Signals::raise(int number) noexcept {
  if (!is_signal(number)) return;
  Loop* const loop = owner_of(number).loop.load();
  if (loop == nullptr) return;
  arrived.fetch_or(SignalSlot::bit_of(number), std::memory_order_seq_cst);
  loop->signals.any_arrived_.store(true, std::memory_order_seq_cst);
  loop->wake_up();
}

void Signals::take_messages(bool fd_is_readable) noexcept {
  bool any = any_arrived_.exchange(false, std::memory_order_seq_cst);
  if (slot_ != nullptr && (fd_is_readable || slot_->any_pending())) {
    any = true;
    arrived.fetch_or(slot_->take_pending(), std::memory_order_seq_cst);
  }
  if (!any) return;
  std::uint64_t come = arrived.load(std::memory_order_seq_cst);
  // The highest number first, because pending watchers are invoked latest first.
  while (come != 0) {
    const int number = static_cast<int>(std::bit_width(come));
    come &= ~SignalSlot::bit_of(number);
    feed(number);
  }
}

void Signals::disown_if_lost(bool has_all) noexcept {
  had_signalfd_ = signalfd_.is_open();
  if (slot_ != nullptr) slot_->disown_if_lost();
  if (!has_all) static_cast<void>(signalfd_.release());
}

void Signals::reopen() noexcept {
  if (slot_ != nullptr) {
    loop_.unwatch_messages();
    static_cast<void>(slot_->reopen());
    loop_.watch_for_messages(slot_->fd());
  }
  if (had_signalfd_) {
    loop_.stop_own(signalfd_io_);
    signalfd_.reset();
    open_signalfd();
  }
}

ev_signal* Signals::first_of(int number) noexcept { return owner_of(number).first; }

}  // namespace tambour::libev

void ev_signal_start(struct ev_loop* loop, ev_signal* w) noexcept {
  if (w->active == 0) loop->signals.add(*w);
}

void ev_signal_stop(struct ev_loop* loop, ev_signal* w) noexcept {
  loop->take_back(w);
  if (w->active != 0) loop->signals.remove(*w);
}

void ev_feed_signal(int signum) noexcept { tambour::libev::Signals::raise(signum); }

void ev_feed_signal_event(struct ev_loop* loop, int signum) noexcept { loop->signals.feed(signum); }

void ev_async_start(struct ev_loop* loop, ev_async* w) noexcept {
  if (w->active != 0) return;
  loop->accept_messages();
  w->sent = 0;
  loop->start(w, loop->asyncs.add(w));
}

void ev_async_stop(struct ev_loop* loop, ev_async* w) noexcept {
  loop->take_back(w);
  if (w->active == 0) return;
  loop->asyncs.remove(w);
  loop->stop(w);
}

void ev_async_send(struct ev_loop* loop, ev_async* w) noexcept {
  __atomic_store_n(&w->sent, 1, __ATOMIC_SEQ_CST);
  // One wakeup suffices until the loop takes its messages.
  if (loop->async_sent.exchange(true, std::memory_order_seq_cst)) return;
  loop->wake_up();
}
