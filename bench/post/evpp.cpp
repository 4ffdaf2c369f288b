// Posting with EventLoop::QueueInLoop. evpp has three queues to build with: see
// bench/CMakeLists.txt.
#include <evpp/event_loop.h>

#include "post/post.h"

namespace {

class Evpp {
 public:
  void post(bench::Task task) { loop_.QueueInLoop(task); }
  void run() { loop_.Run(); }
  void stop() { loop_.Stop(); }
  bench::SubjectInfo info() const { return {"evpp", "unknown", "epoll"}; }

 private:
  evpp::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Evpp>(argc, argv); }
