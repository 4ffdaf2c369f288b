// The routes of a router as a tree of segments.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/http/handler.h>
#include <tambour/http/method.h>

#include "http/middleware/route_index.h"

namespace tambour::http {

/// What a pattern has: a handler for each method.
struct Route {
  std::vector<std::string> names;  ///< Of the parameters, in their order.
  std::vector<std::pair<Method, Handler>> handlers;
  Handler any;

  [[nodiscard]] const Handler* find(const Method& method) const noexcept;
  /// The value of the Allow field, with the methods that the router answers itself.
  [[nodiscard]] std::string allowed() const;
};

/// Parameters are percent-decoded.
struct RouteMatch {
  const Route* route = nullptr;
  std::string_view pattern;
  std::vector<std::string> parameters;
};

class RouteTree {
 public:
  /// The route of a pattern, which is created if it does not exist. Aborts with a message if the
  /// pattern is malformed, or has the same parameters with other names.
  [[nodiscard]] Route& at(std::string_view pattern);

  /// To be called when all routes are complete, before the functions that find them. The tree is
  /// not moved any more. Throws std::bad_alloc.
  void build_index();
  /// The route whose pattern is `path`, for a path without percent signs. Null if there is none;
  /// another pattern may match then.
  [[nodiscard]] const RouteIndex::Entry* find_text(std::string_view path) const noexcept {
    return index_.find(path);
  }
  /// `path` begins with "/". The route is null if no pattern matches.
  [[nodiscard]] RouteMatch match(std::string_view path) const;

  /// Calls `each(pattern, route)` for every route.
  void for_each(const std::function<void(const std::string& pattern, Route& route)>& entry);

 private:
  struct Node;
  struct Child {
    std::string text;
    std::unique_ptr<Node> node;
  };
  struct Node {
    std::vector<Child> texts;  ///< Sorted by text.
    std::unique_ptr<Node> parameter;
    std::unique_ptr<Node> rest;
    std::unique_ptr<Route> route;
    std::string pattern;  ///< Of the route.

    /// The child with this text, which is created if it does not exist.
    [[nodiscard]] std::unique_ptr<Node>& at(std::string_view text);
    /// Null if there is none.
    [[nodiscard]] const Node* find(std::string_view text) const noexcept;
  };

  [[nodiscard]] static const Node* find(const Node& node, std::string_view rest, bool is_encoded,
                                        std::vector<std::string>& parameters);
  static void visit(Node& node,
                    const std::function<void(const std::string& pattern, Route& route)>& entry);

  Node root_;
  RouteIndex index_;
};

}  // namespace tambour::http
