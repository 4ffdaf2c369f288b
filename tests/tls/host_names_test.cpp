// For which hosts clients accept a certificate: names with underscores, wildcards, and what must
// not match.
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/streams.h"
#include "support/temporary_folder.h"
#include "tls/host_name.h"
#include "tls/support/certificates.h"
#include "tls/support/handshake.h"

namespace tambour::host_names_test {
namespace {

using namespace std::string_literals;
using test::Contexts;
using test::Seen;

struct Case {
  std::string name;  ///< In the certificate.
  std::string host;
};

const std::vector<Case> accepted_cases{
    {"*.example.org", "x_y.example.org"},
    {"*.example.org", "_x.example.org"},
    {"*.example.org", "x_.example.org"},
    {"*.example.org", "_.example.org"},
    {"*.example.org", "a__b-c_1.example.org"},
    {"*.example.org", "X_Y.EXAMPLE.org"},
    {"*.Example.ORG", "x_y.example.org"},
    {"*.a_b.example.org", "x.a_b.example.org"},
    {"*.a_b.example.org", "x_y.a_b.example.org"},
    {"*._tcp.example.org", "_sip._tcp.example.org"},
    {"*.example.org", "x.example.org"},
    {"*.example.org", "xn--bcher-kva.example.org"},
    {"x_y.example.org", "x_y.example.org"},
    {"X_y.example.org", "x_Y.example.org"},
    {"x_y", "x_y"},
};

const std::vector<Case> rejected_cases{
    {"*.example.org", "example.org"},
    {"*.example.org", "x_y.other.org"},
    {"*.example.org", "x_y.example.com"},
    {"*.example.org", "a.x_y.example.org"},
    {"*.example.org", "x_y.a.example.org"},
    {"*.example.org", "x_y.an-example.org"},
    {"*.example.org", "x_yexample.org"},
    {"*.example.org", "x_y..example.org"},
    {"*.example.org", "x y.example.org"},
    {"*.example.org", "x_y/.example.org"},
    {"*.example.org", "x_\xc3\xbc.example.org"},
    {"*.example.org", "x_y.example.org.example.org"},
    {"*.org", "x_y.org"},
    {"*.", "x_y."},
    {"*", "x_y"},
    {"*", "x_y.example.org"},
    {"*..org", "x_y..org"},
    {"*.example..org", "x_y.example..org"},
    {"*.example.org.", "x_y.example.org"},
    {"*example.org", "x_yexample.org"},
    {"x*.example.org", "x_y.example.org"},
    {"*_y.example.org", "x_y.example.org"},
    {"x_*.example.org", "x_y.example.org"},
    {"x_y.*.org", "x_y.example.org"},
    {"*.*.org", "x_y.example.org"},
    {"*.*.org", "x_y.*.org"},
    {"**.example.org", "x_y.example.org"},
    {".example.org", "x_y.example.org"},
    {"x_y.example.org", "y.example.org"},
    {"x_y.example.org", "x-y.example.org"},
    {"*.example.org\0.test"s, "x_y.example.org"},
    {"*.example.org\0"s, "x_y.example.org"},
    {"\0*.example.org"s, "x_y.example.org"},
    {"x_y.example.org\0.test"s, "x_y.example.org"},
    {"*.exa\0mple.org"s, "x_y.exa"},
    {"*.192.0.2.1", "x_y.192.0.2"},
    {"", "x_y.example.org"},
};

/// The extension with these DNS names in DER format: names of any bytes.
std::string encode_names(const std::vector<std::string>& names) {
  std::string content;
  for (const std::string& name : names) content += "\x82"s + static_cast<char>(name.size()) + name;
  return "\x30"s + static_cast<char>(content.size()) + content;
}

class TlsHostNames : public testing::Test {
 protected:
  static tls::ServerContext serving(const std::string& encoded_names) {
    tls::ServerOptions options;
    options.identities = {
        Contexts::authority()
            .issue({.common_name = "x_y.example.org", .encoded_names = encoded_names})
            .identity()};
    options.identities[0].server_names = {"any.test"};
    return or_throw(tls::ServerContext::create(std::move(options)));
  }
  static tls::ClientOptions client_options() {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    return options;
  }
  Error outcome(const std::string& encoded_names, const std::string& host) {
    return test::handshake(loop, serving(encoded_names), client, host).error;
  }

