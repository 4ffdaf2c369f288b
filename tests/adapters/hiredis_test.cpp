// RedisClient and RedisEvents with redis-server.
#include <tambour/adapters/hiredis.h>

#include <csignal>
#include <memory>
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

namespace tambour::hiredis_test {
namespace {

using namespace std::chrono_literals;
using adapters::RedisClient;
using adapters::RedisEvents;
using adapters::RedisValue;

class Hiredis : public test::AdapterTest {
 protected:
  // hiredis sends with write(2).
  static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_DFL); }

  void SetUp() override {
    if (test::find_program("redis-server").empty()) GTEST_SKIP() << "redis-server is not installed";
    start_server();
  }

  void start_server() {
    server.emplace(std::vector<std::string>{"redis-server", "--port", "0", "--unixsocket", socket(),
                                            "--save", "", "--dir", folder.path()},
                   folder.path() + "/log");
  }
  [[nodiscard]] std::string socket() const { return folder.path() + "/socket"; }

  /// Connects as soon as the server listens.
  Task<bool> connected(RedisClient& client) {
    for (int i = 0; i < 12'000; ++i) {
      const auto done = co_await client.connect_unix(socket().c_str());
      if (done) {
        const auto pong = co_await client.command("PING");
        if (pong && pong->text == "PONG") co_return true;
      }
      static_cast<void>(co_await sleep_for(5ms));
    }
    co_return false;
  }

  test::TemporaryFolder folder;
  std::optional<test::ServerProcess> server;
};

TEST_F(Hiredis, commands_return_every_type_of_reply) {
  run([this]() -> Task<> {
    RedisClient redis(loop);
    EXPECT_TRUE(co_await connected(redis));
    const auto number = co_await redis.command("INCR", "counter");
    EXPECT_EQ(number->integer, 1);
    const auto nothing = co_await redis.command("GET", "missing");
    EXPECT_TRUE(nothing->is_nil());
    const std::string binary("a\0b\r\n", 5);
    const auto stored = co_await redis.command("SET", "key", binary);
    EXPECT_EQ(stored->text, "OK");
    const auto back = co_await redis.command("GET", "key");
    EXPECT_EQ(back->text, binary);
    const auto error = co_await redis.command("INCR", "key");
    EXPECT_TRUE(error->is_error());
    const std::string text(300'000, 'x');
    static_cast<void>(co_await redis.command("RPUSH", "list", "1", text));
    const auto list = co_await redis.command("LRANGE", "list", "0", "-1");
    EXPECT_EQ(list->elements.size(), 2U);
    EXPECT_EQ(list->elements.at(1).text, text);
    // Replies of commands that are not awaited are dropped.
    static_cast<void>(redis.command("INCR", "counter"));
    auto first = redis.command("INCR", "counter");
    auto second = redis.command("INCR", "counter");
    const auto late = co_await std::move(second);
    const auto early = co_await std::move(first);
    EXPECT_EQ(early->integer, 3);
    EXPECT_EQ(late->integer, 4);
  }());
}

Task<> count_up(RedisClient& redis, std::size_t commands, std::size_t& replies) {
  for (std::size_t i = 0; i < commands; ++i) {
    const auto reply = co_await redis.command("INCR", "counter");
    if (reply && !reply->is_error()) ++replies;
  }
}

TEST_F(Hiredis, a_hundred_commands_in_flight) {
  run([this]() -> Task<> {
    RedisClient redis(loop);
    EXPECT_TRUE(co_await connected(redis));
    const std::size_t commands = test::scaled(100);
    std::size_t replies = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i) scope.spawn(count_up(redis, commands, replies));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(replies, 100 * commands);
    const auto total = co_await redis.command("GET", "counter");
    EXPECT_EQ(total->text, std::to_string(100 * commands));
  }());
}

Task<> count_with_limits(RedisClient& redis, std::size_t commands, test::Random& random,
                         std::size_t& replies, std::size_t& stopped) {
  for (std::size_t i = 0; i < commands; ++i) {
    if (random.below(2) == 0) {
      const auto reply = co_await redis.command("INCR", "counter");
      if (reply) ++replies;
      continue;
    }
    const auto limit = std::chrono::microseconds(random.below(500));
    const auto reply = co_await timeout(limit, redis.command("INCR", "counter"));
    if (reply) ++replies;
    if (!reply && reply.error() == system_error(ETIMEDOUT)) ++stopped;
  }
}

