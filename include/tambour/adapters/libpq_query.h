// A query of PgConnection: an awaitable without a coroutine of its own.
#pragma once

#include <libpq-fe.h>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <source_location>
#include <string>
#include <utility>

#include <tambour/adapters/libpq_result.h>
#include <tambour/adapters/libpq_session.h>
#include <tambour/adapters/socket_wait.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Waits for the results of a query that was sent: the last one, or the first error.
class PgResults final : public WatchedSocket::Waiter {
 public:
  /// `may_have_input`: libpq has read since the query was sent, possibly all of the results.
  explicit PgResults(PgSession& session, bool may_have_input = false) noexcept
      : session_(session), may_have_input_(may_have_input) {}
  PgResults(PgResults&& other) noexcept : PgResults(other.session_, other.may_have_input_) {}
  PgResults& operator=(PgResults&&) = delete;
  ~PgResults() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  /// Otherwise nothing is read before the first event: the server ends its results when it has the
  /// whole query.
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    if (may_have_input_ && read_results()) return false;
    const auto begun =
        begin(session_.socket(), PQsocket(session_.get()), Events::read, awaiting, at);
    if (!begun) error_ = begun.error();
    return begun.has_value();
  }
  [[nodiscard]] PgResult<PgRows> await_resume() {
    if (error_ || is_connection_lost_ || has_failed_) [[unlikely]]
      return failure();
    return std::move(last_);
  }

 private:
  bool accept(const Result<Events>& outcome) noexcept override {
    if (!outcome) [[unlikely]] {
      error_ = outcome.error();
      return true;
    }
    is_connection_lost_ = PQconsumeInput(session_.get()) == 0;
    // If the server has ended the connection, its reason is among the results.
    return read_results() || is_connection_lost_;
  }
  /// Returns false while libpq waits for the server. Results after an error are read too.
  bool read_results() noexcept {
    while (PQisBusy(session_.get()) == 0) {
      PgRows rows(PQgetResult(session_.get()), &PQclear);
      if (rows == nullptr) return true;
      if (has_failed_) continue;
      last_ = std::move(rows);
      const ExecStatusType status = PQresultStatus(last_.get());
      has_failed_ = status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
      // COPY has no further result before its data.
      if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
        return true;
    }
    return false;
  }
  [[gnu::cold]] PgResult<PgRows> failure() {
    if (PQsocket(session_.get()) < 0) session_.forget_socket();  // libpq has closed it.
    if (error_) return std::unexpected(PgError(*error_));
    if (!has_failed_) return std::unexpected(session_.error());
    return PgSession::checked_rows(std::move(last_));
  }

  PgSession& session_;
  bool may_have_input_;
  PgRows last_{nullptr, &PQclear};
  std::optional<Error> error_;  ///< Of the wait.
  bool has_failed_ = false;     ///< The last result is an error.
  bool is_connection_lost_ = false;
};

}  // namespace tambour::adapters::detail

namespace tambour::adapters {

/// The text of a query. An array of const characters, such as a literal, is not copied: it must
/// exist until the query is awaited.
class PgText {
 public:
  /// Refers to the array, which ends with a null character.
  template <std::size_t size>
  PgText(const char (&array)[size]) noexcept  // NOLINT(google-explicit-constructor)
      : array_(array) {}
  /// Copies the text. Throws std::bad_alloc.
  template <std::convertible_to<std::string> Text>
  PgText(Text&& text)  // NOLINT(google-explicit-constructor)
      : copy_(std::forward<Text>(text)) {}

  /// The text, with a null character at its end.
  [[nodiscard]] const char* c_str() const noexcept {
    return array_ != nullptr ? array_ : copy_.c_str();
  }

 private:
  const char* array_ = nullptr;
  std::string copy_;
};

/// What PgConnection::query() returns: sends the query when it is awaited, once and as an rvalue.
/// May be moved until then. The connection must stay where it is.
class [[nodiscard("a query is sent when it is awaited")]] PgQuery {
 public:
  /// PgConnection::query() calls it. `text`: what a PgText is constructed from.
  template <class Text>
  explicit PgQuery(detail::PgSession& session, Text&& text, PgParameters&& parameters = {})
      : session_(session),
        text_(std::forward<Text>(text)),
        parameters_(std::move(parameters)),
        results_(session) {}
  PgQuery(PgQuery&& other) noexcept
      : PgQuery(other.session_, std::move(other.text_), std::move(other.parameters_)) {}
  PgQuery& operator=(PgQuery&&) = delete;
  ~PgQuery() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    // libpq refuses it while a query that was stopped is active.
    is_sent_ = session_.send(text_.c_str(), parameters_);
    if (is_sent_ && PQflush(session_.get()) == 0) [[likely]]
      return results_.await_suspend(awaiting, at);
    if (!is_sent_ && PQtransactionStatus(session_.get()) != PQTRANS_ACTIVE) return false;
    auto task = finish(session_, std::move(text_), std::move(parameters_), is_sent_);
    task_.emplace(&task.release());
    task_->await_suspend(awaiting, at);
    return true;
  }
  [[nodiscard]] PgResult<PgRows> await_resume() {
    if (task_) return task_->await_resume();
    if (!is_sent_) return std::unexpected(session_.error());
    return results_.await_resume();
  }

 private:
  /// After a query that was stopped, and for one that the socket does not accept at once.
  static Task<PgResult<PgRows>> finish(detail::PgSession& session, PgText text,
                                       PgParameters parameters, bool is_sent) {
    if (!is_sent) {
      auto drained = co_await session.drain();
      if (!drained) co_return std::unexpected(std::move(drained.error()));
      if (!session.send(text.c_str(), parameters)) co_return std::unexpected(session.error());
    }
    auto flushed = co_await session.flush();
    if (!flushed) co_return std::unexpected(std::move(flushed.error()));
    detail::PgResults results(session, true);
    co_return co_await std::move(results);
  }

  detail::PgSession& session_;
  PgText text_;
  PgParameters parameters_;
  bool is_sent_ = false;
  detail::PgResults results_;
  std::optional<Task<PgResult<PgRows>>::Awaiter> task_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
