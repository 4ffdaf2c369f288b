// Lets a loop turn now and then under a sanitizer.
//
// ThreadSanitizer puts off signal handlers until the thread makes a call that it knows, which not
// all of the loop's waits are: a signal could come just before one, and be handled after it.
#pragma once

#include <tambour/tambour.h>

#include "support/scale.h"

namespace tambour::test {

/// Does not keep the loop running. Belongs to a loop that lives longer.
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
