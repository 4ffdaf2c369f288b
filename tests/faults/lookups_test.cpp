// Lookups in the DNS during which an allocation fails: the lookup may fail, but the resolver stays
// usable.
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/addresses/address_order.h"
#include "faults/allocations.h"
#include "faults/faults.h"
#include "loop/core.h"

namespace tambour::lookups_test {
namespace {

using namespace std::chrono_literals;

/// Answers each question with one address; questions for "big" over TCP only.
class Server {
 public:
  explicit Server(EventLoop& loop) {
    // Other programs may use the port that was chosen for UDP.
    while (!tcp_) {
      udp_ = UdpSocket::bind(loop, Endpoint::loopback_v4(0)).value();
      auto tcp = TcpServer::listen(loop, udp_.local_endpoint().value());
      if (tcp) tcp_ = std::move(*tcp);
    }
    const auto answer_all = [](UdpSocket& socket, DatagramBatch& batch) {
      for (const Datagram datagram : batch) {
        const std::string response = answer(datagram.bytes(), false);
        static_cast<void>(socket.try_send_to(std::as_bytes(std::span(response)), datagram.peer()));
      }
      batch.clear();
    };
    EXPECT_TRUE(udp_.serve({.on_datagrams = answer_all}));
    tcp_->serve(&serve_tcp);
  }

  [[nodiscard]] const Endpoint& endpoint() const { return tcp_->endpoint(); }

 private:
  static std::string answer(std::span<const std::byte> packet, bool is_tcp) {
    auto question = dns::Message::parse(packet);
    if (!question) return {};
    dns::Message response = dns::Message::response_to(*question);
    const dns::Question& asked = response.questions.at(0);
    response.truncated = !is_tcp && asked.name.label() == "big";
    if (asked.type == dns::Type::a && !response.truncated)
      response.answers.push_back({.name = asked.name, .ttl = 60, .data = dns::A{{192, 0, 2, 1}}});
    return response.write().value_or("");
  }

  static Task<> serve_tcp(TcpStream peer) {
    std::string in;
    std::array<std::byte, 1000> bytes;
    for (;;) {
      const auto got = co_await peer.read(bytes);
      if (!got || *got == 0) co_return;
      in.append(reinterpret_cast<const char*>(bytes.data()), *got);
      std::string out;
      while (in.size() > 2 && in.size() >= 2U + static_cast<unsigned char>(in[1])) {
        const std::size_t size = static_cast<unsigned char>(in[1]);
        const std::string response = answer(std::as_bytes(std::span(in).subspan(2, size)), true);
        in.erase(0, 2 + size);
        out += '\0';
        out += static_cast<char>(response.size());
        out += response;
      }
      const auto written = co_await peer.write(std::string_view(out));
      if (!written) co_return;
    }
  }

