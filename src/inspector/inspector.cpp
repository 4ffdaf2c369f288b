// Inspector: what the program calls.
#include <tambour/inspector/inspector.h>

#include <errno.h>

#include <string_view>
#include <utility>

#include "inspector/state.h"

namespace tambour::inspector {
namespace {

InspectorOptions with_title(InspectorOptions options) {
  if (options.title.empty()) options.title = ::program_invocation_short_name;
  return options;
}

}  // namespace

Inspector::Inspector(LoopGroup& loops, InspectorOptions options)
    : state_(std::make_shared<State>(with_title(std::move(options)))) {
  for (auto& loop : observe(loops, "loop")) state_->add(std::move(loop));
}

Inspector::Inspector(EventLoop& loop, InspectorOptions options)
    : state_(std::make_shared<State>(with_title(std::move(options)))) {
  add(loop, "loop");
}

Inspector::~Inspector() = default;

void Inspector::add(EventLoop& loop, const std::string& name) { state_->add(observe(loop, name)); }

http::Router Inspector::router() const { return InspectorPages::router(state_); }

Result<http::Server> Inspector::listen(EventLoop& loop, const Endpoint& at,
                                       http::ServerOptions options) const {
  if (at.is_ip() && !is_loopback(at) && !state_->options.authenticate)
    return std::unexpected(make_error_code(ErrorCode::not_authenticated));
  if (!contains(state_->loops(), loop)) state_->add(observe(loop, "inspector"));
  return http::Server::listen(loop, at, router().handler(), std::move(options));
}

void Inspector::set_ready(bool is_ready) noexcept { state_->is_ready = is_ready; }

}  // namespace tambour::inspector
