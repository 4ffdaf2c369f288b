// The server is nghttpd of nghttp2, as a process with one thread, which serves files.
#include <unistd.h>

#include <fstream>
#include <string>

#include "http/http.h"

namespace {

class Nghttpd {
 public:
  explicit Nghttpd(const bench::ServerOptions& options) : options_(options) {
    if (!options.http_2) bench::fail("nghttpd supports only HTTP/2");
    std::ofstream(options.folder + "/files" + bench::http_target)
        << std::string(std::size_t(options.answer_bytes), 'b');
    // The response to an upload is a file too.
    std::ofstream(options.folder + "/files" + bench::upload_target) << "ok";
  }

  [[noreturn]] void run() const {
    const std::string port = std::to_string(options_.port);
    const std::string files = options_.folder + "/files";
    const std::string pem = options_.folder + "/server.pem";
    if (options_.tls)
      execl(NGHTTPD, "nghttpd", "-a", "127.0.0.1", "-d", files.c_str(), port.c_str(), pem.c_str(),
            pem.c_str(), nullptr);
    else
      execl(NGHTTPD, "nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", files.c_str(), port.c_str(),
            nullptr);
    bench::fail_errno(NGHTTPD);
  }

  static bench::SubjectInfo info() { return {"nghttpd", NGHTTPD_VERSION, "epoll"}; }

 private:
  bench::ServerOptions options_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Nghttpd>(argc, argv); }
