// Topics of WebSockets: delivery, slow subscribers, compression, and topics by name.
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/websocket/serving.h"

namespace tambour::topics_test {
namespace {

using namespace std::chrono_literals;
using http::CloseCode;
using http::WebSocket;
using http::WebSocketMessage;
using http::WebSocketTopic;
using http::WebSocketTopicOptions;
using http::WhenSubscriberSlow;

class WebSocketTopics : public test::WebSocketServing {
 public:
  void serve_subscribers(const WebSocketTopicOptions& options) {
    topic_.emplace(server_loop_, options);
    serve(http::serve_websocket([this](WebSocket& socket, http::Request&) -> Task<> {
      topic_->subscribe(socket);
      topic_->subscribe(socket);  // Has no effect.
      EXPECT_TRUE(topic_->is_subscribed(socket));
      for (;;) {
        Result<WebSocketMessage> message = co_await socket.receive();
        if (!message) co_return;
        if (message->data == "leave") {
          topic_->unsubscribe(socket);
          EXPECT_FALSE(topic_->is_subscribed(socket));
          const Result<> answered = co_await socket.send_text("left");
          EXPECT_TRUE(answered);
          continue;
        }
        const Result<> published = co_await topic_->publish_except(socket, std::move(*message));
        EXPECT_TRUE(published);
      }
    }));
  }
  /// Returns when the server has subscribed it.
  Task<WebSocket> subscribe(http::Client& client, const http::WebSocketOptions& options = {}) {
    const std::size_t before = topic_->size();
    WebSocket socket = co_await connect(client, options);
    while (topic_->size() == before) static_cast<void>(co_await sleep_for(1ms));
    co_return socket;
  }
  static Task<std::string> next_of(WebSocket& socket) {
    const Result<WebSocketMessage> message = co_await socket.receive();
    co_return message ? message->to_string() : message.error().message();
  }
  /// Publishes numbered messages, one each millisecond.
  Task<> publish_numbers(int count, std::size_t bytes = 16 * 1024) {
    for (int i = 0; i < count; ++i) {
      std::string text = std::to_string(i) + " ";
      text.resize(bytes, 'x');
      const Result<> published = co_await topic_->publish(WebSocketMessage(text));
      EXPECT_TRUE(published);
      static_cast<void>(co_await sleep_for(1ms));
    }
  }
  static Task<> receive_numbers(WebSocket& socket, std::vector<int>& numbers, int last) {
    while (numbers.empty() || numbers.back() != last) {
      const std::string text = co_await next_of(socket);
      if (text.empty() || text[0] < '0' || text[0] > '9') co_return;
      numbers.push_back(std::stoi(text));
    }
  }
  static WebSocketTopicOptions small_limits(WhenSubscriberSlow when_slow) {
    WebSocketTopicOptions options;
    options.when_slow = when_slow;
    options.unsent_bytes_max = std::size_t{64} * 1024;
    options.backlog_bytes_max = std::size_t{256} * 1024;
    return options;
  }
  /// With a subscriber that receives nothing before all is published.
  void lose_oldest_messages(std::size_t count, std::size_t bytes) {
    const int last = static_cast<int>(count) - 1;
    serve_subscribers(small_limits(WhenSubscriberSlow::drop_oldest));
    run([&]() -> Task<> {
      http::Client client(loop_);
      WebSocket slow = co_await subscribe(client);
      WebSocket fast = co_await subscribe(client);
      std::vector<int> numbers;
      Task<> receiving = receive_numbers(fast, numbers, last);
      co_await when_all(publish_numbers(last + 1, bytes), std::move(receiving));
      EXPECT_EQ(numbers.size(), count);
      EXPECT_GT(topic_->backlog_bytes(), 0);
      EXPECT_LE(topic_->backlog_bytes(), std::size_t{256} * 1024);
      std::vector<int> kept;
      co_await receive_numbers(slow, kept, last);
      for (std::size_t i = 1; i < kept.size(); ++i) EXPECT_LT(kept[i - 1], kept[i]);
      const http::WebSocketTopicStats stats = topic_->stats();
      EXPECT_GT(stats.dropped, 0);
      EXPECT_EQ(kept.size() + stats.dropped, count);
      EXPECT_EQ(stats.sent + stats.dropped, 2 * count);
      EXPECT_EQ(stats.closed, 0);
      EXPECT_EQ(topic_->backlog_bytes(), 0);
    }());
  }

