// What happens to the exceptions of a server's handlers and callbacks, and what a server counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tambour/net/connection.h>
#include <tambour/net/endpoint.h>

#include "loop/core.h"

namespace tambour::detail::server {

/// Reports the exceptions of one server. Owned by everything that may report one, because on_error
/// may destroy the server. Thread: any, after set_endpoint().
class ErrorReporter {
 public:
  using OnError = std::function<void(std::exception_ptr)>;

  explicit ErrorReporter(OnError on_error) : on_error_(std::move(on_error)) {}

  /// Lines on standard error name the endpoint.
  void set_endpoint(const Endpoint& at) { endpoint_ = at; }

  /// Counts an exception that has ended a request or a connection, and passes it to on_error; if
  /// that is empty, writes a line to standard error. If on_error throws, run() of the loop throws
  /// that exception.
  void report(loop::Core& core, std::exception_ptr thrown) noexcept;
  /// Like report(), but throws what on_error throws.
  void report_or_throw(std::exception_ptr thrown);
  /// Passes the failure of a listener to on_error. If that is empty or throws, run() throws the
  /// exception: a server that has stopped accepting must not go on unnoticed.
  void report_listener(loop::Core& core, std::exception_ptr thrown) noexcept;

  /// The number of exceptions that were passed to report().
  [[nodiscard]] std::uint64_t count() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }
  void add_to_count() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  /// How often a listener of the server has paused.
  [[nodiscard]] std::uint64_t pauses() const noexcept {
    return pauses_.load(std::memory_order_relaxed);
  }
  void count_pause() noexcept { pauses_.fetch_add(1, std::memory_order_relaxed); }

 private:
  OnError on_error_;
  std::optional<Endpoint> endpoint_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> pauses_{0};
};

/// Returns the callbacks, with an on_exception that reports, or one of the program that is counted.
std::shared_ptr<const ConnectionCallbacks> share_callbacks(
    ConnectionCallbacks callbacks, const std::shared_ptr<ErrorReporter>& reporter);

}  // namespace tambour::detail::server
