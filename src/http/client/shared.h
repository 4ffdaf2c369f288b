// What a client and the requests that it has begun share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>
#include <tambour/tls/context.h>

#include "client/proxy.h"
#include "http/client/authenticator.h"
#include "http/client/message.h"
#include "http/client/pool.h"

namespace tambour::http::detail::client {

/// The result of sending a request.
struct Attempt {
  Attempt(const Error& error, bool sent) : response(std::unexpected(error)), may_be_sent(sent) {}
  explicit Attempt(ClientResponse received) : response(std::move(received)), may_be_sent(true) {}

  Result<ClientResponse> response;
  bool may_be_sent = false;  ///< False if certainly no byte was sent.
};

/// Whether the server may have closed the connection before it saw the request.
[[nodiscard]] bool is_stale(const Error& error) noexcept;

struct Shared : public std::enable_shared_from_this<Shared> {
  Shared(EventLoop& client_loop, ClientOptions client_options)
      : loop(client_loop),
        options(std::move(client_options)),
        pool(std::make_shared<Pool>(loop, options)) {}

  /// Sends the request and follows redirects. `protocol` is that of an extended CONNECT; empty:
  /// another request.
  [[nodiscard]] static Task<Result<ClientResponse>> send(std::shared_ptr<Shared> shared,
                                                         ClientRequest request, TimePoint deadline,
                                                         std::string protocol = {});

  /// A connection of the pool, or a new one. `proxy` is null if there is none. It must exist until
  /// the task has ended.
  [[nodiscard]] Task<Result<Lease>> connect(Origin origin,
                                            const tambour::detail::client::ProxyServer* proxy);
  /// Asks the server of the URL of the request for a tunnel to the host and the port.
  [[nodiscard]] static Task<Result<UpgradedResponse>> open_tunnel(std::shared_ptr<Shared> shared,
                                                                  ClientRequest request,
                                                                  std::string authority,
                                                                  TimePoint deadline);
  [[nodiscard]] static Task<Result<UpgradedResponse>> extended_connect(
      std::shared_ptr<Shared> shared, ClientRequest request, std::string protocol,
      TimePoint deadline);
  /// An unused connection of the pool, if there is one. With `is_checked`, the kernel is asked
  /// whether the server has closed it since the loop has waited last, for a request that cannot be
  /// repeated.
  [[nodiscard]] Lease take_idle(const Origin& origin, bool is_checked) noexcept;

  EventLoop& loop;
  ClientOptions options;
  Authenticator authenticator{loop};
  std::shared_ptr<Pool> pool;

 private:
  /// Where a request is sent, and how.
  struct Destination {
    Origin origin;
    std::optional<tambour::detail::client::ProxyServer> proxy;
    bool may_speak_http_2 = false;
  };

  [[nodiscard]] Result<Destination> find_destination(Message& message);
  [[nodiscard]] Result<tls::ClientContext> tls_context(bool needs_http_1);
  [[nodiscard]] Task<ConnectResult> open(Origin origin,
                                         const tambour::detail::client::ProxyServer* proxy);
  [[nodiscard]] Task<Attempt> exchange(Message& message, TimePoint deadline);
  [[nodiscard]] Task<Result<ClientResponse>> exchange_with_retries(Message& message,
                                                                   TimePoint deadline);
  /// Answers challenges, too.
  [[nodiscard]] Task<Result<ClientResponse>> exchange_authenticated(Message& message,
                                                                    TimePoint deadline);

  tls::ClientContext tls_;  ///< Of the client itself, if the program has no context.
  // The context in use, which offers one version of HTTP.
  tls::ClientContext http_1_tls_;
  tls::ClientContext http_2_tls_;
};

}  // namespace tambour::http::detail::client
