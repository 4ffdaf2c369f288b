// Posting through boost::lockfree::queue. Its elements must be trivial, so it contains pointers to
// tasks, as in evpp.
#include <string>

#include <boost/lockfree/queue.hpp>
#include <boost/version.hpp>

#include "post/loop_with_queue.h"

namespace {

class Queue {
 public:
  void push(std::function<void()> task) {
    auto* pointer = new std::function<void()>(std::move(task));
    while (!tasks_.push(pointer)) {
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

class Boost : public bench::LoopWithQueue<Queue> {
 public:
  bench::SubjectInfo info() const {
    return {
        "boost",
        std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000),
        "epoll"};
  }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Boost>(argc, argv); }
