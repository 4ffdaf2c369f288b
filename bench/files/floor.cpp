// The floor: pread(2) calls one after the other, in a single slot.
#include <unistd.h>

#include "files/files.h"

namespace {

class Floor {
 public:
  explicit Floor(bench::Reads& reads) : reads_(reads) {}

  void run() {
    for (off_t from; (from = reads_.next(0)) >= 0;)
      reads_.done(0, pread(reads_.fd(), reads_.buffer(0), bench::Reads::size, from));
  }
  bench::SubjectInfo info() const { return {"floor", bench::kernel_release(), "pread"}; }

 private:
  bench::Reads& reads_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_files<Floor>(argc, argv); }