  std::optional<WebSocketTopic> topic_;
};

/// More than the sockets of a connection and the limits of a topic hold.
constexpr int flood = 600;

TEST_F(WebSocketTopics, subscribers_get_each_message_in_order) {
  serve_subscribers({});
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket alice = co_await subscribe(client);
    WebSocket bob = co_await subscribe(client);
    EXPECT_EQ(topic_->size(), 2);
    EXPECT_TRUE(co_await alice.send_text("from Alice"));
    EXPECT_EQ(co_await next_of(bob), "from Alice");  // Alice does not get it.
    for (const std::string text : {"one", "two"})
      EXPECT_TRUE(topic_->try_publish(WebSocketMessage(text)));
    Buffer bytes;
    bytes.append(std::string(100'000, 'b'));
    EXPECT_TRUE(topic_->try_publish(WebSocketMessage(std::move(bytes))));
    for (WebSocket* const socket : {&alice, &bob}) {
      EXPECT_EQ(co_await next_of(*socket), "one");
      EXPECT_EQ(co_await next_of(*socket), "two");
      const Result<WebSocketMessage> message = co_await socket->receive();
      EXPECT_TRUE(message && !message->is_text && message->data.size() == 100'000);
    }
    EXPECT_TRUE(co_await alice.send_text("leave"));
    EXPECT_EQ(co_await next_of(alice), "left");
    EXPECT_TRUE(topic_->try_publish(WebSocketMessage("three")));
    EXPECT_EQ(co_await next_of(bob), "three");
    EXPECT_EQ(topic_->try_publish(WebSocketMessage("\xff")).error(),
              http::WebSocketError::invalid_utf8);
    EXPECT_TRUE(co_await bob.close());
    EXPECT_TRUE(co_await alice.close());
    EXPECT_EQ(topic_->size(), 0);
    EXPECT_EQ(topic_->backlog_bytes(), 0);
    const http::WebSocketTopicStats stats = topic_->stats();
    EXPECT_EQ(stats.published, 5);
    EXPECT_EQ(stats.sent, 8);
    EXPECT_EQ(stats.dropped + stats.closed + stats.delayed, 0);
  }());
}

TEST_F(WebSocketTopics, slow_subscribers_are_closed) {
  serve_subscribers(small_limits(WhenSubscriberSlow::close));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket slow = co_await subscribe(client);
    WebSocket fast = co_await subscribe(client);
    std::vector<int> numbers;
    Task<> receiving = receive_numbers(fast, numbers, flood - 1);
    co_await when_all(publish_numbers(flood), std::move(receiving));
    EXPECT_EQ(numbers.size(), flood);
    EXPECT_EQ(topic_->size(), 1);
    EXPECT_EQ(topic_->backlog_bytes(), 0);
    EXPECT_EQ(topic_->stats().closed, 1);
    std::vector<int> first;
    co_await receive_numbers(slow, first, flood - 1);
    EXPECT_FALSE(first.empty());
    EXPECT_LT(first.size(), flood);
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i], static_cast<int>(i));
    EXPECT_EQ(slow.close_code(), CloseCode::policy_violation);
    EXPECT_EQ(slow.close_reason(), "the peer reads too slowly");
  }());
}

TEST_F(WebSocketTopics, slow_subscribers_lose_the_oldest_messages) {
  lose_oldest_messages(flood, std::size_t{16} * 1024);
}

/// A short message is written without being queued; the socket accepts a part of the last one.
TEST_F(WebSocketTopics, slow_subscribers_get_whole_short_messages) {
  lose_oldest_messages(1500, 1000);
}

TEST_F(WebSocketTopics, slow_subscribers_delay_publishers) {
  serve_subscribers(small_limits(WhenSubscriberSlow::delay_publisher));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket slow = co_await subscribe(client);
    WebSocket fast = co_await subscribe(client);
    std::vector<int> slow_numbers;
    std::vector<int> fast_numbers;
    Task<> late = [](WebSocket& socket, std::vector<int>& numbers) -> Task<> {
      static_cast<void>(co_await sleep_for(10s));
      co_await receive_numbers(socket, numbers, flood - 1);
    }(slow, slow_numbers);
    Task<> receiving = receive_numbers(fast, fast_numbers, flood - 1);
    co_await when_all(publish_numbers(flood), std::move(receiving), std::move(late));
    EXPECT_EQ(slow_numbers.size(), flood);
    EXPECT_EQ(fast_numbers.size(), flood);
    const http::WebSocketTopicStats stats = topic_->stats();
    EXPECT_GT(stats.delayed, 0);
    EXPECT_EQ(stats.dropped + stats.closed, 0);
    EXPECT_EQ(stats.sent, 2 * flood);
  }());
}

