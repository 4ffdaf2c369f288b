// RouteTree: segments of paths as a tree, and the search that prefers literal ones.
#include "http/middleware/route_tree.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include <tambour/http/url.h>

#include "base/check.h"

namespace tambour::http {
namespace {

[[noreturn]] void refuse_pattern(std::string_view pattern, const std::string& why) {
  detail::base::fail_check("http::Router: the pattern \"%s\" %s", std::string(pattern).c_str(),
                           why.c_str());
}

/// Routers of other libraries write parameters like this. The text is legal, but rare.
void warn_of_foreign_parameter(std::string_view pattern, std::string_view segment) noexcept {
  const bool is_name = segment.size() > 1 && (segment[0] == ':' || segment[0] == '*');
  static constinit std::atomic<bool> has_warned{false};
  if ((!is_name && segment != "*") || has_warned.exchange(true, std::memory_order_relaxed)) return;
  const std::string_view name = is_name ? segment.substr(1) : "path";
  detail::base::warn(
      "http::Router: in the pattern \"%.*s\", \"%.*s\" is text and no parameter; write "
      "\"{%.*s%s}\" for a parameter",
      int(pattern.size()), pattern.data(), int(segment.size()), segment.data(), int(name.size()),
      name.data(), segment[0] == '*' ? "..." : "");
}

struct Segment {
  enum class Kind : std::uint8_t { text, parameter, rest };
  Kind kind = Kind::text;
  std::string text;
};

Segment parse_segment(std::string_view pattern, std::string_view text) {
  if (!text.starts_with('{')) {
    if (text.find_first_of("{}") != std::string_view::npos)
      refuse_pattern(pattern, "has a brace inside a segment; a parameter is a whole segment");
    warn_of_foreign_parameter(pattern, text);
    return {.kind = Segment::Kind::text, .text = std::string(text)};
  }
  if (!text.ends_with('}')) refuse_pattern(pattern, "has a parameter without a closing brace");
  std::string_view name = text.substr(1, text.size() - 2);
  const bool is_rest = name.ends_with("...");
  if (is_rest) name.remove_suffix(3);
  if (name.empty() || name.find_first_of("{}.") != std::string_view::npos)
    refuse_pattern(pattern, "has a parameter without a valid name");
  return {.kind = is_rest ? Segment::Kind::rest : Segment::Kind::parameter,
          .text = std::string(name)};
}

}  // namespace

const Handler* Route::find(const Method& method) const noexcept {
  for (const auto& [entry, handler] : handlers) {
    if (entry == method) return &handler;
  }
  if (method == Method::head) {
    if (const Handler* const get = find(Method::get)) return get;
  }
  return any ? &any : nullptr;
}

std::string Route::allowed() const {
  std::vector<std::string_view> methods;
  methods.reserve(handlers.size() + 2);
  for (const auto& [method, handler] : handlers) methods.push_back(method.name());
  const auto add = [&methods](std::string_view name) {
    if (std::ranges::find(methods, name) == methods.end()) methods.push_back(name);
  };
  if (std::ranges::find(methods, "GET") != methods.end()) add("HEAD");
  add("OPTIONS");
  std::string text;
  for (const std::string_view name : methods) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::unique_ptr<RouteTree::Node>& RouteTree::Node::at(std::string_view text) {
  auto found = std::ranges::lower_bound(texts, text, {}, &Child::text);
  if (found == texts.end() || found->text != text)
    found = texts.insert(found, Child{.text = std::string(text), .node = {}});
  return found->node;
}

const RouteTree::Node* RouteTree::Node::find(std::string_view text) const noexcept {
  // Few texts are compared one after the other, because most of them differ in size.
  constexpr std::size_t few = 8;
  if (texts.size() <= few) {
    const auto found = std::ranges::find(texts, text, &Child::text);
    return found != texts.end() ? found->node.get() : nullptr;
  }
  const auto found = std::ranges::lower_bound(texts, text, {}, &Child::text);
  return found != texts.end() && found->text == text ? found->node.get() : nullptr;
}

Route& RouteTree::at(std::string_view pattern) {
  if (!pattern.starts_with('/')) refuse_pattern(pattern, "does not begin with \"/\"; add it");
  Node* node = &root_;
  std::vector<std::string> names;
  bool has_rest = false;
  for (std::size_t begin = 1; begin <= pattern.size();) {
    if (has_rest) refuse_pattern(pattern, "has a segment after \"...\"");
    const std::size_t end = std::min(pattern.find('/', begin), pattern.size());
    Segment segment = parse_segment(pattern, pattern.substr(begin, end - begin));
    begin = end + 1;
    has_rest = segment.kind == Segment::Kind::rest;
    std::unique_ptr<Node>& next = segment.kind == Segment::Kind::text ? node->at(segment.text)
                                  : has_rest                          ? node->rest
                                                                      : node->parameter;
    if (next == nullptr) next = std::make_unique<Node>();
    node = next.get();
    if (segment.kind == Segment::Kind::text) continue;
    if (std::ranges::find(names, segment.text) != names.end())
      refuse_pattern(pattern, "has two parameters with the same name");
    names.push_back(std::move(segment.text));
  }
  if (node->route == nullptr) {
    node->route = std::make_unique<Route>(Route{.names = names, .handlers = {}, .any = {}});
    node->pattern = pattern;
  }
  if (node->route->names != names)
    refuse_pattern(pattern, "differs from \"" + node->pattern +
                                "\" only in the names of its parameters; use the same names");
  return *node->route;
}

void RouteTree::build_index() {
  std::vector<RouteIndex::Entry> texts;
  visit(root_, [&texts](const std::string& pattern, const Route& route) {
    if (route.names.empty() && !pattern.contains('%'))
      texts.push_back({.hash = 0, .pattern = pattern, .route = &route});
  });
  index_.build(texts);
}

RouteMatch RouteTree::match(std::string_view path) const {
  if (!path.starts_with('/')) return {};
  // The target of a request is valid, but a handler may have changed it.
  const bool is_encoded = path.find('%') != std::string_view::npos;
  if (is_encoded && !percent_decode(path)) return {};
  RouteMatch found;
  const Node* const node = find(root_, path.substr(1), is_encoded, found.parameters);
  if (node != nullptr) {
    found.route = node->route.get();
    found.pattern = node->pattern;
  }
  return found;
}

/// Tries the alternatives in the order of their precedence. The depth is that of the patterns.
/// `rest` begins after a "/". `is_encoded`: the path contains a percent sign.
const RouteTree::Node* RouteTree::find(const Node& node, std::string_view rest, bool is_encoded,
                                       std::vector<std::string>& parameters) {
  const std::size_t end = std::min(rest.find('/'), rest.size());
  std::string_view segment = rest.substr(0, end);
  std::string decoded;
  if (is_encoded) {
    decoded = percent_decode(segment).value();
    segment = decoded;
  }
  const auto find_below = [&](const Node& next) -> const Node* {
    if (end == rest.size()) return next.route != nullptr ? &next : nullptr;
    return find(next, rest.substr(end + 1), is_encoded, parameters);
  };
  if (const Node* const text = node.find(segment)) {
    if (const Node* const found = find_below(*text)) return found;
  }
  const std::size_t count = parameters.size();
  if (node.parameter != nullptr && !segment.empty()) {
    parameters.emplace_back(segment);
    if (const Node* const found = find_below(*node.parameter)) return found;
    parameters.resize(count);
  }
  if (node.rest == nullptr) return nullptr;
  parameters.push_back(percent_decode(rest).value());
  return node.rest.get();
}

void RouteTree::for_each(
    const std::function<void(const std::string& pattern, Route& route)>& entry) {
  visit(root_, entry);
}

void RouteTree::visit(Node& node,
                      const std::function<void(const std::string& pattern, Route& route)>& entry) {
  if (node.route != nullptr) entry(node.pattern, *node.route);
  for (const Child& child : node.texts) visit(*child.node, entry);
  if (node.parameter != nullptr) visit(*node.parameter, entry);
  if (node.rest != nullptr) visit(*node.rest, entry);
}

}  // namespace tambour::http
