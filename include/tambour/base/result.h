// Error reporting of the whole library.
//
// Functions that set something up return a Result. Errors that occur later are passed to the
// completion or callback. An error is never reported both ways. System errors keep their errno
// value, in std::generic_category().
#pragma once

#include <cerrno>
#include <concepts>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <tambour/base/cxx23.h>
#include <tambour/detail/lifetime.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A number with its category, which is std::system_category() for errno.
using Error = std::error_code;

template <class T = void, class E = Error>
class Result;

namespace detail {

/// An Error with a text that explains it, such as tls::Failure.
template <class E>
concept ExplainedError = requires(const E& failure) {
  { failure.error } -> std::convertible_to<const Error&>;
  { failure.message } -> std::convertible_to<std::string_view>;
};

template <class T>
inline constexpr bool is_result_type = false;
template <class T, class E>
inline constexpr bool is_result_type<Result<T, E>> = true;
template <class T, class E>
inline constexpr bool is_result_type<std::expected<T, E>> = true;
template <class E>
inline constexpr bool is_result_type<std::unexpected<E>> = true;
template <>
inline constexpr bool is_result_type<std::in_place_t> = true;
template <>
inline constexpr bool is_result_type<std::unexpect_t> = true;

/// An argument from which a value is constructed, as opposed to another Result or an error.
template <class T>
concept ResultValue = !is_result_type<std::remove_cvref_t<T>>;

template <class T, class U, class E, class G>
concept ResultsConvert =
    std::convertible_to<G, E> &&
    ((std::is_void_v<T> && std::is_void_v<U>) || (!std::is_void_v<T> && std::convertible_to<U, T>));

/// These abort with a message, which contains the error.
[[noreturn]] void fail_on_unchecked_error(const Error* error, std::string_view text) noexcept;
[[noreturn]] void fail_on_missing_error() noexcept;

template <class E>
[[noreturn, gnu::cold, gnu::noinline]] void fail_on_unchecked(const E& error) noexcept {
  if constexpr (ExplainedError<E>) {
    const Error& code = error.error;
    fail_on_unchecked_error(&code, error.message);
  } else if constexpr (std::convertible_to<const E&, const Error&>) {
    const Error& code = error;
    fail_on_unchecked_error(&code, {});
  } else {
    fail_on_unchecked_error(nullptr, {});
  }
}

}  // namespace detail

/// A value or an error: std::expected, which it converts to and from, with checks. Using the value
/// while there is an error aborts with a message that contains the error, in every build; so does
/// error() while there is a value.
///
///   Result<TcpServer> server = TcpServer::listen(loop, at);
///   if (!server) return std::unexpected(server.error());
///   server->serve(echo);
///
/// The checks cost nothing where the compiler sees that the Result was tested.
template <class T, class E>
class Result {
  static_assert(!std::is_reference_v<T>, "a Result holds no reference: use a pointer");

 public:
  using value_type = T;
  using error_type = E;

  /// Success, with a default value.
  Result() = default;

  /// The default argument is for braces: `return {{.name = "x"}};`.
  template <class U = T>
    requires((detail::ResultValue<U> || std::same_as<std::remove_cvref_t<U>, T>) &&
             std::is_constructible_v<T, U>)
  constexpr explicit(!std::is_convertible_v<U, T>) Result(U&& value)
      : state_(std::in_place, std::forward<U>(value)) {}

  /// Failure: `return std::unexpected(error);`.
  template <class G>
    requires std::is_constructible_v<E, const G&>
  constexpr explicit(!std::is_convertible_v<const G&, E>) Result(const std::unexpected<G>& error)
      : state_(error) {}
  template <class G>
    requires std::is_constructible_v<E, G>
  constexpr explicit(!std::is_convertible_v<G, E>) Result(std::unexpected<G>&& error)
      : state_(std::move(error)) {}

  /// From a std::expected or a Result whose value and error convert.
  template <class U, class G>
    requires(detail::ResultsConvert<T, U, E, G>)
  // NOLINTNEXTLINE(google-explicit-constructor): as std::expected.
  constexpr Result(std::expected<U, G> other) : state_(converted(std::move(other))) {}
  template <class U, class G>
    requires(!std::same_as<Result, Result<U, G>> && detail::ResultsConvert<T, U, E, G>)
  // NOLINTNEXTLINE(google-explicit-constructor): as std::expected.
  constexpr Result(Result<U, G> other) : state_(converted(std::move(other).as_expected())) {}

