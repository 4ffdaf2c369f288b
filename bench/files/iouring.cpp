// io_uring by hand: what can be read is submitted with the wait for what was.
#include <cstdint>

#include <liburing.h>

#include "files/files.h"

namespace {

class IoUring {
 public:
  explicit IoUring(bench::Reads& reads) : reads_(reads) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    if (io_uring_queue_init_params(1024, &ring_, &params) != 0) bench::fail("no io_uring");
  }
  ~IoUring() { io_uring_queue_exit(&ring_); }
  IoUring(const IoUring&) = delete;
  IoUring& operator=(const IoUring&) = delete;

  void run() {
    for (int at = 0; at < reads_.places(); ++at) start(at);
    while (!reads_.over()) {
      io_uring_submit_and_wait(&ring_, 1);
      unsigned head;
      unsigned count = 0;
      io_uring_cqe* done;
      io_uring_for_each_cqe(&ring_, head, done) {
        ++count;
        const int at = int(done->user_data);
        reads_.done(at, done->res);
        start(at);
      }
      io_uring_cq_advance(&ring_, count);
    }
  }
  bench::About about() const { return {"iouring", bench::kernel_release(), "io_uring"}; }

 private:
  void start(int at) {
    const off_t from = reads_.next(at);
    if (from < 0) return;
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, reads_.fd(), reads_.place(at), bench::Reads::size,
                       std::uint64_t(from));
    entry->user_data = std::uint64_t(at);
  }

  bench::Reads& reads_;
  io_uring ring_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_files<IoUring>(argc, argv); }
