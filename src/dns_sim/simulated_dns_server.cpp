// sim::DnsServer: answers from its records by UDP and TCP, with the faults of its options.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tambour/loop/event_loop.h>
#include <tambour/net/tcp.h>
#include <tambour/sim/dns_server.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/udp/socket.h>

namespace tambour::sim {

namespace {

constexpr std::uint16_t dns_port = 53;
constexpr std::uint32_t negative_ttl_s = 30;
constexpr unsigned cname_chain_max = 16;
constexpr std::size_t read_bytes = 4096;
// Of RFC 5737 and RFC 3849.
constexpr std::string_view forged_v4 = "203.0.113.66";
constexpr std::string_view forged_v6 = "2001:db8:bad::66";

Endpoint endpoint_of(const Host& host) {
  const sockaddr_in at = host.endpoint(dns_port);
  return or_throw(Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at));
}

dns::Record address_record(dns::Name name, const Endpoint& address, std::uint32_t ttl) {
  dns::Record record{.name = std::move(name), .ttl = ttl, .data = {}};
  if (address.family() == AF_INET6) {
    dns::Aaaa data;
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address.data());
    std::memcpy(data.address.data(), &v6.sin6_addr, data.address.size());
    record.type = dns::Type::aaaa;
    record.data = data;
  } else {
    dns::A data;
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address.data());
    std::memcpy(data.address.data(), &v4.sin_addr, data.address.size());
    record.data = data;
  }
  return record;
}

dns::Name parse_name(std::string_view text) { return or_throw(dns::Name::parse(text), text); }
Endpoint parse_address(std::string_view text) { return or_throw(Endpoint::parse(text, 0), text); }

}  // namespace

