// DnsServer.
#include <tambour/dns_server.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/async_mutex.h>
#include <tambour/task_scope.h>
#include <tambour/tcp.h>
#include <tambour/udp.h>
#include <tambour/when.h>

#include "base/failure.h"
#include "dns/codec/reader.h"
#include "dns_server/rate_limit.h"
#include "loop/core.h"

namespace tambour {
namespace dns_server {
namespace {

constexpr std::size_t read_bytes = 4096;

std::string framed(const std::string& message) {
  std::string bytes;
  bytes.reserve(message.size() + 2);
  bytes += static_cast<char>(message.size() >> 8U);
  bytes += static_cast<char>(message.size());
  return bytes += message;
}

/// The response to bytes that are not a query that a handler can answer; empty if they are not
/// answered. Sets `query` if a handler can.
std::optional<DnsMessage> refuse(dns::Bytes packet, DnsMessage& query) {
  const auto with_code = [](DnsMessage response, DnsRcode code) {
    response.rcode = code;
    return response;
  };
  auto parsed = DnsMessage::parse(packet);
  if (!parsed) {
    // What has a header may be a query. Responses are never answered: that could go on for ever.
    dns::Reader reader(packet);
    const dns::Header header = dns::Header::read(reader);
    DnsMessage response;
    response.id = header.id;
    response.is_response = true;
    return with_code(std::move(response), DnsRcode::format_error);
  }
  query = std::move(*parsed);
  const DnsMessage response = DnsMessage::response_to(query);
  if (query.opcode != DnsOpcode::query) return with_code(response, DnsRcode::not_implemented);
  if (query.questions.size() != 1) return with_code(response, DnsRcode::format_error);
  if (query.edns && query.edns->version != 0) return with_code(response, DnsRcode::bad_version);
  return std::nullopt;
}

bool is_query(dns::Bytes packet) noexcept {
  dns::Reader reader(packet);
  const dns::Header header = dns::Header::read(reader);
  return !reader.failed() && (header.flags & dns::Header::response) == 0;
}

/// The bytes of a response; empty if the handler has made it malformed, and not even an error fits.
std::string bytes_of(const DnsMessage& response, std::size_t limit) {
  if (auto bytes = response.write(limit)) return std::move(*bytes);
  DnsMessage failure = response;
  failure.rcode = DnsRcode::server_failure;
  failure.answers.clear();
  failure.authorities.clear();
  failure.additionals.clear();
  return failure.write(limit).value_or(std::string());
}

/// The messages of a zone transfer, with their lengths: RFC 5936, section 2.2.
std::string transfer_bytes(DnsMessage response) {
  const std::vector<DnsRecord> records = std::exchange(response.answers, {});
  constexpr std::size_t records_max = 1000;
  std::string bytes;
  std::size_t count = records_max;
  for (std::size_t next = 0; next < records.size();) {
    count = std::min(count, records.size() - next);
    const auto first = records.begin() + static_cast<std::ptrdiff_t>(next);
    response.answers.assign(first, first + static_cast<std::ptrdiff_t>(count));
    const std::string message = bytes_of(response, DnsMessage::bytes_max);
    // A message that does not fit is truncated.
    const bool fits = message.size() > 2 && (message[2] & 2) == 0;
    if (!fits && count > 1) {
      count /= 2;
      continue;
    }
    bytes += framed(message);
    next += count;
  }
  return bytes;
}

}  // namespace

class State {
 public:
  State(EventLoop& loop, DnsServer::Handler handler, DnsServer::TaskHandler task_handler,
        const DnsServerOptions& options)
      : loop_(loop),
        core_(loop::core_of(loop)),
        handler_(std::move(handler)),
        task_handler_(std::move(task_handler)),
        options_(options),
        limit_(options.responses_per_second),
        out_(64, std::max<std::size_t>(options.udp_bytes_max, DnsMessage::udp_bytes_plain)),
        tasks_(loop) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<> listen(const Endpoint& at) {
    if (!at.is_ip()) return base::failure(EAFNOSUPPORT);
    // A port that is free for UDP may be in use for TCP.
    constexpr int attempts = 100;
    for (int i = 0;; ++i) {
      auto udp = UdpSocket::bind(loop_, at);
      if (!udp) return std::unexpected(udp.error());
      const auto bound = udp->local_endpoint();
      if (!bound) return std::unexpected(bound.error());
      auto tcp =
          TcpServer::listen(loop_, *bound, {.connections_max = options_.tcp_connections_max});
      if (!tcp && at.port() == 0 && tcp.error() == system_error(EADDRINUSE) && i < attempts)
        continue;
      if (!tcp) return std::unexpected(tcp.error());
      udp_ = std::move(*udp);
      tcp_ = std::move(*tcp);
      break;
    }
    tcp_->serve([this](TcpStream stream) { return serve(std::move(stream)); });
    // An error refers to a datagram that could not be delivered.
    return udp_.serve({.on_datagrams = [this](UdpSocket&, DatagramBatch& batch) { take(batch); }});
  }

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return tcp_->endpoint(); }
  [[nodiscard]] const DnsServerStats& stats() const noexcept { return stats_; }

 private:
  // UDP.
  void take(DatagramBatch& batch) {
    for (const Datagram each : batch) take_datagram(each);
    batch.clear();
    flush();
  }

  void take_datagram(const Datagram& datagram) {
    if (!is_query(datagram.bytes())) {
      ++stats_.malformed;
      return;
    }
    ++stats_.udp_queries;
    DnsRequest request{.query = {}, .from = datagram.peer()};
    if (const auto refusal = refuse(datagram.bytes(), request.query)) {
      ++stats_.malformed;
      return send(*refusal, request);
    }
    DnsMessage response = DnsMessage::response_to(request.query);
    if (request.question().type == DnsType::axfr) {
      // RFC 5936, section 4.2.
      response.truncated = true;
      return send(response, request);
    }
    if (handler_) {
      handler_(request, response);
      return send(response, request);
    }
    if (tasks_.size() >= options_.tasks_max) {
      ++stats_.overloaded;
      return;
    }
    tasks_.spawn(answer_datagram(std::move(request), std::move(response)));
  }

