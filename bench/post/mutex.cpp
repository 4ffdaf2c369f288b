// A mutex and a vector beside a loop by hand.
#include "post/eventfd_loop.h"
#include "post/guarded_tasks.h"
#include "post/post.h"

namespace {

class Mutex {
 public:
  void post(bench::Task task) {
    if (tasks_.add(task)) loop_.wake();
  }
  void run() {
    loop_.run([this] { tasks_.run_all(); });
  }
  void stop() { loop_.stop(); }
  bench::About about() const { return {"mutex", bench::kernel_release(), "epoll"}; }

 private:
  bench::EventfdLoop loop_;
  bench::GuardedTasks tasks_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Mutex>(argc, argv); }
