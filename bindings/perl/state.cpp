// State: the loop of an interpreter, which exists once for each thread of Perl, and its end in
// forked processes.
#include "state.h"

#include <pthread.h>

namespace tambour::perl {
namespace {

#ifdef MULTIPLICITY
#define INTERPRETER , my_perl
#else
#define INTERPRETER
#endif

constexpr std::int64_t ns_per_s = 1'000'000'000;

/// The number of forks since the module was loaded, counted in child processes.
unsigned forks = 0;

void count_fork() { ++forks; }

std::int64_t wall_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * ns_per_s + now.tv_nsec;
}

struct Context {
  State* state;
  bool is_thread;  ///< The interpreter is a clone: it belongs to a Perl thread.
  bool is_ending;
  destroyable_proc_t next_destroy_hook;
};

}  // namespace

#define MY_CXT_KEY "Tambour::_guts" XS_VERSION
using my_cxt_t = Context;
START_MY_CXT

namespace {

/// Perl calls this hook before DESTROY of an object. Destroying a watcher here avoids the call of
/// DESTROY, which is most of the cost of freeing a watcher. If other code replaces the hook
/// (threads::shared does), Perl calls DESTROY, which does the same.
bool end_without_destroy(pTHX_ SV* sv) {
  dMY_CXT;
  State* const state = MY_CXT.state;
  if (state != nullptr && SvTYPE(sv) == SVt_PVMG) {
    const HV* const stash = SvSTASH(sv);
    if (stash == state->stash(Kind::io) || stash == state->stash(Kind::timer)) {
      end(aTHX_ * state, sv);
      return false;
    }
  }
  return MY_CXT.next_destroy_hook(aTHX_ sv);
}

/// Closes the loop of a thread when the thread ends, because it must be closed on its own thread.
/// The interpreter is destroyed later, by the thread that joins this one.
class ThreadEnd {
 public:
  ~ThreadEnd() {
    if (state_ != nullptr) state_->close();
  }
  void set(State* state) noexcept { state_ = state; }

 private:
  State* state_ = nullptr;
};
thread_local ThreadEnd thread_end;

void end_interpreter(pTHX_ void*) {
  dMY_CXT;
  // A detached thread destroys its interpreter itself, and its loop is still open.
  if (MY_CXT.state != nullptr && !MY_CXT.state->closed()) {
    thread_end.set(nullptr);
    MY_CXT.state->close();
  }
  MY_CXT.is_ending = true;
  // Objects are destroyed after this hook; the last watcher frees the state.
  if (MY_CXT.state != nullptr && !MY_CXT.state->has_watchers())
    delete std::exchange(MY_CXT.state, nullptr);
}

}  // namespace

void watcher_ended(pTHX_ State& state) noexcept {
  state.remove_watcher();
  if (state.has_watchers()) [[likely]]
    return;
  dMY_CXT;
  if (MY_CXT.is_ending) delete std::exchange(MY_CXT.state, nullptr);
}

State& state(pTHX) {
  dMY_CXT;
  if (MY_CXT.state != nullptr) [[likely]] {
    if (MY_CXT.state->closed()) croak("Tambour: the loop of this thread is closed");
    return *MY_CXT.state;
  }
  // croak() does not run destructors, so it is called outside the try block.
  char reason[160] = "";
  try {
    MY_CXT.state = new State(aTHX);
    if (MY_CXT.is_thread) thread_end.set(MY_CXT.state);
  } catch (const std::exception& refused) {
    std::strncpy(reason, refused.what(), sizeof reason - 1);
  }
  if (MY_CXT.state == nullptr) croak("Tambour: cannot open a loop: %s", reason);
  return *MY_CXT.state;
}

State* state_if_any(pTHX) noexcept {
  dMY_CXT;
  return MY_CXT.state;
}

