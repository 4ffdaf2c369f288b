// boost::lockfree::queue, which holds pointers to tasks, because what it holds must be trivial;
// evpp uses it so.
#include <string>

#include <boost/lockfree/queue.hpp>
#include <boost/version.hpp>

#include "post/queue_beside_loop.h"

namespace {

class Queue {
 public:
  void add(std::function<void()> task) {
    auto* kept = new std::function<void()>(std::move(task));
    while (!tasks_.push(kept)) {
    }
  }
  void run_all() {
    std::function<void()>* task;
    while (tasks_.pop(task)) {
      (*task)();
      delete task;
    }
  }

 private:
  boost::lockfree::queue<std::function<void()>*> tasks_{1024};
};

class Boost : public bench::QueueBesideLoop<Queue> {
 public:
  bench::About about() const {
    return {
        "boost",
        std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000),
        "epoll"};
  }
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Boost>(argc, argv); }
