// LoopGroup: starts the threads, names and pins them, waits until their loops exist, and stops them
// in order.
#include <tambour/threads/loop_group.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <source_location>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <tambour/loop/async.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/process_number.h"
#include "loop/core.h"

namespace tambour {
namespace {

/// The CPUs on which this thread, and the threads it creates, may run.
std::vector<int> usable_processors() {
  std::vector<int> usable;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(processor, &set)) usable.push_back(processor);
    }
  }
  // sched_getaffinity(2) fails with EINVAL if the machine has more CPUs than cpu_set_t can hold.
  for (int i = 0; usable.empty() && i < int(std::thread::hardware_concurrency()); ++i)
    usable.push_back(i);
  if (usable.empty()) usable.push_back(0);
  return usable;
}

void name_this_thread(const std::string& name, std::size_t index) {
  constexpr std::size_t longest = 15;  // pthread_setname_np(3)
  const std::string number = std::to_string(index);
  std::string cut(name, 0, longest - std::min(longest, number.size() + 1));
  cut += '/';
  cut += number;
  ::pthread_setname_np(::pthread_self(), cut.c_str());
}

void pin_this_thread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set))
    throw std::system_error(system_error(error), "LoopGroup");
}

/// The finalizer of MurmurHash3: spreads neighbouring values.
constexpr std::uint64_t mixed(std::uint64_t value) noexcept {
  value = (value ^ value >> 33) * 0xff51afd7ed558ccdU;
  value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53U;
  return value ^ value >> 33;
}

}  // namespace

namespace detail::threads {

/// The threads pass through their phases in lockstep: no loop runs before all loops exist, no
/// thread destroys the objects its loop owns before all have returned from run(), and no thread
/// destroys its loop before all have done so. A callback or destructor can therefore always post to
/// another loop of the group.
class LoopGroupState {
 public:
  LoopGroupState(const LoopGroupOptions& options, const std::source_location& created_at);
  LoopGroupState(const LoopGroupState&) = delete;
  LoopGroupState& operator=(const LoopGroupState&) = delete;

  [[nodiscard]] const auto& members() const noexcept { return members_; }
  [[nodiscard]] auto& members() noexcept { return members_; }
  [[nodiscard]] std::size_t take_next_index() noexcept {
    return next_index_.fetch_add(1, std::memory_order_relaxed) % members_.size();
  }
  /// False in a child after fork(2): the threads do not exist there, and one of them may have held
  /// the lock.
  [[nodiscard]] bool is_of_this_process() const noexcept { return process_.is_current(); }
  /// A child that one of the threads has forked is not in the group.
  [[nodiscard]] bool in_group_thread() const noexcept {
    return of_this_thread == this && is_of_this_process();
  }
  /// Expires when the group is destroyed, also if this state is leaked.
  [[nodiscard]] std::weak_ptr<const void> lifetime() const noexcept { return exists_; }
  [[nodiscard]] std::size_t this_index() const noexcept {
    return in_group_thread() ? index_of_this_thread : members_.size();
  }

  /// Aborts with a message on a thread of the group. `call`: what the program did.
  void check_outside(const char* call, const char* fix) const noexcept {
    if (in_group_thread()) [[unlikely]]
      base::fail_check(
          "%s by a thread of the LoopGroup (created in %s:%u), which it would wait for; %s", call,
          created_at_.file_name(), unsigned(created_at_.line()), fix);
  }

  /// The loop of a member; `function` is the public function that the program called, for the
  /// message.
  [[nodiscard]] EventLoop& loop_at(std::size_t index, const char* function) const noexcept {
    if (!is_of_this_process()) [[unlikely]]
      base::fail_check(
          "LoopGroup::%s() was called in a child after fork(2), in which the threads of the group "
          "(created in %s:%u) do not exist; create the group after the fork",
          function, created_at_.file_name(), unsigned(created_at_.line()));
    EventLoop* const loop = members_[index].loop.load(std::memory_order_relaxed);
    if (loop == nullptr) [[unlikely]]
      base::fail_check(
          "LoopGroup::%s() was called after join(), which has destroyed the loops of the group; "
          "call it before join()",
          function);
    return *loop;
  }

