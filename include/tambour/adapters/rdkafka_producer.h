// librdkafka's producer of Kafka on a loop: messages whose delivery tasks await.
//
//   auto producer = KafkaProducer::open(loop, settings);  // A rd_kafka_conf_t.
//   if (!producer) ...
//   const auto delivered = co_await (*producer)->produce("events", "a message");
//
// Link with -lrdkafka. Requires librdkafka 1.9 or later, which connects, sends and repeats on
// threads of its own.
#pragma once

#include <librdkafka/rdkafka.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/adapters/call.h>
#include <tambour/adapters/rdkafka_queue.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Where a message was stored.
struct KafkaDelivery {
  std::int32_t partition;
  std::int64_t offset;  ///< RD_KAFKA_OFFSET_INVALID if the setting "acks" is 0.
};

/// A producer, and its messages in flight.
///
/// Ownership: owns the handle of librdkafka. Lifetime: may be destroyed at any time, which takes
/// some milliseconds, because threads end; messages in flight then fail with ECANCELED. Thread: the
/// loop's.
/// Reconnection: by librdkafka, which sends messages again until "message.timeout.ms" has passed.
/// Cancellation: a wait that is stopped or has timed out fails at once, and the message is
/// delivered nevertheless, unless rd_kafka_purge() withdraws it.
class KafkaProducer {
 public:
  /// What produce() returns: a `Result<KafkaDelivery>` when it is awaited.
  using Delivery = Call<KafkaDelivery>::Wait;

  /// `settings` of rd_kafka_conf_new(), which it takes over in any case.
  static Result<std::unique_ptr<KafkaProducer>, KafkaFailure> open(EventLoop& loop,
                                                                   rd_kafka_conf_t* settings) {
    rd_kafka_conf_set_events(settings, RD_KAFKA_EVENT_DR);
    auto handle = open_kafka(RD_KAFKA_PRODUCER, settings);
    if (!handle) return std::unexpected(std::move(handle.error()));
    std::unique_ptr<KafkaProducer> producer(new KafkaProducer(loop, std::move(*handle)));
    const auto started = producer->queue_.start();
    if (!started) return std::unexpected(KafkaFailure{started.error(), {}});
    return producer;
  }
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;
  ~KafkaProducer() {
    rd_kafka_purge(get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    constexpr int wait_ms = 10;
    while (in_flight_ > 0) take_events(wait_ms);
  }

  /// For functions of librdkafka.
  [[nodiscard]] rd_kafka_t* get() const noexcept { return handle_.get(); }
  /// The number of messages whose delivery has not been reported.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }

  /// Queues a copy of the message, and waits until it is delivered. The partition follows from the
  /// key, if it has data. Fails with the error of the delivery report, or at once, with
  /// RD_KAFKA_RESP_ERR__QUEUE_FULL of kafka_category() beyond "queue.buffering.max.messages".
  Delivery produce(const std::string& topic, std::string_view payload, std::string_view key = {},
                   std::int32_t partition = RD_KAFKA_PARTITION_UA) {
    auto [call, delivery] = Call<KafkaDelivery>::begin();
    std::array<rd_kafka_vu_t, 6> parts{};
    parts[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    parts[0].u.cstr = topic.c_str();
    parts[1] = bytes(RD_KAFKA_VTYPE_VALUE, payload);
    parts[2] = bytes(RD_KAFKA_VTYPE_KEY, key);
    parts[3].vtype = RD_KAFKA_VTYPE_PARTITION;
    parts[3].u.i32 = partition;
    parts[4].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    parts[4].u.i = RD_KAFKA_MSG_F_COPY;
    parts[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
    parts[5].u.ptr = call;
    rd_kafka_error_t* const failed = rd_kafka_produceva(get(), parts.data(), parts.size());
    if (failed != nullptr) {
      const Error error = kafka_error(rd_kafka_error_code(failed));
      rd_kafka_error_destroy(failed);
      call->finish(std::unexpected(error));
    } else {
      ++in_flight_;
    }
    return std::move(delivery);
  }

 private:
  KafkaProducer(EventLoop& loop, KafkaHandle handle)
      : handle_(std::move(handle)),
        queue_(loop, rd_kafka_queue_get_main(handle_.get()), [this] { take_events(0); }) {}

  static rd_kafka_vu_t bytes(rd_kafka_vtype_t type, std::string_view data) noexcept {
    rd_kafka_vu_t part{};
    part.vtype = type;
    // librdkafka copies the data.
    part.u.mem.ptr = const_cast<char*>(data.empty() ? nullptr : data.data());
    part.u.mem.size = data.size();
    return part;
  }

  /// Takes the delivery reports. A report is not given to its task here: librdkafka must not be
  /// destroyed before its event.
  void take_events(int wait_ms) {
    constexpr int events_max = 100;
    for (int i = 0; i < events_max; ++i) {
      rd_kafka_event_t* const event = rd_kafka_queue_poll(queue_.get(), wait_ms);
      if (event == nullptr) return;
      if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
        while (const rd_kafka_message_t* const message = rd_kafka_event_message_next(event))
          finish(*message);
      }
      rd_kafka_event_destroy(event);
      if (wait_ms > 0) return;
    }
    queue_.again();
  }
  void finish(const rd_kafka_message_t& message) {
    // Messages that functions of librdkafka have produced have none.
    if (message._private == nullptr) return;
    --in_flight_;
    auto* const call = static_cast<Call<KafkaDelivery>*>(message._private);
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR)
      call->finish_later(KafkaDelivery{message.partition, message.offset});
    else
      call->finish_later(std::unexpected(kafka_error(message.err)));
  }

  KafkaHandle handle_;
  std::size_t in_flight_ = 0;
  KafkaQueue queue_;  ///< Destroyed before the handle.
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
