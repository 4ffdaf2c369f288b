// libpq, the client of PostgreSQL, on a loop: connections and queries as tasks.
//
//   auto connection = co_await PgConnection::connect("host=/run/postgresql dbname=test");
//   auto rows = co_await connection->query("select $1::int + 1", "41");
//
// Link with -lpq. Requires libpq 14 or later.
#pragma once

#include <libpq-fe.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/adapters/libpq_query.h>
#include <tambour/adapters/libpq_result.h>
#include <tambour/adapters/libpq_session.h>
#include <tambour/task/task.h>
#include <tambour/threads/worker_pool.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A connection to a PostgreSQL server, with one query at a time or in pipeline mode.
///
/// Ownership: owns the connection. Thread: that of the loop whose tasks use it. One task at a time
/// may use it; it must not be moved or destroyed while a task waits in it.
/// Cancellation: all functions may be stopped and limited in time. A query that was stopped goes on
/// in the server; the next query() waits for its end and discards its results. To end it, call
/// cancel() first.
/// Errors: PgError. If is_usable() is false after an error, call reset() or connect again.
class PgConnection {
 public:
  /// `settings` as for PQconnectdb(). libpq resolves host names with a blocking call: give numeric
  /// addresses in `hostaddr`, or paths.
  static Task<PgResult<PgConnection>> connect(std::string settings) {
    PgConnection opened(PQconnectStart(settings.c_str()));
    auto connected = co_await opened.session_.finish_connecting(&PQconnectPoll);
    if (!connected) co_return std::unexpected(std::move(connected.error()));
    co_return std::move(opened);
  }
  /// Connects again, with the same settings.
  Task<PgResult<>> reset() {
    session_.forget_socket();
    if (PQresetStart(get()) == 0) co_return std::unexpected(session_.error());
    auto connected = co_await session_.finish_connecting(&PQresetPoll);
    co_return connected;
  }

  PgConnection(PgConnection&&) noexcept = default;
  PgConnection& operator=(PgConnection&&) noexcept = default;

  /// For libpq's other functions.
  [[nodiscard]] PGconn* get() const noexcept { return session_.get(); }
  [[nodiscard]] bool is_usable() const noexcept {
    return get() != nullptr && PQstatus(get()) == CONNECTION_OK;
  }

  /// Sends a query and returns its last result, or the first error. Without parameters, `text` may
  /// have several statements. Sent when the result is awaited: `text` is copied, unless it is an
  /// array of const characters, such as a literal.
  template <std::convertible_to<PgText> Text>
  PgQuery query(Text&& text) {
    return PgQuery(session_, std::forward<Text>(text));
  }
  PgQuery query(PgText text, PgParameters parameters) noexcept {
    return PgQuery(session_, std::move(text), std::move(parameters));
  }
  /// query("select $1::int + $2", "1", std::nullopt)
  template <std::convertible_to<std::optional<std::string>>... Values>
    requires(sizeof...(Values) > 0)
  PgQuery query(PgText text, Values&&... values) {
    return query(std::move(text), parameters_of(std::forward<Values>(values)...));
  }
  /// Sends a query whose results are then read with next_rows(): one result for each row after
  /// PQsetSingleRowMode().
  Task<PgResult<>> start(std::string text, PgParameters parameters = {}) {
    if (PQtransactionStatus(get()) == PQTRANS_ACTIVE) {
      auto drained = co_await session_.drain();
      if (!drained) co_return drained;
    }
    if (!session_.send(text.c_str(), parameters)) co_return std::unexpected(session_.error());
    if (PQflush(get()) == 0) co_return {};
    auto flushed = co_await session_.flush();
    co_return flushed;
  }
  /// The next result; null after the last one of a query. An error of the server is an error.
  Task<PgResult<PgRows>> next_rows() { return session_.next_rows(); }

