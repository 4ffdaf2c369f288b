// KafkaProducer and KafkaConsumer with the brokers that librdkafka simulates: Debian has no Kafka.
#include <librdkafka/rdkafka.h>

#include <librdkafka/rdkafka_mock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/adapters/rdkafka_consumer.h>
#include <tambour/adapters/rdkafka_producer.h>
#include <tambour/tambour.h>

#include "adapters/adapter_test.h"

namespace tambour::rdkafka_test {
namespace {

using namespace std::chrono_literals;
using adapters::KafkaConsumer;
using adapters::KafkaProducer;

using Settings = std::vector<std::pair<const char*, std::string>>;

class Kafka : public test::AdapterTest {
 protected:
  Kafka()
      : owner(rd_kafka_new(RD_KAFKA_PRODUCER, quiet(), nullptr, 0), &rd_kafka_destroy),
        cluster(rd_kafka_mock_cluster_new(owner.get(), 1), &rd_kafka_mock_cluster_destroy) {
    rd_kafka_mock_topic_create(cluster.get(), "events", partitions, 1);
  }

  static rd_kafka_conf_t* quiet() {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "0", nullptr, 0);
    return conf;
  }
  [[nodiscard]] rd_kafka_conf_t* settings(const Settings& changes = {}) const {
    rd_kafka_conf_t* const conf = quiet();
    Settings all{{"bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster.get())},
                 {"reconnect.backoff.ms", "10"},
                 {"reconnect.backoff.max.ms", "50"}};
    all.insert(all.end(), changes.begin(), changes.end());
    for (const auto& [name, value] : all)
      EXPECT_EQ(rd_kafka_conf_set(conf, name, value.c_str(), nullptr, 0), RD_KAFKA_CONF_OK);
    return conf;
  }
  [[nodiscard]] std::unique_ptr<KafkaProducer> open_producer(const Settings& changes = {}) {
    auto producer = KafkaProducer::open(loop, settings(changes));
    EXPECT_TRUE(producer);
    return std::move(*producer);
  }
  [[nodiscard]] std::unique_ptr<KafkaConsumer> open_consumer() {
    auto consumer = KafkaConsumer::open(loop, settings({{"group.id", "readers"},
                                                        {"auto.offset.reset", "earliest"},
                                                        {"enable.auto.commit", "false"}}));
    EXPECT_TRUE(consumer);
    return std::move(*consumer);
  }

  /// Without the group, which takes three seconds to assign partitions.
  static void assign(const KafkaConsumer& consumer, std::int64_t offset) {
    auto* const list = rd_kafka_topic_partition_list_new(partitions);
    for (int partition = 0; partition < partitions; ++partition)
      rd_kafka_topic_partition_list_add(list, "events", partition)->offset = offset;
    EXPECT_EQ(rd_kafka_assign(consumer.get(), list), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
  }

  static constexpr int partitions = 4;

  std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> owner;
  std::unique_ptr<rd_kafka_mock_cluster_t, decltype(&rd_kafka_mock_cluster_destroy)> cluster;
};

TEST_F(Kafka, messages_are_delivered_consumed_and_committed) {
  run([this]() -> Task<> {
    const auto producer = open_producer();
    for (int i = 0; i < 10; ++i) {
      const std::string text = std::to_string(i);
      const auto delivered = co_await producer->produce("events", text, "key");
      if (!delivered) co_return ADD_FAILURE() << delivered.error().message(), void();
      EXPECT_EQ(delivered->offset, i);
    }
    const auto unknown = co_await producer->produce("events", "x", {}, 77);
    EXPECT_EQ(unknown.error().category(), adapters::kafka_category());
    auto consumer = open_consumer();
    EXPECT_TRUE(consumer->subscribe({"events"}));
    for (int i = 0; i < 10; ++i) {
      const auto message = co_await timeout(30s, consumer->next());
      if (!message) co_return ADD_FAILURE() << message.error().message(), void();
      const std::string text(static_cast<const char*>((*message)->payload), (*message)->len);
      EXPECT_EQ(text, std::to_string(i));
      if (i != 6) continue;
      const auto committed = co_await consumer->commit(message->get());
      EXPECT_TRUE(committed);
    }
    const auto early = co_await timeout(5ms, consumer->next());
    EXPECT_EQ(early.error(), system_error(ETIMEDOUT));
    EXPECT_TRUE(co_await timeout(30s, consumer->close()));
    // Another consumer of the group continues after the commit. It does not join the group: the
    // simulated broker does not answer that after all members have left.
    consumer = open_consumer();
    assign(*consumer, RD_KAFKA_OFFSET_STORED);
    const auto next = co_await timeout(30s, consumer->next());
    EXPECT_EQ((*next)->offset, 7);
  }());
}

TEST_F(Kafka, a_hundred_messages_in_flight_and_half_of_the_waits_are_stopped) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    const auto producer = open_producer();
    const auto operate = [&] { return producer->produce("events", "hello"); };
    const std::size_t count = test::scaled(100);
    const auto all = co_await test::run_in_flight(loop, operate, count);
    EXPECT_EQ(all.done, 100 * count);
    test::Random random;
    const auto half = co_await test::run_in_flight(loop, operate, count, &random);
    EXPECT_EQ(half.done + half.stopped, 100 * count);
    EXPECT_GT(half.stopped, 0U);
    // Messages whose wait was stopped are delivered too.
    while (producer->in_flight() > 0) static_cast<void>(co_await sleep_for(1ms));
    const auto consumer = open_consumer();
    assign(*consumer, RD_KAFKA_OFFSET_BEGINNING);
    for (std::size_t i = 0; i < 200 * count; ++i) {
      const auto message = co_await timeout(30s, consumer->next());
      if (!message) co_return ADD_FAILURE() << i << message.error().message(), void();
    }
  }());
}

