// Resumption by clients with certificates: when a server verifies them again. OpenSSL asks for the
// time with time(2), which this file replaces in the whole program.
#include <chrono>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/streams.h"
#include "tls/support/certificates.h"

namespace {

std::time_t ahead_s = 0;

}  // namespace

extern "C" std::time_t time(std::time_t* into) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += ahead_s;
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

namespace tambour::client_certificates_test {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using test::Contexts;

/// What a client sees of a server.
struct Seen {
  Error error;
  bool resumed = false;
};

class ClientCertificates : public testing::TestWithParam<TlsVersion> {
 protected:
  ClientCertificates() {
    options.identities = {Contexts::localhost().identity()};
    options.authorities = Contexts::authority().pem();
    options.client_certificate = TlsPeerCertificate::required;
  }
  ~ClientCertificates() override { ahead_s = 0; }

  static TlsClientContext client(std::chrono::seconds ends) {
    TlsClientOptions with_certificate;
    with_certificate.version_max = GetParam();
    with_certificate.authorities = Contexts::authority().pem();
    with_certificate.identities = {
        Contexts::authority().issue({.common_name = "client", .ends = ends}).identity()};
    return or_throw(TlsClientContext::create(with_certificate));
  }

  Seen connect(const TlsServerContext& server, const TlsClientContext& tls) {
    test::StreamEnds ends = test::open_stream_ends(loop);
    Seen seen;
    TaskScope scope(loop);
    scope.spawn([](SocketStream& stream, TlsServerContext context) -> Task<> {
      if (co_await tls_accept(stream, context)) static_cast<void>(co_await stream.write("x"));
    }(ends.far, server));
    scope.spawn([](SocketStream& stream, TlsClientContext context, Seen& into) -> Task<> {
      const auto done = co_await tls_connect(stream, context, "localhost");
      if (!done) into.error = done.error();
      if (!done) co_return;
      into.resumed = stream.tls()->resumed();
      // In TLS 1.3 the refusal of a certificate arrives here.
      Buffer buffer;
      const auto got = co_await stream.read(buffer);
      if (!got) into.error = got.error();
    }(ends.near, tls, seen));
    while (!scope.empty()) loop.run_once();
    return seen;
  }

  EventLoop loop;
  TlsServerOptions options;
};

TEST_P(ClientCertificates, that_have_expired_are_not_resumed) {
  const auto server = or_throw(TlsServerContext::create(options));
  const auto tls = client(2h);
  EXPECT_FALSE(connect(server, tls).resumed);
  EXPECT_TRUE(connect(server, tls).resumed);
  ahead_s = 3 * 3600;
  const Seen seen = connect(server, tls);
  EXPECT_FALSE(seen.resumed);
  EXPECT_EQ(seen.error, TlsError::peer_refused_certificate);
}

TEST_P(ClientCertificates, are_verified_again_after_the_lifetime_of_a_session) {
  options.session_lifetime = 10h;
  const auto server = or_throw(TlsServerContext::create(options));
  const auto tls = client(24h);
  EXPECT_FALSE(connect(server, tls).resumed);
  ahead_s = 6 * 3600;
  EXPECT_TRUE(connect(server, tls).resumed);
  // In TLS 1.3, the ticket of this client is six hours old.
  ahead_s = 12 * 3600;
  EXPECT_FALSE(connect(server, tls).resumed);
  EXPECT_TRUE(connect(server, tls).resumed);
}

TEST_P(ClientCertificates, are_verified_again_with_other_authorities) {
  const Authority other("Another CA");
  options.authorities = TlsPem::memory(Contexts::authority().certificate() + other.certificate());
  const auto server = or_throw(TlsServerContext::create(options));
  const auto tls = client(24h);
  EXPECT_FALSE(connect(server, tls).resumed);
  ASSERT_TRUE(server.reload());
  EXPECT_TRUE(connect(server, tls).resumed);
  options.authorities = Contexts::authority().pem();
  ASSERT_TRUE(server.reload(options));
  EXPECT_FALSE(connect(server, tls).resumed);
  EXPECT_TRUE(connect(server, tls).resumed);
  options.authorities = other.pem();
  ASSERT_TRUE(server.reload(options));
  EXPECT_EQ(connect(server, tls).error, TlsError::peer_refused_certificate);
}

INSTANTIATE_TEST_SUITE_P(Tls, ClientCertificates,
                         testing::Values(TlsVersion::tls12, TlsVersion::tls13),
                         [](const testing::TestParamInfo<TlsVersion>& version) {
                           return version.param == TlsVersion::tls12 ? "tls12" : "tls13";
                         });

}  // namespace
}  // namespace tambour::client_certificates_test