TEST_F(WebSocketTopics, a_subscriber_that_delays_publishers_too_long_is_closed) {
  WebSocketTopicOptions options = small_limits(WhenSubscriberSlow::delay_publisher);
  options.delivery_timeout = 5s;
  serve_subscribers(options);
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket slow = co_await subscribe(client);
    co_await publish_numbers(flood);
    EXPECT_GT(topic_->stats().delayed, 0);
    EXPECT_EQ(topic_->stats().closed, 1);
    EXPECT_EQ(topic_->size(), 0);
    EXPECT_EQ(topic_->backlog_bytes(), 0);
  }());
}

TEST_F(WebSocketTopics, a_publisher_that_waits_can_be_cancelled) {
  serve_subscribers(small_limits(WhenSubscriberSlow::delay_publisher));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket slow = co_await subscribe(client);
    WebSocketMessage message;
    do {
      message = WebSocketMessage(std::string(16 * 1024, 'x'));
      static_cast<void>(co_await sleep_for(1ms));
    } while (topic_->try_publish(std::move(message)));
    const auto published = topic_->stats().published;
    const auto ended = co_await timeout(1s, topic_->publish(WebSocketMessage("late")));
    EXPECT_FALSE(ended);
    EXPECT_EQ(topic_->stats().published, published);
    std::optional<Result<>> waited;
    TaskScope tasks(loop_);
    tasks.spawn([&]() -> Task<> { waited = co_await topic_->publish(WebSocketMessage("never")); });
    static_cast<void>(co_await sleep_for(1ms));
    EXPECT_FALSE(waited);
    topic_.reset();
    co_await tasks.join();
    EXPECT_TRUE(waited && waited->error() == system_error(ECANCELED));
  }());
}

TEST_F(WebSocketTopics, messages_do_not_come_between_the_parts_of_another_one) {
  topic_.emplace(server_loop_);
  serve(http::serve_websocket([this](WebSocket& socket, http::Request&) -> Task<> {
    topic_->subscribe(socket);
    Result<> sent = co_await socket.send_part(Buffer("a"), false, true);
    EXPECT_TRUE(sent && topic_->try_publish(WebSocketMessage("published")));
    static_cast<void>(co_await sleep_for(1ms));
    EXPECT_GT(topic_->backlog_bytes(), 0);
    sent = co_await socket.send_part(Buffer("b"), true);
    EXPECT_TRUE(sent);
    EXPECT_EQ(topic_->backlog_bytes(), 0);
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_FALSE(message);
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    EXPECT_EQ(co_await next_of(socket), "ab");
    EXPECT_EQ(co_await next_of(socket), "published");
    EXPECT_TRUE(co_await socket.close());
  }());
}

TEST_F(WebSocketTopics, messages_are_compressed_once) {
  WebSocketTopicOptions options;
  options.compression.emplace();
  http::WebSocketOptions socket_options;
  socket_options.compression.emplace();
  topic_.emplace(server_loop_, options);
  const std::string text = "Hello, Hello, Hello " + std::string(2000, 'o');
  serve(http::serve_websocket(
      [&](WebSocket& socket, http::Request&) -> Task<> {
        topic_->subscribe(socket);
        // Between the messages of the connection's own compressor, which has a context.
        for (int i = 0; i < 5; ++i) {
          const Result<> sent = co_await socket.send_text("own " + text);
          EXPECT_TRUE(sent && topic_->try_publish(WebSocketMessage(text)));
          static_cast<void>(co_await sleep_for(10ms));
        }
        while (co_await socket.receive()) {
        }
      },
      socket_options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    http::WebSocketOptions narrow = socket_options;
    narrow.compression->peer_window_bits = 9;  // Too few for messages of the topic.
    for (const http::WebSocketOptions& chosen :
         {socket_options, http::WebSocketOptions(), narrow}) {
      WebSocket socket = co_await connect(client, chosen);
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(co_await next_of(socket), "own " + text);
        EXPECT_EQ(co_await next_of(socket), text);
      }
      EXPECT_TRUE(co_await socket.close());
    }
  }());
}

