// Contexts: validation, names, reloading, stapling, key logs.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/err.h>

#include <tambour/tambour.h>

#include "support/log_lines.h"
#include "support/scale.h"
#include "support/streams.h"
#include "support/temporary_folder.h"
#include "tls/failure.h"
#include "tls/support/certificates.h"
#include "tls/support/handshake.h"

namespace tambour::contexts_test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::Contexts;
using test::handshake;
using test::Seen;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class TlsContexts : public testing::Test {
 protected:
  Seen shake_hands(const tls::ServerContext& server, const std::string& host) {
    return handshake(loop, server, client, host);
  }
  static tls::Failure failure_of(tls::ServerOptions options) {
    auto server_context = tls::ServerContext::create(std::move(options));
    EXPECT_FALSE(server_context);
    return server_context ? tls::Failure() : server_context.error();
  }
  static tls::ClientContext make_client() {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.sessions_max = 0;
    return or_throw(tls::ClientContext::create(options));
  }
  static tls::ClientContext make_rsa_client() {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.version_max = tls::Version::tls12;
    options.ciphers_tls12 = "ECDHE-RSA-AES128-GCM-SHA256";
    return or_throw(tls::ClientContext::create(options));
  }
  static tls::Identity identity(std::vector<std::string> names, const std::string& common_name,
                                bool rsa = false) {
    return Contexts::authority()
        .issue({.common_name = common_name, .names = std::move(names), .rsa = rsa})
        .identity();
  }

  EventLoop loop;
  tls::ClientContext client = make_client();
};

TEST_F(TlsContexts, bad_options_are_refused_with_the_reason) {
  EXPECT_EQ(failure_of({}).error, tls::ErrorCode::bad_configuration);
  const test::Authority& authority = Contexts::authority();
  const test::Certified good = Contexts::localhost();
  const test::Certified other = authority.issue({.common_name = "other"});
  tls::ServerOptions options;
  const auto expect = [&](tls::Identity with, const Error& error, std::string_view part) {
    options.identities = {std::move(with)};
    const tls::Failure failure = failure_of(options);
    EXPECT_EQ(failure.error, error) << failure.message;
    EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
  };
  expect({.certificate = tls::Pem::file("/nowhere/cert.pem")}, system_error(ENOENT),
         "/nowhere/cert.pem");
  expect({.certificate = tls::Pem::memory("nonsense")}, tls::ErrorCode::file_unreadable,
         "no certificate");
  expect({.certificate = tls::Pem::memory(good.certificate)}, tls::ErrorCode::file_unreadable,
         "private key");
  expect({.certificate = tls::Pem::memory(good.certificate), .key = tls::Pem::memory(other.key)},
         tls::ErrorCode::key_mismatch, "CN=localhost");
  expect(authority.issue({.common_name = "old", .ends = -1min}).identity(),
         tls::ErrorCode::certificate_expired, "CN=old, issued by CN=Test CA");
  expect(authority.issue({.common_name = "new", .begins = 1h}).identity(),
         tls::ErrorCode::certificate_not_yet_valid, "CN=new");
  expect({.certificate = tls::Pem::memory(good.certificate + other.certificate),
          .key = tls::Pem::memory(good.key)},
         tls::ErrorCode::certificate_invalid, "chain is not in order");
  options.identities = {good.identity()};
  options.ciphers_tls12 = "NO-SUCH-CIPHER";
  EXPECT_EQ(failure_of(options).error, tls::ErrorCode::bad_configuration);
  options.ciphers_tls12.clear();
  options.client_certificate = tls::PeerCertificate::required;
  EXPECT_EQ(failure_of(options).error, tls::ErrorCode::bad_configuration);
  options.client_certificate = tls::PeerCertificate::none;
  options.alpn = {""};
  EXPECT_EQ(failure_of(options).error, tls::ErrorCode::bad_configuration);
}

