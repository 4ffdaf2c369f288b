// The output of a connection: a queue of bytes, and a timer that ends writes without progress.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/file/file.h>
#include <tambour/net/stream.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>

#include "net/pace/stream_timers.h"

namespace tambour::http {

/// After an error nothing more is sent: what was sent before cannot be known.
///
/// Thread: that of the loop. Several tasks may call flush().
class Output {
 public:
  /// `timeout`: the longest time in which the kernel accepts no byte; zero: no limit.
  Output(Stream& stream, Duration timeout);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() = default;

  [[nodiscard]] Buffer& queue() noexcept { return queue_; }
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  void fail(const Error& error) noexcept {
    if (!error_) error_ = error;
  }

  /// Sends what the kernel accepts at once. Returns true if flush() has nothing to wait for: the
  /// queue is empty, or the output has failed. Costs neither a coroutine frame nor a timer.
  [[nodiscard]] bool write_now() noexcept;

  /// The same for a text that is in no queue, and of which what is left is queued. is_idle() must
  /// be true, and the stream must not use TLS. Throws std::bad_alloc.
  [[nodiscard]] bool write_now(std::string_view text);
  /// True if nothing is queued or being written.
  [[nodiscard]] bool is_idle() const noexcept {
    return queue_.empty() && !is_writing_ && unsent() == 0;
  }

  /// Waits until the kernel has accepted the queue. Fails with the errors of writing to a stream,
  /// and with ETIMEDOUT. A write that was destroyed fails all that follow with ECANCELED.
  [[nodiscard]] Task<Result<>> flush();

  /// Sends the queue and a part of a file by sendfile(2), and reduces `size` by what was sent of
  /// the file. The stream must be open, and not use TLS. Fails with EOPNOTSUPP if the file does not
  /// support it.
  [[nodiscard]] Task<Result<>> send_file(const File& file, std::uint64_t offset,
                                         std::uint64_t& size);

  // The same as flush(), for a task that alone uses the output: without a frame of its own. A write
  // of sending() is between begin_writing(), which returns false if there is none to make, and
  // end_writing().
  [[nodiscard]] bool begin_writing() noexcept;
  [[nodiscard]] Buffer& sending() noexcept { return sending_; }
  void end_writing(const Result<>& written) noexcept;

 private:
  class Writing;

  [[nodiscard]] bool queue_rest(std::string_view text, std::int32_t written);
  void write_before_file() noexcept;
  [[nodiscard]] std::uint64_t unsent() const noexcept {
    return sending_.size() + (file_unsent_ != nullptr ? *file_unsent_ : 0);
  }

  Stream& stream_;
  Duration timeout_;
  Buffer queue_;
  Buffer sending_;                              ///< Being written.
  const std::uint64_t* file_unsent_ = nullptr;  ///< Of a part of a file that is being sent.
  detail::net::WriteTimer timer_;
  TaskEvent written_;
  Error error_{};
  bool is_writing_ = false;
};

}  // namespace tambour::http
