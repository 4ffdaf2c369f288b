// libmariadb, the client of MariaDB and MySQL, on a loop: connections and queries as tasks.
//
//   MariadbSettings settings{.host = "127.0.0.1", .user = "test", .database = "test"};
//   auto connection = co_await MariadbConnection::connect(settings);
//   auto rows = co_await connection->query("select 41 + 1");
//
// Link with libmariadb (pkg-config). Requires libmariadb 3.1 or later.
#pragma once

#include <mysql.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/adapters/mariadb_result.h>
#include <tambour/adapters/mariadb_session.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// What MariadbConnection::query() returns: a MariadbResult<MariadbRows> when it is awaited, once
/// and as an rvalue.
using MariadbQuery = detail::MariadbOperation;

/// A connection to a MariaDB or MySQL server, with one query at a time.
///
/// Ownership: owns the connection. Thread: that of the loop whose tasks use it. One task at a time
/// may use it; it must not be moved or destroyed while a task waits in it.
/// Cancellation: all functions may be stopped and limited in time. A query that was stopped goes on
/// in the server; the next query() first waits for its end and discards its results. To end it,
/// send KILL QUERY with mysql_thread_id(get()) through another connection.
/// Reconnection: if is_usable() is false after an error, connect again.
class MariadbConnection {
 public:
  /// Connects and authenticates. Fails with ECONNREFUSED, and with EPROTO if the server refuses the
  /// user.
  static Task<MariadbResult<MariadbConnection>> connect(MariadbSettings settings) {
    MariadbConnection opened(std::make_unique<detail::MariadbSession>(std::move(settings)));
    opened.session_->start_connecting();
    auto connected = co_await detail::MariadbOperation(*opened.session_);
    if (!connected) co_return std::unexpected(std::move(connected.error()));
    co_return std::move(opened);
  }

  MariadbConnection(MariadbConnection&&) noexcept = default;
  MariadbConnection& operator=(MariadbConnection&&) noexcept = default;

  /// For libmariadb's other functions that do not wait: mysql_affected_rows(), mysql_insert_id().
  [[nodiscard]] MYSQL* get() const noexcept { return session_->get(); }
  [[nodiscard]] bool is_usable() const noexcept {
    return session_ != nullptr && session_->is_usable();
  }

  /// Sends one statement, or several with CLIENT_MULTI_STATEMENTS, and returns the last result that
  /// has rows, or the first error. Put values into it with quoted(). Sent when it is awaited.
  MariadbQuery query(std::string text) noexcept { return MariadbQuery(*session_, std::move(text)); }

  /// A string literal with this value, in the character set of the connection.
  [[nodiscard]] std::string quoted(std::string_view value) const {
    std::string text(2 * value.size() + 3, '\'');
    const auto size = mysql_real_escape_string(get(), text.data() + 1, value.data(),
                                               static_cast<unsigned long>(value.size()));
    text.resize(size + 1);
    return text += '\'';
  }

 private:
  explicit MariadbConnection(std::unique_ptr<detail::MariadbSession> session)
      : session_(std::move(session)) {}

  std::unique_ptr<detail::MariadbSession> session_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
