// StreamServerGroupBase: the public server of a group, which shares its AcceptorGroup with the
// loops.
#include <tambour/net/server_group.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "backend/system.h"
#include "base/check.h"
#include "base/failure.h"
#include "net/socket_calls.h"
#include "server/acceptor.h"
#include "server/acceptor_group.h"
#include "server/error_reporting.h"

namespace tambour {
namespace {

detail::server::AcceptorGroup& existing(
    const std::shared_ptr<detail::server::AcceptorGroup>& acceptors,
    const char* function) noexcept {
  if (acceptors == nullptr) [[unlikely]]
    detail::base::fail_check("StreamServerGroup::%s() was called on a server that was moved from",
                             function);
  return *acceptors;
}

/// Aborts if the server was moved from or its group destroyed; `function` names the caller in the
/// message.
detail::server::AcceptorGroup& usable(
    const std::shared_ptr<detail::server::AcceptorGroup>& acceptors,
    const char* function) noexcept {
  existing(acceptors, function).check_group(function);
  return *acceptors;
}

}  // namespace

StreamServerGroupBase::StreamServerGroupBase(
    std::shared_ptr<detail::server::AcceptorGroup> acceptors) noexcept
    : acceptors_(std::move(acceptors)) {}
StreamServerGroupBase::StreamServerGroupBase(StreamServerGroupBase&&) noexcept = default;

StreamServerGroupBase& StreamServerGroupBase::operator=(StreamServerGroupBase&& other) noexcept {
  if (this != &other) {
    close();
    acceptors_ = std::move(other.acceptors_);
  }
  return *this;
}

StreamServerGroupBase::~StreamServerGroupBase() { close(); }

void StreamServerGroupBase::close() noexcept {
  if (acceptors_ == nullptr) return;
  acceptors_->check_group(nullptr);
  // In two passes: after the first, no connection moves between acceptors. If the group has been
  // stopped, its loops destroy the acceptors themselves.
  if (acceptors_->for_each_acceptor([](detail::server::Acceptor& acceptor) { acceptor.drop(); }))
    acceptors_->for_each_acceptor(
        [](detail::server::Acceptor& acceptor) { detail::server::Acceptor::destroy(&acceptor); });
  acceptors_->wait_for_destruction();
  acceptors_.reset();
}

Result<StreamServerGroupBase> StreamServerGroupBase::open(LoopGroup& group, const Endpoint& at,
                                                          const ListenOptions& options) {
  return open(group, detail::server::ListenerSource{.at = at}, options);
}

Result<StreamServerGroupBase> StreamServerGroupBase::open(LoopGroup& group,
                                                          std::vector<UniqueFd> listeners,
                                                          bool (*supports)(const Endpoint&),
                                                          const ListenOptions& options) {
  if (listeners.empty()) return detail::base::failure(EINVAL);
  // The steering program refers to listeners by index, one for each loop.
  if (options.placement == Placement::processor && listeners.size() > group.size())
    return detail::base::failure(EINVAL);
  detail::server::ListenerSource source{
      .at = {}, .listeners = std::move(listeners), .supports = supports};
  for (std::size_t i = 0; i < source.listeners.size(); ++i) {
    const auto at =
        detail::net::local_endpoint(detail::backend::kernel(), source.listeners[i].get());
    if (!at) return std::unexpected(at.error());
    if (i > 0 && *at != source.at) return detail::base::failure(EINVAL);
    source.at = *at;
  }
  return open(group, std::move(source), options);
}

Result<StreamServerGroupBase> StreamServerGroupBase::open(LoopGroup& group,
                                                          detail::server::ListenerSource source,
                                                          const ListenOptions& options) {
  StreamServerGroupBase server(std::make_shared<detail::server::AcceptorGroup>(group, options));
  if (server.acceptors_->placement().each_loop_listens() && !source.at.is_ip())
    return detail::base::failure(EOPNOTSUPP);
  // Sequentially: the first listener determines the port, and steering depends on the order.
  for (std::size_t i = 0; i < group.size(); ++i) {
    Result<> opened;
    const bool all_called = group.for_each([&](EventLoop& loop) {
      if (&loop == &group[i]) opened = server.acceptors_->open_acceptor(loop, source);
    });
    if (!all_called) return detail::base::failure(ECANCELED);
    if (!opened) return std::unexpected(opened.error());
  }
  return server;
}

void StreamServerGroupBase::serve_with(const std::function<Task<>(SocketStream)>& handler,
                                       const std::source_location& created_at,
                                       detail::HandshakeCheck check) {
  detail::server::AcceptorGroup& acceptors = usable(acceptors_, "serve");
  acceptors.begin_serving();
  // All acceptors are prepared before any accepts, because an accepted connection may be delivered
  // to any of them.
  acceptors.for_each_acceptor(
      [&](detail::server::Acceptor& acceptor) { acceptor.serve(handler, created_at, check); });
  acceptors.for_each_acceptor(
      [&](detail::server::Acceptor& acceptor) { acceptor.accept(created_at); });
}

void StreamServerGroupBase::serve(ConnectionCallbacks callbacks, std::source_location at) {
  callbacks.created_at = at;
  detail::server::AcceptorGroup& acceptors = usable(acceptors_, "serve");
  acceptors.begin_serving();
  const auto shared = detail::server::share_callbacks(std::move(callbacks), acceptors.reporter());
  acceptors.for_each_acceptor([&](detail::server::Acceptor& acceptor) { acceptor.serve(shared); });
  acceptors.for_each_acceptor([&](detail::server::Acceptor& acceptor) { acceptor.accept(at); });
}

const Endpoint& StreamServerGroupBase::endpoint() const noexcept {
  return existing(acceptors_, "endpoint").endpoint();
}
const tls::ServerContext& StreamServerGroupBase::tls() const noexcept {
  return existing(acceptors_, "tls").options()->tls;
}
Result<std::vector<UniqueFd>> StreamServerGroupBase::copy_listeners() const {
  return usable(acceptors_, "copy_listeners").copy_listeners();
}
void StreamServerGroupBase::keep_path() noexcept { usable(acceptors_, "keep_path").keep_path(); }
void StreamServerGroupBase::stop() {
  usable(acceptors_, "stop").post_to_acceptors([](detail::server::Acceptor& acceptor) {
    acceptor.stop();
  });
}
Task<> StreamServerGroupBase::shut_down(Duration grace) {
  static_cast<void>(usable(acceptors_, "shut_down"));
  return detail::server::AcceptorGroup::shut_down(acceptors_, grace);
}
std::stop_token StreamServerGroupBase::shutdown_token(const EventLoop& loop) const noexcept {
  return usable(acceptors_, "shutdown_token").shutdown_source_on(loop).get_token();
}
void StreamServerGroupBase::for_each_connection(Callback<void(Connection&)> function) {
  usable(acceptors_, "for_each_connection")
      .post_to_acceptors([function = std::move(function)](detail::server::Acceptor& acceptor) {
        acceptor.for_each_connection_and_report(function);
      });
}
std::size_t StreamServerGroupBase::connections() const noexcept {
  return existing(acceptors_, "connections").connections();
}
std::uint64_t StreamServerGroupBase::accepted() const noexcept {
  return existing(acceptors_, "accepted").accepted();
}
std::uint64_t StreamServerGroupBase::handler_exceptions() const noexcept {
  return existing(acceptors_, "handler_exceptions").reporter()->count();
}
std::uint64_t StreamServerGroupBase::accept_pauses() const noexcept {
  return existing(acceptors_, "accept_pauses").reporter()->pauses();
}
std::size_t StreamServerGroupBase::connections_max() const noexcept {
  return existing(acceptors_, "connections_max").connections_max();
}
const std::shared_ptr<detail::server::ErrorReporter>& StreamServerGroupBase::reporter()
    const noexcept {
  return existing(acceptors_, "serve").reporter();
}

}  // namespace tambour
