// Describes a connection in a PROXY protocol header.
#include <optional>
#include <string>
#include <utility>

#include <tambour/net/proxy_protocol.h>
#include <tambour/tls/session.h>

namespace tambour {
namespace {

std::string version_text(tls::Version version) {
  switch (version) {
    case tls::Version::tls12:
      return "TLSv1.2";
    case tls::Version::tls13:
      return "TLSv1.3";
  }
  return {};
}

/// A server has verified the certificate of a client, or refused the client.
ProxyTls describe_tls(const tls::Session& session) {
  ProxyTls described{.verify = 1};
  described.fields.push_back({ProxyField::tls_version, version_text(session.version())});
  described.fields.push_back({ProxyField::tls_cipher, std::string(session.cipher())});
  const std::optional<tls::Certificate> certificate = session.peer_certificate();
  if (!certificate) return described;
  described.verify = 0;
  described.certificate_in_session = true;
  described.certificate_on_connection = !session.is_resumed();
  if (!certificate->common_name.empty())
    described.fields.push_back({ProxyField::tls_common_name, certificate->common_name});
  return described;
}

}  // namespace

Result<ProxyHeader> describe_client(const SocketStream& client) {
  const auto source = client.peer_endpoint();
  if (!source) return std::unexpected(source.error());
  auto destination = client.local_endpoint();
  // What another proxy has stated belongs together.
  if (const ProxyHeader* const header = client.proxy_header();
      header != nullptr && header->destination)
    destination = *header->destination;
  if (!destination) return std::unexpected(destination.error());
  ProxyHeader described{.source = *source, .destination = *destination};
  const tls::Session* const session = client.tls();
  if (session == nullptr) return described;
  if (!session->alpn().empty())
    described.fields.push_back({ProxyField::alpn, std::string(session->alpn())});
  if (!session->server_name().empty())
    described.fields.push_back({ProxyField::authority, std::string(session->server_name())});
  auto value = describe_tls(*session).to_value();
  if (!value) return std::unexpected(value.error());
  described.fields.push_back({ProxyField::tls, std::move(*value)});
  return described;
}

}  // namespace tambour
