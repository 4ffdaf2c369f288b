// Error reporting of the whole library.
//
// Functions that set something up return a Result. Errors that occur later are passed to the
// completion or callback. An error is never reported both ways. System errors keep their errno
// value, in std::generic_category().
#pragma once

#include <cerrno>
#include <concepts>
#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

using Error = std::error_code;

/// A value or an error.
template <class T = void>
using Result = std::expected<T, Error>;

/// Converts an errno value to an Error. Accepts negated values, as in io_uring completions.
[[nodiscard]] inline Error system_error(int errno_value) noexcept {
  return {errno_value < 0 ? -errno_value : errno_value, std::generic_category()};
}

namespace detail {

[[noreturn]] inline void throw_error(const Error& error, std::string_view context) {
  if (context.empty()) throw std::system_error(error);
  throw std::system_error(error, std::string(context));
}

}  // namespace detail

/// Returns the value of `result`. If it is an error, throws std::system_error with that error; its
/// message begins with `context`: "listen on 127.0.0.1:80: Address already in use". For programs
/// that cannot continue after the error, and for setup in examples and tests.
///
///   TcpServer server = or_throw(TcpServer::listen(loop, at), "listen on " + at.to_string());
template <class T>
T or_throw(Result<T> result, std::string_view context = {}) {
  if (!result) [[unlikely]]
    detail::throw_error(result.error(), context);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
/// The same for errors that are an Error and more, such as those of connect().
template <class T, std::derived_from<Error> E>
  requires(!std::same_as<E, Error>)
T or_throw(std::expected<T, E> result, std::string_view context = {}) {
  if (!result) [[unlikely]]
    detail::throw_error(result.error(), context);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace tambour

#pragma GCC visibility pop
