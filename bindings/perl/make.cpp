// Makes watchers from the arguments of Perl, and starts them.
#include "make.h"

namespace tambour::perl {
namespace {

/// Creates the scalar and, with `make(self)`, its handle.
template <class Make>
SV* make_watcher(pTHX_ State& state, Kind kind, SV* callback, bool plain, Make&& make) {
  SV* const self = new_watcher(aTHX_ callback, plain);
  bool refused = false;
  try {
    state.add_watcher();
    set_handle(self, make(self), kind);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  if (refused) [[unlikely]] {
    state.remove_watcher();
    SvREFCNT_dec_NN(reinterpret_cast<SV*>(callback_of(self)));
    SvREFCNT_dec_NN(self);
    croak("Tambour: out of memory for a watcher");
  }
  return self;
}

/// Like make_watcher(), and starts the watcher.
template <class Make>
SV* make_started(pTHX_ State& state, Kind kind, SV* callback, bool plain, Make&& make) {
  SV* const self = make_watcher(aTHX_ state, kind, callback, plain, std::forward<Make>(make));
  // Blessed first, so that the reference destroys the watcher if it cannot be started.
  SV* const reference = bless_watcher(aTHX_ self, state.stash(kind));
  start(aTHX_ state, self);
  return reference;
}

void check_time(pTHX_ NV seconds, const char* text) {
  if (std::isnan(seconds)) croak("Tambour: %s is not a number", text);
}

/// The callback of handles without arguments: marks the watcher as due.
auto notifier(State& state, SV* self) noexcept {
  return [&state, self] { state.note(self); };
}

}  // namespace

int fd_of(pTHX_ SV* handle, bool for_writing) {
  SvGETMAGIC(handle);
  SV* const inner = SvROK(handle) ? SvRV(handle) : handle;
  int fd = -1;
  if (isGV_with_GP(inner) || SvTYPE(inner) == SVt_PVIO) {
    IO* const io =
        isGV_with_GP(inner) ? GvIO(reinterpret_cast<GV*>(inner)) : reinterpret_cast<IO*>(inner);
    PerlIO* file = nullptr;
    if (io != nullptr) file = for_writing ? IoOFP(io) : IoIFP(io);
    // A handle for one direction has the same file in both fields; a directory handle has none.
    if (file != nullptr) fd = PerlIO_fileno(file);
  } else if (looks_like_number(handle)) {
    const IV number = SvIV_nomg(handle);
    if (number >= 0 && number <= INT_MAX) fd = static_cast<int>(number);
  } else if (!SvROK(handle) && SvOK(handle)) {
    IO* const io = sv_2io(handle);  // A handle name; croaks if unknown.
    if (io != nullptr && IoIFP(io) != nullptr) fd = PerlIO_fileno(IoIFP(io));
  }
  if (fd < 0) croak("Tambour: not an open file handle or descriptor");
  return fd;
}

int signal_of(pTHX_ SV* signal) {
  SvGETMAGIC(signal);
  int number = 0;
  if (looks_like_number(signal)) {
    number = static_cast<int>(SvIV_nomg(signal));
  } else {
    const char* name = SvPV_nomg_nolen(signal);
    if (std::strncmp(name, "SIG", 3) == 0) name += 3;
    for (int i = 1; i < SIG_SIZE; ++i) {
      if (std::strcmp(name, PL_sig_name[i]) == 0) number = PL_sig_num[i];
    }
  }
  if (number <= 0 || number >= NSIG) croak("Tambour: no such signal: %" SVf, SVfARG(signal));
  return number;
}

SV* make_io(pTHX_ int fd, Events events, SV* callback, bool plain) {
  State& loop_state = state(aTHX);
  SV* const self = make_watcher(aTHX_ loop_state, Kind::io, callback, plain, [&](SV* created) {
    auto* const watcher = new (loop_state.cells().allocate())
        FdWatcher(loop_state.loop(), fd, events,
                  [&loop_state, created](Events got) { loop_state.note(created, got); });
    static_cast<void>(watcher->start());  // Fails only for negative descriptors.
    return watcher;
  });
  return bless_watcher(aTHX_ self, loop_state.stash(Kind::io));
}

void set_timer(Timer& timer, NV after, NV interval) noexcept {
  // reset() counts from the start of the iteration, as AnyEvent->now does; start() reads the clock.
  if (interval > 0 || timer.is_started()) timer.start(Duration::max(), to_duration(interval));
  timer.reset(to_duration(after));
}

SV* make_timer(pTHX_ NV after, NV interval, SV* callback, bool plain) {
  check_time(aTHX_ after, "the delay of a timer");
  check_time(aTHX_ interval, "the interval of a timer");
  State& loop_state = state(aTHX);
  SV* const self = make_watcher(aTHX_ loop_state, Kind::timer, callback, plain, [&](SV* created) {
    void* const cell = loop_state.cells().allocate();
    try {
      auto* const timer = new (cell) Timer(loop_state.loop(), notifier(loop_state, created));
      set_timer(*timer, after, interval);
      return timer;
    } catch (...) {
      loop_state.cells().deallocate(cell);
      throw;
    }
  });
  return bless_watcher(aTHX_ self, loop_state.stash(Kind::timer));
}

SV* make_wall(pTHX_ NV at, NV interval, SV* callback) {
  check_time(aTHX_ at, "the time of a wall-clock timer");
  check_time(aTHX_ interval, "the interval of a wall-clock timer");
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::wall, callback, false, [&](SV* created) {
    auto* const watch = new WallWatch(loop_state, created);
    watch->at = to_duration(at);
    watch->interval = to_duration(interval);
    return watch;
  });
}

SV* make_signal(pTHX_ SV* signal, SV* callback, bool plain) {
  const int number = signal_of(aTHX_ signal);
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::signal, callback, plain, [&](SV* created) {
    return new Signal(loop_state.loop(), number,
                      [&loop_state, created](int) { loop_state.note(created); });
  });
}

SV* make_child(pTHX_ IV pid, bool trace, SV* callback, bool plain) {
  if (pid < 0 || pid > INT_MAX) croak("Tambour: no such process: %" IVdf, pid);
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::child, callback, plain, [&](SV* created) {
    return new ChildWatch(loop_state, created, static_cast<pid_t>(pid), trace);
  });
}

SV* make_stat(pTHX_ SV* path, NV interval, SV* callback) {
  check_time(aTHX_ interval, "the interval of a file's status");
  STRLEN length;
  const char* const bytes = SvPVbyte(path, length);
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::stat, callback, false, [&](SV* created) {
    return new StatWatch(loop_state, created, std::string(bytes, length),
                         {.interval = to_duration(interval)});
  });
}

SV* make_idle(pTHX_ SV* callback, bool plain) {
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::idle, callback, plain, [&](SV* created) {
    return new Idle(loop_state.loop(), notifier(loop_state, created));
  });
}

SV* make_fork(pTHX_ SV* callback) {
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::fork, callback, false, [&](SV* created) {
    return new ForkHook(loop_state.loop(), notifier(loop_state, created));
  });
}

SV* make_async(pTHX_ SV* callback) {
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, Kind::async, callback, false, [&](SV* created) {
    return new Async(loop_state.loop(), notifier(loop_state, created));
  });
}

SV* make_hook(pTHX_ Kind kind, SV* callback) {
  State& loop_state = state(aTHX);
  return make_started(aTHX_ loop_state, kind, callback, false,
                      [&](SV* created) { return new RunHook(loop_state, created, kind); });
}

}  // namespace tambour::perl
