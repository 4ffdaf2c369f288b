// nginx of the system, as a process without workers, which serves static files from its directory.
#pragma once

#include <string>
#include <string_view>

#include "server/server.h"

#ifndef NGINX
#define NGINX "nginx"
#endif

namespace bench {

class NginxProcess {
 public:
  /// `listen` follows the address in the configuration: "ssl". `settings` are lines of the
  /// configuration's section "http", `locations` of its section "server".
  NginxProcess(const ServerOptions& options, std::string_view listen, std::string_view settings,
               std::string_view locations = {});

  void add_file(const std::string& name, std::string_view contents) const;

  /// Replaces the process.
  [[noreturn]] void run() const;

  static SubjectInfo info();

 private:
  void write(const std::string& name, std::string_view text) const;

  std::string folder_;
};

}  // namespace bench
