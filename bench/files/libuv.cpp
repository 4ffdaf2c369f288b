// Reads with uv_fs_read, on libuv's thread pool: four threads unless UV_THREADPOOL_SIZE is set.
#include <vector>

#include <uv.h>

#include "files/files.h"

namespace {

class Libuv {
 public:
  explicit Libuv(bench::Reads& reads) : reads_(reads), requests_(std::size_t(reads.slots())) {
    uv_loop_init(&loop_);
  }
  ~Libuv() { uv_loop_close(&loop_); }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void run() {
    for (int slot = 0; slot < reads_.slots(); ++slot) start(slot);
    uv_run(&loop_, UV_RUN_DEFAULT);
  }
  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "threads"}; }

 private:
  void start(int slot) {
    const off_t from = reads_.next(slot);
    if (from < 0) return;
    uv_fs_t& request = requests_[slot];
    request.data = this;
    const uv_buf_t into = uv_buf_init(reads_.buffer(slot), bench::Reads::size);
    uv_fs_read(&loop_, &request, reads_.fd(), &into, 1, from, on_read);
  }
  static void on_read(uv_fs_t* request) {
    auto& self = *static_cast<Libuv*>(request->data);
    const int slot = int(request - self.requests_.data());
    self.reads_.done(slot, request->result);
    uv_fs_req_cleanup(request);
    self.start(slot);
  }

  bench::Reads& reads_;
  uv_loop_t loop_;
  std::vector<uv_fs_t> requests_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_files<Libuv>(argc, argv); }
