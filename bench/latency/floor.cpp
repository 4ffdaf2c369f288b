// A blocking recv and a send: no loop at all.
#include <fcntl.h>

#include "latency/latency.h"

namespace {

class Floor {
 public:
  explicit Floor(int fd) : fd_(fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); }
  void run() {
    while (bench::echo_once(fd_)) {
    }
  }
  bench::About about() const { return {"floor", bench::kernel_release(), "recv"}; }

 private:
  int fd_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_latency<Floor>(argc, argv); }
