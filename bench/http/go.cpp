// The server is programs/server.go: net/http of Go on one processor.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "http/http.h"

namespace {

class Go {
 public:
  explicit Go(const bench::ServerOptions& options) : options_(options) {
    if (options.http_2 && !options.tls && GO_MINOR < 24) bench::fail("h2c needs Go 1.24");
  }

  [[noreturn]] void run() const {
    setenv("GOMAXPROCS", "1", 1);
    execl(GO_SERVER, GO_SERVER, std::to_string(options_.port).c_str(),
          std::to_string(options_.answer_bytes).c_str(), options_.folder.c_str(),
          options_.tls      ? "tls"
          : options_.http_2 ? "h2c"
                            : "plain",
          nullptr);
    bench::fail_errno(GO_SERVER);
  }

  static bench::SubjectInfo info() { return {"go", GO_VERSION, "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Go>(argc, argv); }
