// nginx of the system, as a process without workers, which serves static files. Its directory, with
// configuration and files, is the one of the certificate.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tls/tls.h"

namespace {

std::string configuration(int port) {
  return "daemon off;\n"
         "master_process off;\n"
         "pid nginx.pid;\n"
         "error_log stderr crit;\n"
         "events { worker_connections 16384; }\n"
         "http {\n"
         "  access_log off;\n"
         "  client_body_temp_path temporary;\n"
         "  proxy_temp_path temporary;\n"
         "  fastcgi_temp_path temporary;\n"
         "  uwsgi_temp_path temporary;\n"
         "  scgi_temp_path temporary;\n"
         "  open_file_cache max=16;\n"
         "  keepalive_requests 1000000000;\n"
         "  keepalive_timeout 600s;\n"
         "  ssl_certificate server.pem;\n"
         "  ssl_certificate_key server.pem;\n"
         "  ssl_protocols TLSv1.2 TLSv1.3;\n"
         "  server { listen 127.0.0.1:" +
         std::to_string(port) +
         " ssl backlog=4096; root files; }\n"
         "}\n";
}

std::string version_of_nginx() {
  FILE* const output = popen(NGINX " -v 2>&1", "r");
  if (output == nullptr) bench::fail_errno("nginx -v");
  char text[256] = {};
  const std::size_t size = fread(text, 1, sizeof text - 1, output);
  pclose(output);
  const std::string line(text, size);
  const std::size_t slash = line.find('/');
  return slash == std::string::npos ? "unknown"
                                    : line.substr(slash + 1, line.find('\n') - slash - 1);
}

class Nginx {
 public:
  explicit Nginx(const bench::ServerOptions& options) : folder_(options.folder) {
    write("nginx.conf", configuration(options.port));
    if (mkdir((folder_ + "/files").c_str(), 0755) != 0) bench::fail_errno("mkdir");
    const std::string& answer = bench::answer_of(options.answer_bytes);
    write("files/" + std::to_string(options.answer_bytes),
          answer.substr(answer.size() - std::size_t(options.answer_bytes)));
  }

  [[noreturn]] void run() {
    execl(NGINX, "nginx", "-p", folder_.c_str(), "-c", "nginx.conf", "-e", "stderr", nullptr);
    bench::fail_errno("nginx");
  }

  bench::SubjectInfo info() const { return {"nginx", version_of_nginx(), "epoll"}; }

 private:
  void write(const std::string& name, const std::string& text) {
    std::ofstream file(folder_ + "/" + name, std::ios::binary);
    if (!(file << text).flush()) bench::fail("cannot write " + name);
  }

  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Nginx>(argc, argv); }
