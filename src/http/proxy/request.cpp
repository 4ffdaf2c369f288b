// Forwarding: what is sent to servers.
#include <charconv>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/parse_number.h"
#include "http/proxy/fields.h"
#include "http/proxy/forwarding.h"
#include "http_message/field_writer.h"

namespace tambour::http::detail::proxy {
namespace {

/// The body of a request. While the client is waited for, the server is not late.
class ForwardedBody final : public BodySource {
 public:
  ForwardedBody(IncomingBody& body, Watchdog& watchdog, bool& has_failed) noexcept
      : body_(body), watchdog_(watchdog), has_failed_(has_failed) {}

  Task<Result<>> read(Buffer& into) override {
    if (body_.is_complete()) co_return {};
    watchdog_.begin_upload_wait();
    auto piece = co_await body_.read();
    watchdog_.end_upload_wait();
    if (!piece) {
      has_failed_ = true;
      co_return std::unexpected(piece.error());
    }
    into.append(std::move(*piece));
    co_return {};
  }
  const Fields& trailers() const noexcept override { return body_.trailers(); }

 private:
  IncomingBody& body_;
  Watchdog& watchdog_;
  bool& has_failed_;
};

bool is_trusted(const ReverseProxyOptions& options, const std::optional<IpAddress>& address) {
  if (!address) return options.trusts_unix_peers;
  for (const IpNetwork& network : options.trusted_proxies) {
    if (network.contains(*address)) return true;
  }
  return false;
}

/// The target without a prefix of its path, which ends with a segment.
std::string_view without_prefix(std::string_view target, std::string_view prefix) noexcept {
  if (prefix.empty() || !target.starts_with(prefix)) return target;
  const std::string_view rest = target.substr(prefix.size());
  return rest.empty() || rest.front() == '/' || rest.front() == '?' ? rest : target;
}

}  // namespace

/// Answers what is not passed on: RFC 9110, sections 7.6.2 and 9.3.
bool Forwarding::is_answered_here() {
  const Method& method = request_->method();
  if (is_get_) return false;
  if (method == Method::connect) {
    static_cast<void>(response_->send(Status::not_implemented));
    return true;
  }
  // It would show the client what this proxy adds.
  if (method == Method::trace) {
    static_cast<void>(response_->headers().set("Allow", ""));
    static_cast<void>(response_->send(Status::method_not_allowed));
    return true;
  }
  if (method == Method::options) {
    const auto left = request_->headers().get("Max-Forwards");
    if (base::parse_number<std::uint32_t>(left.value_or("")) == 0U) {
      static_cast<void>(response_->send(Status::no_content));
      return true;
    }
  }
  return false;
}

bool Forwarding::prepare() {
  base::check(&request_->connection().loop() == &state_.loop,
              "http::ReverseProxy used on a loop that is not its own; create one for each loop of "
              "a group");
  const RequestHead& received = request_->head();
  is_get_ = received.method == Method::get;
  is_head_ = !is_get_ && received.method == Method::head;
  is_idempotent_ = is_get_ || received.method.is_idempotent();
  if (is_answered_here()) return false;
  const ClientIdentity client = identify_client();
  const RequestTraits traits =
      copy_request_fields(head_.fields, received.fields, client.is_trusted);
  if (traits.hops > state_.options.hops_max) {
    fail(Status::loop_detected, system_error(ELOOP));
    return false;
  }
  IncomingBody& body = request_->body();
  if (state_.options.body_bytes_max) body.set_bytes_max(*state_.options.body_bytes_max);
  head_.method = received.method;
  has_body_ = !body.is_complete() || body.length() != 0;
  keeps_upgrade_ =
      received.version == Version::http_1_1 && traits.names_upgrade && traits.has_upgrade;
  expects_continue_ =
      received.version != Version::http_1_0 && !body.is_complete() && traits.has_expect;
  write_fields(traits, client);
  return true;
}

ClientIdentity Forwarding::identify_client() const {
  const ReverseProxyOptions& options = state_.options;
  const RequestConnection connection = request_->connection();
  ClientIdentity client{.is_secure = connection.tls() != nullptr,
                        .authority = request_->head().authority};
  const bool needs_address =
      options.forwarded_fields != ForwardedFields::none || !options.trusted_proxies.empty();
  if (needs_address) {
    if (const auto peer = connection.peer_endpoint()) {
      // A socket for both families reports IPv4 clients as mapped addresses.
      if (const auto address = peer->ip_address()) client.address = address->unmapped();
    }
  }
  client.is_trusted = is_trusted(options, client.address);
  return client;
}

void Forwarding::write_fields(const RequestTraits& traits, const ClientIdentity& client) {
  Fields& fields = head_.fields;
  if (traits.has_upgrade && !keeps_upgrade_) fields.remove("Upgrade");
  if (traits.has_expect && !expects_continue_) fields.remove("Expect");
  if (traits.has_max_forwards && head_.method == Method::options) {
    const auto left = fields.get("Max-Forwards");
    const auto number = base::parse_number<std::uint32_t>(left.value_or(""));
    if (number) static_cast<void>(fields.set("Max-Forwards", std::to_string(*number - 1)));
  }
  add_forwarded_fields(fields, client, state_.options.forwarded_fields);
  const std::string& via = state_.via(request_->head().version);
  if (!via.empty()) FieldWriter::append(fields, "Via", via);
}

Result<> Forwarding::direct() {
  const Target& target = server_->target();
  const RequestHead& received = request_->head();
  const ReverseProxyOptions& options = state_.options;
  if (received.target == "*") {
    head_.target.assign(1, '*');
    head_.form = TargetForm::asterisk;
  } else {
    const std::string_view rest = without_prefix(received.target, options.strip_prefix);
    head_.target = target.path;
    if (!rest.starts_with('/')) head_.target += '/';
    head_.target += rest;
  }
  const bool passes = options.host == HostPolicy::pass && !received.authority.empty();
  head_.authority = passes ? received.authority : target.authority;
  if (!options.modify_request) return {};
  modified_ = head_;
  return options.modify_request(*request_, *modified_);
}

client::OutgoingBody Forwarding::body() {
  client::OutgoingBody body;
  if (!has_body_) {
    if (is_get_ && !modified_) return body;
    const Method& method = sent_head().method;
    // A body of no bytes: RFC 9110, section 8.6.
    if (method == Method::post || method == Method::put || method == Method::patch)
      body.framing = {h1::BodyKind::length, 0};
    return body;
  }
  body.source = std::make_unique<ForwardedBody>(request_->body(), watchdog_, has_body_failed_);
  const auto length = request_->body().length();
  body.framing.kind = length ? h1::BodyKind::length : h1::BodyKind::chunked;
  body.framing.length = length.value_or(0);
  body.expects_continue = expects_continue_;
  return body;
}

Task<> forward(std::shared_ptr<State> state, Request& request, Response& response) {
  ForwardingUse use(std::move(state), request, response);
  Forwarding& forwarding = use.forwarding();
  return forwarding.run(std::move(use));
}

}  // namespace tambour::http::detail::proxy
