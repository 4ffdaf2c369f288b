// A DNS server for tests, on the library's own codec.
#pragma once

#include <fcntl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

namespace tambour::test {

inline dns::Name dns_name(std::string_view text) { return dns::Name::parse(text).value(); }

inline Endpoint endpoint_of(sim::Host& host, std::uint16_t port = 53) {
  const sockaddr_in at = host.endpoint(port);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof(at)).value();
}

/// Writes a file of a simulated host, or replaces it.
inline void write_file(sim::Host& host, const char* path, const std::string& text) {
  const int fd = host.open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  static_cast<void>(host.pwrite(fd, text.data(), text.size(), 0));
  host.close(fd);
}

inline dns::Record a_record(std::string_view name, std::array<std::uint8_t, 4> address,
                            std::uint32_t ttl = 60) {
  return {.name = dns_name(name), .type = dns::Type::a, .ttl = ttl, .data = dns::A{address}};
}
inline dns::Record aaaa_record(std::string_view name, std::string_view address,
                               std::uint32_t ttl = 60) {
  const Endpoint v6 = Endpoint::parse(address, 0).value();
  dns::Aaaa data;
  const auto& in = *reinterpret_cast<const sockaddr_in6*>(v6.data());
  std::memcpy(data.address.data(), &in.sin6_addr, 16);
  return {.name = dns_name(name), .type = dns::Type::aaaa, .ttl = ttl, .data = data};
}
inline dns::Record cname_record(std::string_view name, std::string_view target,
                                std::uint32_t ttl = 60) {
  return {.name = dns_name(name),
          .type = dns::Type::cname,
          .ttl = ttl,
          .data = dns::Cname{dns_name(target)}};
}

/// Answers from a list of records; names without records do not exist.
class NameServer {
 public:
  /// Changes a response before it is sent. Returns false to drop it.
  using Change =
      std::function<bool(const dns::Message& question, dns::Message& response, bool is_tcp)>;

  /// `how`: of the TCP server, which listens at `tcp_at`.
  NameServer(EventLoop& loop, const Endpoint& at) : NameServer(loop, at, at, {}) {}
  NameServer(EventLoop& loop, const Endpoint& at, const Endpoint& tcp_at, ListenOptions options)
      : loop_(loop), at_(at), tcp_at_(tcp_at), how_(std::move(options)) {
    start();
  }

  void start() {
    udp_ = UdpSocket::bind(loop_, at_).value();
    static_cast<void>(udp_.serve({.on_datagrams = [this](UdpSocket& socket, DatagramBatch& batch) {
      for (const Datagram datagram : batch) answer_datagram(socket, datagram);
      batch.clear();
    }}));
    tcp_.emplace(TcpServer::listen(loop_, tcp_at_, how_).value());
    tcp_->serve([this](TcpStream stream) { return serve(std::move(stream)); });
  }
  void stop() {
    udp_.close();
    tcp_.reset();
  }

  void add(dns::Record record) { records_.push_back(std::move(record)); }
  void clear() { records_.clear(); }
  void set_change(Change change) { change_ = std::move(change); }
  /// Changes the bytes of each response.
  void set_byte_change(std::function<void(std::string& response)> change) {
    byte_change_ = std::move(change);
  }
  /// Invoked before each datagram is answered.
  void set_spoofer(
      std::function<void(const dns::Message& question, const Endpoint& from)> spoofer) {
    spoofer_ = std::move(spoofer);
  }
  /// Sends a datagram from the server's port.
  void send(std::string_view bytes, const Endpoint& to) {
    static_cast<void>(udp_.try_send_to(std::as_bytes(std::span(bytes)), to));
  }
  /// The start of authority of negative answers.
  void set_negative_ttl(std::optional<std::uint32_t> ttl) { negative_ttl_ = ttl; }

  std::uint64_t udp_questions = 0;
  std::uint64_t tcp_questions = 0;
  std::uint64_t tcp_connections = 0;
  std::vector<dns::Message> questions;

