// asio::random_access_file, which asio has where it is built for io_uring: here for that alone.
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
    for (int at = 0; at < reads_.places(); ++at) start(at);
    context_.run();
    context_.restart();
  }
  bench::About about() const { return {"asio", bench::asio_version(), "io_uring"}; }

 private:
  void start(int at) {
    const off_t from = reads_.next(at);
    if (from < 0) return;
    file_.async_read_some_at(std::uint64_t(from),
                             asio::buffer(reads_.place(at), bench::Reads::size),
                             [this, at](auto error, std::size_t got) {
                               reads_.done(at, error ? -1 : std::int64_t(got));
                               start(at);
                             });
  }

  bench::Reads& reads_;
  asio::io_context context_{1};
  asio::random_access_file file_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_files<Asio>(argc, argv); }
