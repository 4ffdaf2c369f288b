// Posting on libuv: a uv_async_t, which coalesces wakeups, and a queue with a mutex, as in its
// guide.
#include <uv.h>

#include "post/mutex_queue.h"
#include "post/post.h"

namespace {

class Libuv {
 public:
  Libuv() {
    uv_loop_init(&loop_);
    uv_async_init(&loop_, &async_,
                  [](uv_async_t* async) { static_cast<Libuv*>(async->data)->tasks_.run_all(); });
    async_.data = this;
  }
  ~Libuv() {
    uv_close(reinterpret_cast<uv_handle_t*>(&async_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void post(bench::Task task) {
    if (tasks_.push(task)) uv_async_send(&async_);
  }
  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
  void stop() { uv_stop(&loop_); }
  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  uv_loop_t loop_;
  uv_async_t async_;
  bench::MutexQueue tasks_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Libuv>(argc, argv); }
