// Results, errors and parameters of PgConnection.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// An Error with the text of libpq. The error is EPROTO if libpq or the server reports it, and the
/// error of the wait otherwise, such as ECANCELED.
struct PgError {
  /// Of a wait, or with the text of libpq.
  PgError(const Error& code)  // NOLINT(google-explicit-constructor): waits return an Error.
      : error(code), message(code.message()) {}
  PgError(const Error& code, std::string text) : error(code), message(std::move(text)) {}
  operator const Error&() const noexcept { return error; }  // NOLINT(google-explicit-constructor)

  Error error;
  std::string message;
  std::string sqlstate;  ///< Of an error that the server reports; see its appendix A.
};

/// What the functions of PgConnection return.
template <class T = void>
using PgResult = Result<T, PgError>;

/// The rows of a query, a PGresult: use libpq's functions for it, such as PQntuples(), with get().
using PgRows = std::unique_ptr<PGresult, decltype(&PQclear)>;

/// The parameters of a query, as text; empty: NULL.
using PgParameters = std::vector<std::optional<std::string>>;

}  // namespace tambour::adapters

#pragma GCC visibility pop
