// The statistics of the library as metrics: loops, servers, TLS, DNS, HTTP clients, proxies, topics
// and worker pools.
//
//   metrics::Registry registry;
//   inspector::Collector collector(registry);
//   collector.add(loops, "web");
//   collector.add(server, "api");
//   router.get("/metrics", collector.handler());
//
// A program without a collector measures and publishes nothing. docs/metrics.md lists the metrics.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <tambour/base/clock.h>
#include <tambour/base/cxx23.h>
#include <tambour/dns/resolver.h>
#include <tambour/dns/server.h>
#include <tambour/http/client.h>
#include <tambour/http/handler.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/http/server.h>
#include <tambour/http/websocket_topic.h>
#include <tambour/metrics/registry.h>
#include <tambour/net/server_group.h>
#include <tambour/net/stream_server.h>
#include <tambour/task/task.h>
#include <tambour/threads/loop_group.h>
#include <tambour/threads/worker_pool.h>
#include <tambour/tls/context.h>

#pragma GCC visibility push(default)

namespace tambour::inspector {

/// Adds metrics to a registry, which removes them when the collector is destroyed.
///
/// Each object gets a name, the value of a label: two objects of one kind with the same name in one
/// registry abort with a message. Objects of one loop are read on the thread of that loop, which
/// refresh() asks to do so; the other values are read when the metrics are formatted.
///
/// Lifetime: the objects must exist, and must not be moved, until the collector is destroyed; use
/// several collectors if they end at different times. Loops may be destroyed before. The registry
/// must outlive the collector. Thread: add() belongs to the thread that is named there, everything
/// else may be called on any thread. The functions throw std::bad_alloc.
class Collector {
 public:
  /// Adds nothing yet.
  explicit Collector(metrics::Registry& registry);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();

  /// The loops are named "name/0", "name/1" and so on. From now on each of them reads a clock once
  /// for each callback, and once more for each iteration with callbacks: the time stamp counter of
  /// the processor if it runs at a constant rate. A loop that is blocked by a callback is shown
  /// with the values of its last iteration, and with the time since the callback began. Called on
  /// any thread. Throws like EventLoop::post().
  void add(LoopGroup& loops, const std::string& name);
  /// The same for one loop. Called on its thread.
  void add(EventLoop& loop, const std::string& name);

  /// Called on any thread.
  void add(const StreamServerGroupBase& server, const std::string& name);
  void add(const http::ServerGroup& server, const std::string& name);
  void add(const tls::ServerContext& context, const std::string& name);
  void add(const tls::ClientContext& context, const std::string& name);
  void add(const WorkerPool& pool, const std::string& name);
  void add(const http::WebSocketTopic& topic, const std::string& name);
  void add(const http::WebSocketTopics& topics, const std::string& name);

  /// These belong to `loop`. Called on its thread.
  void add(EventLoop& loop, const StreamServerBase& server, const std::string& name);
  void add(EventLoop& loop, const http::Server& server, const std::string& name);
  void add(EventLoop& loop, const dns::Resolver& resolver, const std::string& name);
  void add(EventLoop& loop, const dns::Server& server, const std::string& name);
  void add(EventLoop& loop, const http::Client& client, const std::string& name);
  void add(EventLoop& loop, const http::ReverseProxy& proxy, const std::string& name);

  /// Reads the objects that belong to loops, on their threads. Returns when all loops have done so,
  /// or after `patience`: the objects of a loop that has not answered keep their values. Await it
  /// before metrics::format_metrics().
  [[nodiscard]] Task<> refresh(Duration patience = std::chrono::seconds(1));

  /// Like http::metrics_handler() with a refresh() first. May outlive the collector; the registry
  /// must exist as long as the handler.
  [[nodiscard]] http::Handler handler();

 private:
  class [[gnu::visibility("hidden")]] State;

  std::shared_ptr<State> state_;
};

}  // namespace tambour::inspector

#pragma GCC visibility pop