  /// As std::expected: constructs the value or the error in place.
  template <class... Args>
    requires std::is_constructible_v<std::expected<T, E>, std::in_place_t, Args...>
  constexpr explicit Result(std::in_place_t at, Args&&... arguments)
      : state_(at, std::forward<Args>(arguments)...) {}
  template <class... Args>
    requires std::is_constructible_v<E, Args...>
  constexpr explicit Result(std::unexpect_t at, Args&&... arguments)
      : state_(at, std::forward<Args>(arguments)...) {}

  /// True if there is a value. `if (result)` tests the same.
  [[nodiscard]] constexpr bool has_value() const noexcept { return state_.has_value(); }
  constexpr explicit operator bool() const noexcept { return state_.has_value(); }

  constexpr decltype(auto) operator*() const& noexcept TAMBOUR_LIFETIME_BOUND {
    return *checked(state_);
  }
  constexpr decltype(auto) operator*() & noexcept TAMBOUR_LIFETIME_BOUND {
    return *checked(state_);
  }
  constexpr decltype(auto) operator*() && noexcept TAMBOUR_LIFETIME_BOUND {
    return *std::move(checked(state_));
  }
  constexpr auto operator->() const noexcept TAMBOUR_LIFETIME_BOUND {
    return checked(state_).operator->();
  }
  constexpr auto operator->() noexcept TAMBOUR_LIFETIME_BOUND {
    return checked(state_).operator->();
  }

  /// Like or_throw().
  constexpr decltype(auto) value() const& TAMBOUR_LIFETIME_BOUND {
    return *checked_or_thrown(state_);
  }
  constexpr decltype(auto) value() & TAMBOUR_LIFETIME_BOUND { return *checked_or_thrown(state_); }
  constexpr decltype(auto) value() && TAMBOUR_LIFETIME_BOUND {
    return *std::move(checked_or_thrown(state_));
  }

  /// The value, or `otherwise` if there is an error.
  template <class U>
  [[nodiscard]] constexpr T value_or(U&& otherwise) const& {
    return state_.value_or(std::forward<U>(otherwise));
  }
  template <class U>
  [[nodiscard]] constexpr T value_or(U&& otherwise) && {
    return std::move(state_).value_or(std::forward<U>(otherwise));
  }

  /// The error. Aborts with a message if there is a value.
  [[nodiscard]] constexpr const E& error() const& noexcept { return failed(state_).error(); }
  [[nodiscard]] constexpr E& error() & noexcept { return failed(state_).error(); }
  [[nodiscard]] constexpr E&& error() && noexcept { return std::move(failed(state_).error()); }

  /// Replaces the value or error by a value that is constructed from the arguments.
  template <class... Args>
  constexpr decltype(auto) emplace(Args&&... arguments) noexcept {
    return state_.emplace(std::forward<Args>(arguments)...);
  }

  /// The monadic functions of std::expected. and_then() invokes `function` with the value and
  /// returns its Result; transform() invokes it with the value and returns what it returns as the
  /// new value. Both leave an error unchanged. or_else() invokes `function` with the error and
  /// returns its Result; transform_error() invokes it with the error and returns what it returns as
  /// the new error. Both leave a value unchanged.
  template <class F>
  constexpr auto and_then(F&& function) && {
    using Next = std::remove_cvref_t<decltype(invoke_with_value(std::forward<F>(function), *this))>;
    if (!state_) return Next(std::unexpected(std::move(state_.error())));
    return Next(invoke_with_value(std::forward<F>(function), *this));
  }
  template <class F>
  constexpr auto and_then(F&& function) const& {
    return Result(*this).and_then(std::forward<F>(function));
  }
  template <class F>
  constexpr auto transform(F&& function) && {
    using U = std::remove_cv_t<decltype(invoke_with_value(std::forward<F>(function), *this))>;
    if (!state_) return Result<U, E>(std::unexpected(std::move(state_.error())));
    if constexpr (std::is_void_v<U>) {
      invoke_with_value(std::forward<F>(function), *this);
      return Result<U, E>();
    } else {
      return Result<U, E>(std::in_place, invoke_with_value(std::forward<F>(function), *this));
    }
  }
  template <class F>
  constexpr auto transform(F&& function) const& {
    return Result(*this).transform(std::forward<F>(function));
  }
  template <class F>
  constexpr auto or_else(F&& function) && {
    using Next = std::remove_cvref_t<std::invoke_result_t<F, E>>;
    if (!state_) return Next(std::invoke(std::forward<F>(function), std::move(state_.error())));
    if constexpr (std::is_void_v<T>) {
      return Next();
    } else {
      return Next(std::in_place, std::move(*state_));
    }
  }
  template <class F>
  constexpr auto or_else(F&& function) const& {
    return Result(*this).or_else(std::forward<F>(function));
  }
  template <class F>
  constexpr auto transform_error(F&& function) && {
    using Next = Result<T, std::remove_cvref_t<std::invoke_result_t<F, E>>>;
    if (!state_)
      return Next(std::unexpect, std::invoke(std::forward<F>(function), std::move(state_.error())));
    if constexpr (std::is_void_v<T>) {
      return Next();
    } else {
      return Next(std::in_place, std::move(*state_));
    }
  }
  template <class F>
  constexpr auto transform_error(F&& function) const& {
    return Result(*this).transform_error(std::forward<F>(function));
  }

