// Reads with hand-written io_uring code: new reads are submitted together with the wait.
#include <cstdint>

#include <liburing.h>

#include "files/files.h"

namespace {

class IoUring {
 public:
  explicit IoUring(bench::Reads& reads) : reads_(reads) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    if (io_uring_queue_init_params(1024, &ring_, &params) != 0)
      bench::fail("io_uring is not available");
  }
  ~IoUring() { io_uring_queue_exit(&ring_); }
  IoUring(const IoUring&) = delete;
  IoUring& operator=(const IoUring&) = delete;

  void run() {
    for (int slot = 0; slot < reads_.slots(); ++slot) start(slot);
    while (!reads_.finished()) {
      io_uring_submit_and_wait(&ring_, 1);
      unsigned head;
      unsigned count = 0;
      io_uring_cqe* done;
      io_uring_for_each_cqe(&ring_, head, done) {
        ++count;
        const int slot = int(done->user_data);
        reads_.done(slot, done->res);
        start(slot);
      }
      io_uring_cq_advance(&ring_, count);
    }
  }
  bench::SubjectInfo info() const { return {"iouring", bench::kernel_release(), "io_uring"}; }

 private:
  void start(int slot) {
    const off_t from = reads_.next(slot);
    if (from < 0) return;
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, reads_.fd(), reads_.buffer(slot), bench::Reads::size,
                       std::uint64_t(from));
    entry->user_data = std::uint64_t(slot);
  }

  bench::Reads& reads_;
  io_uring ring_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_files<IoUring>(argc, argv); }