TEST_F(WebSocketTopics, topics_by_name_exist_while_they_have_subscribers) {
  http::WebSocketTopicsOptions options;
  options.topics_max = 3;
  options.subscriptions_max = 2;
  options.name_bytes_max = 5;
  std::vector<std::string> names;
  options.options_for = [&](std::string_view name) {
    names.emplace_back(name);
    return WebSocketTopicOptions();
  };
  http::WebSocketTopics topics(server_loop_, options);
  serve(http::serve_websocket([&](WebSocket& socket, http::Request&) -> Task<> {
    for (;;) {
      const Result<WebSocketMessage> message = co_await socket.receive();
      if (!message) co_return;
      const std::string text = message->to_string();
      if (text[0] == '-') {
        topics.unsubscribe(socket, text.substr(1));
      } else {
        const Result<> subscribed = topics.subscribe(socket, text);
        const std::string answer = subscribed ? "ok" : subscribed.error().message();
        EXPECT_TRUE(socket.try_send(WebSocketMessage(answer)));
      }
    }
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket alice = co_await connect(client);
    WebSocket bob = co_await connect(client);
    const auto ask = [](WebSocket& socket, std::string name) -> Task<std::string> {
      EXPECT_TRUE(co_await socket.send_text(name));
      co_return co_await next_of(socket);
    };
    EXPECT_EQ(co_await ask(alice, "a"), "ok");
    EXPECT_EQ(co_await ask(alice, "a"), "ok");
    EXPECT_EQ(co_await ask(alice, "ab"), "ok");
    EXPECT_EQ(co_await ask(alice, "c"), system_error(ENOBUFS).message());
    EXPECT_EQ(co_await ask(bob, "too long"), system_error(ENAMETOOLONG).message());
    EXPECT_EQ(co_await ask(bob, "b"), "ok");
    EXPECT_EQ(topics.size(), 3);
    EXPECT_EQ(co_await ask(bob, "c"), system_error(ENOBUFS).message());
    EXPECT_EQ(co_await ask(bob, "a"), "ok");
    EXPECT_EQ(topics.size("a"), 2);
    EXPECT_TRUE(topics.try_publish("a", WebSocketMessage("to a")));
    EXPECT_TRUE(topics.try_publish("unknown", WebSocketMessage("lost")));
    EXPECT_TRUE(co_await topics.publish("b", WebSocketMessage("to b")));
    EXPECT_EQ(co_await next_of(alice), "to a");
    EXPECT_EQ(co_await next_of(bob), "to a");
    EXPECT_EQ(co_await next_of(bob), "to b");
    EXPECT_TRUE(co_await bob.send_text("-b"));
    EXPECT_TRUE(co_await alice.close());
    while (topics.size() > 1) static_cast<void>(co_await sleep_for(1ms));
    EXPECT_EQ(topics.size("b"), 0);
    EXPECT_EQ(topics.stats().published, 2);
    EXPECT_EQ(topics.stats().sent, 3);
    EXPECT_TRUE(co_await bob.close());
    EXPECT_EQ(topics.size(), 0);
    EXPECT_EQ(names, (std::vector<std::string>{"a", "ab", "b"}));
  }());
}

TEST_F(WebSocketTopics, a_topic_that_is_destroyed_forgets_its_subscribers) {
  serve_subscribers({});
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await subscribe(client);
    EXPECT_TRUE(topic_->try_publish(WebSocketMessage("lost")));
    topic_.emplace(server_loop_);
    EXPECT_TRUE(co_await socket.send_text("leave"));  // Of the new topic: no effect.
    EXPECT_EQ(co_await next_of(socket), "left");
    EXPECT_TRUE(co_await socket.close());
  }());
}

TEST_F(WebSocketTopics, the_mistakes_abort_with_a_message) {
  serve_subscribers({});
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    EXPECT_DEATH(topic_->subscribe(socket), "with a WebSocket of a client");
    EXPECT_TRUE(co_await socket.close());
  }());
}

/// A publisher, and subscribers that read at random times and connect again, under random faults.
/// What a subscriber gets is in order, and without a gap if the topic drops nothing.
class RandomSubscribers {
 public:
  explicit RandomSubscribers(sim::Simulation& simulation)
      : simulation_(simulation),
        host_(simulation.add_host("server")),
        server_loop_(host_.loop_options()),
        client_loop_(simulation.add_host("client").loop_options()),
        topic_(server_loop_, options()),
        tasks_(client_loop_) {}

