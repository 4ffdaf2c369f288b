// librdkafka's consumer of Kafka on a loop: messages as awaitables.
//
//   auto consumer = KafkaConsumer::open(loop, settings);  // With "group.id" and others.
//   if (!consumer) ...
//   const auto subscribed = (*consumer)->subscribe({"events"});
//   const auto message = co_await (*consumer)->next();
//
// Link with -lrdkafka. Requires librdkafka 1.9 or later.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cerrno>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tambour/adapters/call.h>
#include <tambour/adapters/rdkafka_queue.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A message with its topic, partition and offset; see rd_kafka_message_t.
using KafkaMessage = std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)>;

/// A consumer of a consumer group.
///
/// librdkafka fetches messages in advance, up to "queued.max.messages.kbytes" for each partition.
/// It assigns partitions inside next(): call it more often than "max.poll.interval.ms".
///
/// Ownership: owns the handle of librdkafka; destroy messages before it. Lifetime: must not be
/// destroyed while a task waits in next() or close(); without close(), the group learns of the end
/// by its session timeout. Thread: the loop's.
/// Reconnection: by librdkafka. Cancellation: a wait that is stopped or has timed out fails at
/// once, and no message is lost.
class KafkaConsumer {
 public:
  /// `settings` of rd_kafka_conf_new(), which it takes over in any case.
  static Result<std::unique_ptr<KafkaConsumer>, KafkaFailure> open(EventLoop& loop,
                                                                   rd_kafka_conf_t* settings) {
    auto handle = open_kafka(RD_KAFKA_CONSUMER, settings);
    if (!handle) return std::unexpected(std::move(handle.error()));
    rd_kafka_poll_set_consumer(handle->get());
    std::unique_ptr<KafkaConsumer> consumer(new KafkaConsumer(loop, handle->release()));
    auto started = consumer->messages_.start();
    if (started) started = consumer->commits_.start();
    if (!started) return std::unexpected(KafkaFailure{started.error(), {}});
    return consumer;
  }
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;
  ~KafkaConsumer() {
    for (Commit& commit : in_flight_)
      commit.call->finish_later(std::unexpected(system_error(ECANCELED)));
  }

  /// For functions of librdkafka.
  [[nodiscard]] rd_kafka_t* get() const noexcept { return handle_.get(); }

  /// Replaces the subscription; names that begin with "^" are regular expressions. Fails with
  /// errors of kafka_category().
  Result<> subscribe(const std::vector<std::string>& topics) {
    const std::unique_ptr<rd_kafka_topic_partition_list_t,
                          decltype(&rd_kafka_topic_partition_list_destroy)>
        list(rd_kafka_topic_partition_list_new(static_cast<int>(topics.size())),
             &rd_kafka_topic_partition_list_destroy);
    for (const std::string& topic : topics)
      rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
    const rd_kafka_resp_err_t code = rd_kafka_subscribe(get(), list.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return std::unexpected(kafka_error(code));
    return {};
  }

  /// The next message. Errors of librdkafka, such as an unknown topic, are errors too; most are
  /// temporary, and next() may be called again. One task at a time may wait.
  Task<Result<KafkaMessage>> next() {
    for (;;) {
      arrived_.reset();
      KafkaMessage message(rd_kafka_consumer_poll(get(), 0), &rd_kafka_message_destroy);
      if (message != nullptr && message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        co_return std::unexpected(kafka_error(message->err));
      if (message != nullptr) co_return std::move(message);
      const auto arrived = co_await arrived_.wait();
      if (!arrived) co_return std::unexpected(arrived.error());
    }
  }

  /// Commits the offset after `message`, or without a message those of all that next() has
  /// returned. If the wait is stopped, the commit goes on. Destroying the consumer ends it.
  Call<void>::Wait commit(const rd_kafka_message_t* message = nullptr) {
    rd_kafka_topic_partition_list_t* offsets = nullptr;
    if (message != nullptr) {
      offsets = rd_kafka_topic_partition_list_new(1);
      rd_kafka_topic_partition_list_add(offsets, rd_kafka_topic_name(message->rkt),
                                        message->partition)
          ->offset = message->offset + 1;
    }
    const auto commit = in_flight_.emplace(in_flight_.end());
    auto [call, wait] = Call<void>::begin();
    *commit = {this, call, commit};
    const rd_kafka_resp_err_t code =
        rd_kafka_commit_queue(get(), offsets, commits_.get(), &committed, &*commit);
    if (offsets != nullptr) rd_kafka_topic_partition_list_destroy(offsets);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) commit->finish(code);
    return std::move(wait);
  }

  /// Leaves the group, after committing what "enable.auto.commit" demands. May wait for the broker.
  Task<Result<>> close() {
    rd_kafka_error_t* const failed = rd_kafka_consumer_close_queue(get(), messages_.get());
    if (failed != nullptr) {
      const Error error = kafka_error(rd_kafka_error_code(failed));
      rd_kafka_error_destroy(failed);
      co_return std::unexpected(error);
    }
    while (rd_kafka_consumer_closed(get()) == 0) {
      arrived_.reset();
      if (rd_kafka_event_t* const event = rd_kafka_queue_poll(messages_.get(), 0)) {
        rd_kafka_event_destroy(event);
        continue;
      }
      if (rd_kafka_consumer_closed(get()) != 0) break;
      const auto arrived = co_await arrived_.wait();
      if (!arrived) co_return arrived;
    }
    co_return {};
  }

 private:
  struct Commit {
    KafkaConsumer* consumer = nullptr;
    Call<void>* call = nullptr;
    std::list<Commit>::iterator position;

    void finish(rd_kafka_resp_err_t code) {
      Call<void>* const finished = call;
      consumer->in_flight_.erase(position);
      if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return finished->finish_later({});
      finished->finish_later(std::unexpected(kafka_error(code)));
    }
  };
  static void destroy(rd_kafka_t* handle) {
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }

  KafkaConsumer(EventLoop& loop, rd_kafka_t* handle)
      : handle_(handle, &destroy),
        arrived_(loop),
        messages_(loop, rd_kafka_queue_get_consumer(handle), [this] { arrived_.set(); }),
        commits_(loop, rd_kafka_queue_new(handle), [this] { take_commits(); }) {}

  static void committed(rd_kafka_t* /*handle*/, rd_kafka_resp_err_t code,
                        rd_kafka_topic_partition_list_t* /*offsets*/, void* commit) {
    static_cast<Commit*>(commit)->finish(code);
  }
  void take_commits() {
    while (rd_kafka_event_t* const event = rd_kafka_queue_poll(commits_.get(), 0)) {
      // librdkafka may instead have called committed().
      if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT)
        static_cast<Commit*>(rd_kafka_event_opaque(event))->finish(rd_kafka_event_error(event));
      rd_kafka_event_destroy(event);
    }
  }

  std::unique_ptr<rd_kafka_t, decltype(&destroy)> handle_;
  TaskEvent arrived_;
  std::list<Commit> in_flight_;
  KafkaQueue messages_;
  KafkaQueue commits_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