TEST_F(Hiredis, half_of_the_commands_are_cancelled_at_random_points) {
  run([this]() -> Task<> {
    RedisClient redis(loop);
    EXPECT_TRUE(co_await connected(redis));
    const std::size_t commands = test::scaled(100);
    test::Random random;
    std::size_t replies = 0;
    std::size_t stopped = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i)
      scope.spawn(count_with_limits(redis, commands, random, replies, stopped));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(replies + stopped, 100 * commands);
    EXPECT_GT(stopped, 0U);
    EXPECT_GT(replies, 0U);
    // Cancelled commands were executed too, and the connection is in order.
    const auto total = co_await redis.command("GET", "counter");
    EXPECT_EQ(total->text, std::to_string(100 * commands));
  }());
}

Task<> persist(RedisClient& redis, std::size_t commands, std::size_t& replies,
               std::size_t& failures) {
  for (std::size_t i = 0; i < commands;) {
    const auto reply = co_await redis.command("INCR", "counter");
    if (reply && !reply->is_error()) {
      ++replies;
      ++i;
    } else {
      ++failures;
      static_cast<void>(co_await sleep_for(2ms));
    }
  }
}

TEST_F(Hiredis, a_restart_of_the_server_fails_what_is_in_flight) {
  run([this]() -> Task<> {
    RedisClient redis(loop);
    EXPECT_TRUE(co_await connected(redis));
    const std::size_t commands = test::scaled(100);
    std::size_t replies = 0;
    std::size_t failures = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i) scope.spawn(persist(redis, commands, replies, failures));
    while (replies < 20 * commands) static_cast<void>(co_await sleep_for(1ms));
    server->end(SIGKILL);
    while (redis.is_connected()) static_cast<void>(co_await sleep_for(1ms));
    EXPECT_FALSE(redis.error_text().empty());
    const auto refused = co_await redis.connect_unix(socket().c_str());
    EXPECT_EQ(refused.error(), system_error(ECONNREFUSED));
    start_server();
    EXPECT_TRUE(co_await connected(redis));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(replies, 100 * commands);
    EXPECT_GT(failures, 0U);
  }());
}

TEST_F(Hiredis, closing_cancels_commands_and_destroying_is_allowed_anywhere) {
  run([this]() -> Task<> {
    auto redis = std::make_unique<RedisClient>(loop);
    const auto early = co_await redis->command("PING");
    EXPECT_EQ(early.error(), system_error(ENOTCONN));
    EXPECT_TRUE(co_await connected(*redis));
    auto waiting = redis->command("BLPOP", "nothing", "0");
    Timer timer(loop, [&] { redis->close(); });
    timer.start(5ms);
    const auto closed = co_await std::move(waiting);
    EXPECT_EQ(closed.error(), system_error(ECANCELED));
    auto connecting = redis->connect_unix(socket().c_str());
    redis->close();
    const auto stopped = co_await std::move(connecting);
    EXPECT_EQ(stopped.error(), system_error(ECANCELED));
    EXPECT_TRUE(co_await connected(*redis));
    auto abandoned = redis->command("PING");
    const auto reply = co_await redis->command("PING");
    EXPECT_TRUE(reply);
    redis.reset();  // Inside the callback of hiredis.
    const auto last = co_await std::move(abandoned);
    EXPECT_TRUE(last);
  }());
}

TEST_F(Hiredis, a_server_that_has_gone_raises_no_signal) {
  run([this]() -> Task<> {
    // The first one is written by the adapter, the second one by hiredis.
    for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}}) {
      RedisClient redis(loop);
      EXPECT_TRUE(co_await connected(redis));
      const auto reply = co_await redis.command("PING");
      EXPECT_TRUE(reply);
      server->end(SIGKILL);
      // Sent before the loop can report the end of the connection.
      const auto lost = co_await redis.command("SET", "key", std::string(size, 'x'));
      EXPECT_FALSE(lost);
      EXPECT_FALSE(redis.is_connected());
      start_server();
    }
  }());
}

