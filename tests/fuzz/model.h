// What a loop has to do, written plainly: which callbacks are due, with what, in which order.
//
// The model knows nothing of the library's inside. It is told of every call that is made, and of
// every callback, and says what is wrong with that. What may come and what must come are two
// things: an edge-triggered watcher, say, may be told more than it must.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <tambour/events.h>

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

/// Where a callback stands: not due, due in the next dispatch, or in the one that is under way.
enum class Due : std::uint8_t { no, next, now };

/// What a descriptor is ready for, in the values of poll(2): what is so for certain, and what may
/// be told.
struct Readiness {
  unsigned must = 0;
  unsigned may = 0;
};

using Id = std::uint32_t;

struct Item {
  Kind kind;
  std::uint32_t tag = 0;  ///< Of the function that is to be called.
  bool started = false;
  int priority = 0;

  Due due = Due::no;
  bool certain = false;  ///< It must come; otherwise it may.
  bool late = false;     ///< Becomes due while others run, so that its priority may come too late.
  int due_priority = 0;

  // Watchers.
  int fd = -1;
  Events interest = Events::none;
  bool edge = false;
  bool fresh = false;       ///< Edges: all that is ready is news,
  bool fresh_read = false;  ///< that there is something to read is.
  bool loose = false;       ///< An event was fed that may come now or in the next turn.
  bool failing = false;     ///< Its descriptor is none.
  Events must = Events::none;
  Events may = Events::none;

  // Timers: nanoseconds.
  std::int64_t deadline = 0;
  std::int64_t period = 0;
  bool repeating = false;
  std::int64_t due_deadline = 0;
  std::uint64_t batch = 0;  ///< In which turn it became due.

  bool overdue = false;        ///< Wall-clock timers: it was due before the wait;
  bool asked = false;          ///< it may be queued without being due;
  bool computed = false;       ///< it asks for its next time, before it calls,
  std::int64_t was_asked = 0;  ///< which then was this.

  bool sent = false;     ///< Asyncs.
  bool raised = false;   ///< Signals: the process was sent it, and the loop has not looked since.
  bool perhaps = false;  ///< Signals: it was started soon after the process was sent its signal.
  int number = 0;        ///< Signals.
};

class Model {
 public:
  /// What select(2) cannot tell: errors.
  bool without_errors = false;
  /// Waits may report what is not ready.
  bool false_events = false;
  /// The wall clock is the simulator's: what is due by it is so for certain.
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
  /// A computed timer was asked, and has said when it calls next.
  void answered(Id id, std::int64_t deadline);
  void wall_clock_set(std::int64_t now_ns);
  void reopened();
  void feed_signal(int number);
  void raise_signal(int number);

  /// Something of the loop's own may be due, which idle hooks have to wait for.
  void disturb() noexcept { disturbed_ = 3; }
  [[nodiscard]] bool disturbed() const noexcept { return disturbed_ > 0 || rings_; }

  // The places of a turn, in their order.
  void begin_prepare();
  /// The wall clock, before the loop looks at it and waits.
  void look_at_wall_clock(std::int64_t now_ns);
  void wait(const std::map<int, Readiness>& descriptors);
  void begin_check();
  void begin_dispatch(std::int64_t now_ns, std::int64_t wall_now_ns);
  /// What was due is run now, by run_pending().
  void begin_pending();
  /// All that was due has been called.
  void end_dispatch(std::string_view after);
  /// An exception has left the loop: what was due is so still, until the next turn.
  void interrupted() noexcept { interrupted_ = true; }

  void posted(std::uint32_t number) { posted_.push_back(number); }
  void task_called(std::uint32_t number);
  void called(Id id, std::uint32_t tag, Events events, std::int64_t wall_now_ns);
  void destroying_loop();
  void destroyed_loop();

  [[nodiscard]] std::int64_t references() const;
  [[nodiscard]] bool anything_due() const;
  /// How many callbacks are due, or -1 where that is not certain.
  [[nodiscard]] std::int64_t count_due() const;

  /// The first thing that went wrong, or empty.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  void fail(std::string why);
  static std::string name(Id id, const Item& item);

 private:
  static void queue(Item& item, Due due, bool certain);
  static void drop(Item& item) noexcept;
  void told_by_wait(Item& watcher, const std::map<int, Readiness>& descriptors);
  void check_order(Id id, const Item& called);
  void expire(std::int64_t now_ns);
  void expire_by_wall_clock(std::int64_t now_ns);
  void queue_idle();

  std::map<Id, Item> items_;
  std::deque<std::uint32_t> posted_;
  std::deque<std::uint32_t> taken_;
  Id next_id_ = 1;
  std::uint64_t turn_ = 0;
  int disturbed_ = 0;   ///< For how many turns more.
  bool rings_ = false;  ///< From now on, at any time.
  bool interrupted_ = false;
  std::map<int, int> raised_;  ///< For how many turns more a raised signal may be news.
  std::string failure_;
};

}  // namespace tambour::fuzz
