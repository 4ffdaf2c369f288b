// Posting through a mutex and a vector to a hand-written loop.
#include "post/eventfd_loop.h"
#include "post/mutex_queue.h"
#include "post/post.h"

namespace {

class Mutex {
 public:
  void post(bench::Task task) {
    if (tasks_.push(task)) loop_.wake();
  }
  void run() {
    loop_.run([this] { tasks_.run_all(); });
  }
  void stop() { loop_.stop(); }
  bench::SubjectInfo info() const { return {"mutex", bench::kernel_release(), "epoll"}; }

 private:
  bench::EventfdLoop loop_;
  bench::MutexQueue tasks_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Mutex>(argc, argv); }