class DnsServer::State {
 public:
  State(Simulation& in, Host& place, const DnsFaults& dns_faults)
      : simulation(in),
        host(place),
        faults(dns_faults),
        loop_(place.loop_options()),
        tasks_(loop_) {
    udp_ = or_throw(UdpSocket::bind(loop_, endpoint_of(place)), "UDP port of the DNS server");
    const auto take = [this](UdpSocket&, DatagramBatch& batch) {
      for (const Datagram datagram : batch) take_datagram(datagram);
      batch.clear();
    };
    or_throw(udp_.serve({.on_datagrams = take}));
    if (!dns_faults.over_tcp) return;
    tcp_ = or_throw(TcpServer::listen(loop_, endpoint_of(place)), "TCP port of the DNS server");
    tcp_->serve([this](TcpStream stream) { return serve(std::move(stream)); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Simulation& simulation;
  Host& host;
  DnsFaults faults;
  DnsStats stats;
  std::vector<dns::Record> records;

 private:
  void take_datagram(const Datagram& datagram) {
    const auto query = dns::Message::parse(datagram.bytes());
    if (!query || query->is_response || query->questions.size() != 1) return;
    ++stats.udp_queries;
    seen_[stats.udp_queries % seen_.size()] = {.question = query->questions.front(),
                                               .id = query->id};
    for (unsigned i = 0; i < faults.forged; ++i) forge(*query, datagram.peer());
    if (simulation.chance(faults.loss)) {
      ++stats.lost;
      return;
    }
    dns::Message response = response_to(*query);
    if (simulation.chance(faults.truncation)) {
      ++stats.truncated;
      response.truncated = true;
      response.answers.clear();
    }
    const std::size_t limit = query->edns ? query->edns->udp_bytes : dns::Message::udp_bytes_plain;
    tasks_.spawn(send_later(response.write(limit).value_or(std::string()), datagram.peer()));
  }

  Task<> send_later(std::string bytes, Endpoint to) {
    if (const Duration time = delay(); time > Duration::zero())
      static_cast<void>(co_await sleep_for(time));
    send(bytes, to);
  }

  void send(std::string_view bytes, const Endpoint& to) {
    static_cast<void>(udp_.try_send_to(std::as_bytes(std::span(bytes)), to));
  }

  [[nodiscard]] Duration delay() {
    const Duration least = std::max(faults.delay_min, Duration::zero());
    const std::int64_t range = (faults.delay_max - least).count();
    const std::uint64_t more =
        range > 0 ? simulation.random(static_cast<std::uint64_t>(range) + 1) : 0;
    return least + Duration(static_cast<std::int64_t>(more));
  }

  /// What an attacker may send that sees the question, but not its id, or the other way round.
  void forge(const dns::Message& query, const Endpoint& to) {
    dns::Message forged = dns::Message::response_to(query);
    dns::Question& question = forged.questions.front();
    constexpr std::uint32_t day_s = 86'400;
    forged.answers.push_back(address_record(question.name, parse_address(forged_v4), day_s));
    forged.answers.push_back(address_record(question.name, parse_address(forged_v6), day_s));
    if (simulation.chance(0.25)) {
      question.type = question.type == dns::Type::mx ? dns::Type::txt : dns::Type::mx;
    } else {
      forged.id = wrong_id(question);
    }
    ++stats.forged;
    send(forged.write().value_or(std::string()), to);
  }

  /// An id that no recent query for the question has: a client that repeats a query waits for the
  /// answers to all of them.
  [[nodiscard]] std::uint16_t wrong_id(const dns::Question& question) {
    for (;;) {
      const auto id = static_cast<std::uint16_t>(simulation.random(UINT16_MAX + 1));
      const bool is_right = std::ranges::any_of(seen_, [&](const Seen& seen) {
        return seen.id == id && seen.question.name == question.name &&
               seen.question.type == question.type;
      });
      if (!is_right) return id;
    }
  }

  [[nodiscard]] dns::Message response_to(const dns::Message& query) {
    dns::Message response = dns::Message::response_to(query);
    response.recursion_available = true;
    if (simulation.chance(faults.failure)) {
      ++stats.failed;
      response.rcode = dns::Rcode::server_failure;
      return response;
    }
    answer(query.questions.front(), response);
    return response;
  }

  void answer(const dns::Question& question, dns::Message& response) const {
    dns::Name name = question.name;
    bool exists = false;
    bool has_data = false;
    for (unsigned i = 0; i < cname_chain_max; ++i) {
      const dns::Cname* alias = nullptr;
      for (const dns::Record& record : records) {
        if (record.name != name) continue;
        exists = true;
        const bool is_wanted = record.type == question.type;
        has_data = has_data || is_wanted;
        if (!is_wanted) alias = alias != nullptr ? alias : record.as<dns::Cname>();
        if (is_wanted || record.type == dns::Type::cname) response.answers.push_back(record);
      }
      if (has_data || alias == nullptr) break;
      name = alias->target;
      exists = false;
    }
    if (has_data) return;
    if (!exists) response.rcode = dns::Rcode::no_such_name;
    dns::Soa authority;
    authority.minimum = negative_ttl_s;
    response.authorities.push_back(
        {.name = dns::Name(), .type = dns::Type::soa, .ttl = negative_ttl_s, .data = authority});
  }

  Task<> serve(TcpStream stream) {
    std::string in;
    std::array<std::byte, read_bytes> bytes;
    for (;;) {
      const auto got = co_await stream.read(bytes);
      if (!got || *got == 0) co_return;
      in.append(reinterpret_cast<const char*>(bytes.data()), *got);
      while (const auto query = take_query(in)) {
        ++stats.tcp_queries;
        const std::string message = response_to(*query).write().value_or(std::string());
        std::string framed{static_cast<char>(message.size() >> 8U),
                           static_cast<char>(message.size())};
        framed += message;
        if (const Duration time = delay(); time > Duration::zero())
          static_cast<void>(co_await sleep_for(time));
        if (!co_await stream.write(std::string_view(framed))) co_return;
      }
    }
  }

  /// Removes the first complete message, which is ignored if it is not a query.
  static std::optional<dns::Message> take_query(std::string& in) {
    while (in.size() >= 2) {
      const std::size_t size =
          static_cast<std::uint8_t>(in[0]) * 256U + static_cast<std::uint8_t>(in[1]);
      if (in.size() - 2 < size) return std::nullopt;
      auto query = dns::Message::parse(std::as_bytes(std::span(in).subspan(2, size)));
      in.erase(0, size + 2);
      if (query && !query->is_response && query->questions.size() == 1) return std::move(*query);
    }
    return std::nullopt;
  }

  struct Seen {
    dns::Question question;
    std::uint16_t id = 0;
  };

  EventLoop loop_;
  std::array<Seen, 256> seen_;  ///< The last queries.
  UdpSocket udp_;
  std::optional<TcpServer> tcp_;
  /// Last member, because its tasks use the others.
  TaskScope tasks_;
};

DnsServer::DnsServer(Simulation& simulation, Host& host, const DnsFaults& faults)
    : state_(std::make_unique<State>(simulation, host, faults)) {}

DnsServer::~DnsServer() = default;

void DnsServer::add(dns::Record record) { state_->records.push_back(std::move(record)); }

void DnsServer::add(std::string_view name, std::string_view address, std::uint32_t ttl) {
  add(address_record(parse_name(name), parse_address(address), ttl));
}

void DnsServer::add(const Host& host, std::string_view domain) {
  const sockaddr_in6 at = host.endpoint6(dns_port);
  const auto v6 = or_throw(Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at));
  std::vector<std::string> names{host.name()};
  if (!domain.empty()) names.push_back(host.name() + '.' + std::string(domain));
  for (const std::string& name : names) {
    add(name, host.ip());
    add(name, v6.address());
  }
}

void DnsServer::clear() noexcept { state_->records.clear(); }

void DnsServer::configure(Host& client, std::string_view more) const {
  const std::string text = "nameserver " + state_->host.ip() + '\n' + std::string(more);
  const int fd = client.open("/etc/resolv.conf", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) detail::throw_error(system_error(errno), "/etc/resolv.conf");
  // Short writes and errors may be injected.
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t taken = client.pwrite(fd, text.data() + written, text.size() - written,
                                        static_cast<off_t>(written));
    written += taken > 0 ? static_cast<std::size_t>(taken) : 0;
  }
  client.close(fd);
}

DnsFaults& DnsServer::faults() noexcept { return state_->faults; }
const DnsStats& DnsServer::stats() const noexcept { return state_->stats; }

bool DnsServer::is_forged(const Endpoint& address) {
  const std::string text = address.address();
  return text == forged_v4 || text == forged_v6;
}

}  // namespace tambour::sim