  bool for_each(Callback<void(EventLoop&)> function);
  void post_to_all(Callback<void(EventLoop&)> function);
  void stop() noexcept;
  /// In a child after fork(2), whose parent's threads may have been using the loops meanwhile.
  static void leak(const std::shared_ptr<LoopGroupState>& state) noexcept {
    state->exists_.reset();
    state->leaked_self_ = state;
  }
  /// Waits for the threads and returns the first exception that one of them threw.
  std::exception_ptr end() noexcept;

 private:
  // One cache line per member: accepting threads write the loads.
  struct alignas(64) Member {
    std::thread thread;
    /// Null after end(). Relaxed is enough: no other thread sees the group before its loops exist.
    std::atomic<EventLoop*> loop{nullptr};
    /// Stops the loop in its next iteration, which runs the tasks that were posted before.
    Async* stopper = nullptr;
    std::atomic<std::ptrdiff_t> load{0};
  };
  enum class Phase : std::uint8_t { opening, running, ended, dropped, failed };
  class Call;

  static thread_local constinit const LoopGroupState* of_this_thread;
  static thread_local constinit std::size_t index_of_this_thread;

  void live(std::size_t index, const LoopGroupOptions& options, int processor);
  void run(EventLoop& loop) noexcept;
  /// Called by each thread when it has finished a phase; the last one starts phase `next`.
  void arrive(Phase next) noexcept;
  Phase wait_for(Phase phase) noexcept;
  void note_exception() noexcept;

  const base::OwningProcess process_;
  std::vector<Member> members_;
  std::atomic<std::size_t> next_index_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{false};  ///< Every member's wakeup has been sent.

  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::opening;
  std::size_t arrived_ = 0;
  bool joined_ = false;
  std::exception_ptr thrown_;
  std::source_location created_at_;
  std::shared_ptr<const void> exists_ = std::make_shared<char>();
  std::shared_ptr<LoopGroupState> leaked_self_;  ///< After leak(), so that it is never destroyed.
};

thread_local constinit const LoopGroupState* LoopGroupState::of_this_thread = nullptr;
thread_local constinit std::size_t LoopGroupState::index_of_this_thread = 0;

LoopGroupState::LoopGroupState(const LoopGroupOptions& options,
                               const std::source_location& created_at)
    : created_at_(created_at) {
  if (options.loop.simulated_host != nullptr || options.loop.backend == BackendKind::simulated)
    throw std::system_error(system_error(EINVAL), "LoopGroup");
  const std::vector<int> processors = usable_processors();
  members_ = std::vector<Member>(options.threads != 0 ? options.threads : processors.size());
  std::size_t begun = 0;
  try {
    for (; begun < members_.size(); ++begun) {
      const int processor = options.pin ? processors[begun % processors.size()] : -1;
      members_[begun].thread =
          std::thread([this, begun, options, processor] { live(begun, options, processor); });
    }
  } catch (...) {
    note_exception();
    const std::lock_guard lock(mutex_);
    phase_ = Phase::failed;
  }
  changed_.notify_all();
  if (wait_for(Phase::running) != Phase::failed) return;
  for (Member& member : members_) {
    if (member.thread.joinable()) member.thread.join();
  }
  std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void LoopGroupState::live(std::size_t index, const LoopGroupOptions& options, int processor) {
  of_this_thread = this;
  index_of_this_thread = index;
  try {
    name_this_thread(options.name, index);
    if (processor >= 0) pin_this_thread(processor);
    EventLoop loop(options.loop, created_at_);
    // Also keeps run() from returning.
    Async stopper(loop, [&loop] { loop.stop(); });
    stopper.start();
    members_[index].loop = &loop;
    members_[index].stopper = &stopper;
    arrive(Phase::running);
    if (wait_for(Phase::running) == Phase::failed) return;
    run(loop);
    arrive(Phase::ended);
    wait_for(Phase::ended);
    loop::core_of(loop).drop_owned();
    arrive(Phase::dropped);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return joined_; });
  } catch (...) {
    // The loop could not be created.
    note_exception();
    const std::lock_guard lock(mutex_);
    phase_ = Phase::failed;
    changed_.notify_all();
  }
}

