// Player: opens the world of an input, runs its loop, and compares what happened with the model.
#include "fuzz/player.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fuzz/player_handles.h"

namespace tambour::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t callbacks_max = 1000;
constexpr std::uint64_t calls_max = 2000;
constexpr int depth_max = 3;
constexpr int iterations_max = 30;

constexpr BackendKind kinds[] = {BackendKind::epoll, BackendKind::poll, BackendKind::select,
                                 BackendKind::io_uring};

}  // namespace

Player::Player(std::span<const std::uint8_t> bytes, BackendSet backends)
    : input_(bytes), backends_(backends) {}

Player::~Player() = default;

/// The first byte selects the backend, in half of all cases the simulator; the second is its seed.
void Player::open_world() {
  const std::uint8_t backend = input_.byte();
  const std::uint8_t seed = input_.byte();
  if (backends_ == BackendSet::simulated || backend % 8 < 4) {
    sim::Options options;
    options.trace = false;
    noisy_ = backend % 4 == 1;
    if (noisy_) options.spurious_wakeup = 0.3;
    if (backend % 4 == 2) options.spurious_event = 0.3;
    if (backend % 4 == 3) options.lateness_max = 100us;
    model_.false_events = options.spurious_event > 0;
    descriptors_ = simulated_descriptors(seed, options);
  } else {
    LoopOptions options{.backend = kinds[backend % 4]};
    if (seed % 4 == 1) options.spin = 1us;
    if (seed % 4 == 2) options.submission_entries = 4, options.completion_entries = 8;
    options.measure_times = seed % 4 == 3;
    descriptors_ = kernel_descriptors(options);
  }
  loop_.emplace(descriptors_->options());
  model_.virtual_time = descriptors_->options().simulated_host != nullptr;
  model_.without_errors = loop_->backend().kind == BackendKind::select;
  exact_ = loop_->backend().kind != BackendKind::io_uring;
  note("loop on " + std::string(loop_->backend().name));
  open_hooks();
}

/// The model must know when the loop checks descriptors and the clock. Handles created by an input
/// have priorities from -1 to 1, so these hooks are the first and the last.
void Player::open_hooks() {
  first_prepare_.emplace(*loop_, HookPoint::prepare, [this] { begin_prepare(); });
  last_prepare_.emplace(*loop_, HookPoint::prepare, [this] { end_prepare(); });
  first_check_.emplace(*loop_, HookPoint::check, [this] { begin_check(); });
  last_check_.emplace(*loop_, HookPoint::check, [this] { end_check(); });
  first_prepare_->set_priority(priority_max);
  first_check_->set_priority(priority_max);
  last_prepare_->set_priority(priority_min);
  last_check_->set_priority(priority_min);
  for (auto* hook : {&first_prepare_, &last_prepare_, &first_check_, &last_check_}) {
    (*hook)->start();
    loop_->unref();
  }
  guard_.emplace(*loop_, [this] {
    note("guard expires");
    loop_->stop();
    stopping_ = true;
  });
  guard_->set_priority(priority_min);
}

void Player::close_world() {
  note("end");
  const bool loop_first = input_.flag();
  const auto destroy_all = [this] {
    for (auto& slot : watchers_) destroy(slot);
    for (auto& slot : timers_) destroy(slot);
    for (auto& slot : hooks_) destroy(slot);
    for (auto& slot : asyncs_) destroy(slot);
    for (auto& slot : signals_) destroy(slot);
    for (auto& slot : wall_timers_) destroy(slot);
  };
  if (!loop_first) destroy_all();
  if (!silent()) model_.destroying_loop();
  note("destroy loop");
  loop_.reset();
  if (!silent()) model_.destroyed_loop();
  for (auto& slot : timers_) check(slot.handle == nullptr || !slot.handle->is_started(), "started");
  for (auto& slot : wall_timers_)
    check(slot.handle == nullptr || !slot.handle->is_started(), "started");
  destroy_all();
  for (auto* hook : {&first_prepare_, &last_prepare_, &first_check_, &last_check_}) hook->reset();
  guard_.reset();
  for (File& file : files_) {
    if (file.fd >= 0) descriptors_->close(file.fd);
  }
}

Outcome Player::play() {
  open_world();
  open_files();
  while (!input_.empty() && !silent() && calls_ < calls_max) {
    act();
    if (!silent()) check_state();
  }
  close_world();
  return {.failure = model_.failure(), .trace = lines_, .callbacks = callbacks_};
}

