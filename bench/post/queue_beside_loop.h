// A lock-free queue beside a loop by hand: wake-ups are coalesced by a flag, which the loop lowers
// before it looks, so that whoever posts after that raises it again.
#pragma once

#include <atomic>
#include <functional>

#include "post/eventfd_loop.h"
#include "post/post.h"

namespace bench {

/// `Queue` has add(std::function<void()>) for any thread, and run_all() for the loop's.
template <class Queue>
class QueueBesideLoop {
 public:
  void post(Task task) {
    queue_.add(task);
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
