// A nameserver in the process of a test, which answers with what a function returns.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <gtest/gtest.h>

/// A string with NUL bytes.
template <std::size_t size>
std::string bytes(const char (&text)[size]) {
  return {text, size - 1};
}

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline int port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

inline int bound_socket() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  const sockaddr_in address = loopback(0);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// The response to a query: its id and question, these flags and counts, and records.
inline std::string respond(const std::string& query, std::string_view flags,
                           std::string_view counts, std::string_view records) {
  std::string packet = query;
  packet.replace(2, 2, flags);
  packet.replace(6, 6, counts);
  packet += records;
  return packet;
}
/// With one address, for the name of the question.
inline std::string respond_with_address(const std::string& query) {
  return respond(query, "\x81\x80", bytes("\0\1\0\0\0\0"),
                 bytes("\xc0\x0c\0\1\0\1\0\0\0\x09\0\4\1\2\3\4"));
}
/// The type of a query.
inline int type_of(const std::string& query) { return query[query.size() - 3]; }

class Nameserver {
 public:
  using Answer = std::function<std::string(const std::string& query)>;  // Empty: no response.

  Nameserver(event_base* base, Answer answer, bool with_tcp = false) : answer_(std::move(answer)) {
    // Nothing else may listen on a port that has no TCP here.
    for (;;) {
      fd_ = bound_socket();
      tcp_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      const sockaddr_in address = loopback(port());
      if (bind(tcp_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) break;
      close(fd_);
      close(tcp_);
    }
    event_ = event_new(base, fd_, EV_READ | EV_PERSIST, &on_query, this);
    event_add(event_, nullptr);
    if (!with_tcp) return;
    listener_ = evconnlistener_new(base, &on_accept, this, 0, -1, tcp_);
    EXPECT_NE(listener_, nullptr);
  }
  Nameserver(const Nameserver&) = delete;
  Nameserver& operator=(const Nameserver&) = delete;
  ~Nameserver() {
    stop();
    if (listener_ != nullptr) evconnlistener_free(listener_);
    for (bufferevent* connection : connections_) bufferevent_free(connection);
    close(tcp_);
  }

  /// Closes the socket, so that the kernel rejects packets.
  void stop() {
    if (event_ == nullptr) return;
    event_free(event_);
    event_ = nullptr;
    close(fd_);
  }
  [[nodiscard]] int port() const { return port_of(fd_); }
  void add_to(evdns_base* dns) const {
    const sockaddr_in address = loopback(port());
    ASSERT_EQ(evdns_base_nameserver_sockaddr_add(dns, reinterpret_cast<const sockaddr*>(&address),
                                                 sizeof address, 0),
              0);
  }

  std::vector<std::string> queries;
  std::vector<int> ports;             // Of the clients.
  std::vector<std::string> over_tcp;  // Queries.
  sockaddr_in client{};               // Of the last query.
  /// The response over TCP.
  Answer tcp_answer = &respond_with_address;

  [[nodiscard]] int fd() const { return fd_; }
  /// A TCP socket with the same port.
  [[nodiscard]] int tcp() const { return tcp_; }

 private:
  static void on_query(int fd, short /*what*/, void* argument) {
    auto& self = *static_cast<Nameserver*>(argument);
    char packet[1000];
    socklen_t size = sizeof self.client;
    auto* const from = reinterpret_cast<sockaddr*>(&self.client);
    const ssize_t got = recvfrom(fd, packet, sizeof packet, 0, from, &size);
    if (got < 0) return;
    self.queries.emplace_back(packet, static_cast<std::size_t>(got));
    self.ports.push_back(ntohs(self.client.sin_port));
    const std::string response = self.answer_(self.queries.back());
    if (!response.empty()) sendto(fd, response.data(), response.size(), 0, from, size);
  }

  static void on_accept(evconnlistener* listener, evutil_socket_t fd, sockaddr* /*address*/,
                        int /*size*/, void* argument) {
    auto& self = *static_cast<Nameserver*>(argument);
    bufferevent* const bev =
        bufferevent_socket_new(evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(bev, &on_stream, nullptr, nullptr, argument);
    bufferevent_enable(bev, EV_READ);
    self.connections_.push_back(bev);
  }

  static void on_stream(bufferevent* bev, void* argument) {
    auto& self = *static_cast<Nameserver*>(argument);
    char packet[1000];
    const std::size_t got = bufferevent_read(bev, packet, sizeof packet);
    if (got < 2) return;
    self.over_tcp.emplace_back(packet + 2, got - 2);
    const std::string response = self.tcp_answer(self.over_tcp.back());
    if (response.empty()) {
      std::erase(self.connections_, bev);
      return bufferevent_free(bev);
    }
    const std::string framed = {static_cast<char>(response.size() >> 8U),
                                static_cast<char>(response.size())};
    bufferevent_write(bev, framed.data(), 2);
    bufferevent_write(bev, response.data(), response.size());
  }

  int fd_ = -1;
  int tcp_ = -1;
  Answer answer_;
  event* event_ = nullptr;
  evconnlistener* listener_ = nullptr;
  std::vector<bufferevent*> connections_;
};

/// What a callback got.
struct Result {
  int calls = 0;
  int error = -1;
  int count = 0;
  int ttl = 0;
  std::string data;

  static void on_result(int result, char type, int count, int ttl, void* addresses,
                        void* argument) {
    auto& self = *static_cast<Result*>(argument);
    ++self.calls;
    self.error = result;
    self.count = count;
    self.ttl = ttl;
    self.data.clear();
    if (type == DNS_PTR) self.data = *static_cast<char**>(addresses);
    if (type == DNS_IPv4_A || type == DNS_IPv6_AAAA)
      self.data.assign(static_cast<char*>(addresses),
                       static_cast<std::size_t>(count) * (type == DNS_IPv4_A ? 4 : 16));
  }
};

struct AddressResult {
  int calls = 0;
  int error = -1;
  std::vector<int> families;
  std::vector<int> ports;
  std::string canonical;

  static void on_addresses(int result, evutil_addrinfo* addresses, void* argument) {
    auto& self = *static_cast<AddressResult*>(argument);
    ++self.calls;
    self.error = result;
    for (const evutil_addrinfo* entry = addresses; entry != nullptr; entry = entry->ai_next) {
      self.families.push_back(entry->ai_family);
      self.ports.push_back(ntohs(reinterpret_cast<sockaddr_in*>(entry->ai_addr)->sin_port));
      if (entry->ai_canonname != nullptr) self.canonical = entry->ai_canonname;
    }
    if (addresses != nullptr) evutil_freeaddrinfo(addresses);
  }
};

class Dns : public testing::Test {
 protected:
  Dns() : base_(event_base_new()), dns_(evdns_base_new(base_, 0)) {}
  ~Dns() override {
    free_dns(0);
    event_base_free(base_);
  }
  void free_dns(int fail_requests) {
    if (dns_ != nullptr) evdns_base_free(dns_, fail_requests);
    dns_ = nullptr;
  }
  void set(const char* option, const char* value) {
    ASSERT_EQ(evdns_base_set_option(dns_, option, value), 0);
  }
  evdns_request* resolve(const char* name, Result& result) {
    return evdns_base_resolve_ipv4(dns_, name, DNS_QUERY_NO_SEARCH, &Result::on_result, &result);
  }
  void wait_for(const std::function<bool()>& condition) {
    while (!condition()) ASSERT_EQ(event_base_loop(base_, EVLOOP_ONCE), 0);
  }
  void wait_for(const Result& result) {
    wait_for([&] { return result.calls != 0; });
  }
  /// Until nothing happens any more, except for timeouts.
  void settle() {
    for (int i = 0; i < 20; ++i) event_base_loop(base_, EVLOOP_NONBLOCK);
  }

  event_base* base_;
  evdns_base* dns_;
};
