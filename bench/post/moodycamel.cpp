// Posting through moodycamel's ConcurrentQueue, with a consumer token and bulk dequeues, as its
// documentation recommends. Producer tokens are not used: they belong to threads, which post() does
// not know.
#include <concurrentqueue.h>

#include <array>
#include <cstddef>

#include "post/loop_with_queue.h"

namespace {

class Queue {
 public:
  void push(std::function<void()> task) { tasks_.enqueue(std::move(task)); }
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

class Moodycamel : public bench::LoopWithQueue<Queue> {
 public:
  bench::SubjectInfo info() const { return {"moodycamel", "unknown", "epoll"}; }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Moodycamel>(argc, argv); }
