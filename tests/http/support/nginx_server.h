// nginx of the system as a web server of files, on a free port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/tambour.h>

namespace tambour::test {

class NginxServer {
 public:
  /// Serves `folder`/files, stores uploads in `folder`/files/put, and redirects /301 and others.
  /// `parameters` are those of the listener, "ssl http2", and `directives` those of the server.
  NginxServer(EventLoop& loop, const std::string& folder, std::string_view parameters = "",
              std::string_view directives = "");
  NginxServer(const NginxServer&) = delete;
  NginxServer& operator=(const NginxServer&) = delete;
  ~NginxServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  std::uint16_t port_ = 0;
  Process process_;
};

}  // namespace tambour::test
