// The functions that a program sets for locks, conditions and thread identities, and the locks that
// check their own use (evthread_enable_lock_debugging(3)).

#include "libevent/event/threads.h"

#include <cstring>

#include "libevent/event/log.h"

evthread_lock_callbacks evthread_lock_fns_{};
evthread_condition_callbacks evthread_cond_fns_{};
unsigned long (*evthread_id_fn_)() = nullptr;
int evthread_lock_debugging_enabled_ = 0;
int event_debug_created_threadable_ctx_ = 0;

namespace {

/// The program's functions, while locks are debugged.
evthread_lock_callbacks real_locks{};
evthread_condition_callbacks real_conditions{};

struct DebugLock {
  unsigned signature;
  unsigned type;
  unsigned long holder;
  int count;
  void* real;
};
constexpr unsigned live = 0xdeb0b10c;
constexpr unsigned dead = 0x12300fda;

void require(bool holds, const char* text) {
  if (!holds) [[unlikely]]
    event_errx(EVENT_ERR_ABORT_, "lock debugging: %s", text);
}

void* debug_alloc(unsigned type) {
  auto* const lock = static_cast<DebugLock*>(event_mm_malloc_(sizeof(DebugLock)));
  if (lock == nullptr) return nullptr;
  void* real = nullptr;
  if (real_locks.alloc != nullptr) {
    // Recursive, because the condition functions may be called with it held twice.
    real = real_locks.alloc(type | EVTHREAD_LOCKTYPE_RECURSIVE);
    if (real == nullptr) {
      event_mm_free_(lock);
      return nullptr;
    }
  }
  *lock = {.signature = live, .type = type, .holder = 0, .count = 0, .real = real};
  return lock;
}

void debug_free(void* selected, unsigned type) {
  auto* const lock = static_cast<DebugLock*>(selected);
  require(lock->signature == live, "a lock is freed that is none");
  require(lock->count == 0, "a held lock is freed");
  require(lock->type == type, "a lock is freed as one of another type");
  if (real_locks.free != nullptr)
    real_locks.free(lock->real, lock->type | EVTHREAD_LOCKTYPE_RECURSIVE);
  lock->real = nullptr;
  lock->signature = dead;
  event_mm_free_(lock);
}

void note_locked(DebugLock& lock) {
  ++lock.count;
  if ((lock.type & EVTHREAD_LOCKTYPE_RECURSIVE) == 0)
    require(lock.count == 1, "a lock that is not recursive is taken twice");
  if (evthread_id_fn_ == nullptr) return;
  const unsigned long me = evthread_id_fn_();
  if (lock.count > 1) require(lock.holder == me, "a lock is held by two threads");
  lock.holder = me;
}

void note_unlocked(DebugLock& lock) {
  require(lock.signature == live, "a lock is released that is none");
  if (evthread_id_fn_ != nullptr) {
    require(lock.holder == evthread_id_fn_(),
            "a lock is released by a thread that does not hold it");
    if (lock.count == 1) lock.holder = 0;
  }
  require(--lock.count >= 0, "a lock is released that is not held");
}

void check_mode(unsigned mode, const DebugLock& lock) {
  const bool asks = (mode & (EVTHREAD_READ | EVTHREAD_WRITE)) != 0;
  const bool is_shared = (lock.type & EVTHREAD_LOCKTYPE_READWRITE) != 0;
  require(asks == is_shared, "a lock is used in a mode that it does not have");
}

int debug_lock(unsigned mode, void* selected) {
  auto& lock = *static_cast<DebugLock*>(selected);
  require(lock.signature == live, "a lock is taken that is none");
  check_mode(mode, lock);
  const int failed = real_locks.lock != nullptr ? real_locks.lock(mode, lock.real) : 0;
  if (failed == 0) note_locked(lock);
  return failed;
}

int debug_unlock(unsigned mode, void* selected) {
  auto& lock = *static_cast<DebugLock*>(selected);
  check_mode(mode, lock);
  note_unlocked(lock);
  return real_locks.unlock != nullptr ? real_locks.unlock(mode, lock.real) : 0;
}

int debug_wait(void* condition, void* selected, const timeval* timeout) {
  auto& lock = *static_cast<DebugLock*>(selected);
  note_unlocked(lock);
  const int result = real_conditions.wait_condition(condition, lock.real, timeout);
  note_locked(lock);
  return result;
}

void check_nothing_was_created() {
  if (event_debug_mode_on_ != 0 && event_debug_created_threadable_ctx_ != 0)
    event_errx(1, "evthread initialization must be called BEFORE anything else!");
}

}  // namespace

void evthread_set_id_callback(unsigned long (*id_fn)()) { evthread_id_fn_ = id_fn; }

