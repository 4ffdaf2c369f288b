// Reads with asio::random_access_file, which requires asio's io_uring backend.
#define ASIO_HAS_IO_URING 1
#define ASIO_DISABLE_EPOLL 1

#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/random_access_file.hpp>

#include "common/asio_version.h"
#include "files/files.h"

namespace {

class Asio {
 public:
  explicit Asio(bench::Reads& reads) : reads_(reads), file_(context_, dup(reads.fd())) {}

  void run() {
    for (int slot = 0; slot < reads_.slots(); ++slot) start(slot);
    context_.run();
    context_.restart();
  }
  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "io_uring"}; }

 private:
  void start(int slot) {
    const off_t from = reads_.next(slot);
    if (from < 0) return;
    file_.async_read_some_at(std::uint64_t(from),
                             asio::buffer(reads_.buffer(slot), bench::Reads::size),
                             [this, slot](auto error, std::size_t got) {
                               reads_.done(slot, error ? -1 : std::int64_t(got));
                               start(slot);
                             });
  }

  bench::Reads& reads_;
  asio::io_context context_{1};
  asio::random_access_file file_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_files<Asio>(argc, argv); }
