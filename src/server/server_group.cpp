// ServerGroupBase: the public server of a group, which shares its AcceptorGroup with the loops.
#include <tambour/server_group.h>

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

server::AcceptorGroup& existing(const std::shared_ptr<server::AcceptorGroup>& acceptors,
                                const char* function) noexcept {
  if (acceptors == nullptr) [[unlikely]]
    base::fail_check("StreamServerGroup::%s() was called on a server that was moved from",
                     function);
  return *acceptors;
}

/// Aborts if the server was moved from or its group destroyed; `function` names the caller in the
/// message.
server::AcceptorGroup& usable(const std::shared_ptr<server::AcceptorGroup>& acceptors,
                              const char* function) noexcept {
  existing(acceptors, function).check_group(function);
  return *acceptors;
}

}  // namespace

ServerGroupBase::ServerGroupBase(std::shared_ptr<server::AcceptorGroup> acceptors) noexcept
    : acceptors_(std::move(acceptors)) {}
ServerGroupBase::ServerGroupBase(ServerGroupBase&&) noexcept = default;

ServerGroupBase& ServerGroupBase::operator=(ServerGroupBase&& other) noexcept {
  if (this != &other) {
    close();
    acceptors_ = std::move(other.acceptors_);
  }
  return *this;
}

ServerGroupBase::~ServerGroupBase() { close(); }

void ServerGroupBase::close() noexcept {
  if (acceptors_ == nullptr) return;
  acceptors_->check_group(nullptr);
  // In two passes: after the first, no connection moves between acceptors. If the group has been
  // stopped, its loops destroy the acceptors themselves.
  if (acceptors_->for_each_acceptor([](server::Acceptor& acceptor) { acceptor.drop(); }))
    acceptors_->for_each_acceptor(
        [](server::Acceptor& acceptor) { server::Acceptor::destroy(&acceptor); });
  acceptors_->wait_for_destruction();
  acceptors_.reset();
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, const Endpoint& at,
                                              const ListenOptions& options) {
  return open(group, server::ListenerSource{.at = at}, options);
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, std::vector<UniqueFd> listeners,
                                              bool (*supports)(const Endpoint&),
                                              const ListenOptions& options) {
  if (listeners.empty()) return base::failure(EINVAL);
  // The steering program refers to listeners by index, one for each loop.
  if (options.placement == Placement::processor && listeners.size() > group.size())
    return base::failure(EINVAL);
  server::ListenerSource source{.at = {}, .listeners = std::move(listeners), .supports = supports};
  for (std::size_t i = 0; i < source.listeners.size(); ++i) {
    const auto at = net::local_endpoint(backend::kernel(), source.listeners[i].get());
    if (!at) return std::unexpected(at.error());
    if (i > 0 && *at != source.at) return base::failure(EINVAL);
    source.at = *at;
  }
  return open(group, std::move(source), options);
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, server::ListenerSource source,
                                              const ListenOptions& options) {
  ServerGroupBase server(std::make_shared<server::AcceptorGroup>(group, options));
  if (server.acceptors_->placement().each_loop_listens() && !source.at.is_ip())
    return base::failure(EOPNOTSUPP);
  // Sequentially: the first listener determines the port, and steering depends on the order.
  for (std::size_t i = 0; i < group.size(); ++i) {
    Result<> opened;
    const bool all_called = group.for_each([&](EventLoop& loop) {
      if (&loop == &group[i]) opened = server.acceptors_->open_acceptor(loop, source);
    });
    if (!all_called) return base::failure(ECANCELED);
    if (!opened) return std::unexpected(opened.error());
  }
  return server;
}

void ServerGroupBase::serve_with(const std::function<Task<>(SocketStream)>& handler,
                                 const std::source_location& created_at,
                                 detail::HandshakeCheck check) {
  server::AcceptorGroup& acceptors = usable(acceptors_, "serve");
  acceptors.begin_serving();
  // All acceptors are prepared before any accepts, because an accepted connection may be delivered
  // to any of them.
  acceptors.for_each_acceptor(
      [&](server::Acceptor& acceptor) { acceptor.serve(handler, created_at, check); });
  acceptors.for_each_acceptor([](server::Acceptor& acceptor) { acceptor.accept(); });
}

void ServerGroupBase::serve(ConnectionCallbacks callbacks, std::source_location at) {
  callbacks.created_at = at;
  server::AcceptorGroup& acceptors = usable(acceptors_, "serve");
  acceptors.begin_serving();
  const auto shared = server::share_callbacks(std::move(callbacks), acceptors.reporter());
  acceptors.for_each_acceptor([&](server::Acceptor& acceptor) { acceptor.serve(shared); });
  acceptors.for_each_acceptor([](server::Acceptor& acceptor) { acceptor.accept(); });
}

const Endpoint& ServerGroupBase::endpoint() const noexcept {
  return existing(acceptors_, "endpoint").endpoint();
}
const TlsServerContext& ServerGroupBase::tls() const noexcept {
  return existing(acceptors_, "tls").options()->tls;
}
Result<std::vector<UniqueFd>> ServerGroupBase::copy_listeners() const {
  return usable(acceptors_, "copy_listeners").copy_listeners();
}
void ServerGroupBase::keep_path() noexcept { usable(acceptors_, "keep_path").keep_path(); }
void ServerGroupBase::stop() {
  usable(acceptors_, "stop").post_to_acceptors([](server::Acceptor& acceptor) { acceptor.stop(); });
}
Task<> ServerGroupBase::shut_down(Duration grace) {
  static_cast<void>(usable(acceptors_, "shut_down"));
  return server::AcceptorGroup::shut_down(acceptors_, grace);
}
std::stop_token ServerGroupBase::shutdown_token(const EventLoop& loop) const noexcept {
  return usable(acceptors_, "shutdown_token").shutdown_source_on(loop).get_token();
}
void ServerGroupBase::for_each_connection(Callback<void(Connection&)> function) {
  usable(acceptors_, "for_each_connection")
      .post_to_acceptors([function = std::move(function)](server::Acceptor& acceptor) {
        acceptor.for_each_connection_and_report(function);
      });
}
std::size_t ServerGroupBase::connections() const noexcept {
  return existing(acceptors_, "connections").connections();
}
std::uint64_t ServerGroupBase::accepted() const noexcept {
  return existing(acceptors_, "accepted").accepted();
}
std::uint64_t ServerGroupBase::handler_exceptions() const noexcept {
  return existing(acceptors_, "handler_exceptions").reporter()->count();
}
std::size_t ServerGroupBase::connections_max() const noexcept {
  return existing(acceptors_, "connections_max").connections_max();
}
const std::shared_ptr<server::ErrorReporter>& ServerGroupBase::reporter() const noexcept {
  return existing(acceptors_, "serve").reporter();
}

}  // namespace tambour