  /// The same as a std::expected, for code that is written for it.
  [[nodiscard]] constexpr const std::expected<T, E>& as_expected() const& noexcept {
    return state_;
  }
  [[nodiscard]] constexpr std::expected<T, E>&& as_expected() && noexcept {
    return std::move(state_);
  }
  // NOLINTBEGIN(google-explicit-constructor): both have the same values.
  constexpr operator std::expected<T, E>() const& { return state_; }
  constexpr operator std::expected<T, E>() && { return std::move(state_); }
  // NOLINTEND(google-explicit-constructor)

  template <class U, class G>
  [[nodiscard]] friend constexpr bool operator==(const Result& one, const Result<U, G>& other) {
    return one.state_ == other.as_expected();
  }
  template <class G>
  [[nodiscard]] friend constexpr bool operator==(const Result& one,
                                                 const std::unexpected<G>& error) {
    return one.state_ == error;
  }
  template <detail::ResultValue U>
  [[nodiscard]] friend constexpr bool operator==(const Result& one, const U& value) {
    return one.has_value() && *one.state_ == value;
  }

 private:
  /// Avoids the constructor of std::expected that converts a std::expected to `bool`.
  template <class U, class G>
  static constexpr std::expected<T, E> converted(std::expected<U, G>&& other) {
    if (!other) return std::expected<T, E>(std::unexpect, std::move(other.error()));
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::expected<T, E>(std::in_place, std::move(*other));
    }
  }
  template <class State>
  static constexpr State& checked(State& state) noexcept {
    if (!state.has_value()) [[unlikely]]
      detail::fail_on_unchecked(state.error());
    return state;  // NOLINT(bugprone-return-const-ref-from-parameter): a member.
  }
  template <class State>
  static constexpr State& failed(State& state) noexcept {
    if (state.has_value()) [[unlikely]]
      detail::fail_on_missing_error();
    return state;  // NOLINT(bugprone-return-const-ref-from-parameter): a member.
  }
  template <class State>
  static constexpr State& checked_or_thrown(State& state);

  template <class F>
  static constexpr decltype(auto) invoke_with_value(F&& function, Result& result) {
    if constexpr (std::is_void_v<T>) {
      return std::invoke(std::forward<F>(function));
    } else {
      return std::invoke(std::forward<F>(function), std::move(*result.state_));
    }
  }

  std::expected<T, E> state_;
};

/// Converts an errno value to an Error. Accepts negated values, as in io_uring completions.
[[nodiscard]] inline Error system_error(int errno_value) noexcept {
  return {errno_value < 0 ? -errno_value : errno_value, std::generic_category()};
}

namespace detail {

[[noreturn]] inline void throw_error(const Error& error, std::string_view context) {
  if (context.empty()) throw std::system_error(error);
  throw std::system_error(error, std::string(context));
}
template <ExplainedError E>
[[noreturn]] void throw_error(const E& failure, std::string_view context) {
  std::string text(context);
  if (!text.empty()) text += ": ";
  throw_error(Error(failure.error), text.append(std::string_view(failure.message)));
}

}  // namespace detail

template <class T, class E>
template <class State>
constexpr State& Result<T, E>::checked_or_thrown(State& state) {
  if (!state.has_value()) [[unlikely]]
    detail::throw_error(state.error(), {});
  return state;
}

/// Returns the value of `result`. If it is an error, throws std::system_error with that error; its
/// message begins with `context`: "listen on 127.0.0.1:80: Address already in use". The message of
/// a tls::Failure contains that of the failure. For programs that cannot continue after the error,
/// and for setup in examples and tests.
///
///   TcpServer server = or_throw(TcpServer::listen(loop, at), "listen on " + at.to_string());
template <class T, class E>
T or_throw(Result<T, E> result, std::string_view context = {}) {
  if (!result) [[unlikely]]
    detail::throw_error(result.error(), context);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace tambour

#pragma GCC visibility pop
