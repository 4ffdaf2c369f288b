// Handlers of requests.
#pragma once

#include <concepts>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// A copyable function of a request and its response that returns `void` or `Task<>`.
template <class F>
concept HandlerFunction = std::copy_constructible<F> && std::invocable<F&, Request&, Response&> &&
                          (std::is_void_v<std::invoke_result_t<F&, Request&, Response&>> ||
                           std::same_as<std::invoke_result_t<F&, Request&, Response&>, Task<>>);

/// A function that answers requests: `Task<> f(Request&, Response&)`, or `void f(Request&,
/// Response&)` if it need not wait. Requests run it concurrently; a server over a group of loops
/// runs it on several threads.
class Handler {
 public:
  Handler() = default;

  /// Owns a copy of `function`. Throws std::bad_alloc.
  template <class F>
    requires(!std::same_as<F, Handler>) && HandlerFunction<F>
  // NOLINTNEXTLINE(google-explicit-constructor): functions are passed as handlers.
  Handler(F function, std::source_location created_at = std::source_location::current())
      : created_at_(created_at),
        start_([function = std::move(function)](Request& request,
                                                Response& response) mutable -> Task<> {
          if constexpr (std::is_void_v<std::invoke_result_t<F&, Request&, Response&>>) {
            function(request, response);
            return {};
          } else {
            return function(request, response);
          }
        }) {}

  /// Explains why a function is not a handler.
  template <class F>
    requires(!std::same_as<F, Handler> && !HandlerFunction<std::decay_t<F>> &&
             (tambour::detail::LooksCallable<F> || std::invocable<F&, Request&, Response&>))
  // NOLINTNEXTLINE(google-explicit-constructor): as above.
  Handler(const F& /*function*/) {
    static_assert(std::copy_constructible<F>,
                  "routes and loops copy their handlers, so what a handler captures must be "
                  "copyable: capture a std::shared_ptr in place of a std::unique_ptr");
    static_assert(!std::copy_constructible<F> || std::invocable<F&, Request&, Response&>,
                  "a handler has the parameters (http::Request&, http::Response&)");
    static_assert(!std::copy_constructible<F> || !std::invocable<F&, Request&, Response&>,
                  "a handler returns Task<> or void");
  }

  explicit operator bool() const noexcept { return start_ != nullptr; }

  /// Where the function was made a handler: the stall detector names it.
  [[nodiscard]] const std::source_location& created_at() const noexcept { return created_at_; }

  /// Invokes the function. Returns its task, which has not started, or an empty Task if the
  /// function has done its work. Throws what the function throws.
  [[nodiscard]] Task<> start(Request& request, Response& response) const {
    response.keep_fields();
    return start_(request, response);
  }
  /// Invokes the function and waits until it has ended. The handler must exist until then.
  [[nodiscard]] Task<> run(Request& request, Response& response) const;

 private:
  std::source_location created_at_;
  std::function<Task<>(Request&, Response&)> start_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
