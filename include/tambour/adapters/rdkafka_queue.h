// The events of a queue of librdkafka on a loop, and what KafkaProducer and KafkaConsumer have in
// common.
#pragma once

#include <librdkafka/rdkafka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// The category of a rd_kafka_resp_err_t.
inline const std::error_category& kafka_category() noexcept {
  class Category final : public std::error_category {
    [[nodiscard]] const char* name() const noexcept override { return "kafka"; }
    [[nodiscard]] std::string message(int code) const override {
      return rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code));
    }
  };
  static const Category category;
  return category;
}
/// Converts a rd_kafka_resp_err_t to an Error: ECANCELED for messages that were purged.
inline Error kafka_error(rd_kafka_resp_err_t code) noexcept {
  if (code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
    return system_error(ECANCELED);
  return {static_cast<int>(code), kafka_category()};
}

/// An Error with the text of librdkafka.
struct KafkaFailure {
  Error error;
  std::string message;
};

/// Invokes a function when the queue may have events: threads of librdkafka write to an eventfd(2).
///
/// Ownership: owns the reference to the queue, not librdkafka's handle. Lifetime: may be destroyed
/// inside the function. Thread: the loop's. Loop: while started, it keeps the loop running.
class KafkaQueue {
 public:
  /// `queue` of rd_kafka_queue_get_main() and others. `on_events` polls the queue until it is empty
  /// or calls again().
  KafkaQueue(EventLoop& loop, rd_kafka_queue_t* queue, Callback<void()> on_events)
      : queue_(queue, &rd_kafka_queue_destroy),
        on_events_(std::move(on_events)),
        event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        watcher_(loop, event_.get(), Events::read, [this](Events) { handle(); }) {}
  KafkaQueue(const KafkaQueue&) = delete;
  KafkaQueue& operator=(const KafkaQueue&) = delete;
  ~KafkaQueue() { rd_kafka_queue_io_event_enable(get(), -1, nullptr, 0); }

  /// For functions of librdkafka.
  [[nodiscard]] rd_kafka_queue_t* get() const noexcept { return queue_.get(); }

  /// Fails with EMFILE or ENFILE, or as FdWatcher::start().
  [[nodiscard]] Result<> start() {
    if (!event_.is_open()) return std::unexpected(system_error(EMFILE));
    rd_kafka_queue_io_event_enable(get(), event_.get(), &one, sizeof one);
    again();  // Events that are in the queue already are not reported.
    return watcher_.start();
  }
  /// Invokes the function in the next iteration too.
  void again() noexcept { static_cast<void>(::write(event_.get(), &one, sizeof one)); }

 private:
  void handle() {
    // Before the queue is polled: librdkafka reports when it is not empty any more.
    std::uint64_t count = 0;
    static_cast<void>(::read(event_.get(), &count, sizeof count));
    on_events_();
  }

  static constexpr std::uint64_t one = 1;

  std::unique_ptr<rd_kafka_queue_t, decltype(&rd_kafka_queue_destroy)> queue_;
  Callback<void()> on_events_;
  UniqueFd event_;
  FdWatcher watcher_;
};

/// Owns a handle of librdkafka.
using KafkaHandle = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;
/// Creates a handle of librdkafka, and destroys `settings` if that fails.
inline Result<KafkaHandle, KafkaFailure> open_kafka(rd_kafka_type_t type,
                                                    rd_kafka_conf_t* settings) {
  std::string text(512, '\0');
  rd_kafka_t* const handle = rd_kafka_new(type, settings, text.data(), text.size());
  if (handle != nullptr) return KafkaHandle(handle, &rd_kafka_destroy);
  const Error error = kafka_error(rd_kafka_last_error());
  rd_kafka_conf_destroy(settings);
  return std::unexpected(KafkaFailure{error, text.c_str()});
}

}  // namespace tambour::adapters

#pragma GCC visibility pop