TEST_F(TlsContexts, certificates_are_chosen_by_name) {
  tls::ServerOptions options;
  options.identities = {identity({"DNS:first.test"}, "first"),
                        identity({"DNS:*.wild.test", "DNS:wild.test"}, "wild"),
                        identity({"DNS:exact.wild.test"}, "exact")};
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "first.test").subject, "CN=first");
  EXPECT_EQ(shake_hands(server, "wild.test").subject, "CN=wild");
  EXPECT_EQ(shake_hands(server, "a.wild.test").subject, "CN=wild");
  EXPECT_EQ(shake_hands(server, "A.Wild.TEST").subject, "CN=wild");
  EXPECT_EQ(shake_hands(server, "exact.wild.test").subject, "CN=exact");
  // A wildcard replaces one label; an unknown name gets the first certificate.
  EXPECT_EQ(shake_hands(server, "a.b.wild.test").error, tls::ErrorCode::certificate_wrong_host);
  EXPECT_EQ(shake_hands(server, "unknown.test").error, tls::ErrorCode::certificate_wrong_host);
  options.refuse_unknown_names = true;
  const auto strict = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(strict, "unknown.test").error, tls::ErrorCode::unknown_server_name);
  EXPECT_EQ(shake_hands(strict, "wild.test").subject, "CN=wild");
}

TEST_F(TlsContexts, a_host_that_is_no_name_is_refused) {
  tls::ServerOptions options;
  options.identities = {identity({"DNS:a.wild.test"}, "a")};
  const auto server = or_throw(tls::ServerContext::create(options));
  // OpenSSL would accept the certificate of any subdomain for the second one.
  for (const std::string& host :
       {""s, ".wild.test"s, "."s, ".."s, "a.wild.test\0"s, std::string(256, 'a')})
    EXPECT_EQ(shake_hands(server, host).error, system_error(EINVAL)) << host;
}

TEST_F(TlsContexts, server_names_are_in_lower_case_without_a_final_dot_and_no_addresses) {
  tls::ServerOptions options;
  options.identities = {identity({"DNS:localhost", "IP:127.0.0.1", "IP:fe80::1"}, "localhost")};
  const auto server = or_throw(tls::ServerContext::create(options));
  for (const auto& [host, name] : {std::pair("LocalHost", "localhost"),
                                   {"LOCALHOST.", "localhost"},
                                   {"127.0.0.1", ""},
                                   {"fe80::1", ""},
                                   {"FE80::1%eth0", ""}}) {
    test::StreamEnds ends = test::open_stream_ends(loop);
    TaskScope scope(loop);
    scope.spawn([](SocketStream& stream, tls::ServerContext tls) -> Task<> {
      EXPECT_TRUE(co_await tls::accept(stream, tls));
    }(ends.far, server));
    scope.spawn([](SocketStream& stream, tls::ClientContext tls, std::string to) -> Task<> {
      EXPECT_TRUE(co_await tls::connect(stream, tls, to));
    }(ends.near, client, host));
    while (!scope.empty()) loop.run_once();
    ASSERT_TRUE(ends.far.tls() != nullptr && ends.near.tls() != nullptr) << host;
    EXPECT_EQ(ends.far.tls()->server_name(), name);
    EXPECT_EQ(ends.near.tls()->server_name(), name);
  }
}

