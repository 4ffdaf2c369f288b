// The Perl functions, which call make.h, watcher.h and state.h.
#include "make.h"

using namespace tambour;
using namespace tambour::perl;

namespace {

SV* self_of(pTHX_ SV* reference, Kind kind) { return watcher_of(aTHX_ reference, kind); }

Events events_of(IV events) noexcept { return static_cast<Events>(events); }

/// Stores the thirteen values of Perl's stat, or none if the file does not exist. Returns their
/// number.
int put_status(pTHX_ const FileState& state, SV** target) {
  if (!state.exists) return 0;
  const struct stat& s = state.status;
  const NV values[] = {NV(s.st_dev),   NV(s.st_ino),   NV(s.st_mode), NV(s.st_nlink), NV(s.st_uid),
                       NV(s.st_gid),   NV(s.st_rdev),  NV(s.st_size), NV(s.st_atime), NV(s.st_mtime),
                       NV(s.st_ctime), NV(s.st_blksize), NV(s.st_blocks)};
  int count = 0;
  for (const NV value : values) target[count++] = sv_2mortal(newSVnv(value));
  return count;
}

/// The function that Tambour::Async::signal_func returns, for other XS modules.
void send_async(void* async, int) { static_cast<Async*>(async)->send(); }

}  // namespace

MODULE = Tambour  PACKAGE = Tambour

PROTOTYPES: DISABLE

BOOT:
  boot(aTHX);

void
CLONE(...)
  CODE:
    PERL_UNUSED_VAR(items);
    boot_clone(aTHX);

void
_run_callbacks(...)
  CODE:
    PERL_UNUSED_VAR(items);
    state(aTHX).run_unguarded(aTHX);
    XSRETURN_EMPTY;

void
io(SV* handle, IV events, SV* callback)
  PROTOTYPE: $$$
  CODE:
    ST(0) = make_io(aTHX_ fd_of(aTHX_ handle, (events & IV(Events::write)) != 0),
                    events_of(events), callback, false);
    XSRETURN(1);

void
timer(NV after, NV interval, SV* callback)
  PROTOTYPE: $$$
  CODE:
    ST(0) = make_timer(aTHX_ after, interval, callback, false);
    XSRETURN(1);

void
wall(NV at, NV interval, SV* callback)
  PROTOTYPE: $$$
  CODE:
    ST(0) = make_wall(aTHX_ at, interval, callback);
    XSRETURN(1);

void
signal(SV* signal, SV* callback)
  PROTOTYPE: $$
  CODE:
    ST(0) = make_signal(aTHX_ signal, callback, false);
    XSRETURN(1);

void
child(IV pid, bool trace, SV* callback)
  PROTOTYPE: $$$
  CODE:
    ST(0) = make_child(aTHX_ pid, trace, callback, false);
    XSRETURN(1);

void
stat(SV* path, NV interval, SV* callback)
  PROTOTYPE: $$$
  CODE:
    ST(0) = make_stat(aTHX_ path, interval, callback);
    XSRETURN(1);

void
idle(SV* callback)
  PROTOTYPE: $
  CODE:
    ST(0) = make_idle(aTHX_ callback, false);
    XSRETURN(1);

void
fork(SV* callback)
  PROTOTYPE: $
  CODE:
    ST(0) = make_fork(aTHX_ callback);
    XSRETURN(1);

void
async(SV* callback)
  PROTOTYPE: $
  CODE:
    ST(0) = make_async(aTHX_ callback);
    XSRETURN(1);

void
prepare(SV* callback)
  PROTOTYPE: $
  ALIAS:
    check = 1
    cleanup = 2
  CODE:
    ST(0) = make_hook(aTHX_ ix == 0 ? Kind::prepare : ix == 1 ? Kind::check : Kind::cleanup,
                      callback);
    XSRETURN(1);

void
run()
  CODE:
    state(aTHX).run(aTHX_ Until::stopped);

void
run_once()
  CODE:
    state(aTHX).run(aTHX_ Until::once);

void
run_ready()
  CODE:
    state(aTHX).run(aTHX_ Until::ready);

void
stop()
  CODE:
    state(aTHX).stop();

NV
now(...)
  PROTOTYPE:
  CODE:
    PERL_UNUSED_VAR(items);
    RETVAL = state(aTHX).now();
  OUTPUT: RETVAL

NV
time(...)
  PROTOTYPE:
  CODE:
    PERL_UNUSED_VAR(items);
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    RETVAL = NV(now.tv_sec) + NV(now.tv_nsec) / 1e9;
  OUTPUT: RETVAL

void
update_now(...)
  PROTOTYPE:
  CODE:
    PERL_UNUSED_VAR(items);
    state(aTHX).update_now();