  EventLoop loop;
  tls::ClientContext client = or_throw(tls::ClientContext::create(client_options()));
};

TEST_F(TlsHostNames, labels_may_have_underscores) {
  for (const auto& [name, host] : accepted_cases) {
    EXPECT_TRUE(tls::detail::is_name_of(name, host)) << name << ' ' << host;
    EXPECT_EQ(outcome(encode_names({name}), host), Error()) << name << ' ' << host;
  }
}

TEST_F(TlsHostNames, other_names_are_refused) {
  for (const auto& [name, host] : rejected_cases) {
    EXPECT_FALSE(tls::detail::is_name_of(name, host)) << name << ' ' << host;
    EXPECT_EQ(outcome(encode_names({name}), host), tls::ErrorCode::certificate_wrong_host)
        << name << ' ' << host;
  }
}

TEST_F(TlsHostNames, any_name_of_the_certificate_may_fit) {
  const std::string several = encode_names({"other.test", "", "*.other.test", "*.example.org"});
  EXPECT_EQ(outcome(several, "x_y.example.org"), Error());
  EXPECT_EQ(outcome(several, "x_y.example.org."), Error());
  EXPECT_EQ(outcome(several, "x_y.other.test"), Error());
  EXPECT_EQ(outcome(several, "x_y.third.test"), tls::ErrorCode::certificate_wrong_host);
}

TEST_F(TlsHostNames, only_dns_names_count) {
  // An e-mail address, a URI and a directory name; the common name is that of the host.
  EXPECT_EQ(outcome("\x30\x0f\x81\x0d*.example.org"s, "x_y.example.org"),
            tls::ErrorCode::certificate_wrong_host);
  EXPECT_EQ(outcome("\x30\x0f\x86\x0d*.example.org"s, "x_y.example.org"),
            tls::ErrorCode::certificate_wrong_host);
  EXPECT_EQ(outcome("", "x_y.example.org"), tls::ErrorCode::certificate_wrong_host);
}

TEST_F(TlsHostNames, addresses_match_no_dns_name) {
  for (const char* const host : {"192.0.2.1", "2001:db8::1", "192.0.2.1."}) {
    EXPECT_EQ(outcome(encode_names({"*.0.2.1", "192.0.2.1", "2001:db8::1"}), host),
              tls::ErrorCode::certificate_wrong_host)
        << host;
  }
}

TEST_F(TlsHostNames, names_that_cannot_be_decoded_are_refused) {
  const std::string good = encode_names({"*.example.org"});
  for (const std::string& encoded :
       {good.substr(0, good.size() - 1), "\x30"s, "nonsense"s, "\x31"s + good.substr(1),
        "\x30\x11\x82\x0d*.example.org\x82\x7f"s}) {
    EXPECT_NE(outcome(encoded, "x_y.example.org"), Error()) << testing::PrintToString(encoded);
  }
}

TEST_F(TlsHostNames, other_errors_are_not_forgiven) {
  const std::string names = encode_names({"*.example.org"});
  const auto outcome_of = [&](const tls::Identity& identity) {
    tls::ServerOptions options;
    options.identities = {identity};
    return test::handshake(loop, or_throw(tls::ServerContext::create(std::move(options))), client,
                           "x_y.example.org")
        .error;
  };
  EXPECT_EQ(outcome_of(test::self_signed({.encoded_names = names}).identity()),
            tls::ErrorCode::certificate_self_signed);
  EXPECT_EQ(outcome_of(test::Authority("Other CA").issue({.encoded_names = names}).identity()),
            tls::ErrorCode::certificate_unknown_issuer);
  EXPECT_EQ(outcome_of(Contexts::authority()
                           .issue({.encoded_names = names, .purpose = "clientAuth"})
                           .identity()),
            tls::ErrorCode::certificate_wrong_purpose);
}

TEST_F(TlsHostNames, sessions_are_resumed_and_names_are_verified_after_a_reload) {
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ClientOptions options = client_options();
    options.version_max = version;
    const auto resuming = or_throw(tls::ClientContext::create(options));
    const tls::ServerContext server = serving(encode_names({"*.example.org"}));
    const auto visit = [&](const std::string& host) {
      return test::handshake(loop, server, resuming, host);
    };
    EXPECT_EQ(visit("x_y.example.org").error, Error());
    const Seen second = visit("x_y.example.org");
    EXPECT_EQ(second.error, Error());
    EXPECT_TRUE(second.resumed);
    // A session belongs to its host.
    const Seen neighbour = visit("y_x.example.org");
    EXPECT_EQ(neighbour.error, Error());
    EXPECT_FALSE(neighbour.resumed);
    EXPECT_TRUE(resuming.reload());
    const Seen after_reload = visit("x_y.example.org");
    EXPECT_EQ(after_reload.error, Error());
    EXPECT_FALSE(after_reload.resumed);
    EXPECT_EQ(visit("x_y.example.com").error, tls::ErrorCode::certificate_wrong_host);
  }
}

Task<> send_early_twice(TcpServer& server, tls::ClientContext tls,
                        std::vector<tls::EarlyData>& seen) {
  for (int i = 0; i < 2; ++i) {
    auto stream = or_throw(co_await TcpStream::connect(server.endpoint()));
    or_throw(co_await tls::connect(stream, tls, "x_y.example.org", tls::Replayable("hello")));
    seen.push_back(stream.tls()->early_data());
    if (seen.back() != tls::EarlyData::accepted) or_throw(co_await stream.write("hello"));
    or_throw(co_await stream.shutdown_write());
    Buffer echoed;
    while (or_throw(co_await stream.read(echoed)) > 0) {
    }
    EXPECT_EQ(echoed.to_string(), "hello");
  }
  co_await server.shut_down(Duration::zero());
}

TEST_F(TlsHostNames, early_data_is_sent_to_names_with_underscores) {
  tls::ServerOptions options;
  options.early_data_bytes_max = 1000;
  options.identities = {Contexts::authority().issue({.names = {"DNS:*.example.org"}}).identity()};
  ListenOptions mode;
  mode.tls = or_throw(tls::ServerContext::create(std::move(options)));
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), mode).value();
  server.serve(test::echo<TcpStream>);
  std::vector<tls::EarlyData> seen;
  spawn(loop, send_early_twice(server, client, seen));
  loop.run();
  EXPECT_EQ(seen, (std::vector{tls::EarlyData::none, tls::EarlyData::accepted}));
}

