// A request as it is sent, to the URL of the program or to those of redirects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/auth.h>
#include <tambour/http/client.h>
#include <tambour/http/cookie.h>
#include <tambour/http/message.h>
#include <tambour/http/url.h>

#include "client/proxy.h"
#include "http/client/exchange.h"
#include "http/client/redirect.h"

namespace tambour::http::detail::client {

/// The user of a message, for Digest authentication.
struct Identity {
  BasicCredentials credentials{};
  std::string key{};          ///< Of the server and the user.
  bool has_answered = false;  ///< A challenge to this request.
};

class Message {
 public:
  /// Fails with http::ErrorCode::bad_field_value if an option is no field value.
  [[nodiscard]] static Result<Message> create(ClientRequest request, const ClientOptions& options,
                                              Url url);

  [[nodiscard]] const Url& url() const noexcept { return url_; }
  [[nodiscard]] const RequestHead& head() const noexcept { return head_; }
  /// True if responses are decoded.
  [[nodiscard]] bool decodes() const noexcept { return decodes_; }
  [[nodiscard]] bool has_source() const noexcept { return source_ != nullptr; }
  /// True if the request can be sent again without doing something twice. To be called before
  /// take_body().
  [[nodiscard]] bool may_be_repeated() const noexcept {
    return source_ == nullptr && (head_.method.is_idempotent() || head_.method == Method::connect);
  }

  /// Sets the cookies for the URL, after those that the program has set.
  void set_cookies(CookieJar& jar, WallTime now);
  /// The form that a proxy forwards, with its credentials; null: the form for the origin itself.
  void set_forwarder(const tambour::detail::client::ProxyServer* proxy);
  /// Makes the request a CONNECT for this host and port, with these fields only: those of the
  /// options are for origins.
  void set_tunnel(std::string authority, Fields fields);
  /// Makes the request an extended CONNECT (RFC 8441).
  void set_protocol(std::string protocol);
  [[nodiscard]] bool is_extended_connect() const noexcept { return !head_.protocol.empty(); }
  /// True if the request is a CONNECT for a host and a port.
  [[nodiscard]] bool is_tunnel() const noexcept {
    return head_.method == Method::connect && !is_extended_connect();
  }
  /// Of the user at the origin, and at the proxy that forwards the request; null: none.
  [[nodiscard]] Identity* identity() noexcept { return identity_ ? &*identity_ : nullptr; }
  [[nodiscard]] Identity* proxy_identity() noexcept {
    return proxy_identity_ ? &*proxy_identity_ : nullptr;
  }
  void set_proxy_identity(std::optional<Identity> identity) {
    proxy_identity_ = std::move(identity);
  }
  /// Replaces the field; no value: removes it.
  void set_credentials(std::string_view name, const std::optional<std::string>& value);
  /// Null if the body is not known before it is sent.
  [[nodiscard]] const Buffer* body() const noexcept {
    return source_ == nullptr ? &bytes_ : nullptr;
  }
  /// The bytes are shared, so that the request can be sent again.
  [[nodiscard]] OutgoingBody take_body();
  [[nodiscard]] Callback<void(const ResponseHead&)>& on_interim() noexcept { return on_interim_; }
  [[nodiscard]] std::optional<Duration> read_timeout() const noexcept { return read_timeout_; }
  [[nodiscard]] std::optional<std::size_t> body_rate_min() const noexcept { return body_rate_min_; }
  /// Removes what must not be sent to the URL of a redirect.
  void follow(Redirect redirect);

 private:
  Message() = default;
  [[nodiscard]] Result<> set_user(std::string_view userinfo, const ClientOptions& options,
                                  const Url& url);
  void direct_to(Url url);

  Url url_;
  RequestHead head_;
  Buffer bytes_;
  std::unique_ptr<BodySource> source_;
  std::optional<std::uint64_t> source_bytes_;
  std::string own_cookies_;  ///< Of the program.
  std::optional<Identity> identity_;
  std::optional<Identity> proxy_identity_;
  std::string own_host_;  ///< Of the program, for the origin of the URL; empty: none.
  Callback<void(const ResponseHead&)> on_interim_;
  std::optional<Duration> read_timeout_;
  std::optional<std::size_t> body_rate_min_;
  bool expects_continue_ = false;
  bool decodes_ = false;
  bool is_cross_site_ = false;  ///< A redirect from another site has caused the request.
};

}  // namespace tambour::http::detail::client
