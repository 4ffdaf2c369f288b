// The server is programs/server.js: the package ws for Node.js.
#include <cstdlib>

#include "websocket/websocket.h"

namespace {

class Node {
 public:
  explicit Node(const bench::ServerOptions& options) : options_(options) {}

  [[noreturn]] void run() const {
    setenv("NODE_PATH", NODE_MODULES, 1);
    bench::execute_server(options_, NODE, NODE_SERVER);
  }

  static bench::SubjectInfo info() { return {"node", NODE_VERSION, "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Node>(argc, argv); }
