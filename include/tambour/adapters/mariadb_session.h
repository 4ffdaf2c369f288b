// What MariadbConnection does with libmariadb and its socket.
#pragma once

#include <errmsg.h>
#include <mysql.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <utility>

#include <tambour/adapters/mariadb_result.h>
#include <tambour/adapters/socket_wait.h>
#include <tambour/base/result.h>
#include <tambour/loop/readiness.h>
#include <tambour/loop/timer.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// An operation consists of steps. libmariadb runs a step on a stack of its own, and suspends it:
/// this object and all that a step refers to must stay until the step ends.
class MariadbSession {
 public:
  enum class Step : std::uint8_t { none, connect, query, store, next };

  explicit MariadbSession(MariadbSettings all) : settings_(std::move(all)) {
    mysql_init(&mysql_);
    mysql_options(&mysql_, MYSQL_OPT_NONBLOCK, nullptr);
    if (settings_.configure) settings_.configure(&mysql_);
  }
  MariadbSession(const MariadbSession&) = delete;
  MariadbSession& operator=(const MariadbSession&) = delete;
  ~MariadbSession() {
    socket_.forget();
    // In the middle of an operation, mysql_close() could wait for the server.
    if (step_ != Step::none && fd() >= 0) ::shutdown(fd(), SHUT_RDWR);
    mysql_free_result(rows_);
    mysql_close(&mysql_);
  }

  [[nodiscard]] MYSQL* get() noexcept { return &mysql_; }
  [[nodiscard]] int fd() noexcept { return mysql_get_socket(&mysql_); }
  [[nodiscard]] bool is_usable() noexcept { return is_connected_ && fd() >= 0; }
  [[nodiscard]] WatchedSocket& socket() noexcept { return socket_; }
  /// none: the operation has ended.
  [[nodiscard]] Step step() const noexcept { return step_; }
  /// What the step waits for: MYSQL_WAIT_READ and others; 0: nothing.
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] Events interest() const noexcept {
    return ((status_ & MYSQL_WAIT_READ) != 0 ? Events::read : Events::none) |
           ((status_ & MYSQL_WAIT_WRITE) != 0 ? Events::write : Events::none);
  }

  void start_connecting() { start(Step::connect); }
  void start_query(std::string text) {
    text_ = std::move(text);
    start(Step::query);
  }
  /// Continues the step. `ready`: which of status() has happened.
  void resume(int ready) noexcept {
    if (step_ == Step::connect)
      status_ = mysql_real_connect_cont(&connected_, &mysql_, ready);
    else if (step_ == Step::query)
      status_ = mysql_real_query_cont(&failed_, &mysql_, ready);
    else if (step_ == Step::store)
      status_ = mysql_store_result_cont(&rows_, &mysql_, ready);
    else
      status_ = mysql_next_result_cont(&failed_, &mysql_, ready);
  }
  /// Ends a step that waits for nothing, and begins the next one, if there is one. `last` becomes
  /// its rows, if it has any. Returns false if the step, and so the operation, has failed.
  bool end_step(MariadbRows& last) noexcept {
    if (MYSQL_RES* const rows = std::exchange(rows_, nullptr)) last.reset(rows);
    const Step ended = std::exchange(step_, Step::none);
    const bool is_failed = ended == Step::connect ? connected_ == nullptr
                           : ended == Step::store ? mysql_errno(&mysql_) != 0
                                                  : failed_ != 0;
    if (is_failed) return false;
    if (ended == Step::connect) is_connected_ = true;
    if (ended == Step::query || ended == Step::next) start(Step::store);
    if (ended == Step::store && mysql_more_results(&mysql_) != 0) start(Step::next);
    return true;
  }

  [[nodiscard]] MariadbError error() {
    const unsigned code = mysql_errno(&mysql_);
    int number = EPROTO;
    if (code == CR_CONNECTION_ERROR || code == CR_CONN_HOST_ERROR) number = ECONNREFUSED;
    if (code == CR_SERVER_GONE_ERROR || code == CR_SERVER_LOST) number = ECONNRESET;
    if (code == CR_OUT_OF_MEMORY) number = ENOMEM;
    MariadbError failed(system_error(number), mysql_error(&mysql_));
    failed.code = code;
    failed.sqlstate = mysql_sqlstate(&mysql_);
    return failed;
  }

 private:
  void start(Step next_step) noexcept {
    step_ = next_step;
    const auto text_or_null = [](const std::string& part) {
      return part.empty() ? nullptr : part.c_str();
    };
    if (step_ == Step::connect) {
      status_ = mysql_real_connect_start(
          &connected_, &mysql_, text_or_null(settings_.host), text_or_null(settings_.user),
          text_or_null(settings_.password), text_or_null(settings_.database), settings_.port,
          text_or_null(settings_.unix_path), settings_.flags);
    } else if (step_ == Step::query) {
      status_ = mysql_real_query_start(&failed_, &mysql_, text_.data(),
                                       static_cast<unsigned long>(text_.size()));
    } else if (step_ == Step::store) {
      status_ = mysql_store_result_start(&rows_, &mysql_);
    } else {
      status_ = mysql_next_result_start(&failed_, &mysql_);
    }
  }

  MariadbSettings settings_;
  MYSQL mysql_{};
  WatchedSocket socket_;
  bool is_connected_ = false;
  Step step_ = Step::none;
  int status_ = 0;
  std::string text_;
  MYSQL* connected_ = nullptr;
  MYSQL_RES* rows_ = nullptr;
  int failed_ = 0;
};

