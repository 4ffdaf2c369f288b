// PROXY headers that describe clients with TLS.
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::proxy_headers_test {
namespace {

using test::Contexts;

/// A server that requires PROXY headers, and a proxy in front of it that terminates TLS.
class TlsProxyHeaders : public testing::Test {
 protected:
  TlsProxyHeaders() {
    backend.serve([this](TcpStream stream) -> Task<> {
      received = *stream.proxy_header();
      co_await test::echo(std::move(stream));
    });
  }

  static Task<> forward(TcpStream client, Endpoint to) {
    auto server = co_await TcpStream::connect(to);
    EXPECT_TRUE(server);
    const auto described = describe_client(client);
    EXPECT_TRUE(described);
    Buffer bytes;
    EXPECT_TRUE(append_proxy_header(bytes, *described));
    EXPECT_TRUE(co_await server->write(bytes));
    EXPECT_TRUE(co_await client.read(bytes));
    EXPECT_TRUE(co_await server->write(bytes));
    EXPECT_TRUE(co_await server->read(bytes));
    EXPECT_TRUE(co_await client.write(bytes));
  }
  /// Connects a client through the proxy, and returns its endpoint.
  std::string connect_through(const tls::ServerContext& server_tls, const tls::ClientContext& tls) {
    ListenOptions options;
    options.tls = server_tls;
    TcpServer proxy = TcpServer::listen(loop, Endpoint::loopback_v4(0), options).value();
    proxy.serve(
        [this](TcpStream client) { return forward(std::move(client), backend.endpoint()); });
    destination = proxy.endpoint().to_string();
    std::string source;
    Task<> task = [](Endpoint to, tls::ClientContext context, std::string& name) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      if (context) {
        EXPECT_TRUE(co_await tls::connect(*stream, context, "localhost"));
      }
      co_await test::expect_echo(*stream, "hello");
      name = stream->local_endpoint()->to_string();
    }(proxy.endpoint(), tls, source);
    TaskScope scope(loop);
    scope.spawn(std::move(task));
    while (!scope.empty()) loop.run_once();
    return source;
  }
  [[nodiscard]] std::string field(std::uint8_t type) const {
    return std::string(received.find(type).value_or("(none)"));
  }

  EventLoop loop;
  std::string destination;
  ProxyHeader received;
  TcpServer backend =
      TcpServer::listen(loop, Endpoint::loopback_v4(0), {.proxy_protocol = ProxyProtocol::required})
          .value();
};

TEST_F(TlsProxyHeaders, state_version_cipher_and_identity) {
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ServerOptions for_server;
    for_server.authorities = Contexts::authority().pem();
    for_server.client_certificate = tls::PeerCertificate::optional;
    for_server.alpn = {"h2"};
    tls::ClientOptions for_client;
    for_client.version_max = version;
    for_client.alpn = {"h2"};
    for_client.identities = {Contexts::authority().issue({.common_name = "alice"}).identity()};
    const Contexts contexts(for_server, for_client);
    const std::string source = connect_through(contexts.server, contexts.client);
    EXPECT_EQ(received.source->to_string(), source);
    EXPECT_EQ(received.destination->to_string(), destination);
    EXPECT_EQ(field(ProxyField::alpn), "h2");
    EXPECT_EQ(field(ProxyField::authority), "localhost");
    const auto tls = ProxyTls::parse(field(ProxyField::tls));
    ASSERT_TRUE(tls);
    EXPECT_TRUE(tls->used);
    EXPECT_TRUE(tls->certificate_on_connection);
    EXPECT_TRUE(tls->certificate_in_session);
    EXPECT_EQ(tls->verify, 0U);
    EXPECT_EQ(tls->find(ProxyField::tls_common_name), "alice");
    const bool is_13 = version == tls::Version::tls13;
    EXPECT_EQ(tls->find(ProxyField::tls_version), is_13 ? "TLSv1.3" : "TLSv1.2");
    EXPECT_EQ(tls->find(ProxyField::tls_cipher),
              is_13 ? "TLS_AES_128_GCM_SHA256" : "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
  }
}

TEST_F(TlsProxyHeaders, claim_no_identity_without_a_certificate) {
  const Contexts contexts;
  connect_through(contexts.server, contexts.client);
  const auto tls = ProxyTls::parse(field(ProxyField::tls));
  ASSERT_TRUE(tls);
  EXPECT_FALSE(tls->certificate_on_connection);
  EXPECT_FALSE(tls->certificate_in_session);
  EXPECT_NE(tls->verify, 0U);
  EXPECT_EQ(tls->find(ProxyField::tls_common_name), std::nullopt);
  EXPECT_EQ(field(ProxyField::alpn), "(none)");
}

TEST_F(TlsProxyHeaders, without_tls_have_no_tls_fields) {
  const std::string source = connect_through({}, {});
  EXPECT_EQ(received.source->to_string(), source);
  EXPECT_TRUE(received.fields.empty());
}

}  // namespace
}  // namespace tambour::proxy_headers_test