/// Resolves the name by a hosts file, and connects with each client of the library.
class TlsClientsByName : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    std::ofstream(folder.path() + "/hosts") << "127.0.0.1 x_y.example.org\n";
    tls::ServerOptions options;
    options.identities = {certified.identity()};
    contexts.emplace(std::move(options), tls::ClientOptions());
    resolver = std::make_unique<dns::Resolver>(
        loop(), dns::ResolverOptions{.hosts = folder.path() + "/hosts"});
  }
  void TearDown() override {
    resolver.reset();
    OnEveryBackend::TearDown();
  }

  const test::TemporaryFolder folder;
  const test::Certified certified = Contexts::authority().issue({.names = {"DNS:*.example.org"}});
  std::optional<Contexts> contexts;
  std::unique_ptr<dns::Resolver> resolver;
};

TAMBOUR_ON_EVERY_BACKEND(TlsClientsByName);

TEST_P(TlsClientsByName, http_client_accepts_underscores) {
  http::ServerOptions options;
  options.listen.tls = contexts->server;
  http::Server server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0),
      [](http::Request& request, http::Response& response) {
        response.send(std::string(request.connection().tls()->server_name()));
      },
      options));
  ConnectOptions connecting(contexts->client);
  connecting.resolver = resolver.get();
  http::Client client(loop(), {.connect = connecting});
  std::string text;
  run([](http::Client& by, std::uint16_t port, std::string& into) -> Task<> {
    const std::string url = "https://x_y.example.org:" + std::to_string(port) + "/";
    auto response = or_throw(co_await by.get(url));
    into = or_throw(co_await response.read_text());
  }(client, server.endpoint().port(), text));
  EXPECT_EQ(text, "x_y.example.org");
}

TEST_P(TlsClientsByName, stream_client_accepts_underscores) {
  ListenOptions options;
  options.tls = contexts->server;
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0), options).value();
  server.serve(test::echo<TcpStream>);
  ConnectOptions connecting(contexts->client);
  connecting.resolver = resolver.get();
  bool is_open = false;
  StreamClient client(loop(), "x_y.example.org", server.endpoint().port(),
                      {.on_connection = [&](Connection&) { is_open = true; }},
                      {.connect = connecting, .retry = {.attempts_max = 1}});
  client.start();
  EXPECT_TRUE(run_until([&] { return is_open; })) << *contexts->last_failure;
}

TEST_P(TlsClientsByName, connections_accept_underscores) {
  ListenOptions options;
  options.tls = contexts->server;
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0), options).value();
  server.serve(test::echo<TcpStream>);
  std::vector<Error> ends;
  StreamClient client(loop(), server.endpoint().to_string(),
                      {.on_connection = [&](Connection& connection) {
                        tls::connect(connection, contexts->client, "x_y.example.org",
                                     [&](Connection&, Error error) { ends.push_back(error); });
                      }});
  client.start();
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector{Error()});
}

}  // namespace
}  // namespace tambour::host_names_test