TEST_F(Hiredis, a_subscription_receives_messages) {
  run([this]() -> Task<> {
    RedisClient subscriber(loop);
    RedisClient publisher(loop);
    const std::vector<std::string_view> words{"SUBSCRIBE", "news", "weather"};
    EXPECT_EQ(subscriber.subscribe(words, {}).error(), system_error(ENOTCONN));
    EXPECT_TRUE(co_await connected(subscriber));
    EXPECT_TRUE(co_await connected(publisher));
    std::vector<std::string> messages;
    TaskEvent subscribed(loop);
    TaskEvent received(loop);
    const auto handle = [&](const RedisValue& message) {
      if (message.elements.at(0).text == "subscribe") {
        if (message.elements.at(2).integer == 2) subscribed.set();
        return;
      }
      messages.push_back(message.elements.at(1).text + ":" + message.elements.at(2).text);
      if (messages.size() == 100) received.set();
    };
    EXPECT_TRUE(subscriber.subscribe(words, handle));
    static_cast<void>(co_await subscribed.wait());
    for (int i = 0; i < 50; ++i) {
      const auto news = co_await publisher.command("PUBLISH", "news", std::to_string(i));
      EXPECT_EQ(news->integer, 1);
      const auto weather = co_await publisher.command("PUBLISH", "weather", "rain");
      EXPECT_EQ(weather->integer, 1);
    }
    static_cast<void>(co_await received.wait());
    EXPECT_EQ(messages.front(), "news:0");
    EXPECT_EQ(messages.back(), "weather:rain");
  }());
}

TEST_F(Hiredis, a_client_may_be_destroyed_by_its_message_function) {
  run([this]() -> Task<> {
    auto subscriber = std::make_unique<RedisClient>(loop);
    EXPECT_TRUE(co_await connected(*subscriber));
    const std::vector<std::string_view> words{"SUBSCRIBE", "news"};
    TaskEvent received(loop);
    const std::string text(100, 'x');
    EXPECT_TRUE(subscriber->subscribe(words, [&, text](const RedisValue&) {
      subscriber.reset();
      EXPECT_EQ(text.size(), 100U);
      received.set();
    }));
    static_cast<void>(co_await received.wait());
  }());
}

TEST_F(Hiredis, a_subscriber_learns_that_its_connection_was_lost) {
  run([this]() -> Task<> {
    const std::vector<std::string_view> words{"SUBSCRIBE", "news", "weather"};
    auto subscriber = std::make_unique<RedisClient>(loop);
    EXPECT_TRUE(co_await connected(*subscriber));
    TaskEvent subscribed(loop);
    const auto note = [&](const RedisValue&) { subscribed.set(); };
    // Not for a connection that the client itself has closed.
    EXPECT_TRUE(subscriber->subscribe(words, note, [](const Error&) { ADD_FAILURE(); }));
    subscriber->close();
    EXPECT_TRUE(co_await connected(*subscriber));
    std::vector<Error> errors;
    TaskEvent closed(loop);
    EXPECT_TRUE(subscriber->subscribe(words, note, [&](const Error& error) {
      errors.push_back(error);
      EXPECT_FALSE(subscriber->is_connected());
      static_cast<void>(subscriber->connect_unix(socket().c_str()));
      subscriber.reset();
      closed.set();
    }));
    static_cast<void>(co_await subscribed.wait());
    server->end(SIGKILL);
    static_cast<void>(co_await closed.wait());
    EXPECT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors.at(0), system_error(ECONNRESET));
  }());
}

TEST_F(Hiredis, events_serve_the_functions_of_hiredis) {
  run([this]() -> Task<> {
    RedisClient redis(loop);
    EXPECT_TRUE(co_await connected(redis));
    redis.close();
    struct State {
      TaskEvent ended;
      int replies = 0;
    } state{TaskEvent(loop)};
    redisAsyncContext* const context = redisAsyncConnectUnix(socket().c_str());
    context->data = &state;
    RedisEvents::attach(loop, *context);
    redisAsyncSetDisconnectCallback(context, [](const redisAsyncContext* ending, int) {
      static_cast<State*>(ending->data)->ended.set();
    });
    const auto note = [](redisAsyncContext* replying, void* reply, void*) {
      auto& noted = *static_cast<State*>(replying->data);
      if (reply != nullptr && ++noted.replies == 1'000) redisAsyncDisconnect(replying);
    };
    for (int i = 0; i < 1'000; ++i)
      EXPECT_EQ(redisAsyncCommand(context, note, nullptr, "INCR other"), REDIS_OK);
    static_cast<void>(co_await state.ended.wait());
    EXPECT_EQ(state.replies, 1'000);
  }());
}

}  // namespace
}  // namespace tambour::hiredis_test
