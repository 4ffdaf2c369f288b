// Results, errors and settings of MariadbConnection.
#pragma once

#include <mysql.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// An Error with the text of libmariadb. The error is ECONNREFUSED, ECONNRESET or ENOMEM where
/// libmariadb reports that, EPROTO for other errors of libmariadb and the server, and otherwise
/// that of the wait: ECANCELED, ETIMEDOUT.
struct MariadbError {
  /// Without a text: of a wait.
  MariadbError(const Error& failed, std::string text = {})  // NOLINT(google-explicit-constructor)
      : error(failed), message(std::move(text)) {}
  operator const Error&() const noexcept { return error; }  // NOLINT(google-explicit-constructor)

  Error error;
  std::string message;
  unsigned code = 0;     ///< ER_DUP_ENTRY and others, see mysqld_error.h; 0 for a wait.
  std::string sqlstate;  ///< Empty for a wait.
};
/// The result of an operation on a MariaDB connection.
template <class T = void>
using MariadbResult = Result<T, MariadbError>;

/// A result with rows in memory, for mysql_fetch_row() and others; null if a statement has none.
using MariadbRows = std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)>;

/// The arguments of mysql_real_connect().
struct MariadbSettings {
  /// libmariadb resolves names with a blocking call: give a numeric address.
  std::string host;
  std::string user;
  std::string password;
  std::string database;
  unsigned port = 0;
  std::string unix_path;  ///< Of a socket, in place of `host`.
  unsigned long flags = 0;
  /// Sets options before connecting: MYSQL_OPT_SSL_CA, MYSQL_OPT_CONNECT_TIMEOUT and others.
  std::function<void(MYSQL*)> configure;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
