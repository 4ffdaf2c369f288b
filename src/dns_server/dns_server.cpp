// dns::Server.
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/intrusive_list.h>
#include <tambour/dns/server.h>
#include <tambour/loop/timer.h>
#include <tambour/net/tcp.h>
#include <tambour/task/event.h>
#include <tambour/task/mutex.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/udp/socket.h>

#include "base/clock.h"
#include "base/failure.h"
#include "dns/resolver/entropy.h"
#include "dns_message/reader.h"
#include "dns_server/rate_limit.h"
#include "dns_server/responses.h"
#include "loop/core.h"
#include "loop/iteration_budget.h"
#include "net/pace/stream_timers.h"
#include "server/error_reporting.h"
#include "task/scope_access.h"

namespace tambour::dns {}  // namespace tambour::dns

namespace tambour::detail::dns_server {
namespace {

constexpr std::size_t read_bytes = 4096;

bool is_wildcard(const Endpoint& at) noexcept {
  return at.with_port(0) == Endpoint::any_v4(0) || at.with_port(0) == Endpoint::any_v6(0);
}

bool is_multicast(const Endpoint& address) noexcept {
  if (address.family() == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address.data());
    return IN_MULTICAST(ntohl(v4.sin_addr.s_addr));
  }
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address.data());
  return IN6_IS_ADDR_MULTICAST(&v6.sin6_addr);
}

/// A client ignores a response that does not come from the address that it has queried. The
/// interface is left to the routing table, as for every other datagram.
DatagramOptions reply_to(const Datagram& query) noexcept {
  DatagramOptions options;
  options.from = query.to();
  if (options.from && is_multicast(*options.from)) options.from.reset();
  return options;
}

}  // namespace

