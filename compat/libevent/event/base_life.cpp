// Configurations; creating a base, reopening it after fork(2), freeing it.

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "common/observation.h"
#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"

using tambour::libevent::Block;
using tambour::libevent::Method;
namespace debug = tambour::libevent::debug;

const Method tambour::libevent::methods[3] = {
    {"epoll", BackendKind::epoll, EV_FEATURE_ET | EV_FEATURE_O1 | EV_FEATURE_EARLY_CLOSE},
    {"poll", BackendKind::poll, EV_FEATURE_FDS | EV_FEATURE_EARLY_CLOSE},
    {"select", BackendKind::select, EV_FEATURE_FDS}};

/// A method to avoid.
struct Avoided {
  Avoided* next;
  char* name;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name is libevent's.
struct event_config {
  Avoided* avoided;
  timeval max_interval;
  int max_callbacks;
  int limit_after_priority;
  int features;
  int flags;
};

namespace {

bool is_avoided(const event_config* config, const char* name) noexcept {
  if (config == nullptr) return false;
  for (const Avoided* avoided = config->avoided; avoided != nullptr; avoided = avoided->next) {
    if (std::strcmp(avoided->name, name) == 0) return true;
  }
  return false;
}

/// EVENT_NOEPOLL and so on.
bool is_disabled_by_environment(const char* name) noexcept {
  char variable[32];
  std::snprintf(variable, sizeof variable, "EVENT_NO%s", name);
  for (char* letter = variable; *letter != '\0'; ++letter)
    *letter = static_cast<char>(std::toupper(static_cast<unsigned char>(*letter)));
  return evutil_getenv_(variable) != nullptr;
}

std::unique_ptr<tambour::detail::backend::Backend> open_kind(tambour::BackendKind kind) noexcept {
  try {
    auto opened = tambour::detail::backend::open_backend_without_wake_up({.backend = kind});
    if (!opened || (*opened)->traits().kind != kind || !(*opened)->share()) return nullptr;
    return std::move(*opened);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void choose_method(event_base& base, const event_config* config, bool use_environment) noexcept {
  for (const Method& method : tambour::libevent::methods) {
    if (is_avoided(config, method.name)) continue;
    if (config != nullptr && (method.features & config->features) != config->features) continue;
    if (use_environment && is_disabled_by_environment(method.name)) continue;
    base.poller = open_kind(method.kind);
    if (base.poller == nullptr) continue;
    base.method = &method;
    return;
  }
}

/// Returns the number of callbacks that were in the queues.
int free_callbacks(event_base& base, bool run_finalizers) {
  int count = 0;
  const auto free_one = [&](event_callback* callback) {
    const auto closure = callback->evcb_closure;
    event* const ev =
        (callback->evcb_flags & EVLIST_INIT) != 0 ? tambour::libevent::event_of(callback) : nullptr;
    if (ev != nullptr) {
      delete_event(ev, Block::even_if_finalized);
    } else {
      event_callback_cancel_nolock_(&base, callback, 1);
    }
    ++count;
    if (!run_finalizers || (callback->evcb_flags & EVLIST_FINALIZING) == 0) return;
    switch (closure) {
      case tambour::libevent::closure_finalize_event:
      case tambour::libevent::closure_finalize_free:
        debug::note_teardown(ev);
        callback->evcb_cb_union.evcb_evfinalize(ev, callback->evcb_arg);
        if (closure == tambour::libevent::closure_finalize_free) event_mm_free_(ev);
        break;
      case tambour::libevent::closure_finalize_callback:
        callback->evcb_cb_union.evcb_cbfinalize(callback, callback->evcb_arg);
        break;
      default:
        break;
    }
  };
  for (int i = 0; i < base.queue_count; ++i) {
    while (event_callback* const callback = base.queues[i].first()) free_one(callback);
  }
  while (event_callback* const callback = base.later.first()) free_one(callback);
  return count;
}

void free_base(event_base* base, bool run_finalizers) {
  if (base == nullptr) base = event_global_current_base_;
  if (base == nullptr) {
    event_warnx("%s: no base to free", "event_base_free_");
    return;
  }
  base->end_observation();
  base->fds.clear();
  base->signals.clear();
  base->timeouts.for_each([base](event& ev) {
    event_del(&ev);
    // event_del() has no effect on an event that is being finalized.
    if (base->timeouts.contains(ev)) base->remove_timeout(ev);
  });
  for (int i = 0; i < base->common_count; ++i) {
    auto* const common = base->commons[i];
    event_del(&common->timer);
    debug::note_teardown(&common->timer);
    while (event* const ev = common->events.tqh_first) event_del(ev);
    event_mm_free_(common);
  }
  if (base->commons != nullptr) event_mm_free_(static_cast<void*>(base->commons));
  // A finalizer may activate further callbacks.
  while (free_callbacks(*base, run_finalizers) != 0) {
  }
  while (auto* const once = base->onces) {
    base->onces = once->next;
    event_mm_free_(once);
  }
  if (base->poller != nullptr) base->poller->abandon();
  for (int i = 0; i < base->queue_count; ++i) base->queues[i].~CallbackQueue();
  if (base->queues != nullptr) event_mm_free_(base->queues);
  tambour::libevent::free_lock(base->base_lock, EVTHREAD_LOCKTYPE_RECURSIVE);
  if (base->current_done != nullptr && evthread_cond_fns_.free_condition != nullptr)
    evthread_cond_fns_.free_condition(base->current_done);
  if (base == event_global_current_base_) event_global_current_base_ = nullptr;
  base->~event_base();
  event_mm_free_(base);
}

}  // namespace

event_config* event_config_new() {
  auto* const config = static_cast<event_config*>(event_mm_calloc_(1, sizeof(event_config)));
  if (config == nullptr) return nullptr;
  config->max_interval.tv_sec = -1;
  config->max_callbacks = INT32_MAX;
  config->limit_after_priority = 1;
  return config;
}

void event_config_free(event_config* config) {
  while (Avoided* const avoided = config->avoided) {
    config->avoided = avoided->next;
    event_mm_free_(avoided->name);
    event_mm_free_(avoided);
  }
  event_mm_free_(config);
}

int event_config_avoid_method(event_config* config, const char* method) {
  auto* const added = static_cast<Avoided*>(event_mm_malloc_(sizeof(Avoided)));
  if (added == nullptr) return -1;
  added->name = event_mm_strdup_(method);
  if (added->name == nullptr) {
    event_mm_free_(added);
    return -1;
  }
  added->next = config->avoided;
  config->avoided = added;
  return 0;
}

int event_config_require_features(event_config* config, int features) {
  if (config == nullptr) return -1;
  config->features = features;
  return 0;
}

int event_config_set_flag(event_config* config, int flag) {
  if (config == nullptr) return -1;
  config->flags |= flag;
  return 0;
}

int event_config_set_num_cpus_hint(event_config* config, int) { return config == nullptr ? -1 : 0; }

int event_config_set_max_dispatch_interval(event_config* config, const timeval* max_interval,
                                           int max_callbacks, int min_priority) {
  if (max_interval != nullptr) {
    config->max_interval = *max_interval;
  } else {
    config->max_interval.tv_sec = -1;
  }
  config->max_callbacks = max_callbacks >= 0 ? max_callbacks : INT32_MAX;
  config->limit_after_priority = min_priority < 0 ? 0 : min_priority;
  return 0;
}

event_base* tambour::libevent::new_base(const event_config* config,
                                        std::unique_ptr<tambour::detail::backend::Backend> poller,
                                        const Method* method) {
  debug::begin();
  void* const memory = event_mm_calloc_(1, sizeof(event_base));
  if (memory == nullptr) {
    event_warn("%s: calloc", "event_base_new_with_config");
    return nullptr;
  }
  auto* const base = new (memory) event_base;
  const int flags = config != nullptr ? config->flags : 0;
  const bool use_environment = (flags & EVENT_BASE_FLAG_IGNORE_ENV) == 0;
  base->flags = flags;
  if (use_environment && evutil_getenv_("EVENT_PRECISE_TIMER") != nullptr)
    base->flags |= EVENT_BASE_FLAG_PRECISE_TIMER;
  if (config != nullptr) {
    if (config->max_interval.tv_sec >= 0)
      base->max_dispatch_us = tambour::libevent::microseconds_of(config->max_interval);
    base->max_dispatch_callbacks = config->max_callbacks;
    base->limit_after_priority = config->limit_after_priority;
  }
  if (base->max_dispatch_callbacks == INT32_MAX && base->max_dispatch_us < 0)
    base->limit_after_priority = INT32_MAX;
  if (poller == nullptr) {
    choose_method(*base, config, use_environment);
  } else {
    base->poller = std::move(poller);
    base->method = method;
  }
  if (base->poller == nullptr) {
    event_warnx("%s: no event mechanism available", "event_base_new_with_config");
    event_base_free(base);
    return nullptr;
  }
  base->with_changelist =
      method == nullptr && base->method->kind == tambour::BackendKind::epoll &&
      ((flags & EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) != 0 ||
       (use_environment && evutil_getenv_("EVENT_EPOLL_USE_CHANGELIST") != nullptr));
  if (evutil_getenv_("EVENT_SHOW_METHOD") != nullptr)
    event_msgx("libevent using: %s", event_base_get_method(base));
  base->read_clock();
  if (event_base_priority_init(base, 1) < 0) {
    event_base_free(base);
    return nullptr;
  }
  event_debug_created_threadable_ctx_ = 1;
  if (evthread_lock_fns_.alloc != nullptr && (flags & EVENT_BASE_FLAG_NOLOCK) == 0) {
    base->base_lock = tambour::libevent::make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
    if (evthread_cond_fns_.alloc_condition != nullptr)
      base->current_done = evthread_cond_fns_.alloc_condition(0);
    if (evthread_make_base_notifiable(base) < 0) {
      event_warnx("%s: Unable to make base notifiable.", "event_base_new_with_config");
      event_base_free(base);
      return nullptr;
    }
  }
  base->begin_observation();
  return base;
}

event_base* event_base_new_with_config(const event_config* config) {
  return tambour::libevent::new_base(config, nullptr, nullptr);
}

event_base* event_base_new() {
  event_config* const config = event_config_new();
  if (config == nullptr) return nullptr;
  event_base* const base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

void event_base_free(event_base* base) { free_base(base, true); }
void event_base_free_nofinalize(event_base* base) { free_base(base, false); }

int event_reinit(event_base* base) {
  const tambour::libevent::BaseLock locked(*base);
  // Before any descriptor is opened, which could get the number of a former one.
  base->poller->disown_if_lost();
  base->signals.disown_if_lost();
  const auto reopened = base->poller->reopen();
  base->signals.reopen();
  base->wake_pending = false;
  if (base->observed != nullptr) tambour::compat::observer()->after_fork(base->observed);
  if (!reopened) {
    event_warnx("%s: cannot open the backend again", "event_reinit");
    return -1;
  }
  return 0;
}

int evthread_make_base_notifiable(event_base* base) {
  if (base == nullptr) return -1;
  const tambour::libevent::BaseLock locked(*base);
  if (base->notifiable) return 0;
  if (!base->poller->open_wake_up()) return -1;
  base->notifiable = true;
  return 0;
}

const char* event_base_get_method(const event_base* base) {
  return base->with_changelist ? "epoll (with changelist)" : base->method->name;
}

const char** event_get_supported_methods() {
  static const char* names[] = {"epoll", "poll", "select", nullptr};
  return names;
}

int event_base_get_features(const event_base* base) { return base->method->features; }
