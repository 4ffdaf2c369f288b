// The server is nginx. Its directory, with configuration and files, is the one of the certificate.
#include <string>

#include "server/nginx_process.h"
#include "tls/tls.h"

namespace {

constexpr const char* settings =
    "  ssl_certificate server.pem;\n"
    "  ssl_certificate_key server.pem;\n"
    "  ssl_protocols TLSv1.2 TLSv1.3;\n";

class Nginx : public bench::NginxProcess {
 public:
  explicit Nginx(const bench::ServerOptions& options) : NginxProcess(options, "ssl", settings) {
    const std::string& answer = bench::answer_of(options.answer_bytes);
    add_file(std::to_string(options.answer_bytes),
             answer.substr(answer.size() - std::size_t(options.answer_bytes)));
  }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Nginx>(argc, argv); }