TEST_F(TlsContexts, messages_of_failures_contain_no_control_characters_of_the_peer) {
  EXPECT_EQ(tls::detail::printable("a\nb\x7f\x9b\xffz"), "a\\x0ab\\x7f\\x9b\\xffz");
  std::string message;
  tls::ServerOptions options;
  options.identities = {identity({"DNS:example.test"}, "example")};
  options.refuse_unknown_names = true;
  options.on_failure = [&](const tls::Failure& failure) { message = failure.message; };
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "evil\nname").error, tls::ErrorCode::unknown_server_name);
  EXPECT_NE(message.find("evil\\x0aname"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

// Programs that use OpenSSL themselves may look at its queue after a call that has succeeded.
TEST_F(TlsContexts, failures_leave_no_errors_in_the_queue_of_openssl) {
  tls::ServerOptions options;
  options.identities = {identity({"DNS:example.test"}, "example")};
  options.refuse_unknown_names = true;
  const auto strict = or_throw(tls::ServerContext::create(options));
  options.refuse_unknown_names = false;
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(strict, "unknown.test").error, tls::ErrorCode::unknown_server_name);
  EXPECT_EQ(ERR_peek_error(), 0U);
  EXPECT_EQ(shake_hands(server, "unknown.test").error, tls::ErrorCode::certificate_wrong_host);
  EXPECT_EQ(ERR_peek_error(), 0U);
  // The peer ends in the middle of the handshake.
  test::StreamEnds ends = test::open_stream_ends(loop);
  TaskScope scope(loop);
  scope.spawn([](SocketStream& stream, tls::ServerContext tls) -> Task<> {
    EXPECT_EQ((co_await tls::accept(stream, tls)).error(), tls::ErrorCode::truncated);
  }(ends.far, server));
  ends.near.close();
  while (!scope.empty()) loop.run_once();
  EXPECT_EQ(ERR_peek_error(), 0U);
}

TEST_F(TlsContexts, the_common_name_is_not_a_host_name) {
  tls::ServerOptions options;
  options.identities = {identity({}, "localhost")};
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "localhost").error, tls::ErrorCode::certificate_wrong_host);
}

TEST_F(TlsContexts, keys_of_two_types_serve_one_name) {
  tls::ServerOptions options;
  options.identities = {identity({"DNS:first.test"}, "first"), identity({"DNS:both.test"}, "ecdsa"),
                        identity({"DNS:both.test"}, "rsa", true)};
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "both.test").subject, "CN=ecdsa");
  const auto old = make_rsa_client();
  EXPECT_EQ(handshake(loop, server, old, "both.test").subject, "CN=rsa");
  EXPECT_EQ(handshake(loop, server, old, "first.test").error, tls::ErrorCode::no_common_cipher);
}

TEST_F(TlsContexts, keys_of_two_types_are_combined_for_each_name_of_the_first_identity) {
  tls::ServerOptions options;
  options.identities = {identity({"DNS:a.test", "DNS:b.test"}, "ecdsa"),
                        identity({"DNS:a.test"}, "rsa of a", true),
                        identity({"DNS:b.test"}, "rsa of b", true)};
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "b.test").subject, "CN=ecdsa");
  const auto old = make_rsa_client();
  EXPECT_EQ(handshake(loop, server, old, "a.test").subject, "CN=rsa of a");
  EXPECT_EQ(handshake(loop, server, old, "b.test").subject, "CN=rsa of b");
}

TEST_F(TlsContexts, a_reload_is_atomic_and_a_bad_one_changes_nothing) {
  const test::TemporaryFolder folder;
  const std::string certificate = folder.path() + "/cert.pem";
  const std::string key = folder.path() + "/key.pem";
  const auto put = [&](const std::string& name) {
    const auto created =
        Contexts::authority().issue({.common_name = name, .names = {"DNS:localhost"}});
    write_file(certificate, created.certificate);
    write_file(key, created.key);
  };
  put("one");
  tls::ServerOptions options;
  options.identities = {{.certificate = tls::Pem::file(certificate), .key = tls::Pem::file(key)}};
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "localhost").subject, "CN=one");
  put("two");
  EXPECT_EQ(shake_hands(server, "localhost").subject, "CN=one");
  test::LogLines log;
  EXPECT_TRUE(server.reload());
  EXPECT_TRUE(log.has("component=tls message=\"certificates were loaded again\""));
  EXPECT_EQ(shake_hands(server, "localhost").subject, "CN=two");
  write_file(certificate, "half a certifi");
  const auto bad = server.reload();
  EXPECT_TRUE(log.has("message=\"certificates could not be loaded again\" reason="));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().error, tls::ErrorCode::file_unreadable);
  EXPECT_NE(bad.error().message.find(certificate), std::string::npos);
  EXPECT_EQ(shake_hands(server, "localhost").subject, "CN=two");
}

