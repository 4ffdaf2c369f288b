// Reads with File, in one task per slot.
#include <tambour/tambour.h>

#include <cstddef>
#include <span>
#include <string>

#include "files/files.h"

namespace {

class Tambour {
 public:
  explicit Tambour(bench::Reads& reads) : reads_(reads) {
    if (reads.direct()) bench::fail("O_DIRECT is not supported by this program");
    tambour::spawn(loop_, open());
    loop_.run();
    if (!file_.is_open()) bench::fail("cannot open the file");
  }

  void run() {
    for (int slot = 0; slot < reads_.slots(); ++slot) tambour::spawn(loop_, read_slot(slot));
    loop_.run();
  }
  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::Task<> open() {
    if (auto file = co_await tambour::File::open(reads_.path())) file_ = std::move(*file);
  }

  tambour::Task<> read_slot(int slot) {
    const auto into = std::as_writable_bytes(std::span(reads_.buffer(slot), bench::Reads::size));
    for (off_t from; (from = reads_.next(slot)) >= 0;) {
      const auto got = co_await file_.read_at(into, std::uint64_t(from));
      reads_.done(slot, got ? std::int64_t(*got) : -1);
    }
  }

  bench::Reads& reads_;
  tambour::EventLoop loop_;
  tambour::File file_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_files<Tambour>(argc, argv); }
