// Other implementations of TLS as peers: programs of the machine, run as child processes.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/network.h"
#include "support/streams.h"
#include "tls/support/certificates.h"
#include "tls/support/peers.h"

namespace tambour::interoperability_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

class TlsInteroperability : public test::TlsPeerTest {};

const std::string s_client =
    "openssl s_client -quiet -connect 127.0.0.1:$PORT -servername localhost -CAfile ca.pem "
    "-verify_return_error -verify_hostname localhost ";

TEST_F(TlsInteroperability, openssl_s_client) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  for (const std::string version : {"-tls1_2", "-tls1_3"}) {
    TlsServerOptions options;
    options.alpn = {"test"};
    EXPECT_EQ(run_client(options, answer,
                         "echo hello | " + s_client + version + " -alpn test > out 2> errors"),
              0);
    EXPECT_EQ(read("out"), "you said hello, alpn test, peer unknown\n") << read("errors");
  }
}

TEST_F(TlsInteroperability, openssl_s_client_with_a_certificate) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  TlsServerOptions options;
  options.authorities = Contexts::authority().pem();
  options.client_certificate = TlsPeerCertificate::required;
  EXPECT_EQ(
      run_client(options, answer, "echo hello | " + s_client + "-cert client.pem > out 2> errors"),
      0);
  EXPECT_EQ(read("out"), "you said hello, alpn , peer CN=alice\n") << read("errors");
  EXPECT_EQ(refused, std::vector<Error>());
}

TEST_F(TlsInteroperability, openssl_s_client_resumes_sessions) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  for (const std::string version : {"-tls1_2", "-tls1_3"}) {
    const std::string connect =
        "openssl s_client -ign_eof -connect 127.0.0.1:$PORT -CAfile ca.pem " + version;
    EXPECT_EQ(run_client({}, answer,
                         "echo one | " + connect + " -sess_out session > first && echo two | " +
                             connect + " -sess_in session > out 2> errors && grep -q ^Reused out"),
              0)
        << read("first") << read("out") << read("errors");
  }
}

TEST_F(TlsInteroperability, openssl_s_client_refuses_another_host) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  EXPECT_NE(run_client({}, answer,
                       "echo hello | openssl s_client -quiet -connect 127.0.0.1:$PORT -CAfile "
                       "ca.pem -verify_return_error -verify_hostname other.test > out 2>&1"),
            0);
  EXPECT_EQ(refused, std::vector<Error>{TlsError::peer_refused_certificate});
}

