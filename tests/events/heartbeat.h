// Runs an iteration of a loop at intervals under a sanitizer.
//
// ThreadSanitizer defers signal handlers until the thread calls an intercepted function, and not
// all of the loop's waits are intercepted: the handler of a signal that arrives just before a wait
// may only run after it.
#pragma once

#include <tambour/tambour.h>

#include "support/scale.h"

namespace tambour::test {

/// Does not keep run() from returning. The loop must outlive it.
class Heartbeat {
 public:
  explicit Heartbeat(EventLoop& loop) : loop_(loop), timer_(loop, [] {}) {
    using namespace std::chrono_literals;
    if (!sanitized) return;
    timer_.start(1ms, 1ms);
    loop_.unref();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() {
    if (sanitized) loop_.ref();
  }

 private:
  EventLoop& loop_;
  Timer timer_;
};

}  // namespace tambour::test
