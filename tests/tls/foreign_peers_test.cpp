// Clients and servers of GnuTLS, Go's crypto/tls and Python's ssl: both versions of TLS, ALPN,
// resumption, and certificates of clients, valid and invalid.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/network.h"
#include "support/streams.h"
#include "support/temporary_folder.h"
#include "tls/support/certificates.h"
#include "tls/support/peers.h"

namespace tambour::foreign_peers_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

const std::vector<std::string> versions{"1.2", "1.3"};

/// What a client of the library gets from a server that answers a line.
struct Talk {
  Error error{};
  bool resumed = false;
  std::string alpn{};
  tls::Version version{};
  std::string answer{};
};

Task<Talk> talk(std::uint16_t port, tls::ClientContext tls) {
  Talk told;
  auto stream = co_await connect("localhost", port, tls);
  if (!stream) {
    told.error = stream.error();
    co_return told;
  }
  told.resumed = stream->tls()->is_resumed();
  told.alpn = stream->tls()->alpn();
  told.version = stream->tls()->version();
  static_cast<void>(co_await stream->write("hello\n"));
  Buffer buffer;
  const auto line = co_await read_line(*stream, buffer);
  if (!line) {
    told.error = line.error();
    co_return told;
  }
  told.answer = line->to_string();
  static_cast<void>(co_await stream->shutdown_write());
  // Tickets of TLS 1.3 may be received after the answer.
  while (const auto got = co_await stream->read(buffer)) {
    if (*got == 0) break;
  }
  co_return told;
}

/// Reads the output of a server until the line that says that it listens, and talks to it twice.
Task<> talk_twice(Process& server, std::string listening, std::uint16_t port,
                  tls::ClientContext tls, std::vector<Talk>& talks) {
  Buffer output;
  std::string text;
  for (;;) {
    const auto line = co_await read_line(server.output(), output);
    EXPECT_TRUE(line) << text;
    if (!line) co_return;
    text += line->to_string() + "\n";
    if (line->to_string().find(listening) != std::string::npos) break;
  }
  if (port == 0) port = std::uint16_t(std::stoi(text.substr(text.rfind(':') + 1)));
  for (int i = 0; i < 2; ++i) {
    Talk told = co_await talk(port, tls);
    talks.push_back(std::move(told));
  }
  server.terminate(Duration::zero());
}

struct BadCertificate {
  std::string file;  // "-": none.
  Error reason;
};

class TlsForeignPeer : public test::TlsPeerTest {
 protected:
  TlsForeignPeer() {
    const auto& authority = Contexts::authority();
    const test::Authority other("Other CA");
    save("unknown.pem", other.issue({.common_name = "mallory", .purpose = "clientAuth"}));
    save("expired.pem",
         authority.issue({.common_name = "old", .ends = -1min, .purpose = "clientAuth"}));
    save("server-only.pem", authority.issue({.common_name = "server", .purpose = "serverAuth"}));
    save("self-signed.pem", test::self_signed({.common_name = "own"}));
  }
  void save(const std::string& name, const test::Certified& certified) const {
    write(name, certified.certificate + certified.key);
  }

  [[nodiscard]] static const std::vector<BadCertificate>& bad_certificates() {
    static const std::vector<BadCertificate> all{
        {"-", tls::ErrorCode::certificate_missing},
        {"unknown.pem", tls::ErrorCode::certificate_unknown_issuer},
        {"expired.pem", tls::ErrorCode::certificate_expired},
        {"server-only.pem", tls::ErrorCode::certificate_wrong_purpose},
        {"self-signed.pem", tls::ErrorCode::certificate_self_signed},
    };
    return all;
  }
  [[nodiscard]] static tls::ServerOptions with_verification() {
    tls::ServerOptions options;
    options.authorities = Contexts::authority().pem();
    options.client_certificate = tls::PeerCertificate::required;
    return options;
  }

  /// Runs a server, and a client of the library that connects twice.
  std::vector<Talk> run_server(const std::string& command, const std::string& listening,
                               std::uint16_t port, const std::string& certificate = "-") {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.alpn = {"other", "test"};
    if (certificate != "-")
      options.identities = {{.certificate = tls::Pem::file(path(certificate))}};
    auto server = start("exec " + command, Stdio::pipe());
    std::vector<Talk> talks;
    spawn(loop, talk_twice(server, listening, port, or_throw(tls::ClientContext::create(options)),
                           talks));
    loop.run();
    return talks;
  }

  static void expect_talks(const std::vector<Talk>& talks, const std::string& version,
                           const std::string& answer) {
    ASSERT_EQ(talks.size(), 2U);
    for (const Talk& talk : talks) {
      EXPECT_EQ(talk.error, Error()) << talk.error.message();
      EXPECT_EQ(talk.version, version == "1.2" ? tls::Version::tls12 : tls::Version::tls13);
      EXPECT_EQ(talk.alpn, "test");
      EXPECT_EQ(talk.answer, answer);
    }
    EXPECT_FALSE(talks[0].resumed);
    EXPECT_TRUE(talks[1].resumed);
  }
  static void expect_refused(const std::vector<Talk>& talks, const std::vector<Error>& possible) {
    ASSERT_EQ(talks.size(), 2U);
    for (const Talk& talk : talks) {
      EXPECT_EQ(talk.answer, "");
      EXPECT_NE(std::ranges::find(possible, talk.error), possible.end()) << talk.error.message();
    }
  }
};

