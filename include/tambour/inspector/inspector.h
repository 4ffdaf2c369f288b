// A view into a running program: its loops, the callbacks that take long, its connections, and
// whether it is healthy; as a page in a browser and as JSON.
//
//   inspector::Inspector inspector(loops);
//   auto debug = or_throw(inspector.listen(loop, or_throw(Endpoint::parse("127.0.0.1:8081"))));
//
// or below a path of a server: `router.mount("/debug", inspector.router());`, whose page is at
// "/debug/". docs/observing.md is a guide.
//
// The most common mistake is to make it reachable for others. Only peers on the same host may use
// it, unless the program authenticates them: see InspectorOptions::authenticate.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include <tambour/base/clock.h>
#include <tambour/base/cxx23.h>
#include <tambour/base/result.h>
#include <tambour/http/router.h>
#include <tambour/http/server.h>
#include <tambour/inspector/collector.h>
#include <tambour/inspector/error.h>  // IWYU pragma: export
#include <tambour/metrics/registry.h>
#include <tambour/net/endpoint.h>
#include <tambour/threads/loop_group.h>

#pragma GCC visibility push(default)

namespace tambour::inspector {

/// The title of an inspector, who may use it, and its limits.
struct InspectorOptions {
  /// The heading of the page. Empty: the name of the program.
  std::string title{};
  /// Surrounds all pages, for example http::basic_authentication(). Without it, requests from other
  /// hosts are answered with 403, as are those whose Host field is no loopback address or
  /// "localhost": a page of another origin could otherwise read the inspector through the browser
  /// of a developer. Peers on Unix sockets may always use it: the permissions of the file protect
  /// it. Behind a proxy on the same host, every client is a peer of this host.
  http::Middleware authenticate{};
  /// Metrics for "metrics" and for the page, which shows the requests of http::Metrics by route.
  /// Must exist as long as the router or server. Null: none.
  Collector* collector = nullptr;
  /// A stop request makes "ready" answer 503: StreamServer::shutdown_token() of a server that
  /// drains, for example. Its callbacks are not used.
  std::stop_token shutdown{};
  /// A loop in which one callback runs longer than this makes "health" answer 503. So does a loop
  /// that has not answered for that long since the inspector began to observe it.
  Duration stall_max = std::chrono::seconds(5);
  /// How long a page waits for the loops. Those that have not answered are named in it.
  Duration patience = std::chrono::seconds(1);
  /// The number of descriptors that a list of connections is made of; further ones are only
  /// counted.
  std::size_t connections_max = 100'000;
  /// The number of tasks of a loop that a list of tasks is made of.
  std::size_t tasks_max = 10'000;
};

/// Pages about the loops, callbacks, connections and tasks of the process. The pages, relative to
/// the path of the router:
///
/// | path | contents |
/// |---|---|
/// | / | the page for browsers, which shows all others |
/// | loops | JSON: counters, lag, and what runs now, of each loop |
/// | callbacks | JSON: calls and times of callbacks by source line |
/// | connections | JSON: sockets; see below |
/// | tasks | JSON: what the tasks of the loops await: see TaskWalk |
/// | workers | JSON: the worker pools of the process |
/// | profiles/cpu, profiles/heap | a file for pprof, if the process has gperftools; else 501 |
/// | profiles | JSON: which of them there are, and what to do for the others |
/// | metrics | what Collector::handler() answers |
/// | health | 200, or 503 if a loop is blocked |
/// | ready | 200, or 503 after set_ready(false) or a stop request of InspectorOptions::shutdown |
///
/// Lists have the parameters `q` (text that a row contains), `sort`, `order` (`asc` or `desc`),
/// `offset` and `limit` (at most 500). Tasks can be sorted by `waited`, the longest waits first.
/// Profiles have the parameter `seconds` (at most 300).
///
/// No page contains headers, bodies, keys, or query strings of requests. No page needs a network:
/// everything is part of the library.
///
/// Cost: from the construction on, until it is destroyed, each loop reads a clock once for each
/// callback, and once more for each iteration with callbacks: see Collector::add(LoopGroup&), and
/// docs/observing.md for figures. Connections cost nothing: they are listed from what the backends
/// and the kernel know about descriptors.
/// Lists are made in slices, between which the loops serve other events.
///
/// Ownership: a handle; routers and servers that were made of it may outlive it. Loops may be
/// destroyed before it. Thread: all functions may be called on any thread, except as documented.
class Inspector {
 public:
  /// Of all loops of a group. Called on any thread. Throws like EventLoop::post().
  explicit Inspector(LoopGroup& loops, InspectorOptions options = {});
  /// Of one loop, on its thread. Throws std::bad_alloc.
  explicit Inspector(EventLoop& loop, InspectorOptions options = {});
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  /// Adds a further loop, for example that of the main thread. Called on its thread. Throws
  /// std::bad_alloc.
  void add(EventLoop& loop, const std::string& name);

  /// The routes, for Router::mount(). Throws std::bad_alloc.
  [[nodiscard]] http::Router router() const;

  /// A server of its own, on the loop of the calling thread, which is shown as "inspector" unless
  /// it has a name already: a loopback address or a Unix name. On
  /// another address fails with inspector::ErrorCode::not_authenticated unless
  /// InspectorOptions::authenticate is set. Otherwise fails like http::Server::listen().
  [[nodiscard]] Result<http::Server> listen(EventLoop& loop, const Endpoint& at,
                                            http::ServerOptions options = {}) const;

  /// What "ready" answers. A load balancer sends no new clients to a program that is not ready.
  void set_ready(bool is_ready) noexcept;

 private:
  class [[gnu::visibility("hidden")]] State;
  friend class InspectorPages;

  std::shared_ptr<State> state_;
};

}  // namespace tambour::inspector

#pragma GCC visibility pop
