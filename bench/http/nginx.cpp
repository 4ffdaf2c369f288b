// The server is nginx, which serves files from its cache of open files, and discards uploads.
#include <string>

#include "http/http.h"
#include "server/nginx_process.h"

namespace {

constexpr const char* settings =
    "  tcp_nopush on;\n"
    "  sendfile on;\n"
    "  etag off;\n"
    "  client_max_body_size 0;\n";
constexpr const char* tls_settings =
    "  ssl_certificate server.pem;\n"
    "  ssl_certificate_key server.pem;\n";

std::string listen(const bench::ServerOptions& options) {
  std::string words = options.tls ? "ssl" : "";
  if (options.http_2) words += " http2";
  return words;
}

class Nginx : public bench::NginxProcess {
 public:
  explicit Nginx(const bench::ServerOptions& options)
      : NginxProcess(options, listen(options),
                     options.tls ? std::string(settings) + tls_settings : settings,
                     "location = /upload { return 200 ok; }") {
    add_file(std::string(bench::http_target).substr(1),
             std::string(std::size_t(options.answer_bytes), 'b'));
  }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Nginx>(argc, argv); }
