// Authenticator: keeps a session for each server and user, and answers challenges with it.
#include "http/client/authenticator.h"

#include <algorithm>
#include <array>
#include <optional>

#include "client/digest_hash.h"
#include "loop/core.h"

namespace tambour::http::detail::client {
namespace {

using tambour::detail::client::digest_hash;

/// Of different servers and users; the one that was not used for the longest time is forgotten.
constexpr std::size_t sessions_max = 100;

}  // namespace

void Authenticator::use_proxy(Message& message, const tambour::detail::client::ProxyServer& proxy,
                              const std::string& url) {
  message.set_credentials("Proxy-Authorization", std::nullopt);
  const std::string key = "proxy " + url;
  // A request that is repeated has answered already.
  if (message.proxy_identity() != nullptr && message.proxy_identity()->key == key) return;
  std::optional<Identity> identity;
  if (proxy.credentials) identity = Identity{.credentials = *proxy.credentials, .key = key};
  message.set_proxy_identity(std::move(identity));
}

void Authenticator::authorize(Message& message) {
  if (const Identity* const identity = message.identity())
    message.set_credentials("Authorization", value_for(*identity, message));
  if (const Identity* const identity = message.proxy_identity())
    message.set_credentials("Proxy-Authorization", value_for(*identity, message));
}

std::optional<std::string> Authenticator::value_for(const Identity& identity,
                                                    const Message& message) {
  auth::DigestSession* const session = find(identity.key);
  if (session == nullptr) return std::nullopt;
  return session->authorize(
      identity.credentials,
      {.method = message.head().method, .target = message.head().target, .body = message.body()});
}

bool Authenticator::take_challenge(Message& message, const ResponseHead& response) {
  take_info(message.identity(), response.fields, "Authentication-Info");
  take_info(message.proxy_identity(), response.fields, "Proxy-Authentication-Info");
  if (response.status == Status::unauthorized)
    return take_challenge(message.identity(), response.fields, "WWW-Authenticate");
  if (response.status == Status::proxy_authentication_required)
    return take_challenge(message.proxy_identity(), response.fields, "Proxy-Authenticate");
  return false;
}

bool Authenticator::take_challenge(Identity* identity, const Fields& fields,
                                   std::string_view name) {
  if (identity == nullptr) return false;
  auto challenge = auth::strongest_challenge(fields, name, digest_hash);
  // Otherwise the password is wrong.
  if (!challenge || (identity->has_answered && !challenge->is_stale)) return false;
  auto& backend = loop::core_of(loop_).backend();
  auth::DigestSession session(std::move(*challenge), digest_hash,
                              std::array{backend.random(), backend.random()});
  sessions_.remove_if([identity](const Session& known) { return known.first == identity->key; });
  sessions_.emplace_front(identity->key, std::move(session));
  if (sessions_.size() > sessions_max) sessions_.pop_back();
  identity->has_answered = true;
  return true;
}

void Authenticator::take_info(const Identity* identity, const Fields& fields,
                              std::string_view name) {
  if (identity == nullptr) return;
  const auto info = fields.get(name);
  auth::DigestSession* const session = info ? find(identity->key) : nullptr;
  if (session != nullptr) session->take_info(*info);
}

auth::DigestSession* Authenticator::find(const std::string& key) noexcept {
  const auto found = std::ranges::find(sessions_, key, &Session::first);
  if (found == sessions_.end()) return nullptr;
  sessions_.splice(sessions_.begin(), sessions_, found);
  return &sessions_.front().second;
}

}  // namespace tambour::http::detail::client