  /// Pipeline mode: after enter_pipeline(), queue() several queries, sync(), and read the results
  /// with next_rows(): of each query a result and null, and PGRES_PIPELINE_SYNC for each sync().
  /// After an error the results up to the sync are PGRES_PIPELINE_ABORTED. Queue so many queries
  /// only that their results fit into memory.
  PgResult<> enter_pipeline() { return session_.checked(PQenterPipelineMode(get())); }
  PgResult<> queue(const std::string& text, const PgParameters& parameters = {}) {
    return session_.checked(session_.send_with_parameters(text.c_str(), parameters));
  }
  template <std::convertible_to<std::optional<std::string>>... Values>
    requires(sizeof...(Values) > 0)
  PgResult<> queue(const std::string& text, Values&&... values) {
    return queue(text, parameters_of(std::forward<Values>(values)...));
  }
  Task<PgResult<>> sync() {
    if (PQpipelineSync(get()) == 0) co_return std::unexpected(session_.error());
    auto flushed = co_await session_.flush();
    co_return flushed;
  }
  PgResult<> exit_pipeline() { return session_.checked(PQexitPipelineMode(get())); }

  /// COPY FROM STDIN, after query() has returned PGRES_COPY_IN: `data` are rows or parts of rows.
  Task<PgResult<>> put_copy_data(std::string data) {
    constexpr std::size_t message_bytes_max = std::size_t{1} << 30;  // libpq takes an int.
    std::size_t queued_bytes = 0;
    do {
      const std::size_t size = std::min(data.size() - queued_bytes, message_bytes_max);
      const int queued = PQputCopyData(get(), data.data() + queued_bytes, static_cast<int>(size));
      if (queued < 0) co_return std::unexpected(session_.error());
      if (queued > 0) queued_bytes += size;  // Otherwise its buffer is full.
      auto flushed = co_await session_.flush();
      if (!flushed) co_return flushed;
    } while (queued_bytes < data.size());
    co_return {};
  }
  /// `failure`: the server discards the rows, and reports this text.
  Task<PgResult<PgRows>> end_copy(std::optional<std::string> failure = {}) {
    auto queued = co_await session_.put_copy_end(std::move(failure));
    if (!queued) co_return std::unexpected(std::move(queued.error()));
    auto rows = co_await next_rows();
    co_return std::move(rows);
  }
  /// COPY TO STDOUT, after query() has returned PGRES_COPY_OUT: the next row; empty after the last
  /// one.
  Task<PgResult<std::optional<std::string>>> get_copy_data() { return session_.get_copy_data(); }

  /// Waits for the next NOTIFY to a channel of LISTEN.
  using Notification = std::unique_ptr<PGnotify, decltype(&PQfreemem)>;
  Task<PgResult<Notification>> next_notification() {
    for (;;) {
      Notification notification(PQnotifies(get()), &PQfreemem);
      if (notification != nullptr) co_return std::move(notification);
      auto received = co_await session_.receive();
      if (!received) co_return std::unexpected(std::move(received.error()));
    }
  }

  /// Asks the server to end the current query, which then fails with the SQLSTATE 57014. Connects
  /// on a worker thread, because PQcancel() blocks.
  Task<PgResult<>> cancel() {
    using Cancel = std::unique_ptr<PGcancel, decltype(&PQfreeCancel)>;
    auto request = std::make_shared<Cancel>(PQgetCancel(get()), &PQfreeCancel);
    auto work = [request]() -> std::string {
      std::string text(256, '\0');
      if (PQcancel(request->get(), text.data(), static_cast<int>(text.size())) != 0) return {};
      return {text.data()};  // Up to the null character.
    };
    auto failed = co_await WorkerPool::shared().run(std::move(work));
    if (!failed) co_return std::unexpected(PgError(failed.error()));
    if (!failed->empty()) co_return std::unexpected(PgError(system_error(EPROTO), *failed));
    co_return {};
  }

 private:
  explicit PgConnection(PGconn* connection) : session_(connection) {}

  template <class... Values>
  static PgParameters parameters_of(Values&&... values) {
    PgParameters parameters;
    parameters.reserve(sizeof...(Values));
    (parameters.emplace_back(std::forward<Values>(values)), ...);
    return parameters;
  }

  detail::PgSession session_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
