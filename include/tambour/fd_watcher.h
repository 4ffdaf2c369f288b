// Readiness of a file descriptor, as a callback: libev's ev_io, libevent's event, muduo's Channel.
#pragma once

#include <source_location>

#include <tambour/callback.h>
#include <tambour/events.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
}

/// Calls back when a descriptor is ready for what was asked. Any number may watch one descriptor.
///
/// Owns its callback, not the descriptor: stop or destroy the watcher before closing that. Moves
/// and is destroyed freely, inside its own callback too, and falls silent at once. Belongs to the
/// thread of its loop. Outliving the loop is harmless; starting it again then is not.
///
/// What fails after start() is told to the callback, once, as Events::error with the reason in
/// error(), and the watcher has then stopped: EBADF (not an open descriptor), ERANGE (the select
/// backend ends at FD_SETSIZE), ENOMEM, ENOSPC, ENOBUFS (the kernel has no room), EOPNOTSUPP
/// (Events::closed without read under select). Regular files are always ready, as in poll(2). An
/// error that is pending on the descriptor itself arrives as Events::error besides the events asked
/// for, and the watcher goes on.
class FdWatcher final : private Operation {
 public:
  using Function = Callback<void(Events)>;

  /// Not started. `fd` may be negative until set() names another.
  FdWatcher(EventLoop& loop, int fd, Events interest, Function function,
            Trigger trigger = Trigger::level,
            std::source_location created_at = std::source_location::current()) noexcept;
  FdWatcher(FdWatcher&& other) noexcept;
  FdWatcher& operator=(FdWatcher&& other) noexcept;
  ~FdWatcher();

  /// Starts watching; costs no system call now, and none later where the kernel watches the same
  /// already. No effect on a started watcher. EBADF where the descriptor is negative.
  Result<> start() noexcept;

  /// Stops; a callback that was due in this turn does not come.
  void stop() noexcept;

  /// Watches for other events on the same open file. A started watcher stays started.
  void set(Events interest, Trigger trigger = Trigger::level) noexcept;

  /// Watches `fd` from now on, stopped or started as it was. Says also that `fd` may be another
  /// open file than the loop last saw under this number, which costs a system call to find out:
  /// after a close and an open, use this; where only the interest changes, the other.
  void set(int fd, Events interest, Trigger trigger = Trigger::level) noexcept;

  using Ready::priority;
  using Ready::set_priority;

  /// Replaces what is called; allowed inside the callback.
  void set_function(Function function) noexcept;

  /// A watcher that has failed is started until that is told.
  [[nodiscard]] bool started() const noexcept { return link_on_fd != nullptr || linked(); }
  [[nodiscard]] int descriptor() const noexcept { return fd; }
  [[nodiscard]] Events interest() const noexcept { return events; }

  /// Why the watcher stopped by itself; empty where it did not. Cleared by start().
  [[nodiscard]] Error error() const noexcept {
    return result < 0 && !started() ? system_error(result) : Error();
  }

 private:
  static void run(Ready& ready);

  loop::Core* core_;
  Function function_;
};

}  // namespace tambour
