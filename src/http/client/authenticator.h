// Digest authentication of a client: the challenges of its servers and proxies.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/loop/event_loop.h>

#include "client/proxy.h"
#include "http/client/message.h"
#include "http_message/auth/digest.h"

namespace tambour::http::detail::client {

class Authenticator {
 public:
  explicit Authenticator(EventLoop& loop) noexcept : loop_(loop) {}

  /// The message is forwarded by this proxy, which may ask for its user.
  static void use_proxy(Message& message, const tambour::detail::client::ProxyServer& proxy,
                        const std::string& url);
  /// Sets the credentials for the challenges that are known.
  void authorize(Message& message);
  /// Returns true if the response is a challenge that another request can answer.
  [[nodiscard]] bool take_challenge(Message& message, const ResponseHead& response);

 private:
  using Session = std::pair<std::string, auth::DigestSession>;

  [[nodiscard]] auth::DigestSession* find(const std::string& key) noexcept;
  [[nodiscard]] std::optional<std::string> value_for(const Identity& identity,
                                                     const Message& message);
  bool take_challenge(Identity* identity, const Fields& fields, std::string_view name);
  void take_info(const Identity* identity, const Fields& fields, std::string_view name);

  EventLoop& loop_;
  std::list<Session> sessions_;  ///< The one that was used last is the first.
};

}  // namespace tambour::http::detail::client