void Player::check_state() {
  const std::int64_t references = model_.references() + references_;
  check(loop_->stats().references == references, "stats().references is not what was started");
  const std::int64_t due = model_.count_due();
  // pending_count() also counts wakeups of wake() and the loop's own watcher of signals.
  if (due >= 0 && !silent()) check(pending_count(*loop_) >= std::size_t(due), "pending_count()");
  for (auto& slot : timers_) {
    if (slot.handle == nullptr) continue;
    const Item& item = model_.at(slot.id);
    check(slot.handle->is_started() == item.started, "Timer::started()");
    if (item.started && item.due == Due::no)
      check(slot.handle->deadline().time_since_epoch().count() == item.deadline, "deadline()");
  }
  note_wall_times();
  for (auto& slot : watchers_) {
    if (slot.handle == nullptr) continue;
    check(slot.handle->is_started() == model_.at(slot.id).started, "FdWatcher::started()");
  }
}

// --- Running.

void Player::run(Run mode) {
  static constexpr const char* names[] = {"run_ready", "run_once", "run", "run_pending"};
  note(std::string(names[std::size_t(mode)]) + "()");
  const State state = state_;
  const int depth = depth_;
  const bool catches = depth == 0 || input_.flag();
  const bool waits = mode == Run::once || mode == Run::forever;
  const bool guards = waits && !guard_->is_started();
  if (depth == 0) iterations_left_ = iterations_max;
  // Ensures that every wait ends: the guard expires repeatedly.
  if (guards) {
    const bool is_virtual = descriptors_->options().simulated_host != nullptr;
    guard_->start(is_virtual ? std::min(delay(), Duration(1h)) : 20us, 20us);
  }
  ++depth_;
  bool thrown = false;
  try {
    run_loop(mode);
  } catch (const Thrown&) {
    thrown = true;
  }
  depth_ = depth;
  state_ = state;
  if (guards) guard_->stop();
  if (!thrown) return;
  note("an exception left it");
  model_.interrupted();
  if (!catches) throw Thrown{};
}

void Player::run_loop(Run run) {
  const std::uint64_t before = dispatches_;
  const std::uint64_t iterations = iterations_;
  switch (run) {
    case Run::ready:
      loop_->run_ready();
      break;
    case Run::once:
      loop_->run_once();
      break;
    case Run::forever:
      loop_->run();
      break;
    case Run::pending:
      model_.begin_pending();
      state_ = State::dispatching;
      run_pending(*loop_);
      break;
  }
  if (silent()) return;
  // A loop that had already been stopped returns at once.
  if (run == Run::pending || iterations_ != iterations) model_.end_dispatch("a run");
  check_return(run, before);
}

void Player::check_return(Run run, std::uint64_t dispatches_before) {
  if (run != Run::once && run != Run::forever) return;
  const bool stopped = std::exchange(stopping_, false);
  if (stopped) return;
  if (run == Run::once && (dispatches_ != dispatches_before || model_.disturbed())) return;
  const std::int64_t guards = guard_->is_started() ? 1 : 0;
  check(model_.references() + references_ + guards <= 0 && !model_.anything_due(),
        "run() returned though there is something to wait for");
}

std::map<int, unsigned> Player::look() {
  std::map<int, unsigned> seen;
  for (const auto& [id, item] : model_.items()) {
    if (item.kind != Kind::watcher || !item.started || item.failing) continue;
    if (!seen.contains(item.fd)) seen[item.fd] = descriptors_->ready(item.fd);
  }
  return seen;
}

void Player::begin_prepare() {
  if (silent()) return loop_->stop();
  state_ = State::preparing;
  ++iterations_;
  model_.begin_prepare();
  if (--iterations_left_ >= 0) return;
  loop_->stop();
  stopping_ = true;
}

/// The simulator's readiness, as reported by a watcher, does not distinguish a hang-up from other
/// causes.
unsigned Player::perhaps_hung_up(unsigned ready) {
  constexpr unsigned all = POLLIN | POLLOUT | POLLRDHUP;
  return descriptors_->options().simulated_host != nullptr && (ready & all) == all ? POLLHUP : 0;
}

bool Player::is_touched(int fd) const {
  return std::ranges::any_of(
      files_, [&](const File& file) { return file.fd == fd && touched_.contains(file.channel); });
}

