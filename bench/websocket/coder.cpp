// The server is programs/go, with the Go module github.com/coder/websocket, on one processor.
#include <cstdlib>

#include "websocket/websocket.h"

namespace {

class Coder {
 public:
  explicit Coder(const bench::ServerOptions& options) : options_(options) {}

  [[noreturn]] void run() const {
    setenv("GOMAXPROCS", "1", 1);
    bench::execute_server(options_, GO_SERVER, "coder");
  }

  static bench::SubjectInfo info() { return {"coder", "1.8.12", "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Coder>(argc, argv); }
