// ServerContext and ClientContext: handles of the contexts that this directory loads.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tls/context/context.h"

namespace tambour::tls {
namespace {

template <class State>
Result<std::shared_ptr<State>, Failure> load(typename State::Options options) {
  auto state = std::make_shared<State>();
  if (auto loaded = state->load(std::move(options)); !loaded)
    return std::unexpected(std::move(loaded.error()));
  return state;
}

/// With other options, or with the current ones. `state` may be null.
template <class State, class... Options>
Result<void, Failure> load_again(const std::shared_ptr<State>& state, Options... options) {
  if (state == nullptr)
    return detail::failure(ErrorCode::bad_configuration, "reload() of an empty context");
  if constexpr (sizeof...(Options) == 0) {
    return state->load_again();
  } else {
    return state->load(std::move(options)...);
  }
}

template <class State>
Stats stats_of(const std::shared_ptr<State>& state) {
  return state != nullptr ? state->current()->counters().stats() : Stats();
}

template <class State>
std::vector<std::string> alpn_of(const std::shared_ptr<State>& state) {
  return state != nullptr ? state->current()->options().alpn : std::vector<std::string>();
}

}  // namespace

Result<ServerContext, Failure> ServerContext::create(ServerOptions options) {
  auto state = load<detail::LoadedServerState>(std::move(options));
  if (!state) return std::unexpected(std::move(state.error()));
  return ServerContext(std::move(*state));
}
Result<void, Failure> ServerContext::reload() const { return load_again(detail::state_of(*this)); }
Result<void, Failure> ServerContext::reload(ServerOptions options) const {
  return load_again(detail::state_of(*this), std::move(options));
}
Stats ServerContext::stats() const { return stats_of(detail::state_of(*this)); }
std::vector<std::string> ServerContext::alpn() const { return alpn_of(detail::state_of(*this)); }

Result<ClientContext, Failure> ClientContext::create(ClientOptions options) {
  auto state = load<detail::LoadedClientState>(std::move(options));
  if (!state) return std::unexpected(std::move(state.error()));
  return ClientContext(std::move(*state));
}
Result<void, Failure> ClientContext::reload() const { return load_again(detail::state_of(*this)); }
Result<void, Failure> ClientContext::reload(ClientOptions options) const {
  return load_again(detail::state_of(*this), std::move(options));
}
Stats ClientContext::stats() const { return stats_of(detail::state_of(*this)); }
Result<ClientContext, Failure> ClientContext::with_alpn(std::vector<std::string> protocols) const {
  if (state_ == nullptr)
    return detail::failure(ErrorCode::bad_configuration, "with_alpn() of an empty context");
  auto encoded = detail::encode_alpn(protocols);
  if (!encoded) return std::unexpected(std::move(encoded.error()));
  ClientContext context = *this;
  context.alpn_ = std::make_shared<const detail::AlpnList>(
      detail::AlpnList{std::move(protocols), std::move(*encoded)});
  return context;
}
std::vector<std::string> ClientContext::alpn() const {
  if (alpn_ != nullptr) return alpn_->names;
  return alpn_of(detail::state_of(*this));
}

}  // namespace tambour::tls
