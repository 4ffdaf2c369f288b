// The state of one Perl interpreter: the loop, the due watchers, and the run.
#pragma once

#include "cells.h"
#include "due.h"
#include "watcher.h"

namespace tambour::perl {

/// The packages that watchers are blessed into, by Kind.
inline constexpr std::size_t kinds = std::size_t(Kind::cleanup) + 1;

/// When a run ends.
enum class Until : std::uint8_t {
  stopped,  ///< After stop(), or when no active watcher is left.
  once,     ///< After the callbacks of one wait, or when no active watcher is left.
  ready,    ///< After the due callbacks, without waiting.
  polled,   ///< As once, but waits even without active watchers: for AnyEvent.
  sent,     ///< When a condvar has been sent; waits even without active watchers.
  cleaned,  ///< After the cleanup callbacks; no others are called: the program ends.
};

/// Belongs to one interpreter and its thread. Created on first use.
class State {
 public:
  explicit State(pTHX);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Must not be called after close().
  [[nodiscard]] EventLoop& loop() noexcept { return *loop_; }
  /// Closes the loop. Called on its thread; no callback is called afterwards.
  void close() noexcept { loop_.reset(); }
  [[nodiscard]] bool closed() const noexcept { return !loop_.has_value(); }
  [[nodiscard]] HV* stash(Kind kind) const noexcept { return stashes_[std::size_t(kind)]; }

  /// Runs the loop and the due callbacks. If a callback dies, calls $Tambour::DIED.
  void run(pTHX_ Until until, HV* condvar = nullptr);

  /// The body of run(), without error handling; run() calls it through Perl's eval.
  void run_unguarded(pTHX);

  void stop() noexcept { stop_ = true; }

  /// Reopens the loop in the child of a fork(2). Called before the loop is used.
  void notice_fork(pTHX);

  /// The start time of the current iteration, by the wall clock.
  [[nodiscard]] NV now() noexcept;
  void update_now() noexcept;

  /// Marks a watcher as due. Called from callbacks of the loop; cannot fail.
  void note(SV* self) noexcept { due_.add(self); }
  void note(SV* self, Events events) noexcept {
    tag_of(self).events |= static_cast<std::uint16_t>(events);
    due_.add(self);
  }
  void clear_due(SV* self) noexcept { due_.remove(self); }
  [[nodiscard]] std::size_t due_count() const noexcept { return due_.size(); }

  /// Count the existing watchers. add_watcher() throws std::bad_alloc.
  void add_watcher() { due_.reserve(++watchers_); }
  void remove_watcher() noexcept { --watchers_; }
  [[nodiscard]] bool has_watchers() const noexcept { return watchers_ != 0; }

  [[nodiscard]] Cells& cells() noexcept { return cells_; }
  [[nodiscard]] std::vector<SV*>& hooks(Kind kind) noexcept {
    return kind == Kind::prepare ? prepares_ : kind == Kind::check ? checks_ : cleanups_;
  }
  /// Start and stop a watcher of all children.
  Result<> watch_any_child(ChildWatch& watch);
  void unwatch_any_child(ChildWatch& watch) noexcept;
  /// Reports the exit of a child with watchers of its own to watchers of any child, once.
  void report_to_any_child(const ChildWatch& named, int status);
  [[nodiscard]] std::vector<ChildWatch*>& named_children() noexcept { return named_children_; }

 private:
  struct Run {
    Until until;
    HV* condvar;
    bool gathered = false;  ///< The loop has run; its due callbacks remain to be called.
    bool nothing_came = false;
    bool interrupted = false;  ///< By a signal or fork, which are handled outside the eval.
    bool over = false;
  };

  void poll_loop(pTHX_ Run& run);
  void wait(Until until) noexcept;
  void call_due(pTHX);
  void call_cleanups(pTHX);
  [[nodiscard]] bool is_over(pTHX_ const Run& run);
  void report_death(pTHX);

  Cells cells_;  // Before the loop, which accesses handles when it is closed.
  std::optional<EventLoop> loop_;
  Due due_;
  std::size_t watchers_ = 0;
  std::vector<SV*> prepares_;  ///< Started hooks only.
  std::vector<SV*> checks_;
  std::vector<SV*> cleanups_;
  std::vector<ChildWatch*> any_watches_;
  std::vector<ChildWatch*> named_children_;  ///< Watchers of single children.
  std::unique_ptr<Child> any_child_;
  Check signal_check_;
  Run* run_ = nullptr;  ///< Argument of run_unguarded(), which Perl calls without any.
  bool stop_ = false;
  unsigned forks_seen_;
  std::int64_t wall_minus_loop_ns_ = 0;
  std::int64_t compared_ns_;  ///< Time of that measurement, by the loop's clock.
  SV* run_callbacks_;         ///< \&Tambour::_run_callbacks
  SV* sent_key_;              ///< "_ae_sent" with its hash.
  HV* stashes_[kinds];
};

/// Returns the state of this interpreter; creates it on first use, and croaks if that fails.
State& state(pTHX);

/// Returns the state of this interpreter or null. Its loop may be closed.
State* state_if_any(pTHX) noexcept;

/// Called when a watcher was destroyed. Frees the state if the interpreter is ending and has no
/// more.
void watcher_ended(pTHX_ State& state) noexcept;

/// boot() is called once per interpreter, boot_clone() in each clone of one.
void boot(pTHX);
void boot_clone(pTHX);

}  // namespace tambour::perl
