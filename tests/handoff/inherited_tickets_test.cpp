// The hand-off of the keys of session tickets to a successor process.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/process/inherited_listeners.h>
#include <tambour/tambour.h>

#include "support/temporary_folder.h"
#include "tls/support/certificates.h"

namespace tambour::inherited_tickets_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

/// Names the folder with the certificate in the environment of the successor.
constexpr const char* folder_variable = "TAMBOUR_TEST_FOLDER";
const std::vector<std::string> listeners{"web", "other"};
constexpr std::size_t clients_count = 100;

tls::ServerOptions server_options(const std::string& folder) {
  tls::ServerOptions options;
  options.identities = {{.certificate = tls::Pem::file(folder + "/cert.pem"),
                         .key = tls::Pem::file(folder + "/key.pem")}};
  return options;
}

Task<> say_who(TcpStream stream) {
  static_cast<void>(co_await stream.write(std::to_string(::getpid()) + "\n"));
  static_cast<void>(co_await stream.shutdown_write());
  Buffer rest;
  static_cast<void>(co_await stream.read(rest));
}

// The successor: not a test of its own. Serves until it is killed.
TEST(InheritedTickets, DISABLED_successor) {
  const std::string folder = std::getenv(folder_variable);
  auto inherited = InheritedListeners::from_environment().value();
  EXPECT_EQ(std::getenv("TAMBOUR_TICKETS_FD"), nullptr);
  EventLoop loop;
  std::vector<TcpServer> servers;
  for (const std::string& name : listeners) {
    tls::ServerOptions options = server_options(folder);
    options.inherited_ticket_keys = inherited.ticket_keys(name);
    ListenOptions mode;
    mode.tls = or_throw(tls::ServerContext::create(options));
    servers.push_back(TcpServer::adopt(loop, inherited.take(name), mode).value());
    servers.back().serve(say_who);
  }
  notify_ready();
  loop.run();
}

struct Visit {
  pid_t server = 0;
  bool resumed = false;
};

Task<Visit> visit(std::uint16_t port, tls::ClientContext tls) {
  Visit told;
  auto stream = co_await connect("localhost", port, tls);
  EXPECT_TRUE(stream) << stream.error().message();
  if (!stream) co_return told;
  told.resumed = stream->tls()->is_resumed();
  Buffer buffer;
  if (const auto line = co_await read_line(*stream, buffer))
    told.server = std::stoi(line->to_string());
  static_cast<void>(co_await stream->read(buffer));
  static_cast<void>(co_await stream->shutdown_write());
  co_return told;
}

/// Client `i` connects to server `i % servers.size()`.
Task<> hand_over(std::vector<TcpServer>& servers, std::vector<tls::ClientContext> clients,
                 std::vector<Visit>& before, std::vector<Visit>& after) {
  std::vector<std::uint16_t> ports;
  std::vector<PassedListener> passed;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ports.push_back(servers[i].endpoint().port());
    passed.push_back({&servers[i], listeners[i]});
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Visit told = co_await visit(ports[i % ports.size()], clients[i]);
    before.push_back(told);
  }
  const NewProcessOptions options{.arguments = {"/proc/self/exe",
                                                "--gtest_filter=*.DISABLED_successor",
                                                "--gtest_also_run_disabled_tests"}};
  const auto successor = co_await start_new_process(passed, options);
  EXPECT_TRUE(successor) << successor.error().message();
  if (!successor) co_return;
  for (TcpServer& server : servers) server.stop();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Visit told = co_await visit(ports[i % ports.size()], clients[i]);
    after.push_back(told);
  }
  for (const Visit& entry : after) EXPECT_EQ(entry.server, *successor);
  ::kill(*successor, SIGKILL);
  ::waitpid(*successor, nullptr, 0);
}

TEST(InheritedTickets, sessions_are_resumed_by_the_successor) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/cert.pem") << Contexts::localhost().certificate;
  std::ofstream(folder.path() + "/key.pem") << Contexts::localhost().key;
  ::setenv(folder_variable, folder.path().c_str(), 1);
  EventLoop loop;
  std::vector<TcpServer> servers;
  std::vector<tls::ClientContext> clients;
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    ListenOptions options;
    options.tls = or_throw(tls::ServerContext::create(server_options(folder.path())));
    servers.push_back(TcpServer::listen(loop, Endpoint::loopback_v4(0), options).value());
    servers.back().serve(say_who);
    EXPECT_TRUE(servers.back().tls());
  }
  tls::ClientOptions trust;
  trust.authorities = Contexts::authority().pem();
  while (clients.size() < clients_count)
    clients.push_back(or_throw(tls::ClientContext::create(trust)));
  std::vector<Visit> before;
  std::vector<Visit> after;
  spawn(loop, hand_over(servers, clients, before, after));
  loop.run();
  ASSERT_EQ(before.size(), clients_count);
  for (const Visit& visit : before) {
    EXPECT_FALSE(visit.resumed);
    EXPECT_EQ(visit.server, ::getpid());
  }
  ASSERT_EQ(after.size(), clients_count);
  EXPECT_EQ(std::ranges::count(after, true, &Visit::resumed), std::ptrdiff_t(clients_count));
}

TEST(InheritedTickets, malformed_keys_are_refused) {
  tls::ServerOptions options;
  options.identities = {Contexts::localhost().identity()};
  for (const std::string& keys :
       {std::string("short"), std::string(88, '\xff'), std::string(880, 'a')}) {
    options.inherited_ticket_keys = keys;
    const auto context = tls::ServerContext::create(options);
    ASSERT_FALSE(context);
    EXPECT_EQ(context.error().error, tls::ErrorCode::bad_configuration);
  }
}

TEST(InheritedTickets, another_file_is_neither_read_nor_closed) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "0", 1);
  ::setenv("TAMBOUR_TICKETS_FD", std::to_string(pipe[0]).c_str(), 1);
  const auto inherited = InheritedListeners::from_environment();
  ASSERT_TRUE(inherited);
  EXPECT_EQ(inherited->ticket_keys("web"), "");
  EXPECT_EQ(::write(pipe[1], "a", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace tambour::inherited_tickets_test
