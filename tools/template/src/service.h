// The service: its routes, its limits and its metrics. main.cpp serves it on a port, and the tests
// serve it on a host of the simulator.
#pragma once

#include <tambour/http/handler.h>
#include <tambour/http/metrics.h>
#include <tambour/http/server.h>
#include <tambour/metrics/registry.h>

class Service {
 public:
  /// The service must exist as long as the handler. Requests are counted in `registry`.
  explicit Service(tambour::metrics::Registry& registry);

  /// What clients ask: GET /hello/{name}, POST /echo.
  [[nodiscard]] tambour::http::Handler handler();

  /// What operators ask, on a port of its own: GET /metrics for Prometheus, and GET /health, which
  /// answers 503 once the service drains, so that a load balancer sends no more requests.
  [[nodiscard]] tambour::http::Handler operator_handler();

  [[nodiscard]] tambour::http::ServerOptions server_options();

  void drain() noexcept { is_draining_ = true; }

 private:
  tambour::metrics::Registry& registry_;
  tambour::http::Metrics requests_;
  bool is_draining_ = false;
};
