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
    tls::ServerOptions options;
    options.alpn = {"test"};
    EXPECT_EQ(run_client(options, answer,
                         "echo hello | " + s_client + version + " -alpn test > out 2> errors"),
              0);
    EXPECT_EQ(read("out"), "you said hello, alpn test, peer unknown\n") << read("errors");
  }
}

TEST_F(TlsInteroperability, openssl_s_client_with_a_certificate) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  tls::ServerOptions options;
  options.authorities = Contexts::authority().pem();
  options.client_certificate = tls::PeerCertificate::required;
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
  EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::peer_refused_certificate});
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
  tls::ServerOptions options;
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
Task<> expect_reversed(PipeStream& output, tls::ClientContext tls, std::string host, Error& error,
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
    const auto secured = co_await tls::connect(*plain, tls, host);
    if (!secured) {
      error = secured.error();
      co_return;
    }
    resumed = plain->tls()->is_resumed();
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
      {"-cert cert.pem -key key.pem", "other.test", tls::ErrorCode::certificate_wrong_host,
       "other.test"},
      {"-cert expired.pem", "localhost", tls::ErrorCode::certificate_expired, "CN=old"},
      {"-cert client-only.pem", "localhost", tls::ErrorCode::certificate_wrong_purpose,
       "CN=wrong-use"},
      {"-cert self-signed.pem", "localhost", tls::ErrorCode::certificate_self_signed, "CN=own"},
      {"-cert revoked.pem -status_file revoked.der -tls1_2", "localhost",
       tls::ErrorCode::certificate_revoked, "CN=revoked"},
      {"-cert revoked.pem -status_file revoked.der -tls1_3", "localhost",
       tls::ErrorCode::certificate_revoked, "CN=revoked"},
  };
  for (const auto& test_case : cases) {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.identities = {{.certificate = tls::Pem::file(path("client.pem"))}};
    std::string message;
    options.on_failure = [&](const tls::Failure& failure) { message = failure.message; };
    const auto client = or_throw(tls::ClientContext::create(options));
    auto server = start("exec openssl s_server -accept 127.0.0.1:0 -rev " + test_case.arguments,
                        Stdio::pipe());
    Error error;
    bool resumed = false;
    spawn(loop,
          [](Process& child, tls::ClientContext tls, std::string host, Error& into,
             bool& second_resumed) -> Task<> {
            co_await expect_reversed(child.output(), tls, host, into, second_resumed);
            child.terminate(Duration::zero());
          }(server, client, test_case.host, error, resumed));
    loop.run();
    EXPECT_EQ(error, test_case.expected) << test_case.arguments << ": " << message;
    if (!test_case.expected) {
      EXPECT_TRUE(resumed) << test_case.arguments;
    }
    EXPECT_NE(message.find(test_case.subject), std::string::npos) << message;
    if (test_case.expected) {
      // The message gives the reason too.
      EXPECT_NE(message.find(test_case.expected.message()), std::string::npos) << message;
    }
  }
}

Task<> answer_early(TcpStream stream) {
  Buffer buffer;
  const auto got = co_await tls::read_early(stream, buffer);
  EXPECT_TRUE(got) << got.error().message();
  if (!got) co_return;
  const bool is_early = *got > 0;
  // The line is complete if it was sent early; read_line() then does not read.
  const auto line = co_await read_line(stream, buffer);
  EXPECT_TRUE(line) << line.error().message();
  if (!line) co_return;
  EXPECT_NE(stream.tls()->is_handshake_complete(), is_early);
  const std::string when = is_early ? "early " : "late ";
  EXPECT_TRUE(co_await stream.write(when + line->to_string() + "\n"));
  EXPECT_TRUE(co_await tls::complete_handshake(stream));
  EXPECT_TRUE(co_await stream.shutdown_write());
  static_cast<void>(co_await stream.read(buffer));
}

TEST_F(TlsInteroperability, openssl_s_client_sends_early_data) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  tls::ServerOptions options;
  options.early_data_bytes_max = 1000;
  starts_with_early_data = true;
  write("one", "one\n");
  const std::string connect =
      "openssl s_client -ign_eof -connect 127.0.0.1:$PORT -CAfile ca.pem -tls1_3 ";
  EXPECT_EQ(run_client(options, answer_early,
                       "cat one | " + connect + "-sess_out session > first && " + connect +
                           "-sess_in session -early_data one < /dev/null > second 2> errors"),
            0)
      << read("errors");
  EXPECT_NE(read("first").find("late one"), std::string::npos) << read("first");
  EXPECT_NE(read("second").find("early one"), std::string::npos) << read("second");
  EXPECT_NE(read("second").find("Early data was accepted"), std::string::npos) << read("second");
}

/// Sends a line twice, early if possible, to a server that prints it.
Task<> send_early(PipeStream& output, tls::ClientContext tls, std::string& text,
                  std::vector<tls::EarlyData>& outcomes) {
  Buffer buffer;
  std::string line;
  for (int sent = 0; sent < 3;) {
    const auto next = co_await read_line(output, buffer);
    EXPECT_TRUE(next) << text;
    if (!next) co_return;
    line = next->to_string();
    text += line + "\n";
    if (!line.starts_with("ACCEPT") && line.find("hello") == std::string::npos) continue;
    if (++sent == 3) co_return;
    static std::uint16_t port = 0;
    if (sent == 1) port = std::uint16_t(std::stoi(line.substr(line.rfind(':') + 1)));
    auto stream = co_await TcpStream::connect(Endpoint::loopback_v4(port));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    const auto done = co_await tls::connect(*stream, tls, "localhost", tls::Replayable("hello\n"));
    EXPECT_TRUE(done) << done.error().message();
    if (!done) co_return;
    outcomes.push_back(stream->tls()->early_data());
    if (outcomes.back() != tls::EarlyData::accepted) {
      EXPECT_TRUE(co_await stream->write("hello\n"));
    }
    EXPECT_TRUE(co_await stream->shutdown_write());
    Buffer rest;
    while (const auto got = co_await stream->read(rest)) {
      if (*got == 0) break;
    }
  }
}

TEST_F(TlsInteroperability, openssl_s_server_accepts_early_data) {
  if (!test::has_program("openssl")) GTEST_SKIP() << "openssl is not here";
  tls::ClientOptions options;
  options.authorities = Contexts::authority().pem();
  const auto client = or_throw(tls::ClientContext::create(options));
  // It ends when its input ends.
  auto server = start(
      "tail -f /dev/null | openssl s_server -accept 127.0.0.1:0 -cert cert.pem -key key.pem "
      "-early_data",
      Stdio::pipe());
  std::string text;
  std::vector<tls::EarlyData> outcomes;
  spawn(loop,
        [](Process& child, tls::ClientContext tls, std::string& printed,
           std::vector<tls::EarlyData>& into) -> Task<> {
          co_await send_early(child.output(), tls, printed, into);
          child.terminate(Duration::zero());
        }(server, client, text, outcomes));
  loop.run();
  EXPECT_EQ(outcomes, (std::vector{tls::EarlyData::none, tls::EarlyData::accepted})) << text;
}

}  // namespace
}  // namespace tambour::interoperability_test