  Task<> answer_datagram(DnsRequest request, DnsMessage response) {
    co_await task_handler_(request, response);
    send(response, request);
    flush();
  }

  void send(const DnsMessage& response, const DnsRequest& request) {
    std::string bytes;
    switch (limit_.check(request.from, core_.now_ns())) {
      case Verdict::send:
        bytes = bytes_of(response, datagram_limit(request.query));
        break;
      case Verdict::truncate: {
        ++stats_.rate_limited;
        DnsMessage empty = DnsMessage::response_to(request.query);
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
    if (out_.add(span, request.from)) return;
    flush();
    static_cast<void>(out_.add(span, request.from));
  }

  [[nodiscard]] std::size_t datagram_limit(const DnsMessage& query) const noexcept {
    const std::size_t accepted = query.edns ? query.edns->udp_bytes : 0;
    return std::clamp<std::size_t>(accepted, DnsMessage::udp_bytes_plain, out_.bytes_each());
  }

  /// UDP does not guarantee delivery: what the kernel does not take is dropped.
  void flush() {
    while (!out_.empty() && !udp_.try_send(out_)) out_.drop_front();
  }

  // TCP.
  /// What the tasks of one connection share.
  struct Connection {
    explicit Connection(EventLoop& loop, TcpStream of) : stream(std::move(of)), writing(loop) {}
    TcpStream stream;
    AsyncMutex writing;
  };

  Task<> serve(TcpStream stream) {
    ++stats_.tcp_connections;
    const auto peer = stream.peer_endpoint();
    if (!peer) co_return;
    Connection connection(loop_, std::move(stream));
    const TaskContext& context = co_await this_task;
    TaskScope handlers(loop_, context.stop);
    std::string in;
    std::array<std::byte, read_bytes> bytes;
    for (;;) {
      const auto got = co_await timeout(options_.tcp_idle_timeout, connection.stream.read(bytes));
      if (!got || *got == 0) break;
      in.append(reinterpret_cast<const char*>(bytes.data()), *got);
      while (const auto packet = take_packet(in)) {
        if (!is_query(dns::as_bytes(*packet))) {
          ++stats_.malformed;
          co_return;
        }
        if (handler_ || tasks_.size() + handlers.size() >= options_.tasks_max) {
          co_await answer(connection, *packet, *peer);
        } else {
          handlers.spawn(answer(connection, *packet, *peer));
        }
      }
    }
    co_await handlers.join();
  }

  /// Removes the first complete message, without its length.
  static std::optional<std::string> take_packet(std::string& in) {
    if (in.size() < 2) return std::nullopt;
    const std::size_t size =
        static_cast<std::uint8_t>(in[0]) * 256U + static_cast<std::uint8_t>(in[1]);
    if (in.size() - 2 < size) return std::nullopt;
    std::string packet = in.substr(2, size);
    in.erase(0, size + 2);
    return packet;
  }

  Task<> answer(Connection& connection, std::string packet, Endpoint from) {
    ++stats_.tcp_queries;
    DnsRequest request{.query = {}, .from = from, .is_tcp = true};
    std::string bytes;
    if (const auto refusal = refuse(dns::as_bytes(packet), request.query)) {
      ++stats_.malformed;
      bytes = framed(bytes_of(*refusal, DnsMessage::bytes_max));
    } else {
      DnsMessage response = DnsMessage::response_to(request.query);
      if (handler_) {
        handler_(request, response);
      } else {
        co_await task_handler_(request, response);
      }
      const bool is_transfer = request.question().type == DnsType::axfr;
      bytes = is_transfer && !response.answers.empty()
                  ? transfer_bytes(std::move(response))
                  : framed(bytes_of(response, DnsMessage::bytes_max));
    }
    const auto guard = co_await connection.writing.lock();
    if (!guard) co_return;
    const auto written = co_await timeout(options_.tcp_idle_timeout,
                                          connection.stream.write(std::string_view(bytes)));
    // The reader notices it.
    if (!written) connection.stream.close();
  }

  EventLoop& loop_;
  loop::Core& core_;
  DnsServer::Handler handler_;
  DnsServer::TaskHandler task_handler_;
  DnsServerOptions options_;
  DnsServerStats stats_;
  RateLimit limit_;
  DatagramBatch out_;
  UdpSocket udp_;
  std::optional<TcpServer> tcp_;
  /// Last member, because its tasks use the others.
  TaskScope tasks_;
};

}  // namespace dns_server

DnsServer::DnsServer(std::unique_ptr<dns_server::State> state) noexcept
    : state_(std::move(state)) {}
DnsServer::DnsServer(DnsServer&& other) noexcept = default;
DnsServer& DnsServer::operator=(DnsServer&& other) noexcept = default;
DnsServer::~DnsServer() = default;

Result<DnsServer> DnsServer::open(EventLoop& loop, const Endpoint& at, Handler handler,
                                  TaskHandler task_handler, const DnsServerOptions& options) {
  auto state = std::make_unique<dns_server::State>(loop, std::move(handler),
                                                   std::move(task_handler), options);
  if (auto listening = state->listen(at); !listening) return std::unexpected(listening.error());
  return DnsServer(std::move(state));
}

const Endpoint& DnsServer::endpoint() const noexcept { return state_->endpoint(); }
DnsServerStats DnsServer::stats() const noexcept { return state_->stats(); }

}  // namespace tambour