TEST_F(Kafka, messages_are_sent_again_after_a_restart_of_the_broker) {
  run([this]() -> Task<> {
    const auto producer = open_producer({{"linger.ms", "0"}});
    const auto first = co_await producer->produce("events", "x");
    EXPECT_TRUE(first);
    rd_kafka_mock_broker_set_down(cluster.get(), 1);
    std::vector<KafkaProducer::Delivery> deliveries;
    for (int i = 0; i < 100; ++i) deliveries.push_back(producer->produce("events", "y"));
    const auto early = co_await timeout(20ms, std::move(deliveries.back()));
    EXPECT_EQ(early.error(), system_error(ETIMEDOUT));
    deliveries.pop_back();
    rd_kafka_mock_broker_set_up(cluster.get(), 1);
    for (KafkaProducer::Delivery& delivery : deliveries) {
      const auto delivered = co_await std::move(delivery);
      EXPECT_TRUE(delivered);
    }
  }());
}

TEST_F(Kafka, a_restart_in_the_middle_of_a_hundred_messages_in_flight_loses_none) {
  run([this]() -> Task<> {
    const auto producer = open_producer({{"linger.ms", "0"}});
    const std::size_t count = test::scaled(100);
    test::Outcomes outcomes;
    const auto operate = [&] { return producer->produce("events", "hello"); };
    auto restart = [&]() -> Task<> {
      while (outcomes.done < 20 * count) static_cast<void>(co_await sleep_for(1ms));
      rd_kafka_mock_broker_set_down(cluster.get(), 1);
      // All tasks wait for the broker.
      while (producer->in_flight() < 100) static_cast<void>(co_await sleep_for(1ms));
      rd_kafka_mock_broker_set_up(cluster.get(), 1);
    };
    co_await when_all(test::run_until_done(loop, operate, count, outcomes), restart());
    EXPECT_EQ(outcomes.done, 100 * count);
    EXPECT_EQ(outcomes.failed, 0U);
    EXPECT_EQ(producer->in_flight(), 0U);
  }());
}

TEST_F(Kafka, destroying_the_producer_cancels_what_is_in_flight) {
  run([this]() -> Task<> {
    auto producer = open_producer({{"linger.ms", "10000"}});
    auto waiting = producer->produce("events", "x");
    producer.reset();
    const auto cancelled = co_await std::move(waiting);
    EXPECT_EQ(cancelled.error(), system_error(ECANCELED));
    auto consumer = open_consumer();
    auto commit = consumer->commit();
    consumer.reset();
    const auto ended = co_await std::move(commit);
    EXPECT_FALSE(ended);
  }());
}

TEST_F(Kafka, wrong_settings_are_errors_and_the_queue_of_messages_has_a_limit) {
  run([this]() -> Task<> {
    const Settings wrong{{"ssl.ca.location", "/nonexistent"}, {"security.protocol", "ssl"}};
    const auto failed = KafkaProducer::open(loop, settings(wrong));
    EXPECT_FALSE(failed.error().message.empty());
    const auto producer =
        open_producer({{"queue.buffering.max.messages", "2"}, {"linger.ms", "50"}});
    auto first = producer->produce("events", "x");
    auto second = producer->produce("events", "x");
    const auto full = co_await producer->produce("events", "x");
    EXPECT_EQ(full.error(), adapters::kafka_error(RD_KAFKA_RESP_ERR__QUEUE_FULL));
    const auto delivered = co_await std::move(first);
    EXPECT_TRUE(delivered);
  }());
}

}  // namespace
}  // namespace tambour::rdkafka_test
