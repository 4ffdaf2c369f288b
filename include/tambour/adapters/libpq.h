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

#include <tambour/adapters/libpq_result.h>
#include <tambour/adapters/socket_wait.h>
#include <tambour/task/sleep.h>
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
    auto connected = co_await opened.finish_connecting(&PQconnectPoll);
    if (!connected) co_return std::unexpected(std::move(connected.error()));
    co_return std::move(opened);
  }
  /// Connects again, with the same settings.
  Task<PgResult<>> reset() {
    socket_->forget();
    if (PQresetStart(get()) == 0) co_return std::unexpected(error());
    auto connected = co_await finish_connecting(&PQresetPoll);
    co_return connected;
  }

  PgConnection(PgConnection&&) noexcept = default;
  PgConnection& operator=(PgConnection&& other) noexcept {
    socket_ = std::move(other.socket_);  // Before the former connection closes its socket.
    connection_ = std::move(other.connection_);
    return *this;
  }

  /// For libpq's other functions.
  [[nodiscard]] PGconn* get() const noexcept { return connection_.get(); }
  [[nodiscard]] bool is_usable() const noexcept {
    return connection_ != nullptr && PQstatus(get()) == CONNECTION_OK;
  }

  /// Sends a query and returns its last result, or the first error. Without parameters, `text` may
  /// have several statements.
  Task<PgResult<PgRows>> query(std::string text, PgParameters parameters = {}) {
    if (PQtransactionStatus(get()) == PQTRANS_ACTIVE) {
      auto drained = co_await drain();
      if (!drained) co_return std::unexpected(std::move(drained.error()));
    }
    if (!send(text, parameters)) co_return std::unexpected(error());
    if (PQflush(get()) != 0) {
      auto flushed = co_await flush();
      if (!flushed) co_return std::unexpected(std::move(flushed.error()));
    }
    PgRows last(nullptr, &PQclear);
    // Not next_rows(): a coroutine less for each result.
    for (;;) {
      while (PQisBusy(get()) != 0) {
        const auto ready = co_await socket_->wait(PQsocket(get()), Events::read);
        if (!ready) co_return std::unexpected(PgError(ready.error()));
        if (PQconsumeInput(get()) == 0) co_return std::unexpected(error());
      }
      auto rows = take_rows();
      if (!rows) co_return std::move(rows);
      if (*rows == nullptr) co_return std::move(last);
      const ExecStatusType status = PQresultStatus(rows->get());
      last = std::move(*rows);
      // COPY has no further result before its data.
      if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
        co_return std::move(last);
    }
  }
  /// query("select $1::int + $2", "1", std::nullopt)
  template <std::convertible_to<std::optional<std::string>>... Values>
    requires(sizeof...(Values) > 0)
  Task<PgResult<PgRows>> query(std::string text, Values&&... values) {
    return query(std::move(text), parameters_of(std::forward<Values>(values)...));
  }
  /// Sends a query whose results are then read with next_rows(): one result for each row after
  /// PQsetSingleRowMode().
  Task<PgResult<>> start(std::string text, PgParameters parameters = {}) {
    if (PQtransactionStatus(get()) == PQTRANS_ACTIVE) {
      auto drained = co_await drain();
      if (!drained) co_return drained;
    }
    if (!send(text, parameters)) co_return std::unexpected(error());
    if (PQflush(get()) == 0) co_return {};
    auto flushed = co_await flush();
    co_return flushed;
  }
  /// The next result; null after the last one of a query. An error of the server is an error.
  Task<PgResult<PgRows>> next_rows() {
    while (PQisBusy(get()) != 0) {
      const auto ready = co_await socket_->wait(PQsocket(get()), Events::read);
      if (!ready) co_return std::unexpected(PgError(ready.error()));
      if (PQconsumeInput(get()) == 0) co_return std::unexpected(error());
    }
    co_return take_rows();
  }

  /// Pipeline mode: after enter_pipeline(), queue() several queries, sync(), and read the results
  /// with next_rows(): of each query a result and null, and PGRES_PIPELINE_SYNC for each sync().
  /// After an error the results up to the sync are PGRES_PIPELINE_ABORTED. Queue so many queries
  /// only that their results fit into memory.
  PgResult<> enter_pipeline() { return checked(PQenterPipelineMode(get())); }
  PgResult<> queue(const std::string& text, const PgParameters& parameters = {}) {
    return checked(send_with_parameters(text, parameters));
  }
  template <std::convertible_to<std::optional<std::string>>... Values>
    requires(sizeof...(Values) > 0)
  PgResult<> queue(const std::string& text, Values&&... values) {
    return queue(text, parameters_of(std::forward<Values>(values)...));
  }
  Task<PgResult<>> sync() {
    if (PQpipelineSync(get()) == 0) co_return std::unexpected(error());
    auto flushed = co_await flush();
    co_return flushed;
  }
  PgResult<> exit_pipeline() { return checked(PQexitPipelineMode(get())); }

  /// COPY FROM STDIN, after query() has returned PGRES_COPY_IN: `data` are rows or parts of rows.
  Task<PgResult<>> put_copy_data(std::string data) {
    constexpr std::size_t message_bytes_max = std::size_t{1} << 30;  // libpq takes an int.
    std::size_t queued_bytes = 0;
    do {
      const std::size_t size = std::min(data.size() - queued_bytes, message_bytes_max);
      const int queued = PQputCopyData(get(), data.data() + queued_bytes, static_cast<int>(size));
      if (queued < 0) co_return std::unexpected(error());
      if (queued > 0) queued_bytes += size;  // Otherwise its buffer is full.
      auto flushed = co_await flush();
      if (!flushed) co_return flushed;
    } while (queued_bytes < data.size());
    co_return {};
  }
  /// `failure`: the server discards the rows, and reports this text.
  Task<PgResult<PgRows>> end_copy(std::optional<std::string> failure = {}) {
    auto queued = co_await put_copy_end(std::move(failure));
    if (!queued) co_return std::unexpected(std::move(queued.error()));
    auto rows = co_await next_rows();
    co_return std::move(rows);
  }
  /// COPY TO STDOUT, after query() has returned PGRES_COPY_OUT: the next row; empty after the last
  /// one.
  Task<PgResult<std::optional<std::string>>> get_copy_data() {
    for (;;) {
      char* row = nullptr;
      const int size = PQgetCopyData(get(), &row, 1);
      const std::unique_ptr<char, decltype(&PQfreemem)> owner(row, &PQfreemem);
      if (size > 0) co_return std::string(row, static_cast<std::size_t>(size));
      if (size == -2) co_return std::unexpected(error());
      if (size == -1) break;
      auto received = co_await receive();
      if (!received) co_return std::unexpected(std::move(received.error()));
    }
    auto rows = co_await next_rows();
    if (!rows) co_return std::unexpected(std::move(rows.error()));
    co_return std::nullopt;
  }

  /// Waits for the next NOTIFY to a channel of LISTEN.
  using Notification = std::unique_ptr<PGnotify, decltype(&PQfreemem)>;
  Task<PgResult<Notification>> next_notification() {
    for (;;) {
      Notification notification(PQnotifies(get()), &PQfreemem);
      if (notification != nullptr) co_return std::move(notification);
      auto received = co_await receive();
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
  explicit PgConnection(PGconn* connection)
      : connection_(connection, &PQfinish), socket_(std::make_unique<WatchedSocket>()) {}

  [[nodiscard]] PgError error() const {
    if (PQsocket(get()) < 0) socket_->forget();  // libpq has closed it.
    return {system_error(EPROTO), PQerrorMessage(get())};
  }
  [[nodiscard]] PgResult<> checked(int success) const {
    if (success == 0) return std::unexpected(error());
    return {};
  }

  Task<PgResult<>> finish_connecting(PostgresPollingStatusType (*poll)(PGconn*)) {
    if (get() == nullptr) co_return std::unexpected(PgError(system_error(ENOMEM)));
    if (PQstatus(get()) == CONNECTION_BAD) co_return std::unexpected(error());
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK) {
      if (status == PGRES_POLLING_FAILED) co_return std::unexpected(error());
      // The socket may be another one after each step: a host has several addresses.
      const Events next = status == PGRES_POLLING_READING ? Events::read : Events::write;
      const auto ready = co_await wait_ready(PQsocket(get()), next);
      if (!ready) co_return std::unexpected(PgError(ready.error()));
      status = poll(get());
    }
    co_return checked(PQsetnonblocking(get(), 1) == 0 ? 1 : 0);
  }
  /// The next result of libpq, which is not busy.
  [[nodiscard]] PgResult<PgRows> take_rows() const {
    PgRows rows(PQgetResult(get()), &PQclear);
    const ExecStatusType status = PQresultStatus(rows.get());
    if (rows != nullptr && (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE)) {
      PgError failed(system_error(EPROTO), PQresultErrorMessage(rows.get()));
      if (const char* const state = PQresultErrorField(rows.get(), PG_DIAG_SQLSTATE))
        failed.sqlstate = state;
      return std::unexpected(std::move(failed));
    }
    return rows;
  }
  template <class... Values>
  static PgParameters parameters_of(Values&&... values) {
    PgParameters parameters;
    parameters.reserve(sizeof...(Values));
    (parameters.emplace_back(std::forward<Values>(values)), ...);
    return parameters;
  }
  bool send(const std::string& text, const PgParameters& parameters) {
    if (parameters.empty()) return PQsendQuery(get(), text.c_str()) != 0;
    return send_with_parameters(text, parameters) != 0;
  }
  int send_with_parameters(const std::string& text, const PgParameters& parameters) {
    std::vector<const char*> values;
    values.reserve(parameters.size());
    for (const auto& value : parameters) values.push_back(value ? value->c_str() : nullptr);
    return PQsendQueryParams(get(), text.c_str(), static_cast<int>(values.size()), nullptr,
                             values.data(), nullptr, nullptr, 0);
  }
  /// Discards the results of a query that was stopped.
  Task<PgResult<>> drain() {
    while (PQtransactionStatus(get()) == PQTRANS_ACTIVE) {
      auto flushed = co_await flush();
      if (!flushed) co_return flushed;
      while (PQisBusy(get()) != 0) {
        auto received = co_await receive();
        if (!received) co_return received;
      }
      const PgRows rows(PQgetResult(get()), &PQclear);
      const ExecStatusType status = PQresultStatus(rows.get());
      if (status == PGRES_COPY_IN || status == PGRES_COPY_BOTH) {
        std::optional<std::string> failure;  // A server of replication accepts none.
        if (status == PGRES_COPY_IN) failure = "stopped";
        auto queued = co_await put_copy_end(std::move(failure));
        if (!queued) co_return queued;
      }
      if (status != PGRES_COPY_OUT && status != PGRES_COPY_BOTH) continue;
      for (;;) {
        auto row = co_await get_copy_data();
        if (!row) co_return std::unexpected(std::move(row.error()));
        if (!row->has_value()) break;
      }
    }
    co_return {};
  }
  Task<PgResult<>> put_copy_end(std::optional<std::string> failure) {
    for (;;) {
      const int queued = PQputCopyEnd(get(), failure ? failure->c_str() : nullptr);
      if (queued < 0) co_return std::unexpected(error());
      auto flushed = co_await flush();
      if (!flushed || queued > 0) co_return flushed;  // 0: the buffer of libpq was full.
    }
  }
  /// Sends what libpq has buffered. Reads meanwhile: the server may wait for that.
  Task<PgResult<>> flush() {
    for (;;) {
      const int left = PQflush(get());
      if (left == 0) co_return {};
      if (left < 0) co_return std::unexpected(error());
      const auto ready = co_await socket_->wait(PQsocket(get()), Events::read | Events::write);
      if (!ready) co_return std::unexpected(PgError(ready.error()));
      if (has(*ready, Events::read) && PQconsumeInput(get()) == 0)
        co_return std::unexpected(error());
    }
  }
  Task<PgResult<>> receive() {
    const auto ready = co_await socket_->wait(PQsocket(get()), Events::read);
    if (!ready) co_return std::unexpected(PgError(ready.error()));
    co_return checked(PQconsumeInput(get()));
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::unique_ptr<WatchedSocket> socket_;  ///< Destroyed before the connection closes it.
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
