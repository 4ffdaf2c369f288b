// The server is programs/rust: tokio-tungstenite on one thread. It has no compression.
#include "websocket/websocket.h"

namespace {

class Tungstenite {
 public:
  explicit Tungstenite(const bench::ServerOptions& options) : options_(options) {}

  [[noreturn]] void run() const { bench::execute_server(options_, RUST_SERVER); }

  static bench::SubjectInfo info() { return {"tungstenite", "0.24", "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Tungstenite>(argc, argv); }