class State {
 public:
  State(EventLoop& loop, dns::Server::Handler handler, dns::Server::TaskHandler task_handler,
        const dns::ServerOptions& options, const std::source_location& created_at)
      : loop_(loop),
        created_at_(created_at),
        core_(loop::core_of(loop)),
        handler_(std::move(handler)),
        task_handler_(std::move(task_handler)),
        options_(options),
        reporter_(options.on_error),
        limit_(options.responses_per_second, dns::detail::Entropy(core_.backend()).next()),
        out_(64, std::max<std::size_t>(options.udp_bytes_max, dns::Message::udp_bytes_plain)),
        slot_mutex_(loop),
        task_ended_(loop),
        tasks_(loop) {
    // Otherwise the scope would keep it until it is destroyed.
    tasks_.set_exception_handler(
        [this](std::exception_ptr thrown) { reporter_.report(core_, std::move(thrown)); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<> listen(const Endpoint& at) {
    if (!at.is_ip()) return base::failure(EAFNOSUPPORT);
    // A port that is free for UDP may be in use for TCP.
    constexpr int attempts = 100;
    for (int i = 0;; ++i) {
      auto udp = UdpSocket::bind(loop_, at, {.pktinfo = is_wildcard(at)});
      if (!udp) return std::unexpected(udp.error());
      const auto bound = udp->local_endpoint();
      if (!bound) return std::unexpected(bound.error());
      auto tcp = TcpServer::listen(
          loop_, *bound,
          {.connections_max = options_.tcp_connections_max, .on_error = options_.on_error});
      if (!tcp && at.port() == 0 && tcp.error() == system_error(EADDRINUSE) && i < attempts)
        continue;
      if (!tcp) return std::unexpected(tcp.error());
      reporter_.set_endpoint(*bound);
      udp_ = std::move(*udp);
      tcp_ = std::move(*tcp);
      break;
    }
    tcp_->serve([this](TcpStream stream) { return serve(std::move(stream)); }, created_at_);
    // An error refers to a datagram that could not be delivered.
    return udp_.serve({.on_datagrams = [this](UdpSocket&, DatagramBatch& batch) { take(batch); },
                       .created_at = created_at_});
  }

  void stop() noexcept {
    udp_.stop_receiving();
    tcp_->stop();
  }

  Task<> shut_down(Duration grace) {
    stop();
    is_stopping_ = true;
    // Closing a connection wakes its task, which removes it from the list later.
    for (Connection* connection = connections_.front(); connection != nullptr;
         connection = connections_.after(*connection))
      connection->close_if_idle();
    Timer limit(loop_, [this] { tasks_.request_stop(); });
    limit.start(grace);
    // A stop request ends the grace period.
    const auto end_grace = [this, &limit] {
      if (!core_.closed()) limit.start(Duration::zero());
    };
    const TaskContext& context = co_await this_task;
    const std::stop_callback early(context.stop, end_grace);
    co_await tcp_->shut_down(grace);
    co_await detail::task::ScopeAccess::join_to_end(tasks_);
  }

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return tcp_->endpoint(); }
  [[nodiscard]] dns::ServerStats stats() const noexcept {
    dns::ServerStats stats = stats_;
    stats.handler_exceptions = reporter_.count() + tcp_->handler_exceptions();
    return stats;
  }

 private:
  /// The right to run one handler as a task.
  class Slot {
   public:
    explicit Slot(State& server) noexcept : server_(&server) { ++server.running_; }
    Slot(Slot&& other) noexcept : server_(std::exchange(other.server_, nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (server_ == nullptr) return;
      --server_->running_;
      server_->task_ended_.set();
    }

   private:
    State* server_;
  };

  [[nodiscard]] bool has_slot() const noexcept { return running_ < options_.tasks_max; }

  /// Waits until a handler may run. Fails with ECANCELED.
  Task<Result<Slot>> take_slot() {
    // The connections get slots in the order in which they wait.
    const auto taking = co_await slot_mutex_.lock();
    if (!taking) co_return std::unexpected(taking.error());
    while (!has_slot()) {
      task_ended_.reset();
      if (const auto ended = co_await task_ended_.wait(); !ended)
        co_return std::unexpected(ended.error());
    }
    co_return Slot(*this);
  }

  /// For a handler that has thrown: the exception is reported, and the client gets SERVFAIL.
  void report(const dns::Request& request, dns::Message& response) {
    reporter_.report(core_, std::current_exception());
    response = dns::Message::response_to(request.query);
    response.rcode = dns::Rcode::server_failure;
  }

  void handle(const dns::Request& request, dns::Message& response) {
    try {
      handler_(request, response);
    } catch (...) {
      report(request, response);
    }
  }

  Task<> handle_in_task(const dns::Request& request, dns::Message& response) {
    try {
      co_await task_handler_(request, response);
    } catch (...) {
      report(request, response);
    }
  }

  // UDP.
  void take(DatagramBatch& batch) {
    for (const Datagram datagram : batch) {
      try {
        take_datagram(datagram);
      } catch (...) {  // Out of memory: the query is dropped.
        reporter_.report(core_, std::current_exception());
      }
    }
    batch.clear();
    flush();
  }

  void take_datagram(const Datagram& datagram) {
    if (!is_query(datagram.bytes())) {
      ++stats_.malformed;
      return;
    }
    ++stats_.udp_queries;
    dns::Request request{.query = {}, .from = datagram.peer()};
    const DatagramOptions options = reply_to(datagram);
    if (const auto refusal = refuse(datagram.bytes(), request.query)) {
      ++stats_.malformed;
      return send(*refusal, request, options);
    }
    dns::Message response = dns::Message::response_to(request.query);
    if (request.question().type == dns::Type::axfr) {
      // RFC 5936, section 4.2.
      response.truncated = true;
      return send(response, request, options);
    }
    if (handler_) {
      handle(request, response);
      return send(response, request, options);
    }
    if (!has_slot()) {
      ++stats_.overloaded;
      return;
    }
    tasks_.spawn(answer_datagram(Slot(*this), std::move(request), std::move(response), options),
                 created_at_);
  }

  Task<> answer_datagram(Slot /*held*/, dns::Request request, dns::Message response,
                         DatagramOptions options) {
    co_await handle_in_task(request, response);
    send(response, request, options);
    flush();
  }

  void send(const dns::Message& response, const dns::Request& request,
            const DatagramOptions& options) {
    std::string bytes;
    switch (limit_.check(request.from, core_.now_ns())) {
      case Verdict::send:
        bytes = bytes_of(response, datagram_limit(request.query));
        break;
      case Verdict::truncate: {
        ++stats_.rate_limited;
        dns::Message empty = dns::Message::response_to(request.query);
        empty.truncated = true;
        bytes = bytes_of(empty, datagram_limit(request.query));
        break;
      }
      case Verdict::drop:
        ++stats_.rate_limited;
        return;
    }
    if (bytes.empty()) return;
    if ((bytes[2] & 2) != 0) ++stats_.truncated;
    const auto span = std::as_bytes(std::span(bytes));
    if (out_.add(span, request.from, options)) return;
    flush();
    static_cast<void>(out_.add(span, request.from, options));
  }

  [[nodiscard]] std::size_t datagram_limit(const dns::Message& query) const noexcept {
    const std::size_t accepted = query.edns ? query.edns->udp_bytes : 0;
    return std::clamp<std::size_t>(accepted, dns::Message::udp_bytes_plain, out_.bytes_each());
  }

  /// UDP does not guarantee delivery: what the kernel does not take is dropped.
  void flush() {
    while (!out_.empty() && !udp_.try_send(out_)) out_.drop_front();
  }

  // TCP.
  /// What the tasks of one connection share.
  struct Connection : detail::ListHook<Connection> {
    Connection(EventLoop& loop, TcpStream subject, Endpoint from)
        : stream(std::move(subject)), peer(from), writing(loop), reads(stream), writes(stream) {}

    /// At a shutdown: closes the connection unless a query is being answered.
    void close_if_idle() noexcept {
      if (answering == 0) stream.close();
    }

    TcpStream stream;
    Endpoint peer;
    TaskMutex writing;
    net::ReadTimer reads;
    net::WriteTimer writes;  ///< For a whole message.
    loop::IterationBudget budget;
    std::size_t answering = 0;  ///< Queries.
    std::exception_ptr thrown;  ///< By a handler.
  };

  Task<> serve(TcpStream stream) {
    ++stats_.tcp_connections;
    const auto peer = stream.peer_endpoint();
    if (!peer) co_return;
    Connection connection(loop_, std::move(stream), *peer);
    connections_.push_back(connection);
    const TaskContext& context = co_await this_task;
    TaskScope handlers(loop_, context.stop);
    handlers.set_exception_handler([&connection](std::exception_ptr thrown) {
      connection.thrown = std::move(thrown);
      connection.stream.close();
    });
    co_await read_queries(connection, handlers);
    co_await detail::task::ScopeAccess::join_to_end(handlers);
    if (connection.thrown) std::rethrow_exception(connection.thrown);
  }

  /// The queries that were received together: the connection is not idle as long as one of them is
  /// neither answered nor left to a task.
  class ReceivedQueries {
   public:
    explicit ReceivedQueries(Connection& connection) noexcept : connection_(connection) {
      ++connection.answering;
    }
    ReceivedQueries(const ReceivedQueries&) = delete;
    ReceivedQueries& operator=(const ReceivedQueries&) = delete;
    ~ReceivedQueries() { --connection_.answering; }

   private:
    Connection& connection_;
  };

  /// Ends when the connection is closed, or sends no complete query in time.
  Task<> read_queries(Connection& connection, TaskScope& handlers) {
    std::string in;
    std::array<std::byte, read_bytes> bytes;
    TimePoint deadline = base::saturating_add(loop_.now(), options_.tcp_idle_timeout);
    while (!is_stopping_) {
      connection.reads.start(Duration::zero());
      if (options_.tcp_idle_timeout > Duration::zero()) connection.reads.start_at(deadline);
      const Result<std::size_t> received = co_await connection.stream.read(bytes);
      const Result<std::size_t> got = connection.reads.finish(received);
      if (!got || *got == 0) co_return;
      in.append(reinterpret_cast<const char*>(bytes.data()), *got);
      std::size_t used = 0;
      const ReceivedQueries queries(connection);
      while (auto packet = take_packet(in, used)) {
        while (connection.budget.is_exhausted(core_)) {
          const Result<> slept = co_await sleep_for(Duration::zero(), {});
          if (!slept) co_return;
        }
        if (!is_query(dns::detail::as_bytes(*packet))) {
          ++stats_.malformed;
          connection.stream.close();
          co_return;
        }
        co_await start_answer(connection, handlers, std::move(*packet));
        deadline = base::saturating_add(loop_.now(), options_.tcp_idle_timeout);
      }
      in.erase(0, used);
    }
  }

  /// Returns when the next query may be read.
  Task<> start_answer(Connection& connection, TaskScope& handlers, std::string packet) {
    ++stats_.tcp_queries;
    dns::Request request{.query = {}, .from = connection.peer, .is_tcp = true};
    if (auto refusal = refuse(dns::detail::as_bytes(packet), request.query)) {
      ++stats_.malformed;
      co_return co_await write(connection, std::move(*refusal));
    }
    std::optional<Slot> slot;
    if (!handler_) {
      auto taken = co_await take_slot();
      if (!taken) co_return;
      slot.emplace(std::move(*taken));
    }
    ++connection.answering;
    // The records of a transfer are many, so a connection has those of one.
    const bool waits = handler_ || request.question().type == dns::Type::axfr ||
                       handlers.size() + 1 >= options_.tcp_tasks_max;
    auto answered = answer(connection, std::move(request), std::move(slot));
    if (!waits) {
      handlers.spawn(std::move(answered), created_at_);
      co_return;
    }
    co_await std::move(answered);
  }

  /// Returns the first complete message from `used` on, without its length, and adds the size of
  /// both to `used`.
  static std::optional<std::string> take_packet(std::string_view in, std::size_t& used) {
    in.remove_prefix(used);
    if (in.size() < 2) return std::nullopt;
    const std::size_t size =
        static_cast<std::uint8_t>(in[0]) * 256U + static_cast<std::uint8_t>(in[1]);
    if (in.size() - 2 < size) return std::nullopt;
    used += size + 2;
    return std::string(in.substr(2, size));
  }

  Task<> answer(Connection& connection, dns::Request request, std::optional<Slot> slot) {
    dns::Message response = dns::Message::response_to(request.query);
    if (handler_) {
      handle(request, response);
    } else {
      co_await handle_in_task(request, response);
    }
    // A client that does not read keeps no other query from being answered.
    slot.reset();
    co_await write(connection, std::move(response));
    --connection.answering;
    if (is_stopping_) connection.close_if_idle();
  }

  /// Writes one message at a time: a client that does not read costs the memory of one.
  Task<> write(Connection& connection, dns::Message response) {
    const auto guard = co_await connection.writing.lock();
    if (!guard) co_return;
    Messages messages(std::move(response));
    for (std::string bytes = messages.next(); !bytes.empty(); bytes = messages.next()) {
      const std::string_view view = bytes;
      connection.writes.start(options_.tcp_idle_timeout);
      const Result<> written = co_await connection.stream.write(view);
      connection.writes.stop();
      if (written) continue;
      // The reader notices it.
      connection.stream.close();
      co_return;
    }
  }

  EventLoop& loop_;
  std::source_location created_at_;
  loop::Core& core_;
  dns::Server::Handler handler_;
  dns::Server::TaskHandler task_handler_;
  dns::ServerOptions options_;
  server::ErrorReporter reporter_;
  dns::ServerStats stats_;
  RateLimit limit_;
  DatagramBatch out_;
  UdpSocket udp_;
  bool is_stopping_ = false;
  std::size_t running_ = 0;  ///< Handlers that run as tasks.
  TaskMutex slot_mutex_;     ///< Of the connection that gets the next slot.
  TaskEvent task_ended_;
  detail::IntrusiveList<Connection> connections_;
  // Last members, because their tasks use the others.
  std::optional<TcpServer> tcp_;
  TaskScope tasks_;
};

}  // namespace tambour::detail::dns_server

namespace tambour::dns {

Server::Server(tambour::detail::OwnedPointer<detail::dns_server::State> state) noexcept
    : state_(std::move(state)) {}
Server::Server(Server&& other) noexcept = default;
Server& Server::operator=(Server&& other) noexcept = default;
Server::~Server() = default;

Result<Server> Server::open(EventLoop& loop, const Endpoint& at, Handler handler,
                            TaskHandler task_handler, const ServerOptions& options,
                            const std::source_location& created_at) {
  auto state = std::make_unique<detail::dns_server::State>(
      loop, std::move(handler), std::move(task_handler), options, created_at);
  if (auto listening = state->listen(at); !listening) return std::unexpected(listening.error());
  return Server(std::move(state));
}

const Endpoint& Server::endpoint() const noexcept { return state_->endpoint(); }
ServerStats Server::stats() const noexcept { return state_->stats(); }
void Server::stop() noexcept { state_->stop(); }
Task<> Server::shut_down(Duration grace) { return state_->shut_down(grace); }

}  // namespace tambour::dns
