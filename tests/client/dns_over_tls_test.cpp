// DNS over TLS, in a simulation: the resolver with servers that prove their identity, and with
// others.
#include <netdb.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <tambour/tambour.h>

#include "dns/resolver_fixture.h"
#include "tls/support/certificates.h"

namespace tambour::dns_over_tls_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

/// The digest of the public key of a certificate.
std::string pin_of(const std::string& certificate) {
  BIO* const text = BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size()));
  X509* const parsed = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  unsigned char* key = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(parsed), &key);
  unsigned char digest[32];
  EXPECT_EQ(EVP_Digest(key, static_cast<std::size_t>(size), digest, nullptr, EVP_sha256(), nullptr),
            1);
  char base64[45];
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64), digest, sizeof digest);
  OPENSSL_free(key);
  X509_free(parsed);
  BIO_free(text);
  return base64;
}

class DnsOverTls : public test::ResolverTest {
 protected:
  /// Both name servers also answer at port 853, over TLS.
  DnsOverTls() { serve_tls(contexts.server); }

  void serve_tls(const tls::ServerContext& context) {
    ListenOptions options;
    options.tls = context;
    both([](test::NameServer& server) { server.stop(); });
    for (std::size_t i = 0; i < servers.size(); ++i) {
      servers[i] = std::make_unique<test::NameServer>(*loops[i], test::endpoint_of(*hosts[i]),
                                                      test::endpoint_of(*hosts[i], 853), options);
      servers[i]->add(test::a_record("www.example.org", {192, 0, 2, 1}));
      servers[i]->add(test::aaaa_record("www.example.org", "2001:db8::1"));
    }
  }
  dns::Resolver& with(const tls::ClientContext& context, std::string name,
                      std::vector<Endpoint> only = {}) {
    return make({.servers = std::move(only), .transport = dns::over_tls(context, std::move(name))});
  }
  tls::ClientContext client_with(tls::ClientOptions options) {
    options.on_failure = [this](const tls::Failure& failure) { reason = failure.message; };
    return or_throw(tls::ClientContext::create(std::move(options)));
  }
  tls::ClientContext client_with_pins(std::vector<std::string> pins) {
    tls::ClientOptions options;
    options.pinned_keys = std::move(pins);
    return client_with(std::move(options));
  }
  /// The error of a query, after which no server may have got a question.
  Error refusal() {
    const TimePoint begin = simulation.now();
    const auto answer = run(resolver->query("www.example.org", dns::Type::a));
    EXPECT_LT(simulation.now() - begin, 1s) << "the error is final";
    EXPECT_EQ(questions(), 0U);
    const auto resolved = resolve("www.example.org");
    EXPECT_EQ(resolved ? Error() : resolved.error(), resolver_error(EAI_AGAIN));
    EXPECT_EQ(questions(), 0U);
    return answer ? Error() : answer.error();
  }

  Contexts contexts;
  std::string reason;
};

TEST_F(DnsOverTls, sends_padded_queries_over_one_connection) {
  with(contexts.client, "localhost");
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  resolver->clear_cache();
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_EQ(servers[0]->udp_questions, 0U);
  EXPECT_EQ(servers[0]->tcp_questions, 4U);
  EXPECT_EQ(servers[0]->tcp_connections, 1U);
  for (const dns::Message& question : servers[0]->questions) {
    EXPECT_EQ(question.write()->size() % 128, 0U);
    ASSERT_EQ(question.edns->options.size(), 1U) << "cookies are for UDP";
    EXPECT_EQ(question.edns->options[0].code, dns::Option::padding);
  }
}

TEST_F(DnsOverTls, connects_again_when_the_server_has_restarted) {
  with(contexts.client, "localhost");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  servers[0]->stop();
  servers[1]->stop();
  simulation.run_for(100ms);
  servers[0]->start();
  resolver->clear_cache();
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(servers[0]->tcp_connections, 2U);
}

TEST_F(DnsOverTls, refuses_servers_with_another_name) {
  with(contexts.client, "dns.example.org");
  EXPECT_EQ(refusal(), dns::ErrorCode::insecure_server);
  EXPECT_NE(contexts.last_failure->find("not valid for dns.example.org"), std::string::npos)
      << *contexts.last_failure;
}

TEST_F(DnsOverTls, refuses_servers_of_unknown_authorities) {
  const test::Authority other("Other CA");
  tls::ClientOptions options;
  options.authorities = other.pem();
  with(client_with(std::move(options)), "localhost");
  EXPECT_EQ(refusal(), dns::ErrorCode::insecure_server);
}

