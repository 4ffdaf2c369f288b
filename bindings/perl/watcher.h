// A watcher, as Perl has it: one scalar, and a handle of the library behind it.
//
// The scalar is what a Perl reference points at and counts. It holds no string and no number, so
// that the room which a scalar's body has for those is ours: for the callback and for a few bits.
// That, and cells of one size for the two handles that programs have many of, is what keeps a
// watcher small. The scalar is read-only: nobody else writes there.
//
// Perl is never called from inside the loop. The callback that a handle gets only notes that its
// watcher is due (due.h); what is due is called when the loop has returned. So `die`, `exit` and
// `recv`, which leave or keep C frames as they like, never meet a frame of the library's.
#pragma once

#include "perl_api.h"

namespace tambour::perl {

class State;

enum class Kind : std::uint8_t {
  none,  ///< Ended: the handle is gone.
  io,
  timer,
  wall,
  signal,
  child,
  stat,
  idle,
  fork,
  async,
  prepare,  ///< From here on: of this binding, not of the library.
  check,
  cleanup,
};

/// What a watcher carries beside its handle and callback.
struct Tag {
  std::uint32_t place = 0;   ///< In the list of what is due, from 1; 0: not due.
  std::uint16_t events = 0;  ///< io: what has come since the callback was run last.
  Kind kind = Kind::none;
  bool plain = false;  ///< Called as AnyEvent calls: without the watcher as an argument.
};
static_assert(sizeof(Tag) <= sizeof(NV));

/// The parts of a watcher's scalar, in the places of its string, its integer and its number.
inline Tag& tag_of(SV* self) noexcept { return *reinterpret_cast<Tag*>(&SvNVX(self)); }
inline CV* callback_of(SV* self) noexcept { return INT2PTR(CV*, SvIVX(self)); }
inline void set_callback(SV* self, CV* callback) noexcept { SvIV_set(self, PTR2IV(callback)); }
inline void* handle_of(SV* self) noexcept { return SvPVX(self); }
template <class Handle>
Handle& handle_as(SV* self) noexcept {
  return *static_cast<Handle*>(handle_of(self));
}

/// A hook at a place of a run, which this binding keeps itself: see State::run.
class RunHook {
 public:
  RunHook(State& state, SV* self, Kind kind) noexcept : state_(state), self_(self), kind_(kind) {}
  RunHook(const RunHook&) = delete;
  RunHook& operator=(const RunHook&) = delete;
  ~RunHook() { stop(); }

  void start();
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return started_; }
  [[nodiscard]] int priority() const noexcept { return priority_; }
  void set_priority(int priority) noexcept;

 private:
  State& state_;
  SV* self_;
  Kind kind_;
  bool started_ = false;
  int priority_ = 0;
};

/// As waitpid(2) would have it; -1 where the status was lost.
int wait_status(const ChildStatus& status) noexcept;

/// A child, with what has become of it and was not told yet.
struct ChildWatch {
  struct Change {
    pid_t pid;
    int status;  ///< As waitpid(2) has it; -1: lost.
  };

  ChildWatch(State& state, SV* self, pid_t pid, bool trace);
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;
  ~ChildWatch();

  /// Something has become of one.
  void note(pid_t pid, int status);

  Result<> start();
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return any ? any_started : child.started(); }
  [[nodiscard]] int priority() const noexcept { return child.priority(); }
  void set_priority(int priority) noexcept { child.set_priority(priority); }

  State& state;
  SV* self;
  bool any;  ///< Of all children of the process, for whom the state has one handle.
  bool any_started = false;
  bool any_told = false;  ///< Those who watch for any have heard of the end of this one.
  Child child;
  Change last{0, 0};
  std::vector<Change> untold;
};

/// A path, with what it was before.
struct StatWatch {
  StatWatch(State& state, SV* self, std::string path, const FileStatusOptions& options);

  Result<> start() noexcept { return status.start(); }
  void stop() noexcept { status.stop(); }
  [[nodiscard]] bool started() const noexcept { return status.started(); }
  [[nodiscard]] int priority() const noexcept { return status.priority(); }
  void set_priority(int priority) noexcept { status.set_priority(priority); }

  FileState before;
  FileStatus status;
};

/// A time of the wall clock, and the rule by which it was started.
struct WallWatch {
  WallWatch(State& state, SV* self);

  Result<> start() noexcept;
  void stop() noexcept { timer.stop(); }
  [[nodiscard]] bool started() const noexcept { return timer.started(); }
  [[nodiscard]] int priority() const noexcept { return timer.priority(); }
  void set_priority(int priority) noexcept { timer.set_priority(priority); }

  Duration at{0};        ///< Since 1970; with an interval, its offset.
  Duration interval{0};  ///< Zero: once.
  WallTimer timer;
};

/// Calls f with the handle, whatever it is; each has stop, started, priority and set_priority.
template <class F>
decltype(auto) visit(SV* self, F&& f) {
  switch (tag_of(self).kind) {
    case Kind::io:
      return f(handle_as<FdWatcher>(self));
    case Kind::timer:
      return f(handle_as<Timer>(self));
    case Kind::wall:
      return f(handle_as<WallWatch>(self));
    case Kind::signal:
      return f(handle_as<Signal>(self));
    case Kind::child:
      return f(handle_as<ChildWatch>(self));
    case Kind::stat:
      return f(handle_as<StatWatch>(self));
    case Kind::idle:
      return f(handle_as<Idle>(self));
    case Kind::fork:
      return f(handle_as<ForkHook>(self));
    case Kind::async:
      return f(handle_as<Async>(self));
    default:
      return f(handle_as<RunHook>(self));
  }
}

/// A new scalar for a watcher, without its handle yet; `callback` is what sv_2cv takes. Croaks
/// where that is no code. The caller owns the one reference.
SV* new_watcher(pTHX_ SV* callback, bool plain);

/// Gives a watcher its handle, from which point on end() has to be called for it.
void set_handle(SV* self, void* handle, Kind kind) noexcept;

/// The blessed reference that the program gets, mortal; takes over the reference to `self`.
SV* bless_watcher(pTHX_ SV* self, HV* stash) noexcept;

/// Replaces the callback; also from inside it.
void change_callback(pTHX_ SV* self, SV* callback);

/// The watcher is no more: it falls silent, and gives back everything. Once is enough.
void end(pTHX_ State& state, SV* self) noexcept;

/// The watcher behind a reference; croaks where it is none, or not of this kind (none: of any).
SV* watcher_of(pTHX_ SV* reference, Kind kind = Kind::none);

/// Starts, stops a watcher of any kind. start() croaks with the reason where it fails.
void start(pTHX_ State& state, SV* self);
void stop(State& state, SV* self) noexcept;

/// Runs a watcher's callback.
void invoke(pTHX_ State& state, SV* self);

}  // namespace tambour::perl
