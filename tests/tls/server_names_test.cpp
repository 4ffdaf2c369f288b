// A server with a thousand certificates by name: each client gets the right one.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "tls/support/certificates.h"

namespace tambour::server_names_test {
namespace {

constexpr int names = 1000;
constexpr int certificates = 7;

/// The identities share a few certificates, because creating a thousand keys takes long.
tls::ServerOptions thousand_names() {
  std::vector<tls::Identity> identitys;
  identitys.reserve(certificates);
  for (int i = 0; i < certificates; ++i)
    identitys.push_back(
        test::self_signed({.common_name = "certificate" + std::to_string(i)}).identity());
  tls::ServerOptions options;
  options.identities.reserve(names);
  for (int i = 0; i < names; ++i) {
    tls::Identity identity = identitys[std::size_t(i % certificates)];
    const std::string zone = "zone" + std::to_string(i) + ".test";
    // Every second one is a wildcard; every tenth has an exact name that its neighbour's covers.
    identity.server_names = {i % 2 == 0 ? "www." + zone : "*." + zone};
    if (i % 10 == 0)
      identity.server_names.push_back("exact.zone" + std::to_string(i + 1) + ".test");
    options.identities.push_back(identity);
  }
  return options;
}

Task<> expect_certificate(std::uint16_t port, tls::ClientContext tls, std::string name,
                          int certificate) {
  auto stream = co_await TcpStream::connect(Endpoint::loopback_v4(port));
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  const auto done = co_await tls::connect(*stream, tls, name);
  EXPECT_TRUE(done) << name;
  if (!done) co_return;
  EXPECT_EQ(stream->tls()->peer_certificate()->subject,
            "CN=certificate" + std::to_string(certificate))
      << name;
}

Task<> ask_for_all(TcpServer& server, tls::ClientContext tls, bool& done) {
  const std::uint16_t port = server.endpoint().port();
  for (int i = 0; i < names; i += 9) {
    const std::string zone = "zone" + std::to_string(i) + ".test";
    const int local = i % certificates;
    if (i % 2 == 0) {
      co_await expect_certificate(port, tls, "www." + zone, local);
      co_await expect_certificate(port, tls, "WWW." + zone, local);
      co_await expect_certificate(port, tls, "other." + zone, 0);
    } else {
      const bool has_exact = i % 10 == 1;
      const int exact = has_exact ? (i - 1) % certificates : local;
      co_await expect_certificate(port, tls, "any." + zone, local);
      co_await expect_certificate(port, tls, "exact." + zone, exact);
      co_await expect_certificate(port, tls, "two.labels." + zone, 0);
      co_await expect_certificate(port, tls, zone, 0);
    }
  }
  done = true;
  co_await server.shut_down(Duration::zero());
}

TEST(TlsServerNames, thousand_with_wildcards) {
  EventLoop loop;
  tls::ClientOptions insecure;
  insecure.insecure_skip_verify = true;
  ListenOptions options;
  options.tls = or_throw(tls::ServerContext::create(thousand_names()));
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), options).value();
  server.serve([](TcpStream) -> Task<> { co_return; });
  bool done = false;
  spawn(loop, ask_for_all(server, or_throw(tls::ClientContext::create(insecure)), done));
  loop.run();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tambour::server_names_test
