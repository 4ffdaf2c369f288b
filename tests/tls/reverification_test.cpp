// Resumption: when a server verifies clients with certificates again, and when a client verifies
// the server again. OpenSSL asks for the time with time(2), which this file replaces in the whole
// program.
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

namespace tambour::reverification_test {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using test::Contexts;

/// What a client sees of a server.
struct Seen {
  Error error;
  bool resumed = false;
};

class Reverification : public testing::TestWithParam<tls::Version> {
 protected:
  Reverification() {
    options.identities = {Contexts::localhost().identity()};
    client_options.version_max = GetParam();
    client_options.authorities = Contexts::authority().pem();
  }
  ~Reverification() override { ahead_s = 0; }

  Seen connect(const tls::ServerContext& server, const tls::ClientContext& tls) {
    test::StreamEnds ends = test::open_stream_ends(loop);
    Seen seen;
    TaskScope scope(loop);
    scope.spawn([](SocketStream& stream, tls::ServerContext context) -> Task<> {
      if (co_await tls::accept(stream, context)) static_cast<void>(co_await stream.write("x"));
    }(ends.far, server));
    scope.spawn([](SocketStream& stream, tls::ClientContext context, Seen& into) -> Task<> {
      const auto done = co_await tls::connect(stream, context, "localhost");
      if (!done) into.error = done.error();
      if (!done) co_return;
      into.resumed = stream.tls()->is_resumed();
      // In TLS 1.3 the refusal of a certificate arrives here.
      Buffer buffer;
      const auto got = co_await stream.read(buffer);
      if (!got) into.error = got.error();
    }(ends.near, tls, seen));
    while (!scope.empty()) loop.run_once();
    return seen;
  }

  EventLoop loop;
  tls::ServerOptions options;
  tls::ClientOptions client_options;
};

class ClientCertificates : public Reverification {
 protected:
  ClientCertificates() {
    options.authorities = Contexts::authority().pem();
    options.client_certificate = tls::PeerCertificate::required;
  }

  tls::ClientContext client(std::chrono::seconds ends) {
    client_options.identities = {
        Contexts::authority().issue({.common_name = "client", .ends = ends}).identity()};
    return or_throw(tls::ClientContext::create(client_options));
  }
};

TEST_P(ClientCertificates, that_have_expired_are_not_resumed) {
  const auto server = or_throw(tls::ServerContext::create(options));
  const auto tls = client(2h);
  EXPECT_FALSE(connect(server, tls).resumed);
  EXPECT_TRUE(connect(server, tls).resumed);
  ahead_s = 3 * 3600;
  const Seen seen = connect(server, tls);
  EXPECT_FALSE(seen.resumed);
  EXPECT_EQ(seen.error, tls::ErrorCode::peer_refused_certificate);
}

TEST_P(ClientCertificates, are_verified_again_after_the_lifetime_of_a_session) {
  options.session_lifetime = 10h;
  const auto server = or_throw(tls::ServerContext::create(options));
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
  options.authorities = tls::Pem::memory(Contexts::authority().certificate() + other.certificate());
  const auto server = or_throw(tls::ServerContext::create(options));
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
  EXPECT_EQ(connect(server, tls).error, tls::ErrorCode::peer_refused_certificate);
}

class ServerCertificates : public Reverification {
 protected:
  ServerCertificates() { options.session_lifetime = 7 * 24h; }

  tls::ClientContext client() { return or_throw(tls::ClientContext::create(client_options)); }
};

TEST_P(ServerCertificates, that_have_expired_are_not_resumed) {
  options.identities = {
      Contexts::authority()
          .issue({.common_name = "localhost", .names = {"DNS:localhost"}, .ends = 2h})
          .identity()};
  const auto server = or_throw(tls::ServerContext::create(options));
  const auto tls = client();
  EXPECT_FALSE(connect(server, tls).resumed);
  EXPECT_TRUE(connect(server, tls).resumed);
  ahead_s = 3 * 3600;
  const Seen seen = connect(server, tls);
  EXPECT_FALSE(seen.resumed);
  EXPECT_EQ(seen.error, tls::ErrorCode::certificate_expired);
}

TEST_P(ServerCertificates, are_verified_again_after_a_day) {
  options.identities = {
      Contexts::authority()
          .issue({.common_name = "localhost", .names = {"DNS:localhost"}, .ends = 1000h})
          .identity()};
  const auto server = or_throw(tls::ServerContext::create(options));
  const auto tls = client();
  EXPECT_FALSE(connect(server, tls).resumed);
  // In TLS 1.3, each connection gets new tickets, but the time of the verification remains.
  for (const int hours : {10, 20}) {
    ahead_s = hours * 3600;
    EXPECT_TRUE(connect(server, tls).resumed) << hours;
  }
  ahead_s = 30 * 3600;
  EXPECT_FALSE(connect(server, tls).resumed);
  ahead_s = 50 * 3600;
  EXPECT_TRUE(connect(server, tls).resumed);
}

std::string name_of_version(const testing::TestParamInfo<tls::Version>& version) {
  return version.param == tls::Version::tls12 ? "tls12" : "tls13";
}

INSTANTIATE_TEST_SUITE_P(Tls, ClientCertificates,
                         testing::Values(tls::Version::tls12, tls::Version::tls13),
                         &name_of_version);
INSTANTIATE_TEST_SUITE_P(Tls, ServerCertificates,
                         testing::Values(tls::Version::tls12, tls::Version::tls13),
                         &name_of_version);

}  // namespace
}  // namespace tambour::reverification_test
