// A server whose connections are spread over the loops of a group.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tambour/clock.h>
#include <tambour/connection.h>
#include <tambour/endpoint.h>
#include <tambour/loop_group.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/stream_server.h>
#include <tambour/task.h>
#include <tambour/tcp.h>
#include <tambour/tcp_options.h>
#include <tambour/unique_fd.h>
#include <tambour/unix.h>

namespace tambour {

/// Which loop serves a connection.
enum class Spread : std::uint8_t {
  /// Each loop listens, and the kernel chooses among them by a hash of both addresses
  /// (SO_REUSEPORT, socket(7)). No loop waits for another; few connections may be spread unevenly.
  /// EOPNOTSUPP for Unix names.
  kernel,
  /// The same, but the loop of the processor that has received the connection, so that its bytes
  /// stay in that processor's caches (SO_ATTACH_REUSEPORT_CBPF). EINVAL where the threads of the
  /// group are not pinned.
  processor,
  /// The first loop listens, and hands connections to all in turn.
  round_robin,
  /// The same, but all connections of one address, whatever their ports, go to one loop.
  peer_address,
  /// The same, but to the loop with the least load: LoopGroup::least_loaded().
  least_loaded,
};

struct GroupListenOptions {
  Spread spread = Spread::kernel;
  int backlog = 4096;    ///< Of each listener: listen(2).
  bool v6_only = false;  ///< IPV6_V6ONLY.
  /// Served at a time by all loops together; where each loop listens, each has an equal share, of
  /// one at least.
  std::size_t connections_max = SIZE_MAX;
  /// Permissions of the socket file of a Unix path: see ListenOptions::unix_mode.
  std::optional<mode_t> unix_mode{};
  /// As ListenOptions::tcp.
  TcpOptions tcp{.keepalive_idle = std::chrono::seconds(60)};
};

/// What does not depend on the type of stream; programs use a StreamServerGroup.
class ServerGroupBase {
 public:
  ServerGroupBase(ServerGroupBase&&) noexcept;
  ServerGroupBase& operator=(ServerGroupBase&&) noexcept;
  ~ServerGroupBase();

  /// Where it listens, the port included that the system has chosen for 0.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;

  /// Serves in the callback style: each stream becomes a Connection. The callbacks are those of all
  /// loops, and called by several threads at once, each for its own connections. Aborts if it is
  /// called twice.
  void serve(ConnectionCallbacks callbacks);

  /// Copies of its listeners, for a program that takes over (start_successor() takes them itself),
  /// in the order in which adopt() wants them; none once it has stopped. EMFILE. Any thread.
  [[nodiscard]] Result<std::vector<UniqueFd>> copy_listeners() const;

  /// Keeps the Unix path when the server stops: another process listens there too, or will. Any
  /// thread.
  void leave_name() noexcept;

  /// Accepts no more; the loops close their listeners soon, and the streams go on. Throws
  /// std::bad_alloc. Any thread.
  void stop();

  /// Stops, waits for at most `grace` until all handlers have ended, requests the remaining ones to
  /// stop, and waits for them. For tasks on any loop; aborts if one of the server's own handlers
  /// awaits it: spawn it on a loop instead.
  Task<> shut_down(Duration grace);

  /// How many streams are served now, and how many have been accepted in all. Any thread.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::uint64_t accepted() const noexcept;

 protected:
  class Part;
  class Shared;
  struct Source;
  explicit ServerGroupBase(std::shared_ptr<Shared> shared) noexcept;

  static Result<ServerGroupBase> open(LoopGroup& group, const Endpoint& at,
                                      const GroupListenOptions& options);
  static Result<ServerGroupBase> open(LoopGroup& group, std::vector<UniqueFd> listeners,
                                      bool (*takes)(const Endpoint&),
                                      const GroupListenOptions& options);
  void serve_with(const std::function<Task<>(Socket)>& handler);

 private:
  static Result<ServerGroupBase> open(LoopGroup& group, Source source,
                                      const GroupListenOptions& options);
  void close() noexcept;
  /// Aborts if the server was moved from or its group destroyed; `function` is the one called.
  [[nodiscard]] Shared& usable(const char* function) const noexcept;

  std::shared_ptr<Shared> shared_;
};

/// Accepts streams, and serves each with a task on one of the group's loops:
///
///   LoopGroup group({.threads = 4});
///   auto server = TcpServerGroup::listen(group, at).value();
///   server.serve(echo);
///
/// To make, to serve and to destroy one are for a thread that is none of the group's, as they wait
/// for those; the group outlives it. Destroying it destroys the tasks and connections, on their
/// loops. A connection that moves to another loop of the group stays with its server.
///
/// So neither its callbacks nor its handlers may destroy it, nor assign another to it: that ends
/// the program. What they may do is what any thread may, stop() above all; and they can post to the
/// loop of another thread, for that to destroy it. Who moves it sees to it that no other thread is
/// in a call of it.
template <class S>
  requires std::derived_from<S, Stream>
class StreamServerGroup final : public ServerGroupBase {
 public:
  /// As StreamServer::listen(), and what Spread says; ECANCELED where the group has been stopped.
  static Result<StreamServerGroup> listen(LoopGroup& group, const Endpoint& at,
                                          const GroupListenOptions& options = {}) {
    if (!S::takes(at)) return std::unexpected(system_error(EAFNOSUPPORT));
    auto server = open(group, at, options);
    if (!server) return std::unexpected(server.error());
    return StreamServerGroup(std::move(*server));
  }

  /// Goes on with listeners of one endpoint that are open already: see InheritedListeners. Where
  /// each loop listens, they are dealt out, and a loop that has got none opens one beside them
  /// (EADDRINUSE where they were not opened for that: with SO_REUSEPORT, by the same user); where
  /// one loop listens, all are the first one's. EINVAL: there are none, one is no listener of a
  /// stream, they have several endpoints, or they are more than the loops that Spread::processor is
  /// to choose among; and what listen() says. Unix paths stay when the server stops.
  static Result<StreamServerGroup> adopt(LoopGroup& group, std::vector<UniqueFd> listeners,
                                         const GroupListenOptions& options = {}) {
    auto server = open(group, std::move(listeners), &S::takes, options);
    if (!server) return std::unexpected(server.error());
    return StreamServerGroup(std::move(*server));
  }

  using ServerGroupBase::serve;

  /// Accepts from now on, and runs `handler(stream)`, which returns a Task<>, for each stream. Each
  /// loop has a copy of the handler. An exception that leaves it leaves the loop's run(). Aborts if
  /// it is called twice.
  template <class Handler>
    requires std::is_invocable_r_v<Task<>, Handler&, S>
  void serve(Handler handler) {
    serve_with([handler = std::move(handler)](Socket socket) mutable -> Task<> {
      return handler(S(std::move(socket)));
    });
  }

 private:
  explicit StreamServerGroup(ServerGroupBase&& base) noexcept : ServerGroupBase(std::move(base)) {}
};

using TcpServerGroup = StreamServerGroup<TcpStream>;
using UnixServerGroup = StreamServerGroup<UnixStream>;

}  // namespace tambour
