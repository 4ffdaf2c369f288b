// A task for each place, that reads on and on.
#include <tambour/tambour.h>

#include <cstddef>
#include <span>
#include <string>

#include "files/files.h"

namespace {

class Tambour {
 public:
  explicit Tambour(bench::Reads& reads) : reads_(reads) {
    if (reads.direct()) bench::fail("File opens nothing with O_DIRECT");
    tambour::spawn(loop_, open());
    loop_.run();
    if (!file_.is_open()) bench::fail("opening the file");
  }

  void run() {
    for (int at = 0; at < reads_.places(); ++at) tambour::spawn(loop_, read_on(at));
    loop_.run();
  }
  bench::About about() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::Task<> open() {
    if (auto file = co_await tambour::File::open(reads_.path())) file_ = std::move(*file);
  }

  tambour::Task<> read_on(int at) {
    const auto into = std::as_writable_bytes(std::span(reads_.place(at), bench::Reads::size));
    for (off_t from; (from = reads_.next(at)) >= 0;) {
      const auto got = co_await file_.read_at(into, std::uint64_t(from));
      reads_.done(at, got ? std::int64_t(*got) : -1);
    }
  }

  bench::Reads& reads_;
  tambour::EventLoop loop_;
  tambour::File file_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_files<Tambour>(argc, argv); }
