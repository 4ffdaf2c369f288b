// The inspector of unmodified programs: what a drop-in tells libtambour_inspect.so, and what that
// asks the drop-in. docs/drop-ins.md describes it for users.
//
// A drop-in loads the library when it creates its first loop, if the environment variable
// TAMBOUR_INSPECT is set. Without it, no loop has a record, and nothing of this runs. The two sides
// are linked apart, so these structures have C types only, and the name of the function that the
// library exports ends in their version.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"

namespace tambour::compat {

/// A watcher that was started, or an event that was added.
struct ObservedEvent {
  const char* kind = "";             ///< A constant: "io", "timer", "bufferevent" and so on.
  const void* function = nullptr;    ///< The callback of the program.
  void* bufferevent = nullptr;       ///< The bufferevent that it belongs to.
  std::int64_t due_ns = -1;          ///< From now; negative: it has no time.
  std::size_t unread_bytes = 0;      ///< Of a bufferevent: input that the program has not taken.
  std::size_t unsent_bytes = 0;      ///< Of a bufferevent.
  std::int32_t fd = -1;              ///< Or the number of a signal.
  std::uint16_t awaited_events = 0;  ///< tambour::Events.
  std::int16_t priority = 0;
  bool is_due = false;  ///< Its callback is about to be invoked.
};

struct LoopFigures {
  std::uint64_t iterations = 0;
  std::size_t timers = 0;
  std::size_t pending = 0;
  std::int64_t references = 0;  ///< What keeps the loop running.
};

/// What libtambour_inspect.so calls.
struct LoopCalls {
  const char* library;  ///< "libev" or "libevent".
  /// Makes the loop call ObserverCalls::answer() soon. Callable from any thread.
  void (*wake)(void* loop) noexcept;
  // In ObserverCalls::answer(), on the thread of the loop.
  void (*read)(void* loop, LoopFigures& figures) noexcept;
  void (*list)(void* loop, void (*add)(void* list, const ObservedEvent& event) noexcept,
               void* list_data) noexcept;
};

/// What a loop publishes. Owned by the library, from open() to close().
struct LoopRecord {
  std::atomic<bool> is_asked{false};  ///< answer() has something to do.
  std::atomic<const void*> running{nullptr};
  std::atomic<std::int64_t> running_since_ns{0};  ///< 0 if no callback runs.
};

/// What a drop-in calls, on the thread of the loop.
struct ObserverCalls {
  /// Returns null if there is no memory or no inspector.
  LoopRecord* (*open)(const LoopCalls& calls, void* loop) noexcept;
  void (*close)(LoopRecord* record) noexcept;
  /// In the child, after fork(2): threads do not survive it.
  void (*after_fork)(LoopRecord* record) noexcept;
  void (*answer)(LoopRecord* record) noexcept;
  void (*note_call)(LoopRecord* record, const void* function, std::int64_t took_ns) noexcept;
  void (*note_iteration)(LoopRecord* record, std::int64_t took_ns) noexcept;
};

/// The type of `tambour_observe_1`.
using OpenObserver = const ObserverCalls* (*)() noexcept;

/// A connection of evhttp, which libevent_extra describes: `tambour_describe_evhttp_1`.
struct ObservedHttp {
  char peer[64];
  char method[16];  ///< Of the request in progress; empty if there is none.
  const char* state;
  std::uint16_t port;
  bool is_server;
};
/// Returns false if the bufferevent is not one of evhttp.
using DescribeHttp = bool (*)(void* bufferevent, ObservedHttp& http) noexcept;

[[nodiscard]] inline const ObserverCalls* load_observer() noexcept {
  // Not for programs with more rights than their user.
  if (::secure_getenv("TAMBOUR_INSPECT") == nullptr) return nullptr;
  const auto fail = []() -> const ObserverCalls* {
    std::fprintf(stderr, "tambour: TAMBOUR_INSPECT has no effect: %s\n", ::dlerror());
    return nullptr;
  };
  // The library is beside the drop-in.
  Dl_info drop_in{};
  if (::dladdr(reinterpret_cast<const void*>(&load_observer), &drop_in) == 0) return nullptr;
  void* library = nullptr;
  try {
    std::string path(drop_in.dli_fname);
    path.resize(path.rfind('/') + 1);
    library = ::dlopen((path + "libtambour_inspect.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (library == nullptr) return fail();
  const auto open = reinterpret_cast<OpenObserver>(::dlsym(library, "tambour_observe_1"));
  return open != nullptr ? open() : fail();
}

/// Null unless the program is inspected.
[[nodiscard]] inline const ObserverCalls* observer() noexcept {
  static const ObserverCalls* const loaded = load_observer();
  return loaded;
}

/// Exists while a callback of an observed loop runs.
class TimedCall {
 public:
  TimedCall(LoopRecord& record, const void* function) noexcept
      : record_(record),
        function_(function),
        outer_(record.running.load(std::memory_order_relaxed)),
        outer_since_ns_(record.running_since_ns.load(std::memory_order_relaxed)),
        began_ns_(detail::base::monotonic_ns()) {
    record_.running.store(function, std::memory_order_relaxed);
    record_.running_since_ns.store(began_ns_, std::memory_order_relaxed);
  }
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;
  ~TimedCall() {
    // A callback may run the loop again.
    record_.running.store(outer_, std::memory_order_relaxed);
    record_.running_since_ns.store(outer_since_ns_, std::memory_order_relaxed);
    observer()->note_call(&record_, function_, detail::base::monotonic_ns() - began_ns_);
  }

 private:
  LoopRecord& record_;
  const void* function_;
  const void* outer_;
  std::int64_t outer_since_ns_;
  std::int64_t began_ns_;
};

/// Exists while an observed loop invokes the callbacks of an iteration.
class TimedIteration {
 public:
  explicit TimedIteration(LoopRecord& record) noexcept
      : record_(record), began_ns_(detail::base::monotonic_ns()) {}
  TimedIteration(const TimedIteration&) = delete;
  TimedIteration& operator=(const TimedIteration&) = delete;
  ~TimedIteration() {
    observer()->note_iteration(&record_, detail::base::monotonic_ns() - began_ns_);
  }

 private:
  LoopRecord& record_;
  std::int64_t began_ns_;
};

}  // namespace tambour::compat
