// The server is programs/hyper: hyper on Tokio, with one thread.
#include <unistd.h>

#include <string>

#include "http/http.h"

namespace {

class Hyper {
 public:
  explicit Hyper(const bench::ServerOptions& options) : options_(options) {
    if (access(HYPER_SERVER, X_OK) != 0)
      bench::fail("the server was not built: build the target bench_hyper_server");
  }

  [[noreturn]] void run() const {
    execl(HYPER_SERVER, HYPER_SERVER, std::to_string(options_.port).c_str(),
          std::to_string(options_.answer_bytes).c_str(), options_.folder.c_str(),
          options_.tls ? "tls" : "plain", options_.http_2 ? "2" : "1", nullptr);
    bench::fail_errno(HYPER_SERVER);
  }

  static bench::SubjectInfo info() { return {"hyper", HYPER_VERSION, "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Hyper>(argc, argv); }
