// What one interpreter has: a loop, the watchers that are due, and how it runs.
#pragma once

#include "cells.h"
#include "due.h"
#include "watcher.h"

namespace tambour::perl {

/// The packages that watchers are blessed into, by Kind.
inline constexpr std::size_t kinds = std::size_t(Kind::cleanup) + 1;

/// When a run ends.
enum class Until : std::uint8_t {
  stopped,  ///< By stop(), or when nothing is left to wait for.
  once,     ///< When what was waited for has been called, or nothing is left.
  ready,    ///< When what is due has been called, without waiting.
  polled,   ///< As once, but waits even where nothing is left: AnyEvent's own.
  sent,     ///< When a condvar has been sent; waits even where nothing is left.
  cleaned,  ///< When the cleanup watchers have been called; nothing else is, the program ends.
};

/// Belongs to one interpreter and its thread. Made with the first thing that is asked of it.
class State {
 public:
  explicit State(pTHX);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Not after close().
  [[nodiscard]] EventLoop& loop() noexcept { return *loop_; }
  /// Closes the loop, on its thread; watchers are silent from then on.
  void close() noexcept { loop_.reset(); }
  [[nodiscard]] bool closed() const noexcept { return !loop_.has_value(); }
  [[nodiscard]] HV* stash(Kind kind) const noexcept { return stashes_[std::size_t(kind)]; }

  /// Runs the loop, and what it makes due. What dies in a callback is told to $Tambour::DIED.
  void run(pTHX_ Until until, HV* condvar = nullptr);

  /// The same without that; the way here leads through Perl's eval, and run().
  void run_unguarded(pTHX);

  void stop() noexcept { stop_ = true; }

  /// In the child of a fork(2), before the loop is used there.
  void notice_fork(pTHX);

  /// The time at which the current turn began, by the wall clock.
  [[nodiscard]] NV now() noexcept;
  void update_now() noexcept;

  /// Makes a watcher due. From callbacks of the loop: cannot fail.
  void note(SV* self) noexcept { due_.add(self); }
  void note(SV* self, Events events) noexcept {
    tag_of(self).events |= static_cast<std::uint16_t>(events);
    due_.add(self);
  }
  void forget(SV* self) noexcept { due_.remove(self); }
  [[nodiscard]] std::size_t due_count() const noexcept { return due_.size(); }

  /// One more watcher exists, or one fewer. Throws std::bad_alloc.
  void count_up() { due_.reserve(++watchers_); }
  void count_down() noexcept { --watchers_; }
  [[nodiscard]] bool has_watchers() const noexcept { return watchers_ != 0; }

  [[nodiscard]] Cells& cells() noexcept { return cells_; }
  [[nodiscard]] std::vector<SV*>& hooks(Kind kind) noexcept {
    return kind == Kind::prepare ? prepares_ : kind == Kind::check ? checks_ : cleanups_;
  }
  /// A watcher of all children was started, or stopped.
  Result<> watch_any_child(ChildWatch& watch);
  void unwatch_any_child(ChildWatch& watch) noexcept;
  /// Tells those of the end of a child that has watchers of its own, once for all of these.
  void tell_any_child(const ChildWatch& named, int status);
  [[nodiscard]] std::vector<ChildWatch*>& named_children() noexcept { return named_children_; }

 private:
  struct Run {
    Until until;
    HV* condvar;
    bool gathered = false;  ///< The loop has run: what is left is to call what it made due.
    bool nothing_came = false;
    bool interrupted = false;  ///< By a signal, or a fork, which are seen to outside the eval.
    bool over = false;
  };

  void gather(pTHX_ Run& run);
  void wait(Until until) noexcept;
  void call_due(pTHX);
  void call_cleanups(pTHX);
  [[nodiscard]] bool is_over(pTHX_ const Run& run);
  void report_death(pTHX);

  Cells cells_;  // Before the loop, which looks at handles when it is closed.
  std::optional<EventLoop> loop_;
  Due due_;
  std::size_t watchers_ = 0;
  std::vector<SV*> prepares_;  ///< The started ones.
  std::vector<SV*> checks_;
  std::vector<SV*> cleanups_;
  std::vector<ChildWatch*> any_watches_;
  std::vector<ChildWatch*> named_children_;  ///< All the others.
  std::unique_ptr<Child> any_child_;
  Check sees_signals_;
  Run* run_ = nullptr;  ///< For run_unguarded(), which Perl calls without arguments.
  bool stop_ = false;
  unsigned forks_seen_;
  std::int64_t wall_minus_loop_ns_ = 0;
  std::int64_t compared_ns_;  ///< When that was measured, by the loop's clock.
  SV* turns_;                 ///< \&Tambour::_turns
  SV* sent_key_;              ///< "_ae_sent", hashed.
  HV* stashes_[kinds];
};

/// The state of this interpreter; made now if need be, where it croaks if the kernel refuses.
State& state(pTHX);

/// The same where there is one, else null. Its loop may be closed.
State* state_if_any(pTHX) noexcept;

/// A watcher has ended. Frees the state where it was the last thing that its interpreter had.
void watcher_ended(pTHX_ State& state) noexcept;

/// To be called once for each interpreter, and in each clone of one.
void boot(pTHX);
void boot_clone(pTHX);

}  // namespace tambour::perl
