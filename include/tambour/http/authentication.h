// Authentication of requests: Basic (RFC 7617) and Bearer (RFC 6750). Use both over TLS only.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/auth.h>  // IWYU pragma: export
#include <tambour/http/router.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// A copyable function of a request and its credentials that returns `bool` or `Task<bool>`.
template <class F, class Credentials>
concept VerifierFunction =
    std::copy_constructible<F> && std::invocable<F&, Request&, const Credentials&> &&
    (std::same_as<std::invoke_result_t<F&, Request&, const Credentials&>, bool> ||
     std::same_as<std::invoke_result_t<F&, Request&, const Credentials&>, Task<bool>>);

/// A function that decides whether credentials are valid: `bool f(Request&, const Credentials&)`,
/// or `Task<bool> f(...)` if it asks a database. Compare secrets with constant_time_equal(), and
/// store passwords only as hashes of a password hash function (Argon2, scrypt), computed on a
/// WorkerPool. The function may pass values to the handler with Request::set_parameter(). Requests
/// invoke it concurrently.
template <class Credentials>
class Verifier {
 public:
  Verifier() = default;

  /// Owns a copy of `function`. Throws std::bad_alloc.
  template <class F>
    requires(!std::same_as<F, Verifier>) && VerifierFunction<F, Credentials>
  // NOLINTNEXTLINE(google-explicit-constructor): functions are passed as verifiers.
  Verifier(F function)
      : verify_([function = std::move(function)](
                    Request& request, const Credentials& credentials) mutable -> Task<bool> {
          if constexpr (std::same_as<std::invoke_result_t<F&, Request&, const Credentials&>,
                                     bool>) {
            return as_task(function(request, credentials));
          } else {
            return function(request, credentials);
          }
        }) {}

  explicit operator bool() const noexcept { return verify_ != nullptr; }
  /// The credentials must exist until the task has ended.
  [[nodiscard]] Task<bool> verify(Request& request, const Credentials& credentials) const {
    return verify_(request, credentials);
  }

 private:
  static Task<bool> as_task(bool is_valid) { co_return is_valid; }

  std::function<Task<bool>(Request&, const Credentials&)> verify_;
};

/// A user name and a password.
using BasicVerifier = Verifier<BasicCredentials>;
/// Decides whether a bearer token is accepted.
using BearerVerifier = Verifier<std::string>;

/// Middleware that answers 401 with WWW-Authenticate unless the request has a user name and a
/// password that `verifier` accepts. Browsers then ask the user for them. Fails with
/// http::ErrorCode::bad_field_value if the realm contains other than printable ASCII characters,
/// and with EINVAL if the verifier is empty. Throws std::bad_alloc.
///
///   router.use(or_throw(http::basic_authentication("admin", http::fixed_credentials({{"ann",
///   password}}))));
[[nodiscard]] Result<Middleware> basic_authentication(std::string_view realm,
                                                      BasicVerifier verifier);

/// Middleware that answers 401 with WWW-Authenticate unless the request has a token in its field
/// Authorization that `verifier` accepts; "invalid_token" says that it was refused. A field that is
/// malformed, or repeated, is answered with 400 and "invalid_request" (RFC 6750, section 3.1).
/// Tokens in forms and queries are not accepted. Fails like basic_authentication().
[[nodiscard]] Result<Middleware> bearer_authentication(std::string_view realm,
                                                       BearerVerifier verifier);

/// A verifier that accepts these credentials. The time of a comparison depends only on the lengths.
[[nodiscard]] BasicVerifier fixed_credentials(std::vector<BasicCredentials> credentials);
/// A verifier that accepts these tokens. The time of a comparison depends only on the lengths.
[[nodiscard]] BearerVerifier fixed_tokens(std::vector<std::string> tokens);

/// The user name that basic_authentication() has accepted; empty if there is none. A verifier of
/// tokens may set it: set_authenticated_user(). Valid until the parameters of the request change.
[[nodiscard]] std::string_view authenticated_user(const Request& request) noexcept;
/// Sets what authenticated_user() returns.
void set_authenticated_user(Request& request, std::string user);

}  // namespace tambour::http

#pragma GCC visibility pop
