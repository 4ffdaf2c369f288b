// A simple model of the loop: which callbacks are due, with which events and in which order.
//
// The model uses nothing of the implementation. The player reports every call and every callback
// to it, and the model detects callbacks that are wrong. It distinguishes callbacks that must come
// from those that may come: an edge-triggered watcher, for example, may receive more events than it
// must.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <tambour/loop/readiness.h>

namespace tambour::fuzz {

enum class Kind : std::uint8_t {
  watcher,
  timer,
  prepare,
  check,
  idle,
  cleanup,
  fork,
  async,
  signal,
  wall_timer,
};

/// The state of a callback: not due, due in the next dispatch, or due in the current one.
enum class Due : std::uint8_t { no, next, now };

/// The readiness of a descriptor, in values of poll(2): what must be reported and what may be.
struct Readiness {
  unsigned must = 0;
  unsigned may = 0;
};

using Id = std::uint32_t;

struct Item {
  Kind kind;
  std::uint32_t tag = 0;  ///< Identifies the function that is to be called.
  bool started = false;
  int priority = 0;

  Due due = Due::no;
  bool certain = false;  ///< Set if the callback must come; otherwise it may.
  /// It may have become due after others were dispatched, so its order by priority is not checked.
  bool late = false;
  int due_priority = 0;

  // Watchers.
  int fd = -1;
  Events interest = Events::none;
  bool edge = false;
  bool fresh = false;       ///< Edge-triggered: every ready event is a new edge.
  bool fresh_read = false;  ///< Edge-triggered: readability is a new edge.
  bool loose = false;       ///< A fed event may come now or in the next iteration.
  bool failing = false;     ///< Its descriptor is invalid.
  Events must = Events::none;
  Events may = Events::none;

  // Timers, in nanoseconds.
  std::int64_t deadline = 0;
  std::int64_t period = 0;
  bool repeating = false;
  std::int64_t due_deadline = 0;
  std::uint64_t batch = 0;  ///< The iteration in which it became due.

  bool overdue = false;        ///< Wall-clock timer: it was due before the wait.
  bool asked = false;          ///< Wall-clock timer: it may be queued without being due.
  bool computed = false;       ///< Wall-clock timer: it computes its next time before its callback.
  std::int64_t was_asked = 0;  ///< The deadline before the last computation.

  bool sent = false;     ///< Asyncs.
  bool raised = false;   ///< Signals: the signal was sent, and the loop has not checked since.
  bool perhaps = false;  ///< Signals: it was started soon after the signal was sent.
  int number = 0;        ///< Signals.
};

class Model {
 public:
  /// select(2) does not report errors.
  bool without_errors = false;
  /// Waits may report spurious events.
  bool false_events = false;
  /// The wall clock is simulated, so expirations of wall-clock timers are certain.
  bool virtual_time = false;

  Id add(Kind kind);
  void remove(Id id) { items_.erase(id); }
  Item& at(Id id) { return items_.at(id); }
  [[nodiscard]] std::map<Id, Item>& items() noexcept { return items_; }

  void start(Id id);
  void stop(Id id);
  void set_interest(Id id, Events interest, bool edge);
  void feed(int fd, Events events);
  void arm(Id id, std::int64_t deadline);
  void arm_wall(Id id, std::int64_t deadline);
  /// A computed timer was asked for its next time, which is `deadline`.
  void answered(Id id, std::int64_t deadline);
  void wall_clock_set(std::int64_t now_ns);
  void reopened();
  void feed_signal(int number);
  void raise_signal(int number);

  /// Internal events of the loop may be due, for which idle hooks must wait.
  void disturb() noexcept { disturbed_ = 3; }
  [[nodiscard]] bool disturbed() const noexcept { return disturbed_ > 0 || rings_; }

  // The phases of an iteration, in order.
  void begin_prepare();
  /// The wall clock before the loop reads it and waits.
  void look_at_wall_clock(std::int64_t now_ns);
  void wait(const std::map<int, Readiness>& descriptors);
  void begin_check();
  void begin_dispatch(std::int64_t now_ns, std::int64_t wall_now_ns);
  /// run_pending() now invokes the callbacks that are due.
  void begin_pending();
  /// All callbacks that were due have been invoked.
  void end_dispatch(std::string_view after);
  /// An exception has left the loop: what was due remains due until the next iteration.
  void interrupted() noexcept { interrupted_ = true; }

  void posted(std::uint32_t number) { posted_.push_back(number); }
  void task_called(std::uint32_t number);
  void called(Id id, std::uint32_t tag, Events events, std::int64_t wall_now_ns);
  void destroying_loop();
  void destroyed_loop();

  [[nodiscard]] std::int64_t references() const;
  [[nodiscard]] bool anything_due() const;
  /// Returns how many callbacks are due, or -1 if that is not certain.
  [[nodiscard]] std::int64_t count_due() const;

  /// Returns the first failure, or an empty string.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  void fail(std::string why);
  static std::string name(Id id, const Item& item);

 private:
  static void queue(Item& item, Due due, bool certain);
  static void drop(Item& item) noexcept;
  void collect_events_of_wait(Item& watcher, const std::map<int, Readiness>& descriptors);
  void check_order(Id id, const Item& called);
  void expire(std::int64_t now_ns);
  void expire_by_wall_clock(std::int64_t now_ns);
  void queue_idle();

  std::map<Id, Item> items_;
  std::deque<std::uint32_t> posted_;
  std::deque<std::uint32_t> taken_;
  Id next_id_ = 1;
  std::uint64_t iteration_ = 0;
  int disturbed_ = 0;   ///< For how many more iterations.
  bool rings_ = false;  ///< Set permanently: the timerfd may wake the loop at any time.
  bool interrupted_ = false;
  std::map<int, int> raised_;  ///< For how many more iterations a raised signal may be delivered.
  std::string failure_;
};

}  // namespace tambour::fuzz
