// Results and errors of SshSession.
#pragma once

#include <string>
#include <utility>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// An Error with the text of libssh2. The error is EPROTO if libssh2 or the server reports it,
/// ECONNRESET if the connection was lost, EACCES if the server refuses to authenticate the user,
/// and otherwise that of the wait: ECANCELED, ETIMEDOUT.
struct SshError {
  /// Without a text: of a wait.
  SshError(const Error& failed, std::string text = {})  // NOLINT(google-explicit-constructor)
      : error(failed), message(std::move(text)) {}
  operator const Error&() const noexcept { return error; }  // NOLINT(google-explicit-constructor)

  Error error;
  std::string message;
  int code = 0;  ///< LIBSSH2_ERROR_FILE and others.
};
template <class T = void>
using SshResult = Result<T, SshError>;

/// What a command has printed, and how it ended.
struct SshOutput {
  std::string output;
  std::string errors;
  int exit_status = 0;
  std::string signal;  ///< That ended it, without "SIG"; usually empty.
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
