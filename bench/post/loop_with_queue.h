// A hand-written loop with a lock-free queue. A flag coalesces wakeups; the loop clears it before
// it drains the queue, so a later post sets it again and wakes the loop.
#pragma once

#include <atomic>
#include <functional>

#include "post/eventfd_loop.h"
#include "post/post.h"

namespace bench {

/// `Queue` has push(std::function<void()>), callable from any thread, and run_all() for the loop.
template <class Queue>
class LoopWithQueue {
 public:
  void post(Task task) {
    queue_.push(task);
    if (!woken_.exchange(true)) loop_.wake();
  }
  void run() {
    loop_.run([this] {
      woken_ = false;
      queue_.run_all();
    });
  }
  void stop() { loop_.stop(); }

 private:
  EventfdLoop loop_;
  Queue queue_;
  std::atomic<bool> woken_ = false;
};

}  // namespace bench
