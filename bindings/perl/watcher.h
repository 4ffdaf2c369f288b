// A watcher as Perl sees it: a scalar with a handle of the library behind it.
//
// The scalar is the referent of the Perl reference and has its reference count. It contains no
// string and no number, so the binding uses the fields of the scalar's body for the callback, the
// handle and the Tag. Together with fixed-size cells for the two most frequent handles, this keeps
// a watcher small. The scalar is read-only, so that Perl code cannot overwrite these fields.
//
// Perl is never called from inside the loop. The callback of a handle only marks its watcher as due
// (due.h); the Perl callbacks run after the loop has returned. `die`, `exit` and `recv`, which
// unwind or retain C frames, therefore never affect frames of the library.
#pragma once

#include "perl_api.h"

namespace tambour::perl {

class State;

enum class Kind : std::uint8_t {
  none,  ///< Destroyed: has no handle.
  io,
  timer,
  wall,
  signal,
  child,
  stat,
  idle,
  fork,
  async,
  prepare,  ///< This and the following are implemented by the binding.
  check,
  cleanup,
};

/// Per-watcher state besides the handle and callback.
struct Tag {
  std::uint32_t due_index = 0;  ///< Index in the queue of due watchers plus 1; 0: not due.
  std::uint16_t events = 0;     ///< io: events since the last call of the callback.
  Kind kind = Kind::none;
  bool plain = false;  ///< AnyEvent's convention: the watcher is not an argument.
};
static_assert(sizeof(Tag) <= sizeof(NV));

/// The parts of a watcher's scalar, in its fields for a number, an integer and a string.
inline Tag& tag_of(SV* self) noexcept { return *reinterpret_cast<Tag*>(&SvNVX(self)); }
inline CV* callback_of(SV* self) noexcept { return INT2PTR(CV*, SvIVX(self)); }
inline void set_callback(SV* self, CV* callback) noexcept { SvIV_set(self, PTR2IV(callback)); }
inline void* handle_of(SV* self) noexcept { return SvPVX(self); }
template <class Handle>
Handle& handle_as(SV* self) noexcept {
  return *static_cast<Handle*>(handle_of(self));
}

/// A hook of a run (prepare, check, cleanup), implemented by the binding: see State::run.
class RunHook {
 public:
  RunHook(State& state, SV* self, Kind kind) noexcept : state_(state), self_(self), kind_(kind) {}
  RunHook(const RunHook&) = delete;
  RunHook& operator=(const RunHook&) = delete;
  ~RunHook() { stop(); }

  void start();
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return started_; }
  [[nodiscard]] int priority() const noexcept { return priority_; }
  void set_priority(int priority) noexcept;

 private:
  State& state_;
  SV* self_;
  Kind kind_;
  bool started_ = false;
  int priority_ = 0;
};

/// Returns a status as from waitpid(2); -1 if it was lost.
int wait_status(const ChildStatus& status) noexcept;

/// A child watcher and its unreported changes.
struct ChildWatch {
  struct Change {
    pid_t pid;
    int status;  ///< As from waitpid(2); -1: lost.
  };

  ChildWatch(State& state, SV* self, pid_t pid, bool trace);
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;
  ~ChildWatch();

  /// Records a change of a child.
  void note(pid_t pid, int status);

  Result<> start();
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return any ? any_started : child.is_started(); }
  [[nodiscard]] int priority() const noexcept { return child.priority(); }
  void set_priority(int priority) noexcept { child.set_priority(priority); }

  State& state;
  SV* self;
  bool any;  ///< Watches all children; State has one handle for them.
  bool any_started = false;
  bool any_reported = false;  ///< The exit was reported to watchers of any child.
  Child child;
  Change last{0, 0};
  std::vector<Change> unreported;
};

/// A file status watcher and the previous status.
struct StatWatch {
  StatWatch(State& state, SV* self, std::string path, const FileStatusOptions& options);

  Result<> start() noexcept { return status.start(); }
  void stop() noexcept { status.stop(); }
  [[nodiscard]] bool is_started() const noexcept { return status.is_started(); }
  [[nodiscard]] int priority() const noexcept { return status.priority(); }
  void set_priority(int priority) noexcept { status.set_priority(priority); }

  FileState before;
  FileStatus status;
};

/// A wall-clock timer and its parameters.
struct WallWatch {
  WallWatch(State& state, SV* self);

  Result<> start() noexcept;
  void stop() noexcept { timer.stop(); }
  [[nodiscard]] bool is_started() const noexcept { return timer.is_started(); }
  [[nodiscard]] int priority() const noexcept { return timer.priority(); }
  void set_priority(int priority) noexcept { timer.set_priority(priority); }

  Duration at{0};        ///< Since 1970; with an interval, the offset.
  Duration interval{0};  ///< Zero: once.
  WallTimer timer;
};

/// Calls f with the handle as its type; all have stop, started, priority and set_priority.
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

/// Creates the scalar of a watcher, without a handle. `callback` is converted with sv_2cv; croaks
/// if it is not code. The caller owns the only reference.
SV* new_watcher(pTHX_ SV* callback, bool plain);

/// Sets the handle of a watcher. From then on, end() must be called for the watcher.
void set_handle(SV* self, void* handle, Kind kind) noexcept;

/// Returns the blessed, mortal reference for the program; takes ownership of the reference to
/// `self`.
SV* bless_watcher(pTHX_ SV* self, HV* stash) noexcept;

/// Replaces the callback. May be called from inside the callback.
void change_callback(pTHX_ SV* self, SV* callback);

/// Destroys the handle and releases the callback. Idempotent.
void end(pTHX_ State& state, SV* self) noexcept;

/// Returns the watcher of a reference. Croaks if it is not a watcher of `kind` (none: any kind).
SV* watcher_of(pTHX_ SV* reference, Kind kind = Kind::none);

/// Starts or stops a watcher of any kind. start() croaks with the reason if it fails.
void start(pTHX_ State& state, SV* self);
void stop(State& state, SV* self) noexcept;

/// Calls the callback of a watcher.
void invoke(pTHX_ State& state, SV* self);

}  // namespace tambour::perl