  UdpSocket udp_;
  std::optional<TcpServer> tcp_;
};

/// Counts the lookups that have succeeded.
Task<> look_up(dns::Resolver& resolver, EventLoop& loop, unsigned& succeeded, bool& has_ended) {
  for (const char* const name : {"small.test", "big.test", "other.test"}) {
    try {
      const auto found = co_await resolver.resolve(name, 80);
      if (found) succeeded += unsigned(found->size() == 1);
    } catch (const std::bad_alloc&) {
      continue;
    }
  }
  has_ended = true;
  loop.stop();
}

/// The number of queries that the resolver has repeated after a timeout, as on a busy machine. The
/// two retries of "big" over TCP are not counted.
std::uint64_t late_queries(const dns::Resolver& resolver) {
  const std::uint64_t retries = resolver.stats().retries;
  EXPECT_GE(retries, 2U);
  return retries - 2;
}

/// Returns the number of lookups that have succeeded, of three.
unsigned run_lookups(EventLoop& loop, dns::Resolver& resolver) {
  unsigned succeeded = 0;
  bool has_ended = false;
  try {
    spawn(loop, look_up(resolver, loop, succeeded, has_ended));
  } catch (const std::bad_alloc&) {
    return 0;
  }
  for (int i = 0; !has_ended && i < 100; ++i) {
    try {
      loop.run();
    } catch (const std::bad_alloc&) {
      continue;
    }
  }
  EXPECT_TRUE(has_ended);
  return succeeded;
}

class Lookups : public testing::TestWithParam<unsigned> {};

TEST_P(Lookups, continue_after_allocations_have_failed) {
  bool was_refused = true;
  for (unsigned nth = 1; was_refused && !HasFailure(); ++nth) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    EventLoop loop;
    Server server(loop);
    dns::Resolver resolver(loop, {.resolv_conf = "",
                                  .hosts = "",
                                  .nsswitch_conf = "",
                                  .servers = {server.endpoint()},
                                  .settings = {"timeout:2"}});
    // So that the latency of the server is known.
    ASSERT_EQ(run_lookups(loop, resolver), 3U);
    resolver.clear_cache();
    test::refuse_memory(nth, GetParam());
    static_cast<void>(run_lookups(loop, resolver));
    test::grant_memory();
    was_refused = test::memory_was_refused();
    resolver.clear_cache();
    EXPECT_EQ(run_lookups(loop, resolver), 3U);
    EXPECT_EQ(resolver.stats().in_flight, 0U);
  }
}

TEST(LookupsOverUdp, continue_without_segments_if_the_kernel_refuses_them) {
  for (const int error : {EIO, EINVAL, EMSGSIZE}) {
    EventLoop loop;
    Server server(loop);
    dns::Resolver resolver(
        loop,
        {.resolv_conf = "", .hosts = "", .nsswitch_conf = "", .servers = {server.endpoint()}});
    test::Faults faults;
    faults.fail(test::Call::sendmmsg, 1, error);
    // Each asks for both families: the first one twice, and "big" once more over TCP.
    EXPECT_EQ(run_lookups(loop, resolver), 3U);
    EXPECT_TRUE(faults.hit());
    const std::uint64_t late = late_queries(resolver);
    EXPECT_GE(faults.count(test::Call::sendmmsg), 1U + 3U);
    EXPECT_LE(faults.count(test::Call::sendmmsg), 1U + 3U + late);
    EXPECT_EQ(resolver.stats().udp_sent, 6U + late);
  }
}

TEST(LookupsOverUdp, do_not_use_segments_that_the_kernel_does_not_know) {
  EventLoop loop;
  Server server(loop);
  dns::Resolver resolver(
      loop, {.resolv_conf = "", .hosts = "", .nsswitch_conf = "", .servers = {server.endpoint()}});
  test::Faults faults;
  faults.fail(test::Call::getsockopt, 1, ENOPROTOOPT);
  EXPECT_EQ(run_lookups(loop, resolver), 3U);
  EXPECT_TRUE(faults.hit());
  EXPECT_EQ(resolver.stats().udp_sent, 6U + late_queries(resolver));
}

/// The number of times that the kernel is asked for a source address if the `nth` socket cannot be
/// opened; 0: all can.
unsigned questions_of_sorting(unsigned nth) {
  EventLoop loop;
  dns::detail::AddressOrder order(detail::loop::core_of(loop).backend().system());
  test::Faults faults;
  if (nth != 0) faults.fail(test::Call::socket, nth, EAFNOSUPPORT);
  for (unsigned i = 0; i < 1000; ++i) {
    const auto high = static_cast<std::uint8_t>(i / 250);
    const auto low = static_cast<std::uint8_t>(i % 250 + 1);
    std::vector addresses{IpAddress(IpAddress::V4Bytes{198, 51, high, low}),
                          IpAddress(IpAddress::V6Bytes{0x20, 0x01, 0x0d, 0xb8, high, low, 1})};
    order.sort(addresses, 0);
    EXPECT_EQ(addresses.size(), 2U);
  }
  return faults.count(test::Call::connect);
}

TEST(AddressesToSort, are_looked_up_once_for_each_range) {
  EXPECT_LT(questions_of_sorting(0), 250U);
  // Two sockets ask for the sources, and the third one reads the routes.
  EXPECT_GE(questions_of_sorting(3), 2000U);
}

INSTANTIATE_TEST_SUITE_P(Several, Lookups, testing::Values(1U, 3U));

}  // namespace
}  // namespace tambour::lookups_test
