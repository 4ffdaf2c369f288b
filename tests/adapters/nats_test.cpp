// NatsClient with nats-server.
#include <tambour/adapters/nats.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "adapters/server_process.h"
#include "support/temporary_folder.h"

namespace tambour::nats_test {
namespace {

using namespace std::chrono_literals;
using adapters::NatsClient;
using adapters::NatsSubscription;

class Nats : public test::AdapterTest {
 protected:
  static void TearDownTestSuite() { nats_CloseAndWait(0); }

  void SetUp() override {
    program = test::find_program("nats-server", "/usr/sbin");
    if (program.empty()) GTEST_SKIP() << "nats-server is not installed";
    port = test::free_port();
    start_server();
  }

  void start_server() {
    server.emplace(
        std::vector<std::string>{program, "--addr", "127.0.0.1", "--port", std::to_string(port)},
        folder.path() + "/log");
  }
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port); }

  /// Connects as soon as the server listens.
  Task<bool> connected(NatsClient& client) {
    natsOptions_SetReconnectWait(client.options(), 10);
    natsOptions_SetReconnectJitter(client.options(), 0, 0);
    natsOptions_SetMaxReconnect(client.options(), 10'000);
    auto attempt = [&]() -> Task<bool> {
      const auto done = co_await client.connect(url());
      co_return done.has_value();
    };
    const bool is_connected = co_await test::retry(std::move(attempt));
    co_return is_connected;
  }
  /// Answers requests until the subscription fails.
  static Task<> answer(NatsClient& client, NatsSubscription subscription) {
    for (;;) {
      const auto request = co_await subscription.next();
      if (!request) co_return;
      if (const char* const reply_to = request->reply_to())
        static_cast<void>(client.publish(reply_to, request->data()));
    }
  }

  std::string program;
  int port = 0;
  test::TemporaryFolder folder;
  std::optional<test::ServerProcess> server;
};

TEST_F(Nats, messages_reach_subscriptions_and_queue_groups) {
  run([this]() -> Task<> {
    NatsClient client(loop);
    EXPECT_EQ(client.publish("news", "x").error(), system_error(ENOTCONN));
    EXPECT_TRUE(co_await connected(client));
    auto all = client.subscribe("news.>");
    auto first = client.subscribe("news.*", "group");
    auto second = client.subscribe("news.*", "group");
    EXPECT_EQ(client.subscribe("").error().category(), adapters::nats_category());
    for (int i = 0; i < 500; ++i)
      EXPECT_TRUE(client.publish("news." + std::to_string(i), std::string(i, 'x')));
    EXPECT_TRUE(co_await client.flush());
    for (std::size_t i = 0; i < 500; ++i) {
      const auto message = co_await all->next();
      EXPECT_EQ(message->subject(), "news." + std::to_string(i));
      EXPECT_EQ(message->data().size(), i);
      EXPECT_EQ(message->reply_to(), nullptr);
    }
    std::size_t shared = 0;
    for (auto* const member : {&*first, &*second}) {
      std::uint64_t queued = 0;
      natsSubscription_QueuedMsgs(member->get(), &queued);
      shared += queued;
    }
    EXPECT_EQ(shared, 500U);
    const auto early = co_await timeout(5ms, all->next());
    EXPECT_EQ(early.error(), system_error(ETIMEDOUT));
  }());
}

TEST_F(Nats, a_hundred_requests_in_flight_and_half_are_cancelled_at_random_points) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    NatsClient client(loop);
    NatsClient service(loop);
    EXPECT_TRUE(co_await connected(client));
    EXPECT_TRUE(co_await connected(service));
    auto subscription = service.subscribe("echo");
    EXPECT_TRUE(co_await service.flush());
    TaskScope scope(loop);
    scope.spawn(answer(service, std::move(*subscription)));
    const auto operate = [&] { return client.request("echo", "hello"); };
    const std::size_t count = test::scaled(100);
    const auto every = co_await test::run_in_flight(loop, operate, count);
    EXPECT_EQ(every.done, 100 * count);
    test::Random random;
    const auto half = co_await test::run_in_flight(loop, operate, count, &random);
    EXPECT_EQ(half.done + half.stopped, 100 * count);
    EXPECT_GT(half.done, 0U);
    EXPECT_GT(half.stopped, 0U);
    const auto last = co_await client.request("echo", "last");
    EXPECT_EQ(last->data(), "last");
    service.close();
    static_cast<void>(co_await scope.join());
  }());
}

