// Starts peers that use other implementations of TLS.
#include "tls/support/peers.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

#include "tls/support/certificates.h"

namespace tambour::test {

using namespace std::chrono_literals;

TlsPeerTest::TlsPeerTest() {
  write("ca.pem", Contexts::authority().certificate());
  write("cert.pem", Contexts::localhost().certificate);
  write("key.pem", Contexts::localhost().key);
  const auto alice = Contexts::authority().issue({.common_name = "alice", .purpose = "clientAuth"});
  write("client.pem", alice.certificate + alice.key);
}

void TlsPeerTest::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string TlsPeerTest::read(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int TlsPeerTest::run_client(tls::ServerOptions options, std::function<Task<>(TcpStream)> handler,
                            const std::string& command) {
  if (options.identities.empty()) options.identities = {Contexts::localhost().identity()};
  ListenOptions mode;
  mode.tls = or_throw(tls::ServerContext::create(std::move(options)));
  mode.tls_early_data = starts_with_early_data;
  mode.on_rejected = [this](SocketStream&, Error error) { refused.push_back(error); };
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), mode).value();
  server.serve(std::move(handler));
  const std::string port = std::to_string(server.endpoint().port());
  auto process = start("PORT=" + port + "; " + command);
  int status = -1;
  spawn(loop, [](Process& child, TcpServer& local, int& into) -> Task<> {
    const auto ended = co_await child.wait();
    EXPECT_TRUE(ended);
    if (ended) into = ended->code;
    co_await local.shut_down(1s);
  }(process, server, status));
  loop.run();
  return status;
}

Process TlsPeerTest::start(const std::string& command, Stdio output) {
  return Process::spawn(loop, {.arguments = {"/bin/sh", "-c", command},
                               .working_directory = folder.path(),
                               .input = Stdio::null(),
                               .output = output,
                               .error_output = output,
                               .group = ProcessGroup::new_group,
                               .timeout = 1min})
      .value();
}

Task<> TlsPeerTest::answer(TcpStream stream) {
  Buffer buffer;
  auto line = co_await read_line(stream, buffer);
  EXPECT_TRUE(line) << line.error().message();
  if (!line) co_return;
  const std::string text =
      "you said " + line->to_string() + ", alpn " + std::string(stream.tls()->alpn()) + ", peer " +
      (stream.tls()->peer_certificate() ? stream.tls()->peer_certificate()->subject
                                        : std::string("unknown")) +
      "\n";
  EXPECT_TRUE(co_await stream.write(text));
  EXPECT_TRUE(co_await stream.shutdown_write());
  static_cast<void>(co_await stream.read(buffer));
}

}  // namespace tambour::test
