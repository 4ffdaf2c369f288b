// The server is programs/go, with the Go module github.com/lxzan/gws, on one processor.
#include <cstdlib>

#include "websocket/websocket.h"

namespace {

class Gws {
 public:
  explicit Gws(const bench::ServerOptions& options) : options_(options) {}

  [[noreturn]] void run() const {
    setenv("GOMAXPROCS", "1", 1);
    bench::execute_server(options_, GO_SERVER, "gws");
  }

  static bench::SubjectInfo info() { return {"gws", "1.8.9", "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Gws>(argc, argv); }