/// The program peer.py or peer.go.
class TlsScriptedPeer : public TlsForeignPeer, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "python") {
      if (!test::has_program("python3")) GTEST_SKIP() << "python3 is not installed";
      peer_ = "python3 " TAMBOUR_TLS_PEERS "/peer.py ";
      return;
    }
    if (!test::has_program("go")) GTEST_SKIP() << "go is not installed";
    peer_ = built_go_program() + " ";
  }
  const std::string& peer() const { return peer_; }
  static std::string printed_twice(const std::string& version, const std::string& rest) {
    std::ostringstream text;
    text << "TLSv" << version << " full" << rest << "TLSv" << version << " resumed" << rest;
    return text.str();
  }

 private:
  /// Debian's Go contains a compiled standard library; another one may have to compile it.
  static std::string built_go_program() {
    static const test::TemporaryFolder folder;
    static const std::string program = folder.path() + "/peer";
    static const int status = std::system(
        ("cd " + folder.path() +
         " && go=$(ls /usr/bin/go 2>/dev/null || command -v go) && export GO111MODULE=off &&"
         " if [ -z \"$HOME$GOCACHE\" ]; then export GOCACHE=" +
         folder.path() + "/cache; fi && $go build -o peer " TAMBOUR_TLS_PEERS "/peer.go")
            .c_str());
    EXPECT_EQ(status, 0);
    return program;
  }

  std::string peer_;
};

TEST_P(TlsScriptedPeer, client_negotiates_and_resumes) {
  for (const std::string& version : versions) {
    tls::ServerOptions options;
    options.alpn = {"test"};
    EXPECT_EQ(run_client(options, answer,
                         peer() + "client $PORT " + version + " other,test - > out 2> errors"),
              0)
        << read("errors");
    const std::string rest = " you said hello, alpn test, peer unknown\n";
    EXPECT_EQ(read("out"), printed_twice(version, rest)) << read("errors");
  }
}

TEST_P(TlsScriptedPeer, client_with_certificate) {
  for (const std::string& version : versions) {
    EXPECT_EQ(run_client(with_verification(), answer,
                         peer() + "client $PORT " + version + " - client.pem > out 2> errors"),
              0)
        << read("errors");
    const std::string rest = " you said hello, alpn , peer CN=alice\n";
    EXPECT_EQ(read("out"), printed_twice(version, rest)) << read("errors");
  }
}

TEST_P(TlsScriptedPeer, client_with_bad_certificate) {
  for (const std::string& version : versions) {
    for (const BadCertificate& bad_certificate : bad_certificates()) {
      refused.clear();
      EXPECT_NE(run_client(with_verification(), answer,
                           peer() + "client $PORT " + version + " - " + bad_certificate.file +
                               " > out 2>&1"),
                0)
          << read("out");
      EXPECT_EQ(refused, std::vector<Error>{bad_certificate.reason})
          << version << " " << bad_certificate.file;
      EXPECT_EQ(read("out").find("you said"), std::string::npos);
    }
  }
}

TEST_P(TlsScriptedPeer, client_without_a_common_protocol) {
  for (const std::string& version : versions) {
    refused.clear();
    tls::ServerOptions options;
    options.alpn = {"h2"};
    EXPECT_NE(
        run_client(options, answer, peer() + "client $PORT " + version + " test - > out 2>&1"), 0);
    EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::no_common_alpn});
  }
}

TEST_P(TlsScriptedPeer, client_refuses_another_host) {
  for (const std::string& version : versions) {
    refused.clear();
    tls::ServerOptions options;
    options.identities = {Contexts::authority().issue({.names = {"DNS:other.test"}}).identity()};
    EXPECT_NE(run_client(options, answer, peer() + "client $PORT " + version + " - - > out 2>&1"),
              0);
    EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::peer_refused_certificate});
  }
}

TEST_P(TlsScriptedPeer, server_negotiates_and_resumes) {
  for (const std::string& version : versions)
    expect_talks(run_server(peer() + "server 0 " + version + " test -", "ACCEPT", 0), version,
                 "olleh");
}

TEST_P(TlsScriptedPeer, server_verifies_clients) {
  for (const std::string& version : versions) {
    const std::string command = peer() + "server 0 " + version + " test ca.pem";
    expect_talks(run_server(command, "ACCEPT", 0, "client.pem"), version, "olleh");
    // Implementations also send the alert bad_certificate if there is none.
    expect_refused(run_server(command, "ACCEPT", 0), {tls::ErrorCode::peer_requires_certificate,
                                                      tls::ErrorCode::peer_refused_certificate});
    for (const char* const text : {"unknown.pem", "server-only.pem", "self-signed.pem"})
      expect_refused(run_server(command, "ACCEPT", 0, text),
                     {tls::ErrorCode::peer_refused_certificate});
  }
}

