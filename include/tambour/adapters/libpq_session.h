// What PgConnection does with libpq and its socket.
#pragma once

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/adapters/libpq_result.h>
#include <tambour/adapters/socket_wait.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// A PGconn and the waits for its socket. Must not be moved or destroyed during a wait.
class PgSession {
 public:
  explicit PgSession(PGconn* connection)
      : connection_(connection, &PQfinish), socket_(std::make_unique<WatchedSocket>()) {}
  PgSession(PgSession&&) noexcept = default;
  PgSession& operator=(PgSession&& other) noexcept {
    socket_ = std::move(other.socket_);  // Before the former connection closes its socket.
    connection_ = std::move(other.connection_);
    return *this;
  }
  ~PgSession() = default;

  [[nodiscard]] PGconn* get() const noexcept { return connection_.get(); }
  [[nodiscard]] PgError error() const {
    if (PQsocket(get()) < 0) socket_->forget();  // libpq has closed it.
    return {system_error(EPROTO), PQerrorMessage(get())};
  }
  [[nodiscard]] PgResult<> checked(int success) const {
    if (success == 0) return std::unexpected(error());
    return {};
  }

  /// Before libpq closes its socket.
  void forget_socket() noexcept { socket_->forget(); }

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

  bool send(const char* text, const PgParameters& parameters) {
    if (parameters.empty()) return PQsendQuery(get(), text) != 0;
    return send_with_parameters(text, parameters) != 0;
  }
  int send_with_parameters(const char* text, const PgParameters& parameters) {
    std::array<const char*, 16> few;
    std::vector<const char*> many;
    if (parameters.size() > few.size()) many.resize(parameters.size());
    const char** const values = many.empty() ? few.data() : many.data();
    std::ranges::transform(parameters, values,
                           [](const auto& value) { return value ? value->c_str() : nullptr; });
    return PQsendQueryParams(get(), text, static_cast<int>(parameters.size()), nullptr, values,
                             nullptr, nullptr, 0);
  }

  [[nodiscard]] WatchedSocket& socket() noexcept { return *socket_; }
  [[nodiscard]] WatchedSocket::Wait readable() noexcept {
    return socket_->wait(PQsocket(get()), Events::read);
  }
  Task<PgResult<>> receive() {
    const auto ready = co_await readable();
    if (!ready) co_return std::unexpected(PgError(ready.error()));
    co_return checked(PQconsumeInput(get()));
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
  /// Of a result, in which null is not an error.
  [[nodiscard]] static bool is_error(const PgRows& rows) noexcept {
    if (rows == nullptr) return false;
    const ExecStatusType status = PQresultStatus(rows.get());
    return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
  }
  [[nodiscard]] static PgResult<PgRows> checked_rows(PgRows rows) {
    if (!is_error(rows)) return rows;
    PgError failed(system_error(EPROTO), PQresultErrorMessage(rows.get()));
    if (const char* const state = PQresultErrorField(rows.get(), PG_DIAG_SQLSTATE))
      failed.sqlstate = state;
    return std::unexpected(std::move(failed));
  }
  /// As PgConnection::next_rows().
  Task<PgResult<PgRows>> next_rows() {
    while (PQisBusy(get()) != 0) {
      const auto ready = co_await readable();
      if (!ready) co_return std::unexpected(PgError(ready.error()));
      if (PQconsumeInput(get()) == 0) co_return std::unexpected(error());
    }
    co_return checked_rows(PgRows(PQgetResult(get()), &PQclear));
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

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::unique_ptr<WatchedSocket> socket_;  ///< Destroyed before the connection closes it.
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
