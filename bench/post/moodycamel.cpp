// moodycamel's ConcurrentQueue, with a token for the consumer and tasks taken many at a time, as
// its documentation recommends. Producers have none: a token belongs to a thread, which post() does
// not know.
#include <concurrentqueue.h>

#include <array>
#include <cstddef>

#include "post/queue_beside_loop.h"

namespace {

class Queue {
 public:
  void add(std::function<void()> task) { tasks_.enqueue(std::move(task)); }
  void run_all() {
    std::size_t count;
    while ((count = tasks_.try_dequeue_bulk(token_, taken_.begin(), taken_.size())) > 0) {
      for (std::size_t i = 0; i < count; ++i) taken_[i]();
    }
  }

 private:
  moodycamel::ConcurrentQueue<std::function<void()>> tasks_;
  moodycamel::ConsumerToken token_{tasks_};
  std::array<std::function<void()>, 256> taken_;
};

class Moodycamel : public bench::QueueBesideLoop<Queue> {
 public:
  bench::About about() const { return {"moodycamel", "unknown", "epoll"}; }
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Moodycamel>(argc, argv); }
