// Results and errors of SshSession.
#pragma once

#include <libssh2.h>

#include <cerrno>
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
/// The result of an operation of libssh2.
template <class T = void>
using SshResult = Result<T, SshError>;

/// What a command has printed, and how it ended.
struct SshOutput {
  std::string output;
  std::string errors;
  int exit_status = 0;
  std::string signal;  ///< That ended it, without "SIG"; usually empty.
};

namespace detail {

inline constexpr int ssh_output_too_long = -10'000;  // No code of libssh2.

inline bool is_ssh_connection_error(int code) noexcept {
  return code == LIBSSH2_ERROR_SOCKET_SEND || code == LIBSSH2_ERROR_SOCKET_RECV ||
         code == LIBSSH2_ERROR_SOCKET_DISCONNECT;
}

/// The error of the function that libssh2 has performed last.
inline SshError ssh_error(LIBSSH2_SESSION* session, int code) {
  int number = EPROTO;
  if (is_ssh_connection_error(code)) number = ECONNRESET;
  if (code == LIBSSH2_ERROR_AUTHENTICATION_FAILED || code == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED)
    number = EACCES;
  if (code == LIBSSH2_ERROR_ALLOC) number = ENOMEM;
  if (code == ssh_output_too_long) number = EMSGSIZE;
  char* text = nullptr;
  const bool has_text = libssh2_session_last_error(session, &text, nullptr, 0) == code;
  SshError failed(system_error(number), has_text && text != nullptr ? text : "");
  failed.code = code;
  return failed;
}

}  // namespace detail

}  // namespace tambour::adapters

#pragma GCC visibility pop
