// The server is programs/server.js: the module http of Node.js.
#include <unistd.h>

#include <string>

#include "http/http.h"

namespace {

class Node {
 public:
  explicit Node(const bench::ServerOptions& options) : options_(options) {}

  [[noreturn]] void run() const {
    execl(NODE, NODE, NODE_SERVER, std::to_string(options_.port).c_str(),
          std::to_string(options_.answer_bytes).c_str(), options_.folder.c_str(),
          options_.tls ? "tls" : "plain", nullptr);
    bench::fail_errno(NODE);
  }

  static bench::SubjectInfo info() { return {"node", NODE_VERSION, "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Node>(argc, argv); }
