// Output: writes of the queue and of files, which end if they make no progress.
#include "http/connection/output.h"

#include <cerrno>
#include <span>
#include <utility>

#include "io/transport.h"
#include "loop/core.h"
#include "net/outcome.h"
#include "net/stream_filter.h"

namespace tambour::http {

/// A write in progress. Its coroutine may be destroyed.
class Output::Writing {
 public:
  explicit Writing(Output& output) noexcept : output_(output) { output_.is_writing_ = true; }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() {
    // A part of a file that was not sent cannot be continued.
    if (output_.file_unsent_ != nullptr && *output_.file_unsent_ > 0)
      output_.fail(system_error(ECANCELED));
    output_.file_unsent_ = nullptr;
    output_.is_writing_ = false;
    output_.timer_.stop();
    output_.written_.set();
  }

 private:
  Output& output_;
};

Output::Output(Stream& stream, Duration timeout)
    : stream_(stream),
      timeout_(timeout),
      timer_(stream, [this] { return unsent(); }),
      written_(stream.loop()) {}

Task<Result<>> Output::flush() {
  while (is_writing_) {
    written_.reset();
    const Result<> waited = co_await written_.wait();
    if (!waited) co_return waited;
  }
  const Writing writing(*this);
  while (begin_writing()) end_writing(co_await stream_.write(sending_));
  if (error_) co_return std::unexpected(error_);
  co_return {};
}

bool Output::write_now() noexcept {
  if (is_writing_ || unsent() > 0) return false;
  if (queue_.empty() || error_) return true;
  // The queue would not show that a part of a TLS record is left.
  if (stream_.tls() != nullptr) return false;
  const Result<> written = stream_.try_write(queue_);
  if (written) return true;
  if (written.error() == system_error(EAGAIN)) return false;
  error_ = written.error();
  return true;
}

bool Output::write_now(std::string_view text) {
  if (error_) return true;
  std::int32_t written = -EBADF;
  if (stream_.is_open()) {
    const bool may_write = !detail::loop::core_of(stream_.loop()).io_budget_exhausted();
    written =
        may_write
            ? detail::net::StreamFilter::transport(stream_).write(std::as_bytes(std::span(text)))
            : -EAGAIN;
  }
  if (written == static_cast<std::int32_t>(text.size())) [[likely]]
    return true;
  return queue_rest(text, written);
}

/// `written`: the bytes that the kernel has accepted, or an error.
[[gnu::noinline]] bool Output::queue_rest(std::string_view text, std::int32_t written) {
  if (written < 0 && written != -EAGAIN) {
    error_ = detail::net::error_of(written);
    return true;
  }
  if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  queue_.append(text);
  return false;
}

bool Output::begin_writing() noexcept {
  // What a write that was destroyed has left cannot be continued: it may have sent a part.
  if (unsent() > 0) fail(system_error(ECANCELED));
  if (queue_.empty() || error_) return false;
  sending_ = std::move(queue_);
  timer_.start(timeout_, unsent());
  return true;
}

void Output::end_writing(const Result<>& written) noexcept {
  if (const Result<> finished = timer_.finish(written); !finished) error_ = finished.error();
}

/// Sends a head in one packet with the first bytes of a file.
void Output::write_before_file() noexcept {
  if (is_writing_ || unsent() > 0 || queue_.empty() || error_) return;
  const std::int32_t written =
      detail::net::StreamFilter::transport(stream_).write_before_more(queue_);
  if (written < 0 && written != -EAGAIN) error_ = system_error(-written);
}

Task<Result<>> Output::send_file(const File& file, std::uint64_t offset, std::uint64_t& size) {
  write_before_file();
  const Result<> flushed = co_await flush();  // Waits for the end of another write.
  if (!flushed) co_return flushed;
  const Writing writing(*this);
  file_unsent_ = &size;
  timer_.start(timeout_, unsent());
  const Result<> ended = co_await stream_.send_file(file, offset, size);
  const Result<> sent = timer_.finish(ended);
  file_unsent_ = nullptr;
  if (sent) co_return {};
  if (sent.error() != system_error(EOPNOTSUPP)) error_ = sent.error();
  co_return sent;
}

}  // namespace tambour::http
