// AresChannel with a DNS server of Tambour.
#include <tambour/adapters/cares.h>

#include <arpa/inet.h>
#include <netdb.h>

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"

namespace tambour::cares_test {
namespace {

using namespace std::chrono_literals;
using adapters::ares_category;
using adapters::AresChannel;

class Cares : public test::AdapterTest {
 protected:
  static void SetUpTestSuite() { ares_library_init(ARES_LIB_INIT_ALL); }
  static void TearDownTestSuite() { ares_library_cleanup(); }

  void SetUp() override { start_server(); }

  void start_server() {
    const auto answer = [](const dns::Request& request, dns::Message& response) {
      const dns::Question& question = request.question();
      if (question.name.to_string().starts_with("missing"))
        response.rcode = dns::Rcode::no_such_name;
      if (response.rcode != dns::Rcode::no_error || question.type != dns::Type::a) return;
      dns::Record record;
      record.name = question.name;
      record.type = dns::Type::a;
      record.ttl = 60;
      record.data = dns::A{{192, 0, 2, 7}};
      response.answers.push_back(record);
    };
    const Endpoint at = endpoint ? *endpoint : *Endpoint::parse("127.0.0.1:0");
    server.emplace(or_throw(dns::Server::listen(loop, at, answer), "listen"));
    endpoint = server->endpoint();
  }

  /// A channel that sends a query up to `tries` times, first with a timeout of `timeout_ms`.
  [[nodiscard]] std::unique_ptr<AresChannel> open(int timeout_ms = 1'000, int tries = 3) {
    ares_options options{};
    options.timeout = timeout_ms;
    options.tries = tries;
    auto channel =
        std::make_unique<AresChannel>(loop, options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    const std::string text = "127.0.0.1:" + std::to_string(endpoint->port());
    EXPECT_EQ(ares_set_servers_ports_csv(channel->get(), text.c_str()), ARES_SUCCESS);
    return channel;
  }
  static ares_addrinfo_hints ipv4() {
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_INET;
    return hints;
  }

  std::optional<dns::Server> server;
  std::optional<Endpoint> endpoint;
};

TEST_F(Cares, names_are_resolved_and_errors_have_the_text_of_the_library) {
  run([this]() -> Task<> {
    const auto channel = open();
    const auto found = co_await channel->resolve("www.example.test", "443", ipv4());
    if (!found) co_return ADD_FAILURE() << found.error().message(), void();
    const auto* const address = reinterpret_cast<const sockaddr_in*>((*found)->nodes->ai_addr);
    EXPECT_EQ(ntohl(address->sin_addr.s_addr), 0xC0000207U);
    EXPECT_EQ(ntohs(address->sin_port), 443);
    const auto missing = co_await channel->resolve("missing.test", {}, ipv4());
    EXPECT_EQ(missing.error(), Error(ARES_ENOTFOUND, ares_category()));
    EXPECT_EQ(missing.error().message(), ares_strerror(ARES_ENOTFOUND));
    // Without a packet: the callback is called at once.
    const auto literal = co_await channel->resolve("192.0.2.1", {}, ipv4());
    EXPECT_TRUE(literal);
    constexpr int internet = 1;
    constexpr int type_a = 1;
    const auto response = co_await channel->query("www.example.test", internet, type_a);
    EXPECT_GT(response->size(), 12U);
  }());
}

TEST_F(Cares, a_hundred_lookups_in_flight_and_half_are_cancelled_at_random_points) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    const auto channel = open();
    const auto resolve = [&] { return channel->resolve("www.example.test", {}, ipv4()); };
    const std::size_t count = test::scaled(100);
    const auto all = co_await test::run_in_flight(loop, resolve, count);
    EXPECT_EQ(all.done, 100 * count);
    test::Random random;
    const auto half = co_await test::run_in_flight(loop, resolve, count, &random);
    EXPECT_EQ(half.done + half.stopped, 100 * count);
    EXPECT_GT(half.done, 0U);
    EXPECT_GT(half.stopped, 0U);
  }());
}

TEST_F(Cares, lookups_fail_without_the_server_and_succeed_after_its_restart) {
  run([this]() -> Task<> {
    const auto channel = open();
    server.reset();
    const auto refused = co_await channel->resolve("www.example.test", {}, ipv4());
    EXPECT_EQ(refused.error().category(), ares_category());
    start_server();
    const auto again = co_await channel->resolve("www.example.test", {}, ipv4());
    EXPECT_TRUE(again);
  }());
}

TEST_F(Cares, a_restart_in_the_middle_of_a_hundred_lookups_in_flight_loses_none) {
  run([this]() -> Task<> {
    const auto channel = open();
    const std::size_t count = test::scaled(100);
    test::Outcomes outcomes;
    const auto resolve = [&] { return channel->resolve("www.example.test", {}, ipv4()); };
    auto restart = [&]() -> Task<> {
      while (outcomes.done < 20 * count) static_cast<void>(co_await sleep_for(1ms));
      server.reset();
      while (outcomes.failed < 100) static_cast<void>(co_await sleep_for(1ms));
      start_server();
    };
    co_await when_all(test::run_until_done(loop, resolve, count, outcomes), restart());
    EXPECT_EQ(outcomes.done, 100 * count);
  }());
}

TEST_F(Cares, a_server_that_does_not_answer_is_asked_until_the_time_limit) {
  run([this]() -> Task<> {
    server.reset();
    auto silent = or_throw(UdpSocket::bind(loop, *endpoint), "bind");
    const auto channel = open(100, 2);
    const auto none = co_await channel->resolve("www.example.test", {}, ipv4());
    EXPECT_EQ(none.error(), Error(ARES_ETIMEOUT, ares_category()));
  }());
}

TEST_F(Cares, destroying_the_channel_cancels_what_is_in_flight) {
  run([this]() -> Task<> {
    auto channel = open();
    auto waiting = channel->resolve("www.example.test", {}, ipv4());
    channel.reset();
    const auto cancelled = co_await std::move(waiting);
    EXPECT_EQ(cancelled.error(), system_error(ECANCELED));
  }());
}

}  // namespace
}  // namespace tambour::cares_test