INSTANTIATE_TEST_SUITE_P(Peers, TlsScriptedPeer, testing::Values("python", "go"),
                         [](const auto& peer) { return peer.param; });

/// gnutls-cli and gnutls-serv.
class TlsGnuTlsPeer : public TlsForeignPeer {
 protected:
  void SetUp() override {
    if (!test::has_program("gnutls-cli")) GTEST_SKIP() << "gnutls-bin is not installed";
  }
  static std::string priority(const std::string& version) {
    return " --priority NORMAL:-VERS-ALL:+VERS-TLS" + version + " ";
  }
  static std::string client(const std::string& version, const std::string& certificate = "-") {
    std::string command =
        "echo hello | gnutls-cli --logfile=log --x509cafile ca.pem --sni-hostname localhost "
        "--verify-hostname localhost --alpn=test -p $PORT" +
        priority(version);
    if (certificate != "-")
      command += "--x509certfile " + certificate + " --x509keyfile " + certificate;
    return command + " 127.0.0.1 ";
  }
  /// On a port that was free a moment ago, because the server does not print the port it gets.
  std::vector<Talk> run_gnutls_server(const std::string& version, const std::string& options,
                                      const std::string& certificate = "-") {
    const std::uint16_t port =
        TcpServer::listen(loop, Endpoint::loopback_v4(0)).value().endpoint().port();
    return run_server(
        "gnutls-serv --echo --x509certfile cert.pem --x509keyfile key.pem "
        "--alpn=test -p " +
            std::to_string(port) + priority(version) + options + " 2>&1",
        "IPv4", port, certificate);
  }
};

TEST_F(TlsGnuTlsPeer, client_negotiates) {
  for (const std::string& version : versions) {
    tls::ServerOptions options;
    options.alpn = {"test"};
    EXPECT_EQ(run_client(options, answer, client(version) + "> out 2> errors"), 0)
        << read("errors") << read("log");
    EXPECT_NE(read("out").find("you said hello, alpn test, peer unknown"), std::string::npos)
        << read("out");
  }
}

/// The first connection of gnutls-cli sends nothing.
Task<> answer_if_asked(TcpStream stream) {
  Buffer buffer;
  const auto line = co_await read_line(stream, buffer);
  if (line) static_cast<void>(co_await stream.write("you said " + line->to_string() + "\n"));
  static_cast<void>(co_await stream.shutdown_write());
  static_cast<void>(co_await stream.read(buffer));
}

TEST_F(TlsGnuTlsPeer, client_resumes) {
  for (const std::string& version : versions) {
    EXPECT_EQ(run_client({}, answer_if_asked,
                         client(version) + "--resume --waitresumption > out 2> errors"),
              0)
        << read("errors") << read("log");
    EXPECT_NE(read("log").find("This is a resumed session"), std::string::npos) << read("log");
    EXPECT_NE(read("out").find("you said hello"), std::string::npos) << read("out");
  }
}

TEST_F(TlsGnuTlsPeer, client_with_certificate) {
  for (const std::string& version : versions) {
    EXPECT_EQ(
        run_client(with_verification(), answer, client(version, "client.pem") + "> out 2> errors"),
        0)
        << read("errors") << read("log");
    EXPECT_NE(read("out").find("peer CN=alice"), std::string::npos) << read("out");
  }
}

TEST_F(TlsGnuTlsPeer, client_with_bad_certificate) {
  for (const std::string& version : versions) {
    for (const BadCertificate& bad_certificate : bad_certificates()) {
      refused.clear();
      run_client(with_verification(), answer, client(version, bad_certificate.file) + "> out 2>&1");
      ASSERT_EQ(refused.size(), 1U) << read("out");
      // GnuTLS does not send a certificate that none of the server's authorities has issued.
      EXPECT_TRUE(refused[0] == bad_certificate.reason ||
                  refused[0] == tls::ErrorCode::certificate_missing)
          << refused[0].message();
      EXPECT_EQ(read("out").find("you said"), std::string::npos);
    }
  }
}

TEST_F(TlsGnuTlsPeer, server_negotiates_and_resumes) {
  for (const std::string& version : versions)
    expect_talks(run_gnutls_server(version, "--disable-client-cert"), version, "hello");
}

TEST_F(TlsGnuTlsPeer, server_verifies_clients) {
  const std::string options = "--x509cafile ca.pem --require-client-cert --verify-client-cert";
  for (const std::string& version : versions) {
    expect_talks(run_gnutls_server(version, options, "client.pem"), version, "hello");
    // gnutls-serv sends the alert access_denied for each certificate.
    for (const char* const text : {"-", "unknown.pem", "self-signed.pem"})
      expect_refused(run_gnutls_server(version, options, text),
                     {tls::ErrorCode::peer_refused, tls::ErrorCode::peer_requires_certificate});
  }
}

}  // namespace
}  // namespace tambour::foreign_peers_test
