// Creation of watchers, called by Tambour.xs.
#pragma once

#include "state.h"

namespace tambour::perl {

/// Converts seconds, rounding up: a fraction of a nanosecond must not make a timer early.
inline Duration to_duration(NV seconds) noexcept {
  constexpr NV limit = 9.2e9;  // Seconds; close to the maximum of 64-bit nanoseconds.
  if (seconds >= limit) return Duration::max();
  if (seconds <= -limit) return -Duration::max();
  const NV ns = seconds * 1e9;
  const auto whole = static_cast<std::int64_t>(ns);
  return Duration(whole + (NV(whole) < ns));
}

inline NV to_seconds(Duration duration) noexcept { return NV(duration.count()) / 1e9; }

/// Returns the descriptor of a file handle, handle reference or number; croaks if there is none.
int fd_of(pTHX_ SV* handle, bool for_writing);

/// Returns the number of a signal given by number or name, with or without SIG; croaks if unknown.
int signal_of(pTHX_ SV* signal);

/// Each returns a mortal reference to a started watcher, and croaks on failure.
SV* make_io(pTHX_ int fd, Events events, SV* callback, bool plain);
SV* make_timer(pTHX_ NV after, NV interval, SV* callback, bool plain);
SV* make_wall(pTHX_ NV at, NV interval, SV* callback);
SV* make_signal(pTHX_ SV* signal, SV* callback, bool plain);
SV* make_child(pTHX_ IV pid, bool trace, SV* callback, bool plain);
SV* make_stat(pTHX_ SV* path, NV interval, SV* callback);
SV* make_idle(pTHX_ SV* callback, bool plain);
SV* make_fork(pTHX_ SV* callback);
SV* make_async(pTHX_ SV* callback);
/// `kind` is prepare, check or cleanup.
SV* make_hook(pTHX_ Kind kind, SV* callback);

/// Sets the times of a timer and starts it.
void set_timer(Timer& timer, NV after, NV interval) noexcept;

}  // namespace tambour::perl
