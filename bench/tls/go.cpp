// The server is a program in Go (programs/server.go), which the build compiles.
#include <unistd.h>

#include <string>

#include "tls/tls.h"

namespace {

class Go {
 public:
  explicit Go(const bench::ServerOptions& options)
      : certificate_(options.folder + "/server.pem"),
        port_(std::to_string(options.port)),
        bytes_(std::to_string(options.answer_bytes)) {}

  /// Replaces the process.
  [[noreturn]] void run() const {
    execl(GO_SERVER, GO_SERVER, certificate_.c_str(), port_.c_str(), bytes_.c_str(), nullptr);
    bench::fail_errno(GO_SERVER);
  }

  static bench::SubjectInfo info() { return {"go", GO_VERSION, "epoll"}; }

 private:
  std::string certificate_;
  std::string port_;
  std::string bytes_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Go>(argc, argv); }
