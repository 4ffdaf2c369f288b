// How much memory packets of DNS make a server and a resolver hold. Replaces operator new, to
// count.
#include <memory>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/live_memory.h"
#include "support/on_every_backend.h"
#include "support/peer.h"

namespace tambour::memory_test {
namespace {

using namespace std::chrono_literals;
using test::live_bytes;

/// A packet: a header with these counts, and the rest.
std::string packet(std::uint8_t flags, std::uint16_t questions, std::uint16_t answers,
                   std::uint16_t additionals, std::string_view rest) {
  std::string bytes{"\x12\x34", 2};
  const auto number = [&bytes](std::uint16_t value) {
    bytes += static_cast<char>(value >> 8U);
    bytes += static_cast<char>(value);
  };
  bytes += static_cast<char>(flags);
  bytes += '\0';
  number(questions);
  number(answers);
  number(0);
  number(additionals);
  return bytes.append(rest);
}

std::string framed(std::string_view bytes) {
  std::string all;
  all += static_cast<char>(bytes.size() >> 8U);
  all += static_cast<char>(bytes.size());
  return all.append(bytes);
}

/// "a.test", A, IN.
const std::string question{"\1a\4test\0\0\1\0\1", 12};

/// `count` records of class IN whose name is a pointer to that of the question.
std::string records(std::size_t count, std::uint8_t type, std::string_view data = {}) {
  std::string one{"\xc0\x0c\0", 3};
  one += static_cast<char>(type);
  one.append("\0\1\0\0\0\x3c", 6);
  one += static_cast<char>(data.size() >> 8U);
  one += static_cast<char>(data.size());
  one += data;
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += one;
  return all;
}

/// An OPT record with `count` options without data.
std::string edns(std::size_t count) {
  std::string one{"\0\0\x29\x04\xd0\0\0\0\0", 9};
  one += static_cast<char>(4 * count >> 8U);
  one += static_cast<char>(4 * count);
  for (std::size_t i = 0; i < count; ++i) one.append("\0\x0c\0\0", 4);
  return one;
}

class DnsMemory : public test::OnEveryBackend {
 protected:
  TcpStream connect(const Endpoint& server) {
    std::optional<TcpStream> stream;
    run([](Endpoint at, std::optional<TcpStream>& created) -> Task<> {
      created = or_throw(co_await TcpStream::connect(at));
    }(server, stream));
    return std::move(*stream);
  }
  void send_pieces(TcpStream& peer, std::string_view text, std::size_t size) {
    while (!text.empty()) {
      text.remove_prefix(test::send_now(peer, text.substr(0, size)));
      run_iterations(1);
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(DnsMemory);

TEST_P(DnsMemory, of_queries_whose_handlers_run) {
  const std::string empty_strings(1000, '\0');
  const std::vector<std::pair<std::uint16_t, std::string>> additions = {
      {0, ""},
      {1, records(1, 99)},
      {10, records(10, 99)},
      {15, records(15, 16, std::string(200, '\0'))},
      {1, records(1, 16, std::string(3900, '\0'))},
      {1, edns(1)},
      {1, edns(1000)},
      {1, edns(16'000)},
      {5000, records(5000, 99)},
      {1, records(1, 16, std::string(60'000, '\0'))},
  };
  for (const auto& [count, addition] : additions) {
    TaskEvent end(loop());
    std::size_t running = 0;
    const dns::Server server = or_throw(dns::Server::listen(
        loop(), Endpoint::loopback_v4(0), [&](const dns::Request&, dns::Message&) -> Task<> {
          ++running;
          static_cast<void>(co_await end.wait());
        }));
    TcpStream peer = connect(server.endpoint());
    const std::size_t before = live_bytes;
    const std::string query = framed(packet(1, 1, 0, count, question + addition));
    constexpr std::size_t queries = 16;
    for (std::size_t i = 0; i < queries; ++i) send_pieces(peer, query, 10'000);
    ASSERT_TRUE(run_until([&] { return server.stats().tcp_queries == queries; }));
    run_iterations();
    EXPECT_EQ(running, query.size() > 4096 ? 0 : queries);
    EXPECT_LE(live_bytes - before,
              queries * (2000 + 12 * std::min<std::size_t>(query.size(), 4096)) + 200'000)
        << count << " records, " << query.size() << " bytes";
    end.set();
    run_iterations();
  }
}

TEST_P(DnsMemory, of_queries_in_pieces) {
  const dns::Server server = or_throw(dns::Server::listen(
      loop(), Endpoint::loopback_v4(0), [](const dns::Request&, dns::Message&) {}));
  for (const std::size_t size : {1U, 2U, 100U, 1000U}) {
    TcpStream peer = connect(server.endpoint());
    run_iterations();
    const std::size_t before = live_bytes;
    const std::size_t bytes = std::min<std::size_t>(60'000, size * 5000);
    send_pieces(peer, framed(std::string(65'000, 'x')).substr(0, bytes), size);
    run_iterations();
    EXPECT_LE(live_bytes - before, 3 * bytes + 10'000) << size;
  }
}

TEST_P(DnsMemory, of_responses_that_are_not_read) {
  for (const std::size_t size : {1U, 2U, 100U, 255U}) {
    const dns::Server server = or_throw(dns::Server::listen(
        loop(), Endpoint::loopback_v4(0),
        [&](const dns::Request& request, dns::Message& response) -> Task<> {
          for (int i = 0; i < 10; ++i)
            response.answers.push_back({.name = request.question().name,
                                        .type = dns::Type::txt,
                                        .ttl = 60,
                                        .data = dns::Txt{{std::string(size, 'x')}}});
          co_return;
        }));
    TcpStream peer = connect(server.endpoint());
    const std::size_t before = live_bytes;
    std::string queries;
    for (int i = 0; i < 1000; ++i) queries += framed(packet(1, 1, 0, 0, question));
    for (int refused = 0; refused < 20;) {
      refused = test::send_now(peer, queries) == 0 ? refused + 1 : 0;
      run_iterations(1);
    }
    // 16 responses of 10 records wait.
    EXPECT_LE(live_bytes - before, 16 * 10 * (3 * size + 500) + 50'000) << size;
  }
}

/// Answers over TCP, with `count` records.
class ManyRecords {
 public:
  ManyRecords(EventLoop& loop, std::size_t count)
      : count_(count),
        tcp_(or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)))),
        udp_(or_throw(UdpSocket::bind(loop, tcp_.endpoint()))) {
    static_cast<void>(udp_.serve({.on_datagrams = [](UdpSocket& socket, DatagramBatch& batch) {
      for (const Datagram query : batch) {
        std::string answer(query.text());
        answer[2] = '\x86';  // Truncated.
        static_cast<void>(socket.try_send_to(std::as_bytes(std::span(answer)), query.peer()));
      }
      batch.clear();
    }}));
    tcp_.serve([this](TcpStream stream) { return answer(std::move(stream)); });
  }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return tcp_.endpoint(); }

 private:
  Task<> answer(TcpStream stream) const {
    Buffer in;
    for (;;) {
      auto query = co_await read_message(stream, in, {.length_bytes = 2});
      if (!query) co_return;
      const std::string text = query->to_string();
      std::string answer = packet(0x84, 1, static_cast<std::uint16_t>(count_), 0,
                                  text.substr(12, text.find("\4test") + 10 - 12));
      answer.replace(0, 2, text, 0, 2);
      const std::string all = framed(answer + records(count_, 99));
      if (!co_await stream.write(std::string_view(all))) co_return;
    }
  }

  std::size_t count_;
  TcpServer tcp_;
  UdpSocket udp_;
};

TEST_P(DnsMemory, of_the_cache) {
  constexpr std::size_t cache_bytes = 200'000;
  for (const std::size_t count : {1U, 10U, 1000U, 5000U}) {
    const ManyRecords server(loop(), count);
    const std::size_t before = live_bytes;
    dns::Resolver resolver(loop(),
                           {.servers = {server.endpoint()}, .cache_bytes_max = cache_bytes});
    std::size_t answered = 0;
    std::size_t used_max = 0;
    const std::size_t queries = count > 100 ? 20 : 800;
    run([&]() -> Task<> {
      for (std::size_t i = 0; i < queries; ++i) {
        const std::string name = "n" + std::to_string(i) + ".test";
        const auto response = co_await resolver.query(name, dns::Type(99));
        if (response && response->answers.size() == count) ++answered;
        used_max = std::max(used_max, live_bytes - before);
      }
    }());
    EXPECT_EQ(answered, queries);
    EXPECT_LE(live_bytes - before, cache_bytes + 200'000) << count;
    // A response is at most 64 KiB long, and the program gets its records.
    EXPECT_LE(used_max, cache_bytes + 300'000 + 400 * count) << count;
  }
}

TEST_P(DnsMemory, of_lookups_that_wait) {
  const UdpSocket silent = or_throw(UdpSocket::bind(loop(), Endpoint::loopback_v4(0)));
  const Endpoint at = or_throw(silent.local_endpoint());
  const std::size_t before = live_bytes;
  dns::Resolver resolver(loop(), {.servers = {at}, .queries_max = 100});
  constexpr std::size_t count = 2000;
  TaskScope scope(loop());
  for (std::size_t i = 0; i < count; ++i) {
    scope.spawn([](dns::Resolver& asked, std::size_t number) -> Task<> {
      static_cast<void>(co_await asked.query("n" + std::to_string(number) + ".test", dns::Type::a));
    }(resolver, i));
  }
  run_iterations();
  EXPECT_LE(live_bytes - before, count * 4000 + 200'000);
}

}  // namespace
}  // namespace tambour::memory_test