TEST_F(Nats, a_restart_of_the_server_fails_requests_and_subscriptions_continue) {
  run([this]() -> Task<> {
    NatsClient client(loop);
    EXPECT_TRUE(co_await connected(client));
    auto subscription = client.subscribe("echo");
    EXPECT_TRUE(co_await client.flush());
    TaskScope scope(loop);
    auto silent = client.subscribe("silent");
    auto lost = client.request("silent", "x");
    auto stop = [this]() -> Task<> {
      static_cast<void>(co_await sleep_for(20ms));
      server->end(SIGKILL);
    };
    auto [outcome, ignored] = co_await when_all(std::move(lost), stop());
    EXPECT_EQ(outcome.error(), system_error(ECONNRESET));
    EXPECT_FALSE(client.is_connected());
    const auto refused = co_await client.request("silent", "x");
    EXPECT_EQ(refused.error(), system_error(ENOTCONN));
    start_server();
    while (!client.is_connected()) static_cast<void>(co_await sleep_for(1ms));
    EXPECT_TRUE(co_await client.flush());
    scope.spawn(answer(client, std::move(*subscription)));
    const auto reply = co_await timeout(30s, client.request("echo", "again"));
    EXPECT_EQ(reply->data(), "again");
    client.close();
    static_cast<void>(co_await scope.join());
  }());
}

TEST_F(Nats, a_restart_in_the_middle_of_a_hundred_requests_in_flight_loses_none) {
  run([this]() -> Task<> {
    NatsClient client(loop);
    NatsClient service(loop);
    EXPECT_TRUE(co_await connected(client));
    EXPECT_TRUE(co_await connected(service));
    auto subscription = service.subscribe("echo");
    EXPECT_TRUE(co_await service.flush());
    TaskScope scope(loop);
    scope.spawn(answer(service, std::move(*subscription)));
    const std::size_t count = test::scaled(100);
    test::Outcomes outcomes;
    // After the restart, a request may reach the server before the subscription of the service.
    const auto operate = [&] { return timeout(1s, client.request("echo", "hello")); };
    auto restart = [&]() -> Task<> {
      while (outcomes.done < 20 * count) static_cast<void>(co_await sleep_for(1ms));
      server->end(SIGKILL);
      while (client.is_connected()) static_cast<void>(co_await sleep_for(1ms));
      start_server();
    };
    co_await when_all(test::run_until_done(loop, operate, count, outcomes), restart());
    EXPECT_EQ(outcomes.done, 100 * count);
    EXPECT_GT(outcomes.failed, 0U);
    service.close();
    static_cast<void>(co_await scope.join());
  }());
}

TEST_F(Nats, closing_cancels_requests_and_connecting_may_be_stopped) {
  run([this]() -> Task<> {
    auto client = std::make_unique<NatsClient>(loop);
    EXPECT_TRUE(co_await connected(*client));
    auto subscription = client->subscribe("silent");
    EXPECT_TRUE(co_await client->flush());
    Timer timer(loop, [&] { client.reset(); });
    timer.start(5ms);
    auto [request, message] =
        co_await when_all(client->request("silent", "x"), subscription->next());
    EXPECT_EQ(request.error(), system_error(ECANCELED));
    // The request itself may have arrived before.
    EXPECT_TRUE(message.has_value() || message.error() == system_error(ECANCELED));
    NatsClient stopped(loop);
    for (int i = 0; i < 20; ++i) {
      const std::chrono::microseconds limit(100 * i);
      static_cast<void>(co_await timeout(limit, stopped.connect(url())));
    }
    EXPECT_TRUE(co_await connected(stopped));
  }());
}

TEST_F(Nats, a_connection_that_is_not_restored_ends_the_waits) {
  run([this]() -> Task<> {
    NatsClient client(loop);
    EXPECT_TRUE(co_await connected(client));
    natsOptions_SetAllowReconnect(client.options(), false);
    EXPECT_TRUE(co_await client.connect(url()));
    auto subscription = client.subscribe("news");
    Timer timer(loop, [&] { server->end(SIGKILL); });
    timer.start(5ms);
    const auto ended = co_await subscription->next();
    EXPECT_EQ(ended.error(), adapters::nats_error(NATS_CONNECTION_CLOSED));
    EXPECT_FALSE(client.is_connected());
  }());
}

}  // namespace
}  // namespace tambour::nats_test
