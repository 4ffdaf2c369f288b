// The locks and conditions of evthread_set_lock_callbacks(3).
#pragma once

#include "libevent/event/core.h"

extern "C" {

extern evthread_condition_callbacks evthread_cond_fns_;
extern unsigned long (*evthread_id_fn_)();
extern int evthread_lock_debugging_enabled_;
extern int event_debug_mode_on_;
extern int event_debug_created_threadable_ctx_;

/// Creates the locks of global state. Called when locks or their debugging become enabled.
int event_global_setup_locks_(int enable_locks);
void* evthread_setup_global_lock_(void* lock, unsigned type, int enable_locks);
int evthread_is_debug_lock_held_(void* lock);
void* evthread_debug_get_real_lock_(void* lock);
void evthreadimpl_disable_lock_debugging_();

}  // extern "C"