void boot(pTHX) {
  static bool counts_forks = false;
  if (!std::exchange(counts_forks, true)) pthread_atfork(nullptr, nullptr, count_fork);
  MY_CXT_INIT;
  MY_CXT.state = nullptr;
  MY_CXT.is_thread = MY_CXT.is_ending = false;
  MY_CXT.next_destroy_hook = PL_destroyhook;
  PL_destroyhook = end_without_destroy;
}

void boot_clone(pTHX) {
  MY_CXT_CLONE;
  // The new thread gets its own loop and no watchers (Tambour::Watcher::CLONE_SKIP).
  MY_CXT.state = nullptr;
  MY_CXT.is_thread = true;
  MY_CXT.is_ending = false;
  perl_atexit(end_interpreter, nullptr);
}

State::State(pTHX)
    : loop_(std::in_place),
      signal_check_(*loop_,
                    [this INTERPRETER] {
                      if (PL_sig_pending) loop_->stop();
                    }),
      forks_seen_(forks),
      compared_ns_(loop_->now().time_since_epoch().count()),
      run_callbacks_(reinterpret_cast<SV*>(get_cv("Tambour::_run_callbacks", 0))),
      sent_key_(newSVpvn_share("_ae_sent", 8, 0)) {
  constexpr const char* names[kinds] = {
      "Tambour::Watcher", "Tambour::IO",    "Tambour::Timer",   "Tambour::Wall", "Tambour::Signal",
      "Tambour::Child",   "Tambour::Stat",  "Tambour::Idle",    "Tambour::Fork", "Tambour::Async",
      "Tambour::Prepare", "Tambour::Check", "Tambour::Cleanup",
  };
  for (std::size_t i = 0; i < kinds; ++i) stashes_[i] = gv_stashpv(names[i], GV_ADD);
  signal_check_.start();
  loop_->unref();
  update_now();
}

void State::notice_fork(pTHX) {
  if (forks_seen_ == forks) [[likely]]
    return;
  if (auto reopened = loop_->after_fork(); !reopened)
    croak("Tambour: cannot reopen the loop after fork: %s",
          std::strerror(reopened.error().value()));
  forks_seen_ = forks;
}

NV State::now() noexcept {
  const std::int64_t loop_ns = loop_->now().time_since_epoch().count();
  // The wall clock may be set or slewed, so the offset is measured again periodically.
  if (loop_ns - compared_ns_ > ns_per_s / 2) {
    wall_minus_loop_ns_ = wall_ns() - Clock::now().time_since_epoch().count();
    compared_ns_ = loop_ns;
  }
  return NV(loop_ns + wall_minus_loop_ns_) / NV(ns_per_s);
}

void State::update_now() noexcept {
  loop_->update_now();
  compared_ns_ = loop_->now().time_since_epoch().count();
  wall_minus_loop_ns_ = wall_ns() - compared_ns_;
}

Result<> State::watch_any_child(ChildWatch& watch) {
  if (watch.any_started) return {};
  if (any_child_ == nullptr) {
    any_child_ = std::make_unique<Child>(*loop_, any_child, [this](const ChildStatus& status) {
      for (ChildWatch* any_watch : any_watches_) any_watch->note(status.pid, wait_status(status));
    });
  }
  if (auto started = any_child_->start(); !started) return started;
  any_watches_.push_back(&watch);
  watch.any_started = true;
  return {};
}

void State::unwatch_any_child(ChildWatch& watch) noexcept {
  if (!std::exchange(watch.any_started, false)) return;
  std::erase(any_watches_, &watch);
  if (any_watches_.empty()) any_child_->stop();
}

void State::report_to_any_child(const ChildWatch& named, int status) {
  if (named.any_reported) return;
  const pid_t pid = named.child.pid();
  for (ChildWatch* child_watch : named_children_)
    child_watch->any_reported |= child_watch->child.pid() == pid;
  for (ChildWatch* any_watch : any_watches_) any_watch->note(pid, status);
}

