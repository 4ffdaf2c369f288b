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
TlsServerOptions thousand_names() {
  std::vector<TlsIdentity> made;
  made.reserve(certificates);
  for (int i = 0; i < certificates; ++i)
    made.push_back(
        test::self_signed({.common_name = "certificate" + std::to_string(i)}).identity());
  TlsServerOptions options;
  options.identities.reserve(names);
  for (int i = 0; i < names; ++i) {
    TlsIdentity each = made[std::size_t(i % certificates)];
    const std::string zone = "zone" + std::to_string(i) + ".test";
    // Every second one is a wildcard; every tenth has an exact name that its neighbour's covers.
    each.server_names = {i % 2 == 0 ? "www." + zone : "*." + zone};
    if (i % 10 == 0) each.server_names.push_back("exact.zone" + std::to_string(i + 1) + ".test");
    options.identities.push_back(each);
  }
  return options;
}

Task<> expect_certificate(std::uint16_t port, TlsClientContext tls, std::string name,
                          int certificate) {
  auto stream = co_await TcpStream::connect(Endpoint::loopback_v4(port));
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  const auto done = co_await tls_connect(*stream, tls, name);
  EXPECT_TRUE(done) << name;
  if (!done) co_return;
  EXPECT_EQ(stream->tls()->peer_certificate()->subject,
            "CN=certificate" + std::to_string(certificate))
      << name;
}

Task<> ask_for_all(TcpServer& server, TlsClientContext tls, bool& done) {
  const std::uint16_t port = server.endpoint().port();
  for (int i = 0; i < names; i += 9) {
    const std::string zone = "zone" + std::to_string(i) + ".test";
    const int own = i % certificates;
    if (i % 2 == 0) {
      co_await expect_certificate(port, tls, "www." + zone, own);
      co_await expect_certificate(port, tls, "WWW." + zone, own);
      co_await expect_certificate(port, tls, "other." + zone, 0);
    } else {
      const bool has_exact = i % 10 == 1;
      const int exact = has_exact ? (i - 1) % certificates : own;
      co_await expect_certificate(port, tls, "any." + zone, own);
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
  TlsClientOptions insecure;
  insecure.insecure_skip_verify = true;
  ListenOptions how;
  how.tls = or_throw(TlsServerContext::create(thousand_names()));
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), how).value();
  server.serve([](TcpStream) -> Task<> { co_return; });
  bool done = false;
  spawn(loop, ask_for_all(server, or_throw(TlsClientContext::create(insecure)), done));
  loop.run();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tambour::server_names_test
