// Starts nginx with a configuration of its own.
#include "http/support/nginx_server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace tambour::test {
namespace {

constexpr const char* configuration_begin = R"(
daemon off;
user root;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path temporary;
  proxy_temp_path temporary;
  fastcgi_temp_path temporary;
  uwsgi_temp_path temporary;
  scgi_temp_path temporary;
  absolute_redirect off;
  gzip on;
  gzip_types "text/plain; charset=utf-8";
  gzip_min_length 1024;
  gzip_vary on;
  if_modified_since before;
  client_max_body_size 4m;
  default_type application/octet-stream;
  types { "text/html; charset=utf-8" html; "text/plain; charset=utf-8" txt; }
  server {
    root files;
    location = /301 { return 301 /a.txt; }
    location = /302 { return 302 /a.txt; }
    location = /303 { return 303 /a.txt; }
    location = /307 { return 307 /a.txt; }
    location = /308 { return 308 /a.txt; }
    location = /307-put { return 307 /put/redirected; }
    location = /308-put { return 308 /put/redirected; }
    location = /chain { return 302 /301; }
    location = /loop { return 302 /loop; }
    location = /204 { return 204; }
    location = /cookies { default_type text/plain; return 200 "cookies: $http_cookie"; }
    location = /cookie-set {
      add_header Set-Cookie "a=b; Path=/";
      add_header Set-Cookie "c=d";
      return 302 /cookies;
    }
    location = /cookie-path {
      add_header Set-Cookie "a=b; Path=/cookies";
      add_header Set-Cookie "c=d; Path=/other";
      return 302 /cookies;
    }
    location = /cookie-expired {
      add_header Set-Cookie "a=b; Path=/";
      add_header Set-Cookie "a=b; Path=/; Max-Age=0";
      return 302 /cookies;
    }
    location = /cookie-replaced {
      add_header Set-Cookie "a=b; Path=/";
      add_header Set-Cookie "a=c; Path=/; HttpOnly";
      return 302 /cookies;
    }
    location = /cookie-domain {
      add_header Set-Cookie "a=b; Path=/; Domain=example.org";
      return 302 /cookies;
    }
    location /put/ { dav_methods PUT DELETE; }
    listen 127.0.0.1:)";

/// A listening socket, which nginx inherits: the port is free, and clients can connect at once.
UniqueFd listen_on_free_port(std::uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = 0,
                      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                      .sin_zero = {}};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), generic, size) != 0 || ::listen(fd.get(), 64) != 0 ||
      ::getsockname(fd.get(), generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "a socket for nginx");
  port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

NginxServer::NginxServer(EventLoop& loop, const std::string& folder, std::string_view parameters,
                         std::string_view directives) {
  const UniqueFd listener = listen_on_free_port(port_);
  std::ofstream(folder + "/nginx.conf")
      << configuration_begin << port_ << " " << parameters << ";\n"
      << directives << "\n  }\n}\n";
  std::filesystem::create_directory(folder + "/temporary");
  auto environment = current_environment();
  environment.emplace_back("NGINX=3;");  // Its way to pass listeners to a new version of itself.
  process_ = or_throw(Process::spawn(
      loop, {.arguments = {"/bin/sh", "-c",
                           "PATH=$PATH:/usr/sbin; exec nginx -p . -c nginx.conf -e stderr"},
             .environment = std::move(environment),
             .working_directory = folder,
             .input = Stdio::null(),
             .output = Stdio::null(),
             .descriptors = {{.fd = listener.get(), .as = 3}},
             .group = ProcessGroup::new_group,
             .timeout = std::chrono::minutes(5)}));
}

NginxServer::~NginxServer() { process_.terminate(Duration::zero()); }

}  // namespace tambour::test
