// The server is nginx. It answers a short text from its configuration, serves files from its cache
// of open files, and discards uploads.
#include <string>

#include "http/arena.h"
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

/// The longest text in the configuration. A longer one is a file.
constexpr int text_bytes_max = 4000;

std::string locations(const bench::ServerOptions& options) {
  std::string text = "location = /upload { return 200 ok; }";
  text.append(" location = ").append(bench::ok_target);
  text.append(" { default_type text/plain; return 200 ok; }");
  if (options.answer_bytes > text_bytes_max) return text;
  text.append(" location = ").append(bench::http_target);
  text.append(" { default_type text/plain; return 200 ");
  return text + std::string(std::size_t(options.answer_bytes), 'b') + "; }";
}

class Nginx : public bench::NginxProcess {
 public:
  explicit Nginx(const bench::ServerOptions& options)
      : NginxProcess(options, listen(options),
                     options.tls ? std::string(settings) + tls_settings : settings,
                     locations(options)) {
    add_file(std::string(bench::http_target).substr(1),
             std::string(std::size_t(options.answer_bytes), 'b'));
  }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Nginx>(argc, argv); }