void LoopGroupState::run(EventLoop& loop) noexcept {
  try {
    loop.run();
  } catch (...) {
    note_exception();
  }
  stop();
}

void LoopGroupState::arrive(Phase next) noexcept {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::failed || ++arrived_ < members_.size()) return;
  arrived_ = 0;
  phase_ = next;
  changed_.notify_all();
}

LoopGroupState::Phase LoopGroupState::wait_for(Phase phase) noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return phase_ >= phase; });
  return phase_;
}

void LoopGroupState::note_exception() noexcept {
  const std::lock_guard lock(mutex_);
  if (thrown_ == nullptr) thrown_ = std::current_exception();
}

void LoopGroupState::stop() noexcept {
  // A child after fork(2) would wake up the loops of its parent.
  if (!is_of_this_process() || stopping_.exchange(true)) return;
  for (Member& member : members_) member.stopper->send();
  stopped_ = true;
  stopped_.notify_all();
}

std::exception_ptr LoopGroupState::end() noexcept {
  wait_for(Phase::dropped);
  // A thread may still be in stop() and send the last wakeup.
  stopped_.wait(false);
  {
    const std::lock_guard lock(mutex_);
    joined_ = true;
  }
  changed_.notify_all();
  for (Member& member : members_) {
    if (member.thread.joinable()) member.thread.join();
    member.loop.store(nullptr, std::memory_order_relaxed);
  }
  return std::exchange(thrown_, nullptr);
}

/// One call of for_each(), shared by the threads that have not run it yet.
class LoopGroupState::Call {
 public:
  Call(LoopGroupState& state, Callback<void(EventLoop&)> function)
      : state_(state), left_(state.members_.size()), function_(std::move(function)) {}

  /// The last `count` calls will not be made. The caller must hold the lock.
  void give_up(std::size_t count, std::exception_ptr why) noexcept {
    left_ -= count;
    thrown_ = std::move(why);
  }

  void make(EventLoop& loop) noexcept {
    std::exception_ptr thrown;
    try {
      function_(loop);
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(state_.mutex_);
    if (thrown_ == nullptr) thrown_ = thrown;
    if (--left_ == 0) state_.changed_.notify_all();
  }

  bool wait() {
    std::unique_lock lock(state_.mutex_);
    // A function posted after its loop stopped is never run, so the wait also ends when the group
    // stops.
    state_.changed_.wait(lock, [this] { return left_ == 0 || state_.phase_ >= Phase::dropped; });
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    return left_ == 0;
  }

 private:
  LoopGroupState& state_;
  std::size_t left_;
  std::exception_ptr thrown_;
  Callback<void(EventLoop&)> function_;
};

bool LoopGroupState::for_each(Callback<void(EventLoop&)> function) {
  check_outside("LoopGroup::for_each(), or the destructor of a server of the group, was called",
                "use post_to_all(), or destroy the server on another thread");
  if (!is_of_this_process()) return false;
  const auto call = std::make_shared<Call>(*this, std::move(function));
  {
    // No loop is destroyed while the lock is held.
    std::unique_lock lock(mutex_);
    if (phase_ != Phase::running) {
      // The loops may be destroying tasks and objects that use what the caller destroys next.
      changed_.wait(lock, [this] { return phase_ >= Phase::dropped; });
      return false;
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
      EventLoop& loop = *members_[i].loop.load(std::memory_order_relaxed);
      try {
        loop.post([call, &loop] { call->make(loop); });
      } catch (const std::exception&) {
        // The functions already posted may refer to the stack of this caller, so still wait for
        // them.
        call->give_up(members_.size() - i, std::current_exception());
        break;
      }
    }
  }
  return call->wait();
}

void LoopGroupState::post_to_all(Callback<void(EventLoop&)> function) {
  if (!is_of_this_process()) return;
  const auto shared = std::make_shared<const Callback<void(EventLoop&)>>(std::move(function));
  const std::lock_guard lock(mutex_);
  if (joined_) return;
  for (const Member& member : members_) {
    EventLoop& loop = *member.loop.load(std::memory_order_relaxed);
    loop.post([shared, &loop] { (*shared)(loop); });
  }
}

}  // namespace detail::threads

