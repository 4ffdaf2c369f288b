// What the clients of the subject libevent, and of those with the drop-in, share. With
// TAMBOUR_HOSTED the base is one of the drop-in, on an EventLoop of Tambour.
#pragma once

#include <event2/event.h>

#ifdef TAMBOUR_HOSTED
#include <tambour/adapters/libevent.h>
#include <tambour/tambour.h>
#endif

#include "clients/clients.h"

namespace bench::libevent {

#ifdef TAMBOUR_HOSTED
constexpr const char* name = "tambour-hosted";
class Loop {
 public:
  Loop() {
    if (!base_.start()) fail("the loop is not one of the drop-in");
  }
  event_base* base() { return base_.get(); }
  void run() { loop_.run(); }

 private:
  tambour::EventLoop loop_;
  tambour::adapters::LibeventBase base_{loop_};
};
#else
class Loop {
 public:
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { event_base_free(base_); }
  event_base* base() { return base_; }
  void run() { event_base_dispatch(base_); }

 private:
  event_base* base_ = event_base_new();
};
#ifdef TAMBOUR_DROP_IN
constexpr const char* name = "tambour-libevent";
#else
constexpr const char* name = "libevent";
#endif
#endif

/// Ends the loop when all operations have ended.
inline void note_end(Operations& all, event_base* base) {
  if (all.end()) event_base_loopbreak(base);
}

template <class Session>
OpenClient on(Loop& loop) {
  return [&loop](const ClientSetup& setup) { return std::make_unique<Session>(loop, setup); };
}

OpenClient mariadb_on(Loop& loop);
OpenClient mosquitto_on(Loop& loop);

}  // namespace bench::libevent