TEST_F(DnsOverTls, refuses_servers_without_tls) {
  both([](test::NameServer& server) { server.stop(); });
  serve_tls({});
  with(contexts.client, "localhost");
  // They wait for the end of a message, because the first bytes of TLS are a length.
  EXPECT_FALSE(run(resolver->query("www.example.org", dns::Type::a)));
  EXPECT_EQ(questions(), 0U);
}

TEST_F(DnsOverTls, verifies_the_address_without_a_name) {
  with(contexts.client, "");
  EXPECT_EQ(refusal(), dns::ErrorCode::insecure_server);
  const test::Certified certified =
      Contexts::authority().issue({.names = {"IP:" + hosts[0]->ip(), "IP:" + hosts[1]->ip()}});
  tls::ServerOptions options;
  options.identities = {certified.identity()};
  serve_tls(or_throw(tls::ServerContext::create(options)));
  with(contexts.client, "");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(DnsOverTls, accepts_a_name_with_an_underscore) {
  tls::ServerOptions options;
  options.identities = {Contexts::authority().issue({.names = {"DNS:*.example.org"}}).identity()};
  serve_tls(or_throw(tls::ServerContext::create(options)));
  with(contexts.client, "dns_1.example.org");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1") << *contexts.last_failure;
}

/// RFC 7301, section 3.2: what was negotiated is what must be spoken.
TEST_F(DnsOverTls, queries_no_server_that_has_chosen_another_protocol) {
  tls::ClientOptions client_options;
  client_options.authorities = Contexts::authority().pem();
  client_options.alpn = {"http/1.1", "dot"};
  const tls::ClientContext context = client_with(std::move(client_options));
  for (const auto& [protocols, is_spoken] : {std::pair<std::vector<std::string>, bool>{{}, true},
                                             {{"dot"}, true},
                                             {{"dot", "http/1.1"}, true},
                                             {{"http/1.1", "dot"}, false},
                                             {{"http/1.1"}, false}}) {
    tls::ServerOptions options;
    options.identities = {Contexts::localhost().identity()};
    options.alpn = protocols;
    serve_tls(or_throw(tls::ServerContext::create(std::move(options))));
    with(context, "localhost");
    if (is_spoken) {
      EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
    } else {
      EXPECT_EQ(refusal(), dns::ErrorCode::insecure_server);
    }
  }
}

TEST_F(DnsOverTls, accepts_a_pinned_key) {
  // Nothing else about the certificate is valid.
  const test::Certified certified = test::self_signed({.common_name = "me", .ends = -1h});
  const test::Certified valid = test::self_signed({.common_name = "me"});
  tls::ServerOptions options;
  options.identities = {valid.identity()};
  serve_tls(or_throw(tls::ServerContext::create(options)));
  with(client_with_pins({pin_of(certified.certificate)}), "localhost");
  EXPECT_EQ(refusal(), dns::ErrorCode::insecure_server);
  EXPECT_NE(reason.find("pinned"), std::string::npos) << reason;
  with(client_with_pins({pin_of(certified.certificate), pin_of(valid.certificate)}), "");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(DnsOverTls, rejects_malformed_pins) {
  const std::string valid = pin_of(Contexts::localhost().certificate);
  for (const std::string& bad :
       {std::string(), valid.substr(1), valid + valid, std::string(44, '='), std::string(44, 'A'),
        "!" + valid.substr(1)}) {
    tls::ClientOptions options;
    options.pinned_keys = {valid, bad};
    const auto client_context = tls::ClientContext::create(options);
    ASSERT_FALSE(client_context) << bad;
    EXPECT_EQ(client_context.error().error, tls::ErrorCode::bad_configuration);
  }
}

TEST_F(DnsOverTls, pins_cannot_be_combined_with_required_ocsp_responses) {
  tls::ClientOptions options;
  options.pinned_keys = {pin_of(Contexts::localhost().certificate)};
  options.revocation = tls::Revocation::required;
  const auto client_context = tls::ClientContext::create(options);
  ASSERT_FALSE(client_context);
  EXPECT_EQ(client_context.error().error, tls::ErrorCode::bad_configuration);
}

TEST_F(DnsOverTls, uses_the_next_server_if_one_is_not_trusted_or_gone) {
  // The first server has no TLS.
  servers[0].reset();
  servers[0] =
      std::make_unique<test::NameServer>(*loops[0], test::endpoint_of(*hosts[0], 1),
                                         test::endpoint_of(*hosts[0], 853), ListenOptions());
  with(contexts.client, "localhost");
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_EQ(questions(), 2U);
  EXPECT_EQ(servers[0]->tcp_questions, 0U);
  servers[0]->stop();
  make({.transport = dns::over_tls(contexts.client, "localhost")});
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_LT(simulation.now() - begin, 100ms);
  // From now on, the first server is not tried with each lookup.
  servers[0]->start();
  servers[0]->tcp_connections = 0;
  for (int i = 0; i < 60; ++i) {
    resolver->clear_cache();
    EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
    pass(50ms);
  }
  EXPECT_LE(servers[0]->tcp_connections, 3U);
}

TEST_F(DnsOverTls, ignores_sources_that_would_use_plain_dns) {
  test::write_file(client, "/etc/nsswitch.conf", "hosts: mymachines resolve files\n");
  test::write_file(client, "/etc/hosts", "10.9.9.9 mine\n");
  with(contexts.client, "localhost");
  EXPECT_EQ(text_of("mine"), "10.9.9.9");
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_EQ(resolver->stats().fallbacks, 0U);
}

TEST_F(DnsOverTls, can_be_cancelled_at_any_time) {
  for (int i = 0; i < 200; ++i) {
    with(contexts.client, i % 8 == 0 ? "wrong.example.org" : "localhost");
    TaskScope scope(*loop);
    scope.spawn(
        [&]() -> Task<> { static_cast<void>(co_await resolver->resolve("www.example.org", 80)); });
    simulation.run_for(Duration(static_cast<std::int64_t>(simulation.random(4'000'000))));
    if (i % 2 == 0) {
      scope.request_stop();
      simulation.run_for(1ms);
      EXPECT_TRUE(scope.empty());
    }
    if (i % 3 == 0) resolver.reset();
  }
}

/// HTTPS records whose protocols the client does not support.
TEST_F(DnsOverTls, connect_skips_servers_without_a_common_protocol) {
  std::vector<std::pair<std::string, std::string>> records{{"h3.example.org", "h3"},
                                                           {"h2.example.org", "h2"}};
  sim::Host& web = simulation.add_host("web");
  for (const auto& [target, alpn] : records) {
    const std::string name = alpn;
    both([&](test::NameServer& server) {
      server.add({.name = test::dns_name("localhost.example.org"),
                  .type = dns::Type::https,
                  .ttl = 60,
                  .data = dns::Svcb{static_cast<std::uint16_t>(name == "h3" ? 1 : 2),
                                    test::dns_name(target),
                                    {{dns::SvcParam::alpn, '\x02' + name},
                                     {dns::SvcParam::no_default_alpn, ""}}}});
    });
  }
  const auto v4 = test::endpoint_of(web).address();
  const Endpoint plain = Endpoint::parse(v4, 0).value();
  std::array<std::uint8_t, 4> bytes;
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(plain.data())->sin_addr, 4);
  both([&](test::NameServer& server) { server.add(test::a_record("h2.example.org", bytes)); });
  EventLoop web_loop(web.loop_options());
  tls::ServerOptions options;
  options.alpn = {"h2"};
  options.identities = {
      Contexts::authority().issue({.names = {"DNS:localhost.example.org"}}).identity()};
  ListenOptions mode;
  mode.tls = or_throw(tls::ServerContext::create(options));
  TcpServer server = TcpServer::listen(web_loop, test::endpoint_of(web, 443), mode).value();
  server.serve([](TcpStream stream) -> Task<> {
    std::byte byte;
    static_cast<void>(co_await stream.read({&byte, 1}));
  });
  tls::ClientOptions client_options;
  client_options.alpn = {"h2", "http/1.1"};
  client_options.authorities = Contexts::authority().pem();
  const tls::ClientContext context = or_throw(tls::ClientContext::create(client_options));
  with(contexts.client, "localhost");
  ConnectOptions connecting(context);
  connecting.https_records = true;
  connecting.resolver = resolver.get();
  const auto stream = run(tambour::connect("localhost.example.org", 443, connecting));
  ASSERT_TRUE(stream) << stream.error().message();
  EXPECT_EQ(stream->server().host, "h2.example.org");
  EXPECT_EQ(stream->server().alpn, std::vector<std::string>{"h2"});
  EXPECT_EQ(stream->tls()->alpn(), "h2");
}

}  // namespace
}  // namespace tambour::dns_over_tls_test