Task<> serve_http(TcpStream stream) {
  Buffer buffer;
  for (;;) {
    auto line = co_await read_line(stream, buffer);
    if (!line) co_return;
    if (line->empty() || *line == "\r") break;
  }
  const std::string body(200'000, 'b');
  const std::string head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
  EXPECT_TRUE(co_await stream.write(head + body));
  EXPECT_TRUE(co_await stream.shutdown_write());
  static_cast<void>(co_await stream.read(buffer));
}

TEST_F(TlsInteroperability, curl) {
  if (!test::has_program("curl")) GTEST_SKIP() << "curl is not here";
  TlsServerOptions options;
  options.alpn = {"http/1.1"};
  EXPECT_EQ(run_client(options, serve_http,
                       "curl -sS --http1.1 --noproxy '*' --cacert ca.pem "
                       "--resolve localhost:$PORT:127.0.0.1 -o out https://localhost:$PORT/ "
                       "2> errors"),
            0)
      << read("errors");
  EXPECT_EQ(read("out"), std::string(200'000, 'b'));
}

/// Connects to a server that has printed "ACCEPT 127.0.0.1:PORT", and expects `line` reversed.
Task<> expect_reversed(PipeStream& output, TlsClientContext tls, std::string host, Error& error,
                       bool& resumed) {
  Buffer buffer;
  std::string text;
  for (;;) {
    auto line = co_await read_line(output, buffer);
    EXPECT_TRUE(line) << text;
    if (!line) co_return;
    text = line->to_string();
    if (text.starts_with("ACCEPT")) break;
  }
  const auto port = std::stoi(text.substr(text.rfind(':') + 1));
  for (int i = 0; i < 2; ++i) {
    auto plain = co_await TcpStream::connect(Endpoint::loopback_v4(std::uint16_t(port)));
    EXPECT_TRUE(plain);
    if (!plain) co_return;
    const auto secured = co_await tls_connect(*plain, tls, host);
    if (!secured) {
      error = secured.error();
      co_return;
    }
    resumed = plain->tls()->resumed();
    Buffer answer;
    EXPECT_TRUE(co_await plain->write("hello\n"));
    auto line = co_await read_line(*plain, answer);
    EXPECT_TRUE(line && *line == "olleh");
    EXPECT_TRUE(co_await plain->shutdown_write());
  }
}

TEST_F(TlsInteroperability, openssl_s_server) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  const auto& authority = Contexts::authority();
  const auto save = [this](const std::string& name, const test::Certified& certified) {
    write(name + ".pem", certified.certificate + certified.key);
  };
  save("expired",
       authority.issue({.common_name = "old", .names = {"DNS:localhost"}, .ends = -1min}));
  save("client-only",
       authority.issue(
           {.common_name = "wrong-use", .names = {"DNS:localhost"}, .purpose = "clientAuth"}));
  save("self-signed", test::self_signed({.common_name = "own", .names = {"DNS:localhost"}}));
  const auto revoked = authority.issue({.common_name = "revoked", .names = {"DNS:localhost"}});
  save("revoked", revoked);
  write("revoked.der", authority.status_of(revoked, true));
  const struct {
    std::string arguments;
    std::string host;
    Error expected;
    std::string subject{};  // What the message of the failure names.
  } cases[] = {
      {"-cert cert.pem -key key.pem -tls1_2", "localhost", {}},
      {"-cert cert.pem -key key.pem -tls1_3", "localhost", {}},
      {"-cert cert.pem -key key.pem", "127.0.0.1", {}},
      {"-cert cert.pem -key key.pem -Verify 1 -CAfile ca.pem", "localhost", {}},
      {"-cert cert.pem -key key.pem", "other.test", TlsError::certificate_wrong_host, "other.test"},
      {"-cert expired.pem", "localhost", TlsError::certificate_expired, "CN=old"},
      {"-cert client-only.pem", "localhost", TlsError::certificate_wrong_purpose, "CN=wrong-use"},
      {"-cert self-signed.pem", "localhost", TlsError::certificate_self_signed, "CN=own"},
      {"-cert revoked.pem -status_file revoked.der -tls1_2", "localhost",
       TlsError::certificate_revoked, "CN=revoked"},
      {"-cert revoked.pem -status_file revoked.der -tls1_3", "localhost",
       TlsError::certificate_revoked, "CN=revoked"},
  };
  for (const auto& each : cases) {
    TlsClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.identities = {{.certificate = TlsPem::file(path("client.pem"))}};
    std::string message;
    options.on_failure = [&](const TlsFailure& failure) { message = failure.message; };
    const auto client = or_throw(TlsClientContext::create(options));
    auto server =
        start("exec openssl s_server -accept 127.0.0.1:0 -rev " + each.arguments, Stdio::pipe());
    Error error;
    bool resumed = false;
    spawn(loop,
          [](Process& child, TlsClientContext tls, std::string host, Error& into,
             bool& second_resumed) -> Task<> {
            co_await expect_reversed(child.output(), tls, host, into, second_resumed);
            child.terminate(Duration::zero());
          }(server, client, each.host, error, resumed));
    loop.run();
    EXPECT_EQ(error, each.expected) << each.arguments << ": " << message;
    if (!each.expected) {
      EXPECT_TRUE(resumed) << each.arguments;
    }
    EXPECT_NE(message.find(each.subject), std::string::npos) << message;
    if (each.expected) {
      // The message gives the reason too.
      EXPECT_NE(message.find(each.expected.message()), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace tambour::interoperability_test
