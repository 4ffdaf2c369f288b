// client_address().
#include <tambour/http/client_address.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/failure.h"
#include "http/middleware/forwarded.h"
#include "http/middleware/trusted_peers.h"

namespace tambour::http {

Result<Middleware> client_address(ClientAddressOptions options) {
  const auto trusted = std::make_shared<const TrustedPeers>(
      TrustedPeers{std::move(options.trusted), options.trusts_unix_peers});
  if (trusted->empty()) return detail::base::failure(EINVAL);
  return Middleware(
      [trusted, field = options.field](Request& request, Response& response, const Handler& next) {
        if (trusted->contains_peer_of(request)) {
          const auto address = find_client(request.headers(), field, *trusted);
          if (address) request.set_client_address(*address);
        }
        return next.start(request, response);
      });
}

}  // namespace tambour::http