void State::run(pTHX_ Until until, HV* condvar) {
  Run run{.until = until, .condvar = condvar};
  // Preserve the program's $@, which eval would clear.
  SV* const error = SvTRUE(ERRSV) ? sv_2mortal(newSVsv(ERRSV)) : nullptr;
  for (;;) {
    run_ = &run;
    dSP;
    PUSHMARK(SP);
    // One eval for all callbacks: one per callback would double the cost of a call.
    call_sv(run_callbacks_, G_DISCARD | G_VOID | G_EVAL | G_NOARGS);
    if (SvTRUE(ERRSV)) report_death(aTHX);
    if (run.over) break;
    // Outside the eval, so that an exception here propagates out of the program's recv or run.
    if (std::exchange(run.interrupted, false)) {
      notice_fork(aTHX);
      const bool signalled = PL_sig_pending != 0;
      PERL_ASYNC_CHECK();
      if (signalled && (until == Until::once || until == Until::polled)) break;
    }
  }
  if (until == Until::once) stop_ = false;
  if (error != nullptr) sv_setsv(ERRSV, error);
}

void State::run_unguarded(pTHX) {
  Run& run = *run_;
  dSP;
  // A separate stack, so that `last` in a callback does not leave a loop of the program.
  PUSHSTACKi(PERLSI_UNKNOWN);
  if (run.until == Until::cleaned) call_cleanups(aTHX);
  // Callbacks still due from an outer run, or after a callback that died.
  if (run.until == Until::stopped || run.until == Until::sent || run.gathered) call_due(aTHX);
  while (!is_over(aTHX_ run)) {
    poll_loop(aTHX_ run);
    if (run.interrupted) break;
    run.gathered = true;
    run.nothing_came = due_.empty();
    call_due(aTHX);
  }
  run.over = !run.interrupted;
  POPSTACK;
}

bool State::is_over(pTHX_ const Run& run) {
  switch (run.until) {
    case Until::sent:
      return hv_exists_ent(run.condvar, sent_key_, SvSHARED_HASH(sent_key_)) != 0;
    case Until::stopped:
      // stats() is linear in the number of timers, so it is called only if nothing was due.
      return std::exchange(stop_, false) || (run.nothing_came && loop_->stats().references <= 0);
    case Until::cleaned:
      return true;
    default:
      return run.gathered;
  }
}

void State::call_due(pTHX) {
  while (SV* const self = due_.take()) invoke(aTHX_ * this, self);
}

void State::call_cleanups(pTHX) {
  // Each callback may destroy other watchers.
  while (!cleanups_.empty()) {
    SV* const self = cleanups_.front();
    handle_as<RunHook>(self).stop();
    invoke(aTHX_ * this, self);
  }
}

void State::poll_loop(pTHX_ Run& run) {
  if (!prepares_.empty()) [[unlikely]] {
    for (SV* self : prepares_) note(self);
    call_due(aTHX);
  }
  run.interrupted = PL_sig_pending != 0 || forks_seen_ != forks;
  if (run.interrupted) return;
  wait(run.until);
  if (!checks_.empty()) [[unlikely]]
    due_.add_first(checks_);
  // If callbacks are due, Perl handles pending signals itself.
  run.interrupted = PL_sig_pending != 0 && due_.empty();
}

void State::wait(Until until) noexcept {
  if (until == Until::ready || !due_.empty()) {
    loop_->run_ready();
    return;
  }
  const bool wait_always = until == Until::sent || until == Until::polled;
  if (wait_always) loop_->ref();
  loop_->run_once();
  if (wait_always) loop_->unref();
}

void State::report_death(pTHX) {
  dSP;
  PUSHMARK(SP);
  call_sv(get_sv("Tambour::DIED", GV_ADD), G_DISCARD | G_VOID | G_EVAL | G_KEEPERR | G_NOARGS);
}

}  // namespace tambour::perl
