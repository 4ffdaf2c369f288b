// The proxy is nginx, with kept connections to the upstream, and the fields that Tambour adds.
#include <string>

#include "http_proxy/http_proxy.h"
#include "server/nginx_process.h"

namespace {

std::string settings(const bench::ServerOptions& options) {
  return "  upstream backend {\n"
         "    server 127.0.0.1:" +
         std::to_string(options.upstream_port) +
         ";\n"
         "    keepalive 1024;\n"
         "    keepalive_requests 1000000000;\n"
         "    keepalive_timeout 600s;\n"
         "  }\n"
         "  proxy_http_version 1.1;\n"
         "  proxy_max_temp_file_size 0;\n";
}

constexpr const char* location =
    "location / {\n"
    "  proxy_pass http://backend;\n"
    "  proxy_set_header Host $http_host;\n"
    "  proxy_set_header Connection \"\";\n"
    "  proxy_set_header X-Forwarded-For $remote_addr;\n"
    "  proxy_set_header X-Forwarded-Proto $scheme;\n"
    "  proxy_set_header X-Forwarded-Host $http_host;\n"
    "  proxy_set_header Via \"1.1 nginx\";\n"
    "}\n";

class Nginx : public bench::NginxProcess {
 public:
  explicit Nginx(const bench::ServerOptions& options)
      : NginxProcess(options, "", settings(options), location) {}
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http_proxy<Nginx>(argc, argv); }
