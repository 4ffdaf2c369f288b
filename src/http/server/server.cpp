// Server and ServerGroup.
#include <tambour/http/server.h>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <tambour/threads/loop_group.h>

#include "http/exchange/settings.h"
#include "http/protocol.h"
#include "http/server/h2/counters.h"
#include "http/server/idle/server_on_loop.h"
#include "http/server/serve.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

bool supports_all(const Endpoint&) noexcept { return true; }

/// For detail::HandshakeCheck.
template <Http2Support http_2>
Result<> check_protocol(const SocketStream& stream) noexcept {
  const Result<Protocol> protocol = negotiated_protocol(stream, http_2);
  return protocol ? Result<>() : std::unexpected(protocol.error());
}

auto protocol_check_of(const ServerOptions& options) noexcept {
  return http_2_support(options) == Http2Support::spoken ? &check_protocol<Http2Support::spoken>
                                                         : &check_protocol<Http2Support::none>;
}

Result<> check_offered(const ServerOptions& options) noexcept {
  return check_offered(options.listen.tls.alpn(), http_2_support(options));
}

std::shared_ptr<const ServerSettings> settings_of(
    Handler handler, ServerOptions options, std::shared_ptr<detail::server::ErrorReporter> reporter,
    std::shared_ptr<detail::H2Counters> h2_counters) {
  return std::make_shared<const ServerSettings>(std::move(handler), std::move(options),
                                                std::move(reporter), std::move(h2_counters));
}

}  // namespace

Server::Server(StreamServerBase&& base)
    : StreamServerBase(std::move(base)), h2_counters_(std::make_shared<detail::H2Counters>()) {}

Http2Stats Server::http_2_stats() const noexcept { return h2_counters_->stats(); }

ServerGroup::ServerGroup(StreamServerGroupBase&& base)
    : StreamServerGroupBase(std::move(base)),
      h2_counters_(std::make_shared<detail::H2Counters>()) {}

Http2Stats ServerGroup::http_2_stats() const noexcept { return h2_counters_->stats(); }

Result<Server> Server::listen(EventLoop& loop, const Endpoint& at, Handler handler,
                              ServerOptions options) {
  if (auto checked = check_offered(options); !checked) return std::unexpected(checked.error());
  auto base = open(loop, at, options.listen, std::source_location::current());
  return start(std::move(base), std::move(handler), std::move(options));
}

Result<Server> Server::adopt(EventLoop& loop, UniqueFd listener, Handler handler,
                             ServerOptions options) {
  if (auto checked = check_offered(options); !checked) return std::unexpected(checked.error());
  auto base = open(loop, std::move(listener), &supports_all, options.listen,
                   std::source_location::current());
  return start(std::move(base), std::move(handler), std::move(options));
}

Result<Server> Server::start(Result<StreamServerBase> base, Handler handler,
                             ServerOptions options) {
  if (!base) return std::unexpected(base.error());
  Server server(std::move(*base));
  const std::source_location created_at = handler.created_at();
  const auto check = protocol_check_of(options);
  auto shared = std::make_shared<ServerOnLoop>(
      settings_of(std::move(handler), std::move(options), server.reporter(), server.h2_counters_),
      server.shutdown_token());
  server.serve_with(
      [shared = std::move(shared)](SocketStream stream) {
        return serve_connection(std::move(stream), shared);
      },
      created_at, check);
  return server;
}

Result<ServerGroup> ServerGroup::listen(LoopGroup& group, const Endpoint& at, Handler handler,
                                        ServerOptions options) {
  if (auto checked = check_offered(options); !checked) return std::unexpected(checked.error());
  auto base = open(group, at, options.listen);
  return start(group, std::move(base), std::move(handler), std::move(options));
}

Result<ServerGroup> ServerGroup::adopt(LoopGroup& group, std::vector<UniqueFd> listeners,
                                       Handler handler, ServerOptions options) {
  if (auto checked = check_offered(options); !checked) return std::unexpected(checked.error());
  auto base = open(group, std::move(listeners), &supports_all, options.listen);
  return start(group, std::move(base), std::move(handler), std::move(options));
}

Result<ServerGroup> ServerGroup::start(LoopGroup& group, Result<StreamServerGroupBase> base,
                                       Handler handler, ServerOptions options) {
  if (!base) return std::unexpected(base.error());
  ServerGroup server(std::move(*base));
  const std::source_location created_at = handler.created_at();
  const auto check = protocol_check_of(options);
  const auto settings =
      settings_of(std::move(handler), std::move(options), server.reporter(), server.h2_counters_);
  std::vector<std::shared_ptr<ServerOnLoop>> shared;
  shared.reserve(group.size());
  for (std::size_t i = 0; i < group.size(); ++i)
    shared.push_back(std::make_shared<ServerOnLoop>(settings, server.shutdown_token(group[i])));
  server.serve_with(
      [shared = std::move(shared), &group](SocketStream stream) {
        const std::size_t index = group.index_of(stream.loop());
        return serve_connection(std::move(stream), shared[index]);
      },
      created_at, check);
  return server;
}

}  // namespace tambour::http
