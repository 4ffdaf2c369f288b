// Runs one input: decodes the bytes into calls on a loop, makes the calls, and checks each callback
// against the model. Callbacks make calls too, decoded from the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include <tambour/tambour.h>

#include "fuzz/descriptors.h"
#include "fuzz/input.h"
#include "fuzz/model.h"

namespace tambour::fuzz {

/// Which backends an input may select.
enum class BackendSet : std::uint8_t { all, simulated };

struct Outcome {
  std::string failure;  ///< Empty: no failure.
  std::string trace;    ///< The calls, one per line.
  std::uint64_t callbacks = 0;
};

class Player {
 public:
  Player(std::span<const std::uint8_t> bytes, BackendSet backends);
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  ~Player();

  Outcome play();

 private:
  struct Thrown {};  ///< Thrown by callbacks on purpose.

  /// The function object of all callbacks.
  struct Called {
    Player* player;
    Id id;
    std::uint32_t tag;
    void operator()() const { player->called(id, tag, Events::none); }
    void operator()(int) const { player->called(id, tag, Events::none); }
    void operator()(Events events) const { player->called(id, tag, events); }
  };

  template <class Handle>
  struct Slot {
    std::unique_ptr<Handle> handle;
    Id id = 0;
  };
  struct File {
    int fd = -1;
    int channel = 0;
    int side = 0;
  };
  enum class State : std::uint8_t { outside, preparing, waiting, checking, dispatching };

  void open_world();
  void open_hooks();
  void close_world();

  // Calls, by the type of handle.
  void act();
  void act_on_watcher();
  void act_on_started_watcher(Slot<FdWatcher>& slot);
  void act_on_timer();
  void start_timer(Slot<Timer>& slot);
  void act_on_hook();
  void act_on_async();
  void act_on_signal();
  void act_on_wall_timer();
  void start_wall_timer(Slot<WallTimer>& slot, std::size_t mode);
  void start_by_asking(Slot<WallTimer>& slot);
  [[nodiscard]] WallTime answer(Id id, WallTime now);
  void set_wall_clock();
  void note_wall_times();
  void act_on_file();
  void act_on_loop();
  void reopen();
  void act_on_running();

  void ensure(Slot<FdWatcher>& slot);
  void ensure(Slot<Timer>& slot);
  void ensure(Slot<Hook>& slot);
  void ensure(Slot<Signal>& slot);
  void ensure(Slot<WallTimer>& slot);
  template <class Handle, std::size_t size>
  void move(std::array<Slot<Handle>, size>& slots, Slot<Handle>& slot);
  template <class Handle>
  void destroy(Slot<Handle>& slot);
  template <class Handle>
  void set_priority(Slot<Handle>& slot);
  template <class Handle, class Function>
  void set_function(Slot<Handle>& slot);
  template <class Function>
  Function function(Id id, std::uint32_t tag);

  void start(Slot<FdWatcher>& slot);
  void set_descriptor(Slot<FdWatcher>& slot, int fd);
  void close_file(File& file);
  void open_files();
  void write(const File& file, std::size_t size);
  [[nodiscard]] bool is_open(int fd) const;
  void check_resumed(std::int64_t suspended_from, std::int64_t suspended_to);
  void note_fd(Slot<FdWatcher>& slot, int fd);

  // Running.
  enum class Run : std::uint8_t { ready, once, forever, pending };
  void run(Run mode);
  void run_loop(Run run);
  void check_return(Run run, std::uint64_t dispatches_before);
  void check_state();

  // Called by the loop.
  void called(Id id, std::uint32_t tag, Events events);
  void task_called(std::uint32_t number);
  void act_inside();
  void begin_prepare();
  void end_prepare();
  void begin_check();
  void end_check();

  [[nodiscard]] std::map<int, unsigned> look();
  unsigned perhaps_hung_up(unsigned ready);
  [[nodiscard]] bool is_touched(int fd) const;
  Duration delay();
  Events events();
  int watched_number();
  void note(const std::string& line);
  void check(bool holds, const char* text);
  [[nodiscard]] bool silent() const { return !model_.failure().empty(); }

  Input input_;
  BackendSet backends_;
  bool exact_ = true;   ///< Descriptors change only by calls of the player.
  bool noisy_ = false;  ///< Waits may end early or late.
  Model model_;
  std::unique_ptr<Descriptors> descriptors_;
  std::optional<EventLoop> loop_;

  std::array<Slot<FdWatcher>, 6> watchers_;
  std::array<Slot<Timer>, 6> timers_;
  std::array<Slot<Hook>, 4> hooks_;
  std::array<Slot<Async>, 2> asyncs_;
  std::array<Slot<Signal>, 3> signals_;
  std::array<Slot<WallTimer>, 3> wall_timers_;
  std::array<File, 8> files_;
  /// Whether the loop knows which open file the descriptor refers to now.
  std::map<int, bool> announced_;
  std::optional<Hook> first_prepare_, last_prepare_, first_check_, last_check_;
  std::optional<Timer> guard_;

  State state_ = State::outside;
  std::map<int, unsigned> before_wait_;
  int depth_ = 0;
  int iterations_left_ = 0;
  int channels_ = 0;
  std::set<int> touched_;  ///< Channels that have changed since the last wait.
  std::int64_t references_ = 0;
  std::uint32_t tasks_ = 0;
  std::uint32_t tags_ = 0;
  std::uint64_t dispatches_ = 0;
  std::uint64_t iterations_ = 0;
  std::uint64_t callbacks_ = 0;
  std::uint64_t calls_ = 0;
  bool stopping_ = false;
  bool starting_ = false;  ///< start() of a wall-clock timer is asking for its time.
  std::string lines_;
};

/// Runs one input. If it fails, the outcome contains the trace.
Outcome play(std::span<const std::uint8_t> bytes, BackendSet backends = BackendSet::all);

}  // namespace tambour::fuzz
