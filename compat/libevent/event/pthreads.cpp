// libevent_pthreads-2.1.so.7: locks and conditions of POSIX threads.

#include <pthread.h>
#include <sys/time.h>

#include <cerrno>
#include <new>

#include "libevent/event/core.h"

namespace {

pthread_mutexattr_t recursive;

template <class T>
T* as(void* selected) noexcept {
  return static_cast<T*>(selected);
}

void* make_mutex(unsigned type) {
  auto* const mutex = as<pthread_mutex_t>(event_mm_malloc_(sizeof(pthread_mutex_t)));
  if (mutex == nullptr) return nullptr;
  const bool is_recursive = (type & EVTHREAD_LOCKTYPE_RECURSIVE) != 0;
  if (::pthread_mutex_init(mutex, is_recursive ? &recursive : nullptr) != 0) {
    event_mm_free_(mutex);
    return nullptr;
  }
  return mutex;
}

void free_mutex(void* mutex, unsigned) {
  ::pthread_mutex_destroy(as<pthread_mutex_t>(mutex));
  event_mm_free_(mutex);
}

int lock_mutex(unsigned mode, void* mutex) {
  if ((mode & EVTHREAD_TRY) != 0) return ::pthread_mutex_trylock(as<pthread_mutex_t>(mutex));
  return ::pthread_mutex_lock(as<pthread_mutex_t>(mutex));
}

int unlock_mutex(unsigned, void* mutex) {
  return ::pthread_mutex_unlock(as<pthread_mutex_t>(mutex));
}

void* make_condition(unsigned) {
  auto* const condition = as<pthread_cond_t>(event_mm_malloc_(sizeof(pthread_cond_t)));
  if (condition == nullptr) return nullptr;
  if (::pthread_cond_init(condition, nullptr) != 0) {
    event_mm_free_(condition);
    return nullptr;
  }
  return condition;
}

void free_condition(void* condition) {
  ::pthread_cond_destroy(as<pthread_cond_t>(condition));
  event_mm_free_(condition);
}

int signal_condition(void* condition, int broadcast) {
  auto* const selected = as<pthread_cond_t>(condition);
  const int failed =
      broadcast != 0 ? ::pthread_cond_broadcast(selected) : ::pthread_cond_signal(selected);
  return failed != 0 ? -1 : 0;
}

int wait_condition(void* condition, void* mutex, const timeval* timeout) {
  auto* const selected = as<pthread_cond_t>(condition);
  auto* const held = as<pthread_mutex_t>(mutex);
  if (timeout == nullptr) return ::pthread_cond_wait(selected, held) != 0 ? -1 : 0;
  timeval now;
  timeval until;
  ::gettimeofday(&now, nullptr);
  timeradd(&now, timeout, &until);
  const timespec at{.tv_sec = until.tv_sec, .tv_nsec = until.tv_usec * 1000};
  const int failed = ::pthread_cond_timedwait(selected, held, &at);
  if (failed == ETIMEDOUT) return 1;
  return failed != 0 ? -1 : 0;
}

unsigned long thread_id() { return static_cast<unsigned long>(::pthread_self()); }

}  // namespace

int evthread_use_pthreads() {
  if (::pthread_mutexattr_init(&recursive) != 0) return -1;
  if (::pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) != 0) return -1;
  const evthread_lock_callbacks locks{.lock_api_version = EVTHREAD_LOCK_API_VERSION,
                                      .supported_locktypes = EVTHREAD_LOCKTYPE_RECURSIVE,
                                      .alloc = &make_mutex,
                                      .free = &free_mutex,
                                      .lock = &lock_mutex,
                                      .unlock = &unlock_mutex};
  const evthread_condition_callbacks conditions{
      .condition_api_version = EVTHREAD_CONDITION_API_VERSION,
      .alloc_condition = &make_condition,
      .free_condition = &free_condition,
      .signal_condition = &signal_condition,
      .wait_condition = &wait_condition};
  evthread_set_lock_callbacks(&locks);
  evthread_set_condition_callbacks(&conditions);
  evthread_set_id_callback(&thread_id);
  return 0;
}
