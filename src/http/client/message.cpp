// Message: what is sent for a request, which redirects change.
#include "http/client/message.h"

#include <utility>

#include <tambour/http/auth.h>

#include "http/coding/negotiation.h"
#include "http_message/failure.h"

namespace tambour::http::detail::client {
namespace {

/// Adds the fields of `defaults` whose names `fields` does not have.
Result<> add_missing(Fields& fields, const Fields& defaults) {
  if (defaults.empty()) return {};
  const Fields given = fields;
  for (const Field field : defaults) {
    if (given.contains(field.name)) continue;
    if (auto added = fields.add(field.name, field.value); !added) return added;
  }
  return {};
}

}  // namespace

Result<Message> Message::create(ClientRequest request, const ClientOptions& options, Url url) {
  Message message;
  message.head_.method = request.method;
  message.head_.fields = std::move(request.fields);
  message.source_ = std::move(request.source);
  message.source_bytes_ = request.source_bytes;
  message.expects_continue_ = request.expect_continue;
  if (message.source_ == nullptr) message.bytes_ = std::move(request.body);
  message.on_interim_ = std::move(request.on_interim);
  message.read_timeout_ = request.read_timeout;
  message.body_rate_min_ = request.body_rate_min;
  Fields& fields = message.head_.fields;
  if (const auto added = add_missing(fields, options.default_fields); !added)
    return std::unexpected(added.error());
  if (fields.count("Host") > 1) return failure(http::ErrorCode::several_hosts);
  message.own_host_ = fields.get("Host").value_or("");
  fields.remove("Host");
  if (!options.user_agent.empty() && !fields.contains("User-Agent")) {
    auto added = fields.add("User-Agent", options.user_agent);
    if (!added) return std::unexpected(added.error());
  }
  // Ranges are of the coded body, so that a part cannot be decoded.
  message.decodes_ =
      options.decompress && !fields.contains("Accept-Encoding") && !fields.contains("Range");
  if (message.decodes_)
    static_cast<void>(fields.add("Accept-Encoding", coding::available_codings()));
  if (message.expects_continue_) static_cast<void>(fields.set("Expect", "100-continue"));
  // The user and the password of a proxy are in its URL.
  fields.remove("Proxy-Authorization");
  if (const auto userinfo = url.userinfo(); userinfo && !fields.contains("Authorization")) {
    if (const auto set = message.set_user(*userinfo, options, url); !set)
      return std::unexpected(set.error());
  }
  for (std::size_t at = fields.find("Cookie"); at != fields.size();
       at = fields.find("Cookie", at + 1))
    message.own_cookies_.append(message.own_cookies_.empty() ? "" : "; ").append(fields[at].value);
  message.direct_to(std::move(url));
  return message;
}

Result<> Message::set_user(std::string_view userinfo, const ClientOptions& options,
                           const Url& url) {
  const auto credentials = tambour::detail::client::parse_userinfo(userinfo);
  if (!credentials) return std::unexpected(credentials.error());
  const auto value = format_basic_credentials(*credentials);
  if (options.authentication == Authentication::digest) {
    identity_ = Identity{.credentials = *credentials,
                         .key = to_string(origin_of(url)) + ' ' + credentials->user};
    return {};
  }
  if (!value) return std::unexpected(value.error());
  return head_.fields.add("Authorization", *value);
}

void Message::direct_to(Url url) {
  url_ = std::move(url);
  head_.target = url_.request_target();
  head_.authority = own_host_.empty() ? authority_of(url_) : own_host_;
}

void Message::set_cookies(CookieJar& jar, WallTime now) {
  const std::string stored = jar.field_for(url_, now, is_cross_site_, head_.method.is_safe());
  const char* const separator = own_cookies_.empty() || stored.empty() ? "" : "; ";
  const std::string field = own_cookies_ + separator + stored;
  head_.fields.remove("Cookie");
  if (!field.empty()) static_cast<void>(head_.fields.set("Cookie", field));
}

void Message::set_tunnel(std::string authority, Fields fields) {
  head_.fields = std::move(fields);
  head_.fields.remove("Host");
  head_.method = Method::connect;
  head_.form = TargetForm::authority;
  head_.target = authority;
  head_.authority = std::move(authority);
  decodes_ = false;
}

void Message::set_protocol(std::string protocol) {
  head_.method = Method::connect;
  head_.protocol = std::move(protocol);
  bytes_.clear();
  source_.reset();
  expects_continue_ = false;
  head_.fields.remove("Expect");
}

void Message::set_credentials(std::string_view name, const std::optional<std::string>& value) {
  head_.fields.remove(name);
  if (value) static_cast<void>(head_.fields.set(name, *value));
}

void Message::set_forwarder(const tambour::detail::client::ProxyServer* proxy) {
  // A tunnel is asked for at the proxy of its URL.
  if (is_tunnel()) return;
  head_.fields.remove("Proxy-Authorization");
  head_.form = proxy == nullptr ? TargetForm::origin : TargetForm::absolute;
  head_.scheme = url_.scheme();
  // The target of a forwarded request names the server that the proxy connects to.
  if (!own_host_.empty()) head_.authority = proxy == nullptr ? own_host_ : authority_of(url_);
  if (proxy != nullptr && !proxy->authorization.empty())
    static_cast<void>(head_.fields.set("Proxy-Authorization", proxy->authorization));
}

OutgoingBody Message::take_body() {
  OutgoingBody body{.bytes = bytes_.slice(), .expects_continue = expects_continue_};
  const Method& method = head_.method;
  const bool has_meaning =
      method == Method::post || method == Method::put || method == Method::patch;
  if (source_ != nullptr) {
    body.source = std::move(source_);
    body.framing = source_bytes_ ? h1::BodyFraming{h1::BodyKind::length, *source_bytes_}
                                 : h1::BodyFraming{h1::BodyKind::chunked};
  } else if (!bytes_.empty() || has_meaning) {
    body.framing = {h1::BodyKind::length, bytes_.size()};
  }
  return body;
}

void Message::follow(Redirect redirect) {
  is_cross_site_ = is_cross_site_ || !CookieJar::is_same_site(url_, redirect.url);
  if (origin_of(redirect.url) != origin_of(url_)) {
    remove_credentials(head_.fields);
    own_cookies_.clear();
    own_host_.clear();
    identity_.reset();
  }
  if (!redirect.keeps_body) {
    bytes_.clear();
    source_.reset();
    expects_continue_ = false;
    remove_body_fields(head_.fields);
  }
  if (identity_) identity_->has_answered = false;
  if (!is_extended_connect()) head_.method = redirect.method;
  direct_to(std::move(redirect.url));
}

}  // namespace tambour::http::detail::client
