// Servers of evdns: packets that are not queries, responses that do not fit, and full sockets.
// Where libevent differs, differences.md says so.

#include <deque>
#include <random>

#include <event2/dns_struct.h>

#include "evdns/nameserver.h"

namespace {

const std::string question = bytes("\4name\4test\0\0\1\0\1");
const std::string header = bytes("\1\2\1\0\0\1\0\0\0\0\0\0");

/// A port whose requests a function answers, and a socket that is connected to it.
class DnsServer : public testing::Test {
 protected:
  using Handler = std::function<void(evdns_server_request*)>;

  DnsServer() : base_(event_base_new()) {
    const int fd = bound_socket();
    const sockaddr_in address = loopback(port_of(fd));
    EXPECT_EQ(connect(client_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    port_ = evdns_add_server_port_with_base(base_, fd, 0, &on_request, this);
  }
  ~DnsServer() override {
    if (port_ != nullptr) evdns_close_server_port(port_);
    event_base_loop(base_, EVLOOP_NONBLOCK);
    close(client_);
    event_base_free(base_);
  }

  static void on_request(evdns_server_request* request, void* argument) {
    auto& self = *static_cast<DnsServer*>(argument);
    ++self.requests_;
    self.handler_(request);
  }
  /// Returns the response, or nothing.
  std::string exchange(const std::string& query) {
    EXPECT_EQ(send(client_, query.data(), query.size(), 0), static_cast<ssize_t>(query.size()));
    for (int i = 0; i < 5; ++i) event_base_loop(base_, EVLOOP_NONBLOCK);
    return receive();
  }
  std::string receive() const {
    char packet[2000];
    const ssize_t got = recv(client_, packet, sizeof packet, 0);
    return got > 0 ? std::string(packet, static_cast<std::size_t>(got)) : std::string();
  }

  event_base* base_;
  int client_ = bound_socket();
  evdns_server_port* port_;
  int requests_ = 0;
  Handler handler_ = [](evdns_server_request* request) {
    evdns_server_request_respond(request, 0);
  };
};

unsigned number_at(const std::string& packet, std::size_t at) {
  return static_cast<unsigned char>(packet[at]) * 256U + static_cast<unsigned char>(packet[at + 1]);
}

/// Moves past a name. Returns false if there is none.
bool skip_name(const std::string& packet, std::size_t& at) {
  while (at < packet.size()) {
    const auto length = static_cast<unsigned char>(packet[at]);
    if (length >= 0xc0) {
      if (at + 2 > packet.size() || (number_at(packet, at) & 0x3fffU) >= at) return false;
      at += 2;
      return true;
    }
    at += length + 1U;
    if (length == 0) return true;
  }
  return false;
}

/// Whether the packet has as many questions and records as it says, and nothing else.
bool is_complete(const std::string& packet) {
  if (packet.size() < 12) return false;
  std::size_t at = 12;
  const unsigned questions = number_at(packet, 4);
  const unsigned records = number_at(packet, 6) + number_at(packet, 8) + number_at(packet, 10);
  for (unsigned i = 0; i < questions + records; ++i) {
    if (!skip_name(packet, at)) return false;
    at += 4;
    if (i < questions) continue;
    if (at + 6 > packet.size()) return false;
    at += 6 + number_at(packet, at + 4);
  }
  return at == packet.size();
}

TEST_F(DnsServer, ignores_packets_that_are_not_queries) {
  const std::string query = header + question;
  for (std::size_t size = 0; size < query.size(); ++size)
    EXPECT_EQ(exchange(query.substr(0, size)), "") << size;
  std::string many = query;
  many[4] = many[5] = '\xff';
  EXPECT_EQ(exchange(many), "");
  EXPECT_EQ(exchange(header + bytes("\1\0\0\0\1\0\1")), "");  // A NUL byte in a name.
  EXPECT_EQ(requests_, 0);
  EXPECT_NE(exchange(query), "");
  EXPECT_EQ(requests_, 1);
}

TEST_F(DnsServer, answers_other_opcodes_by_itself) {
  std::string query = header + question;
  query[2] = 0x28;  // UPDATE
  const std::string response = exchange(query);
  ASSERT_TRUE(is_complete(response));
  EXPECT_EQ(number_at(response, 2), 0xa804U);
  EXPECT_EQ(requests_, 0);
}

TEST_F(DnsServer, sends_a_record_for_each_address) {
  handler_ = [](evdns_server_request* request) {
    EXPECT_EQ(evdns_server_request_add_a_reply(request, "name.test", 2, "abcdefgh", 5), 0);
    EXPECT_EQ(evdns_server_request_add_a_reply(request, "name.test", 0, "abcd", 5), -1);
    EXPECT_EQ(evdns_server_request_add_a_reply(request, "name.test", -1, "abcd", 5), -1);
    EXPECT_EQ(evdns_server_request_respond(request, 0), 0);
  };
  const std::string response = exchange(header + question);
  ASSERT_TRUE(is_complete(response));
  EXPECT_EQ(number_at(response, 6), 2U);
  EXPECT_EQ(response.substr(response.size() - 4), "efgh");
}

TEST_F(DnsServer, rejects_names_that_are_not_valid) {
  handler_ = [](evdns_server_request* request) {
    const std::string label(64, 'a');
    const std::string name(300, 'a');
    for (const char* const text : {"a..b", label.c_str(), name.c_str()}) {
      EXPECT_EQ(evdns_server_request_add_a_reply(request, text, 1, "abcd", 5), -1);
      EXPECT_EQ(evdns_server_request_add_cname_reply(request, "x", text, 5), -1);
    }
    EXPECT_EQ(evdns_server_request_add_reply(request, 0, "x", 16, 1, 5, -1, 0, "x"), -1);
    EXPECT_EQ(evdns_server_request_add_reply(request, 0, "x", 16, 1, 5, 70'000, 0, "x"), -1);
    EXPECT_EQ(evdns_server_request_respond(request, 0), 0);
  };
  const std::string response = exchange(header + question);
  EXPECT_TRUE(is_complete(response));
  EXPECT_EQ(number_at(response, 6), 0U);
}

// CVE-2026-63387 is about names that end at the end of the buffer for the response.
TEST_F(DnsServer, truncates_responses_between_records) {
  std::mt19937 random(5);
  const std::string letters = "abcdefghij";
  for (int round = 0; round < 600; ++round) {
    handler_ = [&](evdns_server_request* request) {
      const std::string data(200, 'd');
      for (unsigned i = random() % 60; i != 0; --i) {
        std::string name;
        for (unsigned labels = 1 + random() % 4; labels != 0; --labels)
          name += std::string(1 + random() % 62, letters[random() % 10]) + (labels != 1 ? "." : "");
        const auto section = static_cast<int>(random() % 3);
        if (random() % 2 == 0) {
          evdns_server_request_add_reply(request, section, name.c_str(), 2, 1, 3, -1, 1,
                                         name.c_str());
        } else {
          const auto size = static_cast<int>(random() % 200);
          evdns_server_request_add_reply(request, section, name.c_str(), 16, 1, 3, size, 0,
                                         data.c_str());
        }
      }
      EXPECT_EQ(evdns_server_request_respond(request, 0), 0);
    };
    const std::string response = exchange(header + question);
    EXPECT_LE(response.size(), 512U);
    EXPECT_TRUE(is_complete(response));
  }
}

TEST_F(DnsServer, survives_damaged_queries) {
  std::mt19937 random(9);
  std::string query = bytes("\1\2\1\0\0\3\0\0\0\1\0\0") + question + bytes("\1a\xc0\x0c\0\1\0\1") +
                      bytes("\xc0\x1b\0\1\0\1\0\0\2\1\0\1\0\0\0\0\0\0");
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = query;
    for (unsigned i = random() % 5; i != 0; --i)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    const std::string response = exchange(damaged);
    EXPECT_TRUE(response.empty() || is_complete(response));
  }
  EXPECT_GT(requests_, 100);
}

TEST_F(DnsServer, may_be_closed_in_its_callback) {
  for (int round = 0; round < 3; ++round) {
    handler_ = [this, round](evdns_server_request* request) {
      if (round == 0) evdns_server_request_drop(request);
      if (port_ != nullptr) evdns_close_server_port(std::exchange(port_, nullptr));
      if (round == 1) evdns_server_request_drop(request);
      if (round == 2) evdns_server_request_respond(request, 0);
    };
    if (port_ == nullptr) {
      const int fd = bound_socket();
      const sockaddr_in address = loopback(port_of(fd));
      connect(client_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      port_ = evdns_add_server_port_with_base(base_, fd, 0, &on_request, this);
    }
    const std::string query = header + question;
    send(client_, query.data(), query.size(), 0);
    EXPECT_EQ(exchange(query).empty(), round != 2);
    EXPECT_EQ(requests_, round + 1);
  }
}

TEST_F(DnsServer, accepts_no_requests_once_it_is_closed) {
  std::deque<evdns_server_request*> kept;
  handler_ = [&](evdns_server_request* request) { kept.push_back(request); };
  exchange(header + question);
  ASSERT_EQ(kept.size(), 1U);
  evdns_close_server_port(std::exchange(port_, nullptr));
  exchange(header + question);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(evdns_server_request_respond(kept.front(), 3), 0);
  EXPECT_EQ(number_at(receive(), 2), 0x8103U);
}

TEST(DnsServerSocket, that_is_full_is_written_to_later) {
  event_base* const base = event_base_new();
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
  static std::vector<evdns_server_request*> kept;
  kept.clear();
  evdns_server_port* const port = evdns_add_server_port_with_base(
      base, fds[0], 0, [](evdns_server_request* request, void*) { kept.push_back(request); },
      nullptr);
  constexpr std::size_t count = 700;
  const std::string query = header + question;
  while (kept.size() < count) {
    send(fds[1], query.data(), query.size(), 0);
    event_base_loop(base, EVLOOP_NONBLOCK);
  }
  int later = 0;
  for (evdns_server_request* entry : kept) later += evdns_server_request_respond(entry, 0);
  EXPECT_GT(later, 0);
  evdns_close_server_port(port);
  std::size_t received = 0;
  char packet[100];
  for (int idle = 0; idle < 100 && received < count; ++idle) {
    while (recv(fds[1], packet, sizeof packet, 0) > 0) {
      ++received;
      idle = 0;
    }
    event_base_loop(base, EVLOOP_NONBLOCK);
  }
  EXPECT_EQ(received, count);
  close(fds[1]);
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
}

}  // namespace