  /// The response as it would be sent without limits.
  [[nodiscard]] dns::Message response_to(const dns::Message& question) const {
    dns::Message response = dns::Message::response_to(question);
    response.recursion_available = true;
    dns::Name name = question.questions[0].name;
    bool exists = false;
    for (int i = 0; i < 10; ++i) {
      std::optional<dns::Name> alias;
      for (const dns::Record& record : records_) {
        if (record.name != name) continue;
        exists = true;
        if (record.type == question.questions[0].type) response.answers.push_back(record);
        if (record.type != dns::Type::cname || question.questions[0].type == dns::Type::cname)
          continue;
        response.answers.push_back(record);
        alias = record.as<dns::Cname>()->target;
      }
      if (!alias) break;
      name = *alias;
    }
    if (!exists) response.rcode = dns::Rcode::no_such_name;
    const bool is_negative =
        response.answers.empty() || response.answers.back().type == dns::Type::cname;
    if (is_negative && negative_ttl_) {
      dns::Soa soa;
      soa.minimum = *negative_ttl_;
      response.authorities.push_back(
          {.name = dns::Name(), .type = dns::Type::soa, .ttl = 86400, .data = soa});
    }
    return response;
  }

 private:
  std::optional<std::string> answer(std::span<const std::byte> packet, bool is_tcp) {
    const auto question = dns::Message::parse(packet);
    if (!question || question->questions.size() != 1) return std::nullopt;
    ++(is_tcp ? tcp_questions : udp_questions);
    questions.push_back(*question);
    dns::Message response = response_to(*question);
    if (change_ && !change_(*question, response, is_tcp)) return std::nullopt;
    const std::size_t limit = is_tcp           ? dns::Message::bytes_max
                              : question->edns ? question->edns->udp_bytes
                                               : dns::Message::udp_bytes_plain;
    auto bytes = response.write(limit);
    if (bytes && byte_change_) byte_change_(*bytes);
    return bytes ? std::optional(*bytes) : std::nullopt;
  }

  void answer_datagram(UdpSocket& socket, const Datagram& datagram) {
    if (spoofer_) {
      if (const auto question = dns::Message::parse(datagram.bytes()))
        spoofer_(*question, datagram.peer());
    }
    const auto bytes = answer(datagram.bytes(), false);
    if (!bytes) return;
    static_cast<void>(socket.try_send_to(std::as_bytes(std::span(*bytes)), datagram.peer()));
  }

  Task<> serve(TcpStream stream) {
    ++tcp_connections;
    std::string in;
    std::array<std::byte, 4096> bytes;
    for (;;) {
      const auto got = co_await stream.read(bytes);
      if (!got || *got == 0) co_return;
      in.append(reinterpret_cast<const char*>(bytes.data()), *got);
      std::string out;
      while (in.size() >= 2) {
        const std::size_t size =
            static_cast<std::uint8_t>(in[0]) * 256U + static_cast<std::uint8_t>(in[1]);
        if (in.size() < size + 2) break;
        const auto response = answer(std::as_bytes(std::span(in).subspan(2, size)), true);
        in.erase(0, size + 2);
        if (!response) continue;
        out += static_cast<char>(response->size() >> 8U);
        out += static_cast<char>(response->size());
        out += *response;
      }
      if (!out.empty()) {
        const auto written = co_await stream.write(std::string_view(out));
        if (!written) co_return;
      }
    }
  }

  EventLoop& loop_;
  Endpoint at_;
  Endpoint tcp_at_;
  ListenOptions how_;
  UdpSocket udp_;
  std::optional<TcpServer> tcp_;
  std::vector<dns::Record> records_;
  Change change_;
  std::function<void(std::string&)> byte_change_;
  std::function<void(const dns::Message&, const Endpoint&)> spoofer_;
  std::optional<std::uint32_t> negative_ttl_ = 30;
};

}  // namespace tambour::test
