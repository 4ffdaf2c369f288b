// What a client and the requests that it has begun share.
#pragma once

#include <memory>
#include <utility>

#include <tambour/event_loop.h>
#include <tambour/http_client.h>
#include <tambour/result.h>
#include <tambour/task.h>
#include <tambour/tls_context.h>

#include "http/client/message.h"
#include "http/client/pool.h"

namespace tambour::http::client {

struct Shared : public std::enable_shared_from_this<Shared> {
  Shared(EventLoop& on, ClientOptions chosen)
      : loop(on), options(std::move(chosen)), pool(std::make_shared<Pool>(loop, options)) {}

  /// Sends the request and follows redirects.
  [[nodiscard]] static Task<Result<ClientResponse>> send(std::shared_ptr<Shared> shared,
                                                         ClientRequest request);

  EventLoop& loop;
  ClientOptions options;
  std::shared_ptr<Pool> pool;

 private:
  [[nodiscard]] Result<TlsClientContext> tls_context();
  [[nodiscard]] Task<Result<Lease>> connect(Origin origin);
  [[nodiscard]] Task<Result<ClientResponse>> exchange(Message& message);
};

}  // namespace tambour::http::client