TEST_F(TlsContexts, reloads_fail_no_handshake) {
  tls::ServerOptions options;
  options.identities = {Contexts::localhost().identity()};
  const auto server = or_throw(tls::ServerContext::create(options));
  // The entry tls.many_reloads makes 10,000 handshakes.
  const char* const more = std::getenv("TAMBOUR_TEST_HANDSHAKES");
  const std::size_t count = more != nullptr ? std::stoul(more) : test::scaled(1000);
  std::atomic<std::size_t> handshakes{0};
  std::size_t reloads = 0;
  std::thread reloading([&] {
    // About one for each handshake, at any moment of it.
    for (std::size_t seen = 0; seen < count; seen = handshakes) {
      EXPECT_TRUE(server.reload());
      ++reloads;
      handshakes.wait(seen);
    }
  });
  for (; handshakes < count; ++handshakes, handshakes.notify_one())
    EXPECT_EQ(shake_hands(server, "localhost").error, Error());
  reloading.join();
  EXPECT_GT(reloads, 0U);
  EXPECT_EQ(server.stats().handshakes, count);
  EXPECT_EQ(server.stats().failed, 0U);
}

TEST_F(TlsContexts, loops_share_the_ticket_keys) {
  tls::ServerOptions options;
  options.identities = {Contexts::localhost().identity()};
  const auto server = or_throw(tls::ServerContext::create(options));
  tls::ClientOptions with_sessions;
  with_sessions.authorities = Contexts::authority().pem();
  const auto resuming = or_throw(tls::ClientContext::create(with_sessions));
  EXPECT_FALSE(handshake(loop, server, resuming, "localhost").resumed);
  for (int i = 0; i < 5; ++i) {
    std::thread([&] {
      EventLoop other;
      EXPECT_TRUE(handshake(other, server, resuming, "localhost").resumed);
    }).join();
  }
}

TEST_F(TlsContexts, processes_with_the_same_secret_share_the_ticket_keys) {
  tls::ServerOptions options;
  options.identities = {Contexts::localhost().identity()};
  options.ticket_secret = std::string(31, 's');
  EXPECT_EQ(failure_of(options).error, tls::ErrorCode::bad_configuration);
  options.ticket_secret = std::string(32, 's');
  const auto one = or_throw(tls::ServerContext::create(options));
  const auto two = or_throw(tls::ServerContext::create(options));
  options.ticket_secret = std::string(32, 'x');
  const auto other = or_throw(tls::ServerContext::create(options));
  tls::ClientOptions with_sessions;
  with_sessions.authorities = Contexts::authority().pem();
  const auto resuming = or_throw(tls::ClientContext::create(with_sessions));
  EXPECT_FALSE(handshake(loop, one, resuming, "localhost").resumed);
  EXPECT_TRUE(handshake(loop, two, resuming, "localhost").resumed);
  EXPECT_FALSE(handshake(loop, other, resuming, "localhost").resumed);
  EXPECT_TRUE(handshake(loop, other, resuming, "localhost").resumed);
  // Another secret makes the tickets invalid.
  EXPECT_TRUE(two.reload(options));
  EXPECT_TRUE(handshake(loop, two, resuming, "localhost").resumed);
}

TEST_F(TlsContexts, a_revoked_certificate_is_refused) {
  const test::TemporaryFolder folder;
  const std::string status = folder.path() + "/status.der";
  const test::Certified certified = Contexts::localhost();
  tls::ServerOptions options;
  options.identities = {certified.identity()};
  tls::ClientOptions strict_options;
  strict_options.authorities = Contexts::authority().pem();
  strict_options.revocation = tls::Revocation::required;
  strict_options.sessions_max = 0;
  const auto strict = or_throw(tls::ClientContext::create(strict_options));
  const auto without = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(without, "localhost").error, Error());
  EXPECT_EQ(handshake(loop, without, strict, "localhost").error,
            tls::ErrorCode::certificate_status_missing);
  options.identities[0].ocsp_response_path = status;
  write_file(status, Contexts::authority().status_of(certified, false));
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(handshake(loop, server, strict, "localhost").error, Error());
  write_file(status, Contexts::authority().status_of(certified, true));
  EXPECT_TRUE(server.reload());
  EXPECT_EQ(shake_hands(server, "localhost").error, tls::ErrorCode::certificate_revoked);
  // A good status without the time of the next update proves nothing; a revocation remains one.
  write_file(status, Contexts::authority().status_of(certified, true, false));
  EXPECT_TRUE(server.reload());
  EXPECT_EQ(shake_hands(server, "localhost").error, tls::ErrorCode::certificate_revoked);
  write_file(status, Contexts::authority().status_of(certified, false, false));
  EXPECT_TRUE(server.reload());
  EXPECT_EQ(shake_hands(server, "localhost").error, Error());
  EXPECT_EQ(handshake(loop, server, strict, "localhost").error,
            tls::ErrorCode::certificate_status_missing);
  write_file(status, "nonsense");
  EXPECT_TRUE(server.reload());
  EXPECT_EQ(shake_hands(server, "localhost").error, Error());
  EXPECT_EQ(handshake(loop, server, strict, "localhost").error,
            tls::ErrorCode::certificate_status_missing);
}

