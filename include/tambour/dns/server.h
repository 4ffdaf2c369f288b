// DNS servers over UDP and TCP: RFC 1035, RFC 6891, RFC 7766.
//
// The server parses queries, and truncates, compresses and sends responses; a handler fills them.
// Messages that are not queries never reach the handler.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/dns/message.h>
#include <tambour/net/endpoint.h>
#include <tambour/task/task.h>

namespace tambour::detail::dns_server {
class State;
}  // namespace tambour::detail::dns_server

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

}  // namespace tambour

namespace tambour::dns {

/// A query with exactly one question. Of its records, it has those that belong to queries: SOA, SIG
/// and TSIG, and what the OPT record says (dns::Message::edns).
struct Request {
  Message query;
  Endpoint from;
  bool is_tcp = false;

  /// The only question.
  [[nodiscard]] const Question& question() const noexcept { return query.questions.front(); }
};

/// The limits of a dns::Server.
struct ServerOptions {
  /// The limit of sent datagrams, also if the client accepts larger ones; at least 512.
  std::uint16_t udp_bytes_max = Edns::udp_bytes_default;
  std::size_t tcp_connections_max = 1024;  ///< Further ones wait in the backlog.
  /// A connection that sends no complete query for this time, or accepts no complete message of a
  /// response, is closed. 0: no limit.
  Duration tcp_idle_timeout = std::chrono::seconds(10);
  /// The number of handlers that may run as tasks at the same time, for datagrams and for all
  /// connections together. Further queries over UDP are dropped; connections wait.
  std::size_t tasks_max = 4096;
  /// The number of queries of one connection whose handlers run as tasks or whose responses wait
  /// until the client reads. At the maximum, and during a zone transfer, the server does not read
  /// from the connection.
  std::size_t tcp_tasks_max = 16;
  /// Response rate limiting: the number of UDP responses per second to one network (/24 of IPv4,
  /// /56 of IPv6). Of the responses above it, every second one is sent without records and
  /// truncated, so that clients with genuine addresses retry over TCP; the others are dropped.
  /// Networks are counted in 4,096 slots; those with the same one, which is random, share the
  /// limit. 0: no limit.
  unsigned responses_per_second = 0;
  /// Invoked with exceptions of handlers, whose query is answered with SERVFAIL, and with a
  /// ListenerError. Must not destroy the server. An exception that it throws is thrown out of the
  /// loop's run(). If it is empty, each exception of a handler is reported as one line on standard
  /// error, of at most 10 lines a second, and run() throws a ListenerError.
  std::function<void(std::exception_ptr)> on_error{};
};

/// Counters since the server was opened.
struct ServerStats {
  std::uint64_t udp_queries = 0;
  std::uint64_t tcp_queries = 0;
  std::uint64_t tcp_connections = 0;
  std::uint64_t malformed = 0;           ///< Messages that were dropped or answered with FORMERR.
  std::uint64_t truncated = 0;           ///< UDP responses that did not fit.
  std::uint64_t rate_limited = 0;        ///< Dropped or emptied by the rate limit.
  std::uint64_t overloaded = 0;          ///< Dropped because of `tasks_max`.
  std::uint64_t handler_exceptions = 0;  ///< Exceptions of handlers.
};

/// A server on one loop.
///
///   auto server = dns::Server::listen(loop, *Endpoint::parse("127.0.0.1:53"),
///                                   [](const dns::Request& request, dns::Message& response) { ...
///                                   });
///
/// The handler gets a response with the id, question and EDNS of the query, and adds records or
/// sets the response code. It is a function, or a function that returns a Task<>; the request and
/// the response then exist until the task has ended. For its exceptions see
/// dns::ServerOptions::on_error.
///
/// The server answers by itself: malformed queries and those with other than one question with
/// FORMERR, as those with more than 4096 bytes or more than 16 questions and records, other opcodes
/// than QUERY with NOTIMP, versions of EDNS above 0 with BADVERS. A response that does not fit into
/// a datagram is truncated. Over TCP, an answer to AXFR that does not fit into one message is sent
/// as several.
///
/// Ownership: owns its sockets. Destroying it closes them, and destroys the tasks of handlers; a
/// handler must not destroy it.
/// Thread: must be used on the loop's thread.
class Server {
 public:
  /// Fills the response, whose id, question and flags are set, at once or in a task.
  using Handler = Callback<void(const Request&, Message&)>;
  using TaskHandler = Callback<Task<>(const Request&, Message&)>;

  /// Listens over UDP and TCP on the same port. If the port is 0, the system chooses one that is
  /// free for both. Fails with EADDRINUSE, EACCES, EADDRNOTAVAIL, and with EAFNOSUPPORT if `at` is
  /// not an IP address.
  template <class F>
  [[nodiscard]] static Result<Server> listen(
      EventLoop& loop, const Endpoint& at, F handler, const ServerOptions& options = {},
      std::source_location created_at = std::source_location::current()) {
    if constexpr (std::same_as<std::invoke_result_t<F&, const Request&, Message&>, Task<>>) {
      return open(loop, at, nullptr, TaskHandler(std::move(handler)), options, created_at);
    } else {
      return open(loop, at, Handler(std::move(handler)), nullptr, options, created_at);
    }
  }

  Server(Server&& other) noexcept;
  Server& operator=(Server&& other) noexcept;
  ~Server();

  /// The address and port that the server listens on.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;
  /// Counts since the server was made.
  [[nodiscard]] ServerStats stats() const noexcept;

  /// Stops receiving datagrams and accepting connections. Queries that were received are answered,
  /// and open connections stay open.
  void stop() noexcept;

  /// Graceful shutdown: stops, closes idle connections, waits up to `grace` for the handlers to
  /// end, requests the remaining ones to stop, and waits for those. Must not be awaited by a
  /// handler. The server must outlive the returned task.
  Task<> shut_down(Duration grace);

 private:
  explicit Server(tambour::detail::OwnedPointer<detail::dns_server::State> state) noexcept;
  [[nodiscard]] static Result<Server> open(EventLoop& loop, const Endpoint& at, Handler handler,
                                           TaskHandler task_handler, const ServerOptions& options,
                                           const std::source_location& created_at);

  tambour::detail::OwnedPointer<detail::dns_server::State> state_;
};

}  // namespace tambour::dns

#pragma GCC visibility pop
