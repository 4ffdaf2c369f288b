// Router.
#include <tambour/http/router.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "http/middleware/route_tree.h"
#include "http_message/characters.h"
#include "http_message/url_syntax.h"

namespace tambour::http {
namespace {

void check_free(bool is_free, std::string_view method, std::string_view pattern) {
  if (!is_free) [[unlikely]]
    detail::base::fail_check("http::Router: %s \"%s\" was added twice; a route has one handler",
                             std::string(method).c_str(), std::string(pattern).c_str());
}

void add_handler(Route& route, const Method& method, std::string_view pattern, Handler handler) {
  for (const auto& [entry, other] : route.handlers)
    check_free(entry != method, method.name(), pattern);
  route.handlers.emplace_back(method, std::move(handler));
}

}  // namespace

struct Router::State {
  RouteTree tree;
  std::vector<Middleware> middleware;
  Handler not_found;
  std::vector<std::pair<std::string, std::unique_ptr<Router>>> hosts;
};

namespace {

/// What the handler of a router consists of.
struct Routes {
  RouteTree tree;
  Handler not_found;
  std::vector<std::pair<std::string, Handler>> hosts;  ///< Names before patterns.

  [[nodiscard]] Task<> start(Request& request, Response& response) const;
  [[nodiscard]] const Handler* find_host(std::string_view authority) const noexcept;
  [[nodiscard]] Task<> start_route(Request& request, Response& response) const;
  /// The handler of a route; a response if it has none for the method.
  [[nodiscard]] static Task<> start_handler(const Route& route, const Method& method,
                                            Request& request, Response& response);
};

bool matches_host(std::string_view name, std::string_view host) noexcept {
  if (!name.starts_with("*.")) return equal_ignoring_case(name, host);
  name.remove_prefix(1);
  return host.size() > name.size() &&
         equal_ignoring_case(name, host.substr(host.size() - name.size()));
}

const Handler* Routes::find_host(std::string_view authority) const noexcept {
  const auto parsed = parse_host_and_port(authority);
  if (!parsed) return nullptr;
  std::string_view host = parsed->host;
  if (host.ends_with('.')) host.remove_suffix(1);
  for (const auto& [name, handler] : hosts) {
    if (matches_host(name, host)) return &handler;
  }
  return nullptr;
}

Task<> Routes::start(Request& request, Response& response) const {
  if (!hosts.empty()) {
    if (const Handler* const host = find_host(request.head().authority))
      return host->start(request, response);
  }
  return start_route(request, response);
}

Task<> Routes::start_route(Request& request, Response& response) const {
  const RequestHead& head = request.head();
  // An extended CONNECT (RFC 8441) is over HTTP/2 what GET with Upgrade is over HTTP/1.1.
  const bool opens_protocol = !head.protocol.empty();
  const Method& method = opens_protocol ? Method::get : head.method;
  if (method == Method::connect) {
    static_cast<void>(response.send_error(Status::not_implemented));
    return {};
  }
  if (std::string_view(head.target) == "*") {  // OPTIONS for the server as a whole.
    static_cast<void>(response.send(Status::no_content));
    return {};
  }
  const std::string_view path = head.path();
  if (const RouteIndex::Entry* const text = tree.find_text(path)) {
    request.set_route(text->pattern);
    return start_handler(*text->route, method, request, response);
  }
  RouteMatch match = tree.match(path);
  if (match.route == nullptr) {
    if (not_found) return not_found.start(request, response);
    static_cast<void>(response.send_error(Status::not_found));
    return {};
  }
  request.set_route(match.pattern);
  if (match.route->find(method) != nullptr) {
    for (std::size_t i = 0; i < match.parameters.size(); ++i)
      request.set_parameter(match.route->names[i], std::move(match.parameters[i]));
  }
  return start_handler(*match.route, method, request, response);
}

Task<> Routes::start_handler(const Route& route, const Method& method, Request& request,
                             Response& response) {
  if (const Handler* const handler = route.find(method)) return handler->start(request, response);
  static_cast<void>(response.headers().set("Allow", route.allowed()));
  if (method == Method::options) {
    static_cast<void>(response.send(Status::no_content));
  } else {
    static_cast<void>(response.send_error(Status::method_not_allowed));
  }
  return {};
}

}  // namespace

Handler with_middleware(const std::vector<Middleware>& middleware, Handler handler) {
  const std::source_location created_at = handler.created_at();
  for (std::size_t i = middleware.size(); i-- > 0;)
    handler = Handler(
        [outer = middleware[i], next = std::move(handler)](Request& request, Response& response) {
          return outer(request, response, next);
        },
        created_at);
  return handler;
}

Router::Router() : state_(std::make_unique<State>()) {}
Router::Router(Router&& other) noexcept = default;
Router& Router::operator=(Router&& other) noexcept = default;
Router::~Router() = default;

Router& Router::add(const Method& method, std::string_view pattern, Handler handler) {
  add_handler(state_->tree.at(pattern), method, pattern, std::move(handler));
  return *this;
}

Router& Router::any(std::string_view pattern, Handler handler) {
  Route& route = state_->tree.at(pattern);
  check_free(!route.any, "any method of", pattern);
  route.any = std::move(handler);
  return *this;
}

Router& Router::mount(std::string_view prefix, Router other) {
  const std::vector<Middleware>& middleware = other.state_->middleware;
  other.state_->tree.for_each([&](const std::string& pattern, Route& route) {
    const std::string whole = std::string(prefix) + pattern;
    Route& local = state_->tree.at(whole);
    for (auto& [method, handler] : route.handlers)
      add_handler(local, method, whole, with_middleware(middleware, std::move(handler)));
    if (!route.any) return;
    check_free(!local.any, "any method of", whole);
    local.any = with_middleware(middleware, std::move(route.any));
  });
  return *this;
}

Router& Router::use(Middleware middleware) {
  state_->middleware.push_back(std::move(middleware));
  return *this;
}

Router& Router::not_found(Handler handler) {
  state_->not_found = std::move(handler);
  return *this;
}

Router& Router::host(std::string_view name) {
  for (auto& [entry, router] : state_->hosts) {
    if (equal_ignoring_case(entry, name)) return *router;
  }
  state_->hosts.emplace_back(name, std::make_unique<Router>());
  return *state_->hosts.back().second;
}

Handler Router::handler(std::source_location at) && {
  const auto state = std::exchange(state_, std::make_unique<State>());
  auto routes = std::make_shared<Routes>();
  routes->tree = std::move(state->tree);
  routes->tree.build_index();
  routes->not_found = std::move(state->not_found);
  // The longest name first, so that "a.example.org" precedes "*.example.org", and that "*.org".
  std::ranges::stable_sort(state->hosts, [](const auto& one, const auto& other) {
    const bool is_name = !one.first.starts_with('*');
    const bool other_is_name = !other.first.starts_with('*');
    return is_name != other_is_name ? is_name : one.first.size() > other.first.size();
  });
  for (auto& [name, router] : state->hosts)
    routes->hosts.emplace_back(name, std::move(*router).handler());
  const std::shared_ptr<const Routes> shared = std::move(routes);
  return with_middleware(state->middleware, Handler(
                                                [shared](Request& request, Response& response) {
                                                  return shared->start(request, response);
                                                },
                                                at));
}

}  // namespace tambour::http
