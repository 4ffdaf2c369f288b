// The server behind a proxy: answers each request with the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

namespace bench {

class Upstream {
 public:
  /// Listens on a free port of 127.0.0.1.
  explicit Upstream(int body_bytes);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Serves on a thread of its own, on the processors of the calling one. To be called after the
  /// fork of the proxy.
  void start();

 private:
  void serve();

  int listener_;
  int stop_;
  std::uint16_t port_ = 0;
  std::string response_;
  std::thread thread_;
};

}  // namespace bench