const char*
backend()
  CODE:
    RETVAL = state(aTHX).loop().backend().name.data();
  OUTPUT: RETVAL

UV
due()
  CODE:
    RETVAL = state(aTHX).due_count();
  OUTPUT: RETVAL

void
suspend()
  CODE:
    tambour::suspend_timers(state(aTHX).loop());

void
resume()
  CODE:
    tambour::resume_timers(state(aTHX).loop());

void
feed_fd(SV* handle, IV events)
  CODE:
    tambour::feed_fd(state(aTHX).loop(), fd_of(aTHX_ handle, false), events_of(events));

void
feed_signal(SV* signal)
  CODE:
    Signal::feed(signal_of(aTHX_ signal));

void
_cleanup()
  CODE:
    State* const own = state_if_any(aTHX);
    if (own != nullptr) own->run(aTHX_ Until::cleaned);

void
_ae_io(SV* handle, SV* write, SV* callback)
  PROTOTYPE: $$$
  CODE:
    const bool writes = SvTRUE(write);
    ST(0) = make_io(aTHX_ fd_of(aTHX_ handle, writes), writes ? Events::write : Events::read,
                    callback, true);
    XSRETURN(1);

void
_ae_timer(SV* after, SV* interval, SV* callback)
  PROTOTYPE: $$$
  CODE:
    ST(0) = make_timer(aTHX_ SvOK(after) ? SvNV(after) : 0,
                       SvTRUE(interval) ? SvNV(interval) : 0, callback, true);
    XSRETURN(1);

void
_ae_signal(SV* signal, SV* callback)
  PROTOTYPE: $$
  CODE:
    ST(0) = make_signal(aTHX_ signal, callback, true);
    XSRETURN(1);

void
_ae_child(IV pid, SV* callback)
  PROTOTYPE: $$
  CODE:
    ST(0) = make_child(aTHX_ pid, false, callback, true);
    XSRETURN(1);

void
_ae_idle(SV* callback)
  PROTOTYPE: $
  CODE:
    ST(0) = make_idle(aTHX_ callback, true);
    XSRETURN(1);

void
_ae_poll(...)
  CODE:
    PERL_UNUSED_VAR(items);
    state(aTHX).run(aTHX_ Until::polled);

void
_ae_wait(SV* condvar)
  CODE:
    if (!SvROK(condvar) || SvTYPE(SvRV(condvar)) != SVt_PVHV) croak("Tambour: not a condvar");
    HV* const hash = reinterpret_cast<HV*>(SvRV(condvar));
    // A callback may release the last reference to the condvar.
    sv_2mortal(SvREFCNT_inc_simple_NN(SvRV(condvar)));
    state(aTHX).run(aTHX_ Until::sent, hash);

MODULE = Tambour  PACKAGE = Tambour::Watcher

void
DESTROY(SV* reference)
  CODE:
    State* const own = state_if_any(aTHX);
    if (own != nullptr) end(aTHX_ *own, SvRV(reference));

void
start(SV* reference)
  CODE:
    start(aTHX_ state(aTHX), self_of(aTHX_ reference, Kind::none));

void
stop(SV* reference)
  CODE:
    stop(state(aTHX), self_of(aTHX_ reference, Kind::none));

bool
started(SV* reference)
  CODE:
    RETVAL = visit(self_of(aTHX_ reference, Kind::none),
                   [](auto& handle) { return handle.is_started(); });
  OUTPUT: RETVAL

int
priority(SV* reference, ...)
  CODE:
    SV* const self = self_of(aTHX_ reference, Kind::none);
    RETVAL = visit(self, [](auto& handle) { return handle.priority(); });
    if (items > 1) {
      const int priority = static_cast<int>(SvIV(ST(1)));
      visit(self, [priority](auto& handle) { handle.set_priority(priority); });
    }
  OUTPUT: RETVAL

SV*
cb(SV* reference, ...)
  CODE:
    SV* const self = self_of(aTHX_ reference, Kind::none);
    RETVAL = newRV_inc(reinterpret_cast<SV*>(callback_of(self)));
    if (items > 1) change_callback(aTHX_ self, ST(1));
  OUTPUT: RETVAL

void
feed(SV* reference, IV events = 0)
  CODE:
    SV* const self = self_of(aTHX_ reference, Kind::none);
    if (tag_of(self).kind == Kind::child) croak("Tambour: a child watcher cannot be fed");
    state(aTHX).note(self, events_of(events));

MODULE = Tambour  PACKAGE = Tambour::IO

int
fd(SV* reference)
  CODE:
    RETVAL = handle_as<FdWatcher>(self_of(aTHX_ reference, Kind::io)).fd();
  OUTPUT: RETVAL

