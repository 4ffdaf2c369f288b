// EventLoop::QueueInLoop. evpp is built with one of three queues: see bench/CMakeLists.txt.
#include <evpp/event_loop.h>

#include "post/post.h"

namespace {

class Evpp {
 public:
  void post(bench::Task task) { loop_.QueueInLoop(task); }
  void run() { loop_.Run(); }
  void stop() { loop_.Stop(); }
  bench::About about() const { return {"evpp", "unknown", "epoll"}; }

 private:
  evpp::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Evpp>(argc, argv); }