LoopGroup::LoopGroup(const LoopGroupOptions& options, std::source_location created_at)
    : state_(std::make_shared<detail::threads::LoopGroupState>(options, created_at)) {}

Result<std::unique_ptr<LoopGroup>> LoopGroup::open(const LoopGroupOptions& options,
                                                   std::source_location created_at) {
  try {
    return std::make_unique<LoopGroup>(options, created_at);
  } catch (const std::system_error& refused) {
    return std::unexpected(refused.code());
  } catch (const std::bad_alloc&) {
    return detail::base::failure(ENOMEM);
  }
}

LoopGroup::~LoopGroup() {
  state_->check_outside("LoopGroup::~LoopGroup() was called", "destroy it on another thread");
  if (!state_->is_of_this_process()) {
    detail::threads::LoopGroupState::leak(state_);
    return;
  }
  stop();
  // join() was not called, so no caller can receive the exception: terminate.
  if (const std::exception_ptr thrown = state_->end())
    [](const std::exception_ptr& unclaimed) noexcept { std::rethrow_exception(unclaimed); }(thrown);
}

std::size_t LoopGroup::size() const noexcept { return state_->members().size(); }

EventLoop& LoopGroup::operator[](std::size_t index) const noexcept {
  if (index >= size()) [[unlikely]]
    detail::base::fail_check(
        "LoopGroup::operator[] was called with index %zu, but the group has %zu loops", index,
        size());
  return state_->loop_at(index, "operator[]");
}

EventLoop& LoopGroup::next() noexcept { return state_->loop_at(state_->take_next_index(), "next"); }

EventLoop& LoopGroup::by_hash(std::uint64_t hash) const noexcept {
  return state_->loop_at(mixed(hash) % size(), "by_hash");
}

EventLoop& LoopGroup::least_loaded() const noexcept {
  const auto& members = state_->members();
  const auto least = std::ranges::min_element(
      members, {}, [](const auto& member) { return member.load.load(std::memory_order_relaxed); });
  return state_->loop_at(static_cast<std::size_t>(least - members.begin()), "least_loaded");
}

std::size_t LoopGroup::index_of(const EventLoop& loop) const noexcept {
  const auto& members = state_->members();
  const auto found = std::ranges::find_if(members, [&](const auto& member) {
    return member.loop.load(std::memory_order_relaxed) == &loop;
  });
  return static_cast<std::size_t>(found - members.begin());
}

std::weak_ptr<const void> LoopGroup::lifetime() const noexcept { return state_->lifetime(); }

std::size_t LoopGroup::index_of_this_thread() const noexcept { return state_->this_index(); }

bool LoopGroup::in_group_thread() const noexcept { return state_->in_group_thread(); }

void LoopGroup::add_load(const EventLoop& loop, std::ptrdiff_t by) noexcept {
  const std::size_t index = index_of(loop);
  detail::base::check(index < size(),
                      "the load of a loop was reported to a group that does not own the loop");
  state_->members()[index].load.fetch_add(by, std::memory_order_relaxed);
}

std::size_t LoopGroup::load(const EventLoop& loop) const noexcept {
  const std::size_t index = index_of(loop);
  if (index == size()) return 0;
  const auto load = state_->members()[index].load.load(std::memory_order_relaxed);
  return load > 0 ? static_cast<std::size_t>(load) : 0;
}

void LoopGroup::post_to_all(Callback<void(EventLoop&)> function) {
  state_->post_to_all(std::move(function));
}

bool LoopGroup::for_each(Callback<void(EventLoop&)> function) {
  return state_->for_each(std::move(function));
}

void LoopGroup::stop() noexcept { state_->stop(); }

void LoopGroup::join() {
  state_->check_outside("LoopGroup::join() was called", "call stop() here, and join() on another");
  if (!state_->is_of_this_process()) return;
  if (const std::exception_ptr thrown = state_->end()) std::rethrow_exception(thrown);
}

}  // namespace tambour