IV
events(SV* reference, ...)
  CODE:
    auto& watcher = handle_as<FdWatcher>(self_of(aTHX_ reference, Kind::io));
    RETVAL = IV(watcher.interest());
    if (items > 1) watcher.set(events_of(SvIV(ST(1))));
  OUTPUT: RETVAL

void
set(SV* reference, SV* handle, IV events)
  CODE:
    auto& watcher = handle_as<FdWatcher>(self_of(aTHX_ reference, Kind::io));
    watcher.set(fd_of(aTHX_ handle, (events & IV(Events::write)) != 0), events_of(events));

MODULE = Tambour  PACKAGE = Tambour::Timer

void
again(SV* reference)
  CODE:
    handle_as<Timer>(self_of(aTHX_ reference, Kind::timer)).reset();

void
set(SV* reference, NV after, NV interval = 0)
  CODE:
    SV* const self = self_of(aTHX_ reference, Kind::timer);
    if (std::isnan(after) || std::isnan(interval)) croak("Tambour: a time is not a number");
    state(aTHX).clear_due(self);
    set_timer(handle_as<Timer>(self), after, interval);

SV*
remaining(SV* reference)
  CODE:
    auto& timer = handle_as<Timer>(self_of(aTHX_ reference, Kind::timer));
    RETVAL = timer.is_started()
                 ? newSVnv(to_seconds(timer.deadline() - state(aTHX).loop().now()))
                 : newSV(0);
  OUTPUT: RETVAL

MODULE = Tambour  PACKAGE = Tambour::Wall

void
set(SV* reference, NV at, NV interval = 0)
  CODE:
    SV* const self = self_of(aTHX_ reference, Kind::wall);
    if (std::isnan(at) || std::isnan(interval)) croak("Tambour: a time is not a number");
    auto& watch = handle_as<WallWatch>(self);
    state(aTHX).clear_due(self);
    watch.at = to_duration(at);
    watch.interval = to_duration(interval);
    watch.stop();
    start(aTHX_ state(aTHX), self);

SV*
at(SV* reference)
  CODE:
    auto& watch = handle_as<WallWatch>(self_of(aTHX_ reference, Kind::wall));
    RETVAL = watch.is_started() ? newSVnv(to_seconds(watch.timer.time().time_since_epoch()))
                             : newSV(0);
  OUTPUT: RETVAL

MODULE = Tambour  PACKAGE = Tambour::Signal

int
number(SV* reference)
  CODE:
    RETVAL = handle_as<Signal>(self_of(aTHX_ reference, Kind::signal)).number();
  OUTPUT: RETVAL

MODULE = Tambour  PACKAGE = Tambour::Child

int
pid(SV* reference)
  CODE:
    RETVAL = handle_as<ChildWatch>(self_of(aTHX_ reference, Kind::child)).child.pid();
  OUTPUT: RETVAL

int
rpid(SV* reference)
  CODE:
    RETVAL = handle_as<ChildWatch>(self_of(aTHX_ reference, Kind::child)).last.pid;
  OUTPUT: RETVAL

int
rstatus(SV* reference)
  CODE:
    RETVAL = handle_as<ChildWatch>(self_of(aTHX_ reference, Kind::child)).last.status;
  OUTPUT: RETVAL

MODULE = Tambour  PACKAGE = Tambour::Stat

SV*
path(SV* reference)
  CODE:
    const std::string& path =
        handle_as<StatWatch>(self_of(aTHX_ reference, Kind::stat)).status.path();
    RETVAL = newSVpvn(path.data(), path.size());
  OUTPUT: RETVAL

void
attr(SV* reference)
  ALIAS:
    prev = 1
  PPCODE:
    auto& watch = handle_as<StatWatch>(self_of(aTHX_ reference, Kind::stat));
    EXTEND(SP, 13);
    SP += put_status(aTHX_ ix == 0 ? watch.status.current() : watch.before, SP + 1);

void
update(SV* reference)
  CODE:
    handle_as<StatWatch>(self_of(aTHX_ reference, Kind::stat)).status.update();

MODULE = Tambour  PACKAGE = Tambour::Async

void
send(SV* reference)
  CODE:
    handle_as<Async>(self_of(aTHX_ reference, Kind::async)).send();

bool
sent(SV* reference)
  CODE:
    RETVAL = handle_as<Async>(self_of(aTHX_ reference, Kind::async)).is_sent();
  OUTPUT: RETVAL

void
signal_func(SV* reference)
  PPCODE:
    auto* const async = &handle_as<Async>(self_of(aTHX_ reference, Kind::async));
    EXTEND(SP, 2);
    mPUSHi(PTR2IV(&send_async));
    mPUSHi(PTR2IV(async));
