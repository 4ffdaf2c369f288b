// pread(2), one after the other: what a program does that has nothing else to do. More places
// change nothing.
#include <unistd.h>

#include "files/files.h"

namespace {

class Floor {
 public:
  explicit Floor(bench::Reads& reads) : reads_(reads) {}

  void run() {
    for (off_t from; (from = reads_.next(0)) >= 0;)
      reads_.done(0, pread(reads_.fd(), reads_.place(0), bench::Reads::size, from));
  }
  bench::About about() const { return {"floor", bench::kernel_release(), "pread"}; }

 private:
  bench::Reads& reads_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_files<Floor>(argc, argv); }
