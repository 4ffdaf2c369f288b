// MqttClient with the broker mosquitto.
#include <tambour/adapters/mosquitto.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "adapters/server_process.h"
#include "support/random.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::mosquitto_test {
namespace {

using namespace std::chrono_literals;
using adapters::MqttClient;

class Mosquitto : public test::AdapterTest {
 protected:
  static void SetUpTestSuite() { mosquitto_lib_init(); }

  void SetUp() override {
    program = test::find_program("mosquitto", "/usr/sbin");
    if (program.empty()) GTEST_SKIP() << "mosquitto is not installed";
    std::ofstream(folder.path() + "/conf")
        << "listener 0 " << socket()
        << "\nallow_anonymous true\nuser root\nmax_queued_messages 0\n";
    start_server();
  }

  void start_server() {
    server.emplace(std::vector<std::string>{program, "-c", folder.path() + "/conf"},
                   folder.path() + "/log");
  }
  [[nodiscard]] std::string socket() const { return folder.path() + "/socket"; }

  /// Connects as soon as the broker listens.
  Task<bool> connected(MqttClient& client) {
    for (int i = 0; i < 12'000; ++i) {
      const auto done = co_await client.connect(socket().c_str(), 0);
      if (done) co_return true;
      static_cast<void>(co_await sleep_for(5ms));
    }
    co_return false;
  }

  std::string program;
  test::TemporaryFolder folder;
  std::optional<test::ServerProcess> server;
};

TEST_F(Mosquitto, messages_arrive_with_every_quality_of_service) {
  run([this]() -> Task<> {
    MqttClient subscriber(loop, "subscriber");
    MqttClient publisher(loop, "publisher");
    const auto early = co_await publisher.publish("news", "x", 0);
    EXPECT_EQ(early.error(), system_error(ENOTCONN));
    EXPECT_TRUE(co_await connected(subscriber));
    EXPECT_TRUE(co_await connected(publisher));
    std::vector<std::string> messages;
    TaskEvent received(loop);
    subscriber.on_message([&](const mosquitto_message& message) {
      messages.emplace_back(static_cast<const char*>(message.payload),
                            static_cast<std::size_t>(message.payloadlen));
      if (messages.size() == 3) received.set();
    });
    EXPECT_TRUE(co_await subscriber.subscribe("news/#", 2));
    for (int qos = 0; qos <= 2; ++qos) {
      const std::string text = "qos " + std::to_string(qos);
      EXPECT_TRUE(co_await publisher.publish("news/today", text, qos));
    }
    static_cast<void>(co_await received.wait());
    EXPECT_EQ(messages, (std::vector<std::string>{"qos 0", "qos 1", "qos 2"}));
    const auto wrong = co_await publisher.publish("news/+", "x", 1);
    EXPECT_EQ(wrong.error(), system_error(EINVAL));
  }());
}

Task<> publish_many(MqttClient& client, std::size_t count, test::Random* random,
                    std::size_t& acknowledged, std::size_t& stopped) {
  for (std::size_t i = 0; i < count; ++i) {
    if (random == nullptr || random->below(2) == 0) {
      const auto published = co_await client.publish("count", "x", 1);
      if (published) ++acknowledged;
      continue;
    }
    const auto limit = std::chrono::microseconds(random->below(2'000));
    const auto published = co_await timeout(limit, client.publish("count", "x", 1));
    if (published) ++acknowledged;
    if (!published && published.error() == system_error(ETIMEDOUT)) ++stopped;
  }
}

TEST_F(Mosquitto, half_of_the_publications_of_100_tasks_are_stopped_at_random_points) {
  run([this]() -> Task<> {
    MqttClient client(loop, "client");
    EXPECT_TRUE(co_await connected(client));
    const std::size_t count = test::scaled(100);
    test::Random random;
    std::size_t acknowledged = 0;
    std::size_t stopped = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i)
      scope.spawn(publish_many(client, count, &random, acknowledged, stopped));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(acknowledged + stopped, 100 * count);
    EXPECT_GT(stopped, 0U);
    EXPECT_TRUE(co_await client.publish("count", "x", 2));
  }());
}

TEST_F(Mosquitto, publications_are_sent_again_after_a_restart_of_the_broker) {
  run([this]() -> Task<> {
    MqttClient client(loop, "client", false);
    EXPECT_TRUE(co_await connected(client));
    const std::size_t count = test::scaled(100);
    std::size_t acknowledged = 0;
    std::size_t stopped = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i)
      scope.spawn(publish_many(client, count, nullptr, acknowledged, stopped));
    while (acknowledged < 20 * count) static_cast<void>(co_await sleep_for(1ms));
    server->end(SIGKILL);
    while (client.is_connected()) static_cast<void>(co_await sleep_for(1ms));
    const auto refused = co_await client.reconnect();
    EXPECT_FALSE(refused);
    start_server();
    for (int i = 0; i < 12'000 && !client.is_connected(); ++i) {
      const auto again = co_await client.reconnect();
      if (!again) static_cast<void>(co_await sleep_for(5ms));
    }
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(acknowledged, 100 * count);
  }());
}

TEST_F(Mosquitto, destroying_the_client_cancels_what_is_in_flight) {
  run([this]() -> Task<> {
    std::optional<MqttClient> client(std::in_place, loop, "client");
    EXPECT_TRUE(co_await connected(*client));
    auto waiting = client->publish("count", "x", 1);
    client.reset();
    const auto cancelled = co_await std::move(waiting);
    EXPECT_EQ(cancelled.error(), system_error(ECANCELED));
  }());
}

TEST_F(Mosquitto, a_task_that_its_publication_resumes_may_destroy_the_client) {
  run([this]() -> Task<> {
    std::optional<MqttClient> client(std::in_place, loop, "client");
    EXPECT_TRUE(co_await connected(*client));
    std::size_t ended = 0;
    auto publish = [&]() -> Task<> {
      const auto published = co_await client->publish("count", "x", 1);
      EXPECT_TRUE(published || published.error() == system_error(ECANCELED));
      if (++ended == 1) client.reset();
    };
    TaskScope scope(loop);
    for (int i = 0; i < 10; ++i) scope.spawn(publish());
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(ended, 10U);
  }());
}

}  // namespace
}  // namespace tambour::mosquitto_test