/// Waits for the end of the operation of a session, and then, with a text, for that of a query,
/// whatever the former one has returned. An awaitable without a coroutine of its own; may be moved
/// until it is awaited.
class [[nodiscard("a query is sent when it is awaited")]] MariadbOperation final
    : public WatchedSocket::Waiter {
 public:
  explicit MariadbOperation(MariadbSession& session, std::optional<std::string> text = {}) noexcept
      : session_(session), text_(std::move(text)) {}
  MariadbOperation(MariadbOperation&& other) noexcept
      : MariadbOperation(other.session_, std::exchange(other.text_, std::nullopt)) {}
  MariadbOperation& operator=(MariadbOperation&&) = delete;
  ~MariadbOperation() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    if (advance()) return false;
    const auto begun = begin(session_.socket(), session_.fd(), session_.interest(), awaiting, at);
    if (!begun) error_ = begun.error();
    if (begun && !error_) start_limit();  // A task that was asked to stop is resumed already.
    return begun.has_value();
  }
  [[nodiscard]] MariadbResult<MariadbRows> await_resume() {
    if (error_) return std::unexpected(MariadbError(error_));
    if (!has_failed_) return std::move(last_);
    return std::unexpected(session_.error());
  }

 private:
  bool accept(const Result<Events>& outcome) noexcept override {
    if (limit_) limit_->stop();
    if (!outcome) {
      error_ = outcome.error();
      return true;
    }
    return resume((has(*outcome, Events::read) ? MYSQL_WAIT_READ : 0) |
                  (has(*outcome, Events::write) ? MYSQL_WAIT_WRITE : 0));
  }
  /// Returns whether the wait has ended.
  bool resume(int ready) noexcept {
    // While it connects, the socket may become another one with the same number.
    if (session_.step() == MariadbSession::Step::connect) session_.socket().forget();
    session_.resume(ready);
    if (advance()) return true;
    const auto changed = change(session_.fd(), session_.interest());
    if (!changed) error_ = changed.error();
    if (changed) start_limit();
    return !changed;
  }
  /// Performs steps. Returns false while one of them waits.
  bool advance() noexcept {
    for (;;) {
      while (session_.step() != MariadbSession::Step::none) {
        if (session_.status() != 0) return false;
        has_failed_ = !session_.end_step(last_);
      }
      if (session_.fd() < 0) session_.socket().forget();  // libmariadb has closed it.
      if (!text_) return true;
      // The results and errors of the former operation are not those of this one.
      last_.reset();
      has_failed_ = false;
      if (!session_.is_usable()) {
        error_ = system_error(ENOTCONN);
        return true;
      }
      session_.start_query(std::move(*text_));
      text_.reset();
    }
  }
  /// Of the options MYSQL_OPT_READ_TIMEOUT and others.
  void start_limit() noexcept {
    if ((session_.status() & MYSQL_WAIT_TIMEOUT) == 0) return;
    if (!limit_) {
      limit_.emplace(loop(), [this] {
        if (resume(MYSQL_WAIT_TIMEOUT)) resume_task();
      });
    }
    limit_->start(std::chrono::milliseconds(mysql_get_timeout_value_ms(session_.get())));
  }

  MariadbSession& session_;
  std::optional<std::string> text_;  ///< Of a query that is not sent yet.
  MariadbRows last_{nullptr, &mysql_free_result};
  Error error_;  ///< Of the wait.
  bool has_failed_ = false;
  std::optional<Timer> limit_;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