void Player::end_prepare() {
  if (silent()) return;
  state_ = State::waiting;
  model_.look_at_wall_clock(descriptors_->wall_now_ns());
  before_wait_ = look();
  // io_uring releases closed files in the wait, which may close a file and hang up on its peer: the
  // model checks again after the wait.
  if (exact_) {
    std::map<int, Readiness> seen;
    for (const auto& [fd, ready] : before_wait_)
      seen[fd] = {.must = ready, .may = ready | perhaps_hung_up(ready)};
    model_.wait(seen);
  }
}

void Player::begin_check() {
  if (silent()) return;
  if (!exact_) {
    std::map<int, Readiness> seen;
    for (const auto& [fd, ready] : look()) {
      const unsigned before = before_wait_[fd];
      seen[fd] = {.must = ready & before, .may = ready | before};
      // It may also report a state that lasted only a moment, and the rest in the next iteration.
      constexpr unsigned any = POLLIN | POLLOUT | POLLRDHUP | POLLERR | POLLHUP;
      if (is_touched(fd)) seen[fd] = {.must = 0, .may = seen[fd].may | any};
    }
    model_.wait(seen);
    touched_.clear();
  }
  state_ = State::checking;
  model_.begin_check();
}

void Player::end_check() {
  if (silent() || state_ != State::checking) return;
  state_ = State::dispatching;
  note_wall_times();
  model_.begin_dispatch(loop_->now().time_since_epoch().count(), descriptors_->wall_now_ns());
  note("iteration at " + std::to_string(loop_->now().time_since_epoch().count()));
}

void Player::called(Id id, std::uint32_t tag, Events events) {
  ++callbacks_;
  ++dispatches_;
  if (silent()) return;
  const auto found = model_.items().find(id);
  note((found == model_.items().end() ? "unknown " + std::to_string(id)
                                      : Model::name(id, found->second)) +
       " is called with " + std::to_string(unsigned(events)));
  const bool cleaning_up = model_.items().contains(id) && model_.at(id).kind == Kind::cleanup;
  model_.called(id, tag, events, descriptors_->wall_now_ns());
  if (silent()) {
    if (!cleaning_up) loop_->stop();
    return;
  }
  if (!cleaning_up) act_inside();
}

void Player::task_called(std::uint32_t number) {
  ++callbacks_;
  ++dispatches_;
  if (silent()) return;
  note("task " + std::to_string(number) + " is run");
  model_.task_called(number);
  act_inside();
}

void Player::act_inside() {
  if (callbacks_ > callbacks_max) {
    loop_->stop();
    stopping_ = true;
    return;
  }
  ++depth_;
  for (std::size_t count = input_.below(4); count > 0 && !silent(); --count) act();
  --depth_;
  if (state_ == State::dispatching && !silent() && input_.byte() == 255) {
    note("throw");
    throw Thrown{};
  }
}

void Player::act_on_running() {
  const Run mode = Run(input_.below(4));
  const bool possible = depth_ == 0 || (state_ == State::dispatching && depth_ < depth_max * 2);
  if (possible && callbacks_ < callbacks_max) run(mode);
}

// --- Helpers.

void Player::note(const std::string& line) {
  lines_.append(std::size_t(2 * depth_), ' ').append(line) += '\n';
  static const bool at_once = std::getenv("TAMBOUR_FUZZ_TRACE") != nullptr;
  if (at_once) std::fprintf(stderr, "%*s%s\n", 2 * depth_, "", line.c_str());
}

void Player::check(bool holds, const char* text) {
  if (!holds) model_.fail(std::string("wrong: ") + text);
}

Duration Player::delay() {
  const std::uint8_t kind = input_.byte();
  switch (kind % 8) {
    case 0:
      return Duration(0);
    case 1:
      return Duration(input_.byte());
    case 2:
    case 3:
      return std::chrono::microseconds(input_.byte());
    case 4:
    case 5:
      return std::chrono::milliseconds(input_.byte());
    case 6:
      return kind < 128 ? Duration(-1) : Duration(std::chrono::hours(input_.byte()));
    default:
      return kind < 128 ? Duration::max() : Duration::min();
  }
}

Events Player::events() {
  static constexpr Events choices[] = {Events::read,
                                       Events::write,
                                       Events::read | Events::write,
                                       Events::read | Events::closed,
                                       Events::none,
                                       Events::urgent,
                                       Events::read | Events::write | Events::closed,
                                       Events::read | Events::urgent};
  return choices[input_.below(std::size(choices))];
}

Outcome play(std::span<const std::uint8_t> bytes, BackendSet backends) {
  return Player(bytes, backends).play();
}

}  // namespace tambour::fuzz
