// Starts nginx, HAProxy or h2o as a proxy in front of a server.
#include "http/support/front_end.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tambour::test {
namespace {

#define TAMBOUR_NGINX_BEGIN               \
  "daemon off;\n"                         \
  "master_process off;\n"                 \
  "pid FOLDER/nginx.pid;\n"               \
  "error_log stderr crit;\n"              \
  "events { worker_connections 64; }\n"   \
  "http {\n"                              \
  "  access_log off;\n"                   \
  "  client_body_temp_path temporary;\n"  \
  "  proxy_temp_path temporary;\n"        \
  "  fastcgi_temp_path temporary;\n"      \
  "  uwsgi_temp_path temporary;\n"        \
  "  scgi_temp_path temporary;\n"         \
  "  keepalive_requests 1000000;\n"       \
  "  upstream back {\n"                   \
  "    server unix:FOLDER/back;\n"        \
  "    keepalive 2;\n"                    \
  "    keepalive_requests 1000000;\n"     \
  "  }\n"                                 \
  "  proxy_http_version 1.1;\n"           \
  "  proxy_ignore_client_abort on;\n"     \
  "  proxy_set_header Connection \"\";\n" \
  "  proxy_set_header Host $http_host;\n" \
  "  proxy_set_header X-Front-End nginx;\n"
#define TAMBOUR_NGINX_END \
  "  server { listen unix:FOLDER/front; location / { proxy_pass http://back; } }\n}\n"
#define TAMBOUR_HAPROXY_BEGIN  \
  "defaults\n"                 \
  "  mode http\n"              \
  "  timeout connect 10s\n"    \
  "  timeout client 10s\n"     \
  "  timeout server 10s\n"     \
  "  http-reuse always\n"      \
  "frontend front\n"           \
  "  bind unix@FOLDER/front\n" \
  "  default_backend back\n"
#define TAMBOUR_HAPROXY_END                         \
  "backend back\n"                                  \
  "  http-request set-header X-Front-End haproxy\n" \
  "  server back unix@FOLDER/back\n"

constexpr const char* nginx_arguments = "-p FOLDER -c FOLDER/configuration -e stderr";

std::string with_folder(std::string text, const std::string& folder) {
  constexpr std::string_view placeholder = "FOLDER";
  for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;)
    text.replace(at, placeholder.size(), folder);
  return text;
}

}  // namespace

const FrontEnd nginx{"nginx", "nginx", nginx_arguments, TAMBOUR_NGINX_BEGIN TAMBOUR_NGINX_END,
                     "X-Front-End: nginx"};
const FrontEnd lenient_nginx{"lenient_nginx", "nginx", nginx_arguments,
                             TAMBOUR_NGINX_BEGIN
                             "  proxy_request_buffering off;\n"
                             "  underscores_in_headers on;\n"
                             "  ignore_invalid_headers off;\n" TAMBOUR_NGINX_END,
                             "X-Front-End: nginx"};
const FrontEnd haproxy{"haproxy", "haproxy", "-db -f FOLDER/configuration",
                       TAMBOUR_HAPROXY_BEGIN TAMBOUR_HAPROXY_END, "x-front-end: haproxy"};
const FrontEnd lenient_haproxy{"lenient_haproxy", "haproxy", "-db -f FOLDER/configuration",
                               TAMBOUR_HAPROXY_BEGIN
                               "  option accept-invalid-http-request\n" TAMBOUR_HAPROXY_END,
                               "x-front-end: haproxy"};
const FrontEnd h2o{"h2o", "h2o", "-c FOLDER/configuration",
                   "num-threads: 1\n"
                   "listen:\n"
                   "  type: unix\n"
                   "  port: FOLDER/front\n"
                   "hosts:\n"
                   "  default:\n"
                   "    paths:\n"
                   "      \"/\":\n"
                   "        proxy.reverse.url: \"http://[unix:FOLDER/back]/\"\n"
                   "        proxy.preserve-host: ON\n",
                   "x-forwarded-proto: http"};

Process start(EventLoop& loop, const FrontEnd& front_end, const std::string& folder) {
  std::ofstream configuration(folder + "/configuration");
  configuration << with_folder(front_end.configuration, folder);
  // Otherwise h2o changes to a user that cannot read the folder.
  if (front_end.program == std::string_view("h2o") && ::geteuid() == 0)
    configuration << "user: root\n";
  configuration.close();
  std::filesystem::create_directory(folder + "/temporary");
  const std::string command = "PATH=$PATH:/usr/sbin; exec " + std::string(front_end.program) + " " +
                              with_folder(front_end.arguments, folder) + " 2> errors";
  return Process::spawn(loop, {.arguments = {"/bin/sh", "-c", command},
                               .working_directory = folder,
                               .input = Stdio::null(),
                               .output = Stdio::null(),
                               .group = ProcessGroup::new_group,
                               .timeout = std::chrono::minutes(5)})
      .value();
}

}  // namespace tambour::test