TEST_F(TlsContexts, a_resumption_needs_no_status) {
  const test::TemporaryFolder folder;
  const test::Certified certified = Contexts::localhost();
  tls::ServerOptions options;
  options.identities = {certified.identity()};
  options.identities[0].ocsp_response_path = folder.path() + "/status.der";
  write_file(options.identities[0].ocsp_response_path,
             Contexts::authority().status_of(certified, false));
  const auto server = or_throw(tls::ServerContext::create(options));
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ClientOptions strict_options;
    strict_options.authorities = Contexts::authority().pem();
    strict_options.revocation = tls::Revocation::required;
    strict_options.version_max = version;
    const auto strict = or_throw(tls::ClientContext::create(strict_options));
    EXPECT_FALSE(handshake(loop, server, strict, "localhost").resumed);
    const Seen seen = handshake(loop, server, strict, "localhost");
    EXPECT_EQ(seen.error, Error());
    EXPECT_TRUE(seen.resumed);
  }
}

TEST_F(TlsContexts, keys_are_logged_on_request_only_for_the_owner) {
  const test::TemporaryFolder folder;
  tls::ServerOptions options;
  options.identities = {Contexts::localhost().identity()};
  options.key_log_path = folder.path() + "/keys";
  const auto server = or_throw(tls::ServerContext::create(options));
  EXPECT_EQ(shake_hands(server, "localhost").error, Error());
  std::ifstream file(options.key_log_path);
  std::string line;
  std::vector<std::string> labels;
  while (std::getline(file, line)) labels.push_back(line.substr(0, line.find(' ')));
  EXPECT_NE(std::ranges::find(labels, "CLIENT_TRAFFIC_SECRET_0"), labels.end());
  struct stat status{};
  ASSERT_EQ(::stat(options.key_log_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(TlsContexts, an_insecure_client_accepts_everything_and_says_so) {
  tls::ServerOptions options;
  options.identities = {test::self_signed({}).identity()};
  const auto server = or_throw(tls::ServerContext::create(options));
  tls::ClientOptions mode;
  mode.insecure_skip_verify = true;
  const auto insecure = or_throw(tls::ClientContext::create(mode));
  EXPECT_EQ(handshake(loop, server, insecure, "anything.test").error, Error());
}

TEST_F(TlsContexts, servers_over_groups_serve_tls) {
  LoopGroup group({.threads = 2});
  const Contexts contexts;
  ListenOptions options;
  options.tls = contexts.server;
  options.placement = Placement::round_robin;
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), options).value();
  server.serve(test::echo<TcpStream>);
  int done = 0;
  TaskScope scope(loop);
  for (int i = 0; i < 20; ++i) {
    scope.spawn([](std::uint16_t to, tls::ClientContext tls, int& count) -> Task<> {
      auto stream = co_await connect("127.0.0.1", to, tls);
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      co_await test::expect_echo(*stream, std::string(50'000, 'x'));
      ++count;
    }(server.endpoint().port(), contexts.client, done));
  }
  while (!scope.empty()) loop.run_once();
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace tambour::contexts_test