extern "C" evthread_lock_callbacks* evthread_get_lock_callbacks() {
  return evthread_lock_debugging_enabled_ != 0 ? &real_locks : &evthread_lock_fns_;
}
extern "C" evthread_condition_callbacks* evthread_get_condition_callbacks() {
  return evthread_lock_debugging_enabled_ != 0 ? &real_conditions : &evthread_cond_fns_;
}
void evthreadimpl_disable_lock_debugging_() { evthread_lock_debugging_enabled_ = 0; }

int evthread_set_lock_callbacks(const evthread_lock_callbacks* functions) {
  evthread_lock_callbacks& target = *evthread_get_lock_callbacks();
  check_nothing_was_created();
  if (functions == nullptr) {
    if (target.alloc != nullptr)
      event_warnx(
          "Trying to disable lock functions after they have been set up will probaby not "
          "work.");
    target = {};
    return 0;
  }
  if (target.alloc != nullptr) {
    const bool same = target.lock_api_version == functions->lock_api_version &&
                      target.supported_locktypes == functions->supported_locktypes &&
                      target.alloc == functions->alloc && target.free == functions->free &&
                      target.lock == functions->lock && target.unlock == functions->unlock;
    if (same) return 0;
    event_warnx("Can't change lock callbacks once they have been initialized.");
    return -1;
  }
  if (functions->alloc == nullptr || functions->free == nullptr || functions->lock == nullptr ||
      functions->unlock == nullptr)
    return -1;
  target = *functions;
  return event_global_setup_locks_(1);
}

int evthread_set_condition_callbacks(const evthread_condition_callbacks* functions) {
  evthread_condition_callbacks& target = *evthread_get_condition_callbacks();
  check_nothing_was_created();
  if (functions == nullptr) {
    if (target.alloc_condition != nullptr)
      event_warnx(
          "Trying to disable condition functions after they have been set up will probaby "
          "not work.");
    target = {};
    return 0;
  }
  if (target.alloc_condition != nullptr) {
    const bool same = target.condition_api_version == functions->condition_api_version &&
                      target.alloc_condition == functions->alloc_condition &&
                      target.free_condition == functions->free_condition &&
                      target.signal_condition == functions->signal_condition &&
                      target.wait_condition == functions->wait_condition;
    if (same) return 0;
    event_warnx("Can't change condition callbacks once they have been initialized.");
    return -1;
  }
  if (functions->alloc_condition != nullptr && functions->free_condition != nullptr &&
      functions->signal_condition != nullptr && functions->wait_condition != nullptr)
    target = *functions;
  if (evthread_lock_debugging_enabled_ != 0) {
    evthread_cond_fns_.alloc_condition = functions->alloc_condition;
    evthread_cond_fns_.free_condition = functions->free_condition;
    evthread_cond_fns_.signal_condition = functions->signal_condition;
  }
  return 0;
}

void evthread_enable_lock_debugging() {
  if (evthread_lock_debugging_enabled_ != 0) return;
  real_locks = evthread_lock_fns_;
  real_conditions = evthread_cond_fns_;
  evthread_lock_fns_ = {.lock_api_version = EVTHREAD_LOCK_API_VERSION,
                        .supported_locktypes = EVTHREAD_LOCKTYPE_RECURSIVE,
                        .alloc = &debug_alloc,
                        .free = &debug_free,
                        .lock = &debug_lock,
                        .unlock = &debug_unlock};
  evthread_cond_fns_.wait_condition = &debug_wait;
  evthread_lock_debugging_enabled_ = 1;
  event_global_setup_locks_(0);
}

// NOLINTNEXTLINE: the name is libevent's, for programs that were compiled with it.
extern "C" void evthread_enable_lock_debuging() { evthread_enable_lock_debugging(); }

int evthread_is_debug_lock_held_(void* selected) {
  const auto& lock = *static_cast<DebugLock*>(selected);
  if (lock.count == 0) return 0;
  return evthread_id_fn_ == nullptr || lock.holder == evthread_id_fn_() ? 1 : 0;
}

void* evthread_debug_get_real_lock_(void* selected) {
  return static_cast<DebugLock*>(selected)->real;
}

void* evthread_setup_global_lock_(void* selected, unsigned type, int enable_locks) {
  if (enable_locks != 0 && evthread_lock_debugging_enabled_ == 0)
    return evthread_lock_fns_.alloc(type);
  if (enable_locks != 0) {
    auto* const lock = static_cast<DebugLock*>(selected != nullptr ? selected : debug_alloc(type));
    if (lock == nullptr) return nullptr;
    if (lock->real == nullptr) lock->real = real_locks.alloc(type | EVTHREAD_LOCKTYPE_RECURSIVE);
    return lock;
  }
  // Debugging begins. A lock that is not recursive cannot become part of a debugged one.
  if (real_locks.alloc != nullptr && selected != nullptr) real_locks.free(selected, type);
  return debug_alloc(type);
}