  void run() {
    const sockaddr_in address = host_.endpoint(80);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    http::WebSocketOptions sockets;
    if (simulation_.random(2) == 0) sockets.compression.emplace();
    auto server = http::Server::listen(server_loop_, at,
                                       http::serve_websocket(
                                           [this](WebSocket& socket, http::Request&) -> Task<> {
                                             topic_.subscribe(socket);
                                             for (;;) {
                                               const Result<WebSocketMessage> message =
                                                   co_await socket.receive();
                                               if (!message) co_return;
                                             }
                                           },
                                           sockets));
    if (!server) return;  // A fault.
    for (int i = 0; i < 4; ++i) tasks_.spawn(subscribe(at, sockets));
    tasks_.spawn(publish());
    simulation_.after(1h, [this] { simulation_.options() = sim::Options(); });
    if (simulation_.run(24h * 30) != sim::End::stopped)
      simulation_.fail("nothing happens any more");
    tasks_.request_stop();
    simulation_.run_for(24h);
    if (!tasks_.empty()) simulation_.fail("tasks are left");
    if (topic_.size() != 0) simulation_.fail("subscribers are left");
    if (topic_.backlog_bytes() != 0) simulation_.fail("messages are left");
  }

 private:
  WebSocketTopicOptions options() {
    WebSocketTopicOptions options;
    options.when_slow = static_cast<WhenSubscriberSlow>(simulation_.random(3));
    options.unsent_bytes_max = 1 + simulation_.random(4000);
    options.backlog_bytes_max = 1 + simulation_.random(20'000);
    if (simulation_.random(2) == 0) options.compression.emplace();
    is_lossy_ = options.when_slow == WhenSubscriberSlow::drop_oldest;
    return options;
  }
  Task<> publish() {
    for (int i = 1; i <= 200; ++i) {
      std::string text = std::to_string(i) + " ";
      text.resize(text.size() + simulation_.random(4000), 'x');
      const Result<> published = co_await topic_.publish(WebSocketMessage(text));
      if (!published && published.error() != system_error(EAGAIN))
        simulation_.fail("publish: " + published.error().message());
      if (!published) is_lossy_ = true;  // The loop was busy.
      if (simulation_.random(4) == 0)
        static_cast<void>(co_await sleep_for(Duration(simulation_.random(2'000'000'000))));
    }
    simulation_.stop();
  }
  Task<> subscribe(Endpoint at, http::WebSocketOptions sockets) {
    http::Client client(client_loop_);
    for (;;) {
      Result<WebSocket> opened =
          co_await http::connect_websocket(client, "ws://" + at.to_string() + "/", sockets);
      if (opened) co_await read(std::move(*opened));
      const Result<> slept = co_await sleep_for(1s);
      if (!slept) co_return;
    }
  }
  Task<> read(WebSocket socket) {
    int last = 0;
    for (;;) {
      const Result<WebSocketMessage> message = co_await socket.receive();
      if (!message) co_return;
      const int number = std::stoi(message->to_string());
      if (number <= last || (last > 0 && number != last + 1 && !is_lossy_))
        simulation_.fail(std::to_string(number) + " after " + std::to_string(last));
      last = number;
      if (simulation_.random(8) == 0) {
        const Result<> slept = co_await sleep_for(Duration(simulation_.random(60'000'000'000)));
        if (!slept) co_return;
      }
    }
  }

  sim::Simulation& simulation_;
  sim::Host& host_;
  bool is_lossy_ = false;
  EventLoop server_loop_;
  EventLoop client_loop_;
  WebSocketTopic topic_;
  TaskScope tasks_;
};

/// TAMBOUR_TEST_SEEDS sets the number of seeds.
TEST(SimulatedTopics, subscribers_get_messages_in_order_under_random_faults) {
  const char* const chosen = std::getenv("TAMBOUR_TEST_SEEDS");
  const std::uint64_t count = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 50;
  const auto failure = sim::simulate(
      {.first = 1, .count = count},
      [](sim::Simulation& simulation) {
        RandomSubscribers subscribers(simulation);
        subscribers.run();
      },
      [](std::uint64_t seed) {
        sim::Options options = sim::Options::rough(seed);
        options.no_descriptors = options.no_memory = 0;
        return options;
      });
  EXPECT_FALSE(failure) << failure->report();
}

}  // namespace
}  // namespace tambour::topics_test
