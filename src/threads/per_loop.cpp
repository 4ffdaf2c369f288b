// PerLoop: objects that are constructed, used and destroyed on the threads of a group's loops.
#include <tambour/threads/per_loop.h>

#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <tambour/detail/intrusive_list.h>
#include <tambour/task/scope.h>

#include "base/check.h"
#include "loop/core.h"
#include "loop/service.h"

namespace tambour::detail {
namespace threads {

/// The objects of one PerLoop, shared by it and by the loops.
class PerLoopObjects {
 public:
  explicit PerLoopObjects(std::size_t loops) : slots_(loops) {
    for (Slot& slot : slots_) slot.objects = this;
  }

  /// The object of one loop. Used on the thread of that loop only.
  struct Slot : ListHook<Slot> {
    PerLoopObjects* objects = nullptr;
    std::unique_ptr<LoopState> object;
    std::shared_ptr<PerLoopObjects> owner;  ///< Keeps the slot while it is in the list of its loop.
  };

  [[nodiscard]] Slot& slot(std::size_t index) noexcept { return slots_[index]; }

 private:
  std::vector<Slot> slots_;
};

/// The objects of all PerLoops on one loop, in the order of construction.
class LoopStates final : public loop::Service {
 public:
  explicit LoopStates(loop::Core& /*core*/) noexcept {}

  void add(PerLoopObjects::Slot& slot, std::shared_ptr<PerLoopObjects> owner) noexcept {
    slot.owner = std::move(owner);
    slots_.push_back(slot);
  }
  static void remove(PerLoopObjects::Slot& slot) noexcept {
    const auto owner = std::move(slot.owner);
    slot.unlink();
    // The destructor may look for the object, which it must not find.
    const auto object = std::move(slot.object);
  }

  bool drop_state() noexcept override {
    PerLoopObjects::Slot* last = slots_.front();
    if (last == nullptr) return false;
    while (PerLoopObjects::Slot* const next = slots_.after(*last)) last = next;
    remove(*last);
    return true;
  }
  void close() noexcept override {
    while (drop_state()) {
    }
  }

 private:
  IntrusiveList<PerLoopObjects::Slot> slots_;
};

namespace {

/// A wait of one thread until the loops that have begun have built their objects, or never will.
class Construction {
 public:
  void begin() noexcept {
    const std::lock_guard lock(mutex_);
    ++left_;
  }
  void end(std::exception_ptr thrown) noexcept {
    const std::lock_guard lock(mutex_);
    if (thrown != nullptr && thrown_ == nullptr) thrown_ = std::move(thrown);
    if (--left_ == 0) ended_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return left_ == 0; });
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t left_ = 0;
  std::exception_ptr thrown_;
};

/// The part of one loop. Its destructor ends it, with ECANCELED if the loop has not built anything.
class Part {
 public:
  explicit Part(std::shared_ptr<Construction> whole) noexcept : whole_(std::move(whole)) {
    whole_->begin();
  }
  Part(Part&& other) noexcept = default;
  Part& operator=(Part&&) = delete;
  ~Part() {
    if (whole_ == nullptr) return;
    try {
      throw std::system_error(system_error(ECANCELED), "PerLoop");
    } catch (...) {
      // Or std::bad_alloc.
      end(std::current_exception());
    }
  }
  void end(std::exception_ptr thrown) noexcept {
    std::exchange(whole_, nullptr)->end(std::move(thrown));
  }

 private:
  std::shared_ptr<Construction> whole_;
};

Task<> build_on(EventLoop& loop, std::function<Task<std::unique_ptr<LoopState>>(EventLoop&)> build,
                std::shared_ptr<PerLoopObjects> objects, std::size_t index, Part part) {
  std::exception_ptr thrown;
  try {
    auto states = loop::core_of(loop).open_service<LoopStates>();
    if (!states) throw std::bad_alloc();
    auto object = co_await build(loop);
    PerLoopObjects::Slot& slot = objects->slot(index);
    slot.object = std::move(object);
    (*states)->add(slot, objects);
  } catch (...) {
    thrown = std::current_exception();
  }
  part.end(std::move(thrown));
}

}  // namespace
}  // namespace threads

PerLoopBase::PerLoopBase(LoopGroup& group, const Build& build)
    : group_(group),
      group_exists_(group.lifetime()),
      objects_(std::make_shared<threads::PerLoopObjects>(group.size())) {
  base::check(!group.in_group_thread(),
              "a PerLoop was constructed by a thread of its group, for which it waits");
  const auto whole = std::make_shared<threads::Construction>();
  std::vector<Build> builds(group.size(), build);
  try {
    bool has_run = false;
    std::exception_ptr refused;
    try {
      has_run = group.for_each([&](EventLoop& loop) {
        const std::size_t index = group_.index_of(loop);
        threads::Part part(whole);
        spawn(loop,
              threads::build_on(loop, std::move(builds[index]), objects_, index, std::move(part)));
      });
    } catch (...) {
      refused = std::current_exception();
    }
    // No further part begins. After a stop, the loops have destroyed the tasks of the others.
    try {
      whole->wait();
    } catch (...) {
      // A part whose task could not be spawned has ended with ECANCELED.
      if (refused == nullptr) throw;
    }
    if (refused != nullptr) std::rethrow_exception(refused);
    if (!has_run) throw std::system_error(system_error(ECANCELED), "PerLoop");
  } catch (...) {
    group.for_each([this](EventLoop& loop) {
      threads::PerLoopObjects::Slot& slot = objects_->slot(group_.index_of(loop));
      if (slot.linked()) threads::LoopStates::remove(slot);
    });
    throw;
  }
}

PerLoopBase::~PerLoopBase() {
  if (group_exists_.expired()) return;
  base::check(!group_.in_group_thread(),
              "a PerLoop was destroyed by a thread of its group, for which it waits; destroy it on "
              "the thread that created the group");
  // After a stop, the loops destroy their objects themselves.
  group_.for_each([this](EventLoop& loop) {
    threads::PerLoopObjects::Slot& slot = objects_->slot(group_.index_of(loop));
    if (slot.linked()) threads::LoopStates::remove(slot);
  });
}

LoopState& PerLoopBase::local(const char* function) const noexcept {
  const std::size_t index = group_.index_of_this_thread();
  if (index >= group_.size()) [[unlikely]]
    base::fail_check(
        "%s was called on a thread that does not belong to the group; call it in a task or "
        "callback "
        "of one of its loops, for example with run_on()",
        function);
  LoopState* const object = objects_->slot(index).object.get();
  if (object == nullptr) [[unlikely]]
    base::fail_check(
        "%s was called after the object of this loop was destroyed, because the group "
        "stops; destroy what uses the PerLoop before the PerLoop",
        function);
  return *object;
}

}  // namespace tambour::detail
