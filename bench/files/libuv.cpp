// uv_fs_read, which libuv's threads do; four of them unless UV_THREADPOOL_SIZE says otherwise.
#include <vector>

#include <uv.h>

#include "files/files.h"

namespace {

class Libuv {
 public:
  explicit Libuv(bench::Reads& reads) : reads_(reads), requests_(std::size_t(reads.places())) {
    uv_loop_init(&loop_);
  }
  ~Libuv() { uv_loop_close(&loop_); }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void run() {
    for (int at = 0; at < reads_.places(); ++at) start(at);
    uv_run(&loop_, UV_RUN_DEFAULT);
  }
  bench::About about() const { return {"libuv", uv_version_string(), "threads"}; }

 private:
  void start(int at) {
    const off_t from = reads_.next(at);
    if (from < 0) return;
    uv_fs_t& request = requests_[at];
    request.data = this;
    const uv_buf_t into = uv_buf_init(reads_.place(at), bench::Reads::size);
    uv_fs_read(&loop_, &request, reads_.fd(), &into, 1, from, on_read);
  }
  static void on_read(uv_fs_t* request) {
    auto& self = *static_cast<Libuv*>(request->data);
    const int at = int(request - self.requests_.data());
    self.reads_.done(at, request->result);
    uv_fs_req_cleanup(request);
    self.start(at);
  }

  bench::Reads& reads_;
  uv_loop_t loop_;
  std::vector<uv_fs_t> requests_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_files<Libuv>(argc, argv); }
