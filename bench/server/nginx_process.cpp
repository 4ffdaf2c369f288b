#include "server/nginx_process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

namespace bench {
namespace {

std::string configuration(int port, std::string_view listen, std::string_view settings,
                          std::string_view locations) {
  std::string text =
      "daemon off;\n"
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
      "  open_file_cache max=1000;\n"
      "  keepalive_requests 1000000000;\n"
      "  keepalive_timeout 600s;\n";
  text.append(settings);
  text.append("  server { listen 127.0.0.1:" + std::to_string(port));
  text.append(" ").append(listen).append(" backlog=4096; root files; ");
  text.append(locations).append(" }\n}\n");
  return text;
}

std::string version_of_nginx() {
  FILE* const output = popen(NGINX " -v 2>&1", "r");
  if (output == nullptr) fail_errno("nginx -v");
  char text[256] = {};
  const std::size_t size = fread(text, 1, sizeof text - 1, output);
  pclose(output);
  const std::string line(text, size);
  const std::size_t slash = line.find('/');
  return slash == std::string::npos ? "unknown"
                                    : line.substr(slash + 1, line.find('\n') - slash - 1);
}

}  // namespace

NginxProcess::NginxProcess(const ServerOptions& options, std::string_view listen,
                           std::string_view settings, std::string_view locations)
    : folder_(options.folder) {
  write("nginx.conf", configuration(options.port, listen, settings, locations));
  if (mkdir((folder_ + "/files").c_str(), 0755) != 0 && errno != EEXIST) fail_errno("mkdir");
}

void NginxProcess::add_file(const std::string& name, std::string_view contents) const {
  write("files/" + name, contents);
}

void NginxProcess::run() const {
  execl(NGINX, "nginx", "-p", folder_.c_str(), "-c", "nginx.conf", "-e", "stderr", nullptr);
  fail_errno("nginx");
}

SubjectInfo NginxProcess::info() { return {"nginx", version_of_nginx(), "epoll"}; }

void NginxProcess::write(const std::string& name, std::string_view text) const {
  std::ofstream file(folder_ + "/" + name, std::ios::binary);
  if (!(file << text).flush()) fail("cannot write " + name);
}

}  // namespace bench
