// The server is nginx, which serves a file from its cache of open files.
#include <string>

#include "http/http.h"
#include "server/nginx_process.h"

namespace {

class Nginx : public bench::NginxProcess {
 public:
  explicit Nginx(const bench::ServerOptions& options)
      : NginxProcess(options, "", "  tcp_nopush on;\n  sendfile on;\n  etag off;\n") {
    add_file(std::string(bench::http_target).substr(1),
             std::string(std::size_t(options.answer_bytes), 'b'));
  }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Nginx>(argc, argv); }
