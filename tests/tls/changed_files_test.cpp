// Contexts load files that have changed.
#include <chrono>
#include <expected>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/temporary_folder.h"
#include "tls/context/source_files.h"
#include "tls/support/certificates.h"
#include "tls/support/handshake.h"

namespace tambour::changed_files_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;
using test::Seen;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

test::Certified certified(const std::string& common_name) {
  return Contexts::authority().issue({.common_name = common_name, .names = {"DNS:localhost"}});
}

class TlsChangedFiles : public testing::Test {
 protected:
  TlsChangedFiles() { put(certified("one")); }

  void put(const test::Certified& certified) const {
    write_file(certificate, certified.certificate);
    write_file(key, certified.key);
  }

  /// Each handshake examines the files.
  tls::ServerOptions options() {
    tls::ServerOptions created;
    created.identities = {{.certificate = tls::Pem::file(certificate), .key = tls::Pem::file(key)}};
    created.file_check_interval = 1ns;
    created.on_reload = [this](const Result<void, tls::Failure>& result) {
      messages.push_back(result ? "loaded" : result.error().message);
    };
    return created;
  }

  Seen shake_hands(const tls::ServerContext& server) {
    return test::handshake(loop, server, client, "localhost");
  }

  /// Runs the loop until `count` results were reported.
  void await_messages(std::size_t count) {
    while (messages.size() < count) loop.run_once();
    EXPECT_EQ(messages.size(), count);
  }

  static tls::ClientContext make_client() {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.sessions_max = 0;
    return or_throw(tls::ClientContext::create(options));
  }

  const test::TemporaryFolder folder;
  const std::string certificate = folder.path() + "/cert.pem";
  const std::string key = folder.path() + "/key.pem";
  std::vector<std::string> messages;
  EventLoop loop;
  tls::ClientContext client = make_client();
};

TEST_F(TlsChangedFiles, a_new_certificate_is_loaded) {
  const auto server = or_throw(tls::ServerContext::create(options()));
  EXPECT_EQ(shake_hands(server).subject, "CN=one");
  put(certified("two"));
  EXPECT_EQ(shake_hands(server).subject, "CN=one");
  await_messages(1);
  EXPECT_EQ(messages, std::vector<std::string>{"loaded"});
  EXPECT_EQ(shake_hands(server).subject, "CN=two");
  EXPECT_EQ(server.stats().reloads, 1U);
  EXPECT_EQ(server.stats().failed_reloads, 0U);
}

TEST_F(TlsChangedFiles, the_former_pair_stays_until_both_files_are_new) {
  const auto server = or_throw(tls::ServerContext::create(options()));
  const test::Certified two = certified("two");
  write_file(certificate, two.certificate);
  EXPECT_EQ(shake_hands(server).subject, "CN=one");
  await_messages(1);
  EXPECT_NE(messages[0].find("the private key does not belong"), std::string::npos) << messages[0];
  EXPECT_EQ(shake_hands(server).subject, "CN=one");
  write_file(key, two.key);
  EXPECT_EQ(shake_hands(server).subject, "CN=one");
  await_messages(2);
  EXPECT_EQ(messages[1], "loaded");
  EXPECT_EQ(shake_hands(server).subject, "CN=two");
  EXPECT_EQ(server.stats().reloads, 1U);
  EXPECT_EQ(server.stats().failed_reloads, 1U);
}

TEST_F(TlsChangedFiles, a_bad_file_is_reported_once) {
  const auto server = or_throw(tls::ServerContext::create(options()));
  write_file(certificate, "nonsense");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(shake_hands(server).subject, "CN=one");
    await_messages(1);
  }
  EXPECT_NE(messages[0].find(certificate), std::string::npos) << messages[0];
}

TEST_F(TlsChangedFiles, a_missing_file_is_waited_for) {
  const auto server = or_throw(tls::ServerContext::create(options()));
  std::filesystem::remove(certificate);
  std::filesystem::remove(key);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shake_hands(server).subject, "CN=one");
  EXPECT_TRUE(messages.empty());
  put(certified("two"));
  shake_hands(server);
  await_messages(1);
  EXPECT_EQ(shake_hands(server).subject, "CN=two");
}

/// As certbot and Kubernetes replace them.
TEST_F(TlsChangedFiles, a_link_to_other_files_is_followed) {
  const std::string link = folder.path() + "/live";
  const auto put_in = [&](const std::string& name) {
    const std::string path = folder.path() + "/" + name;
    const test::Certified created = certified(name);
    std::filesystem::create_directory(path);
    write_file(path + "/cert.pem", created.certificate);
    write_file(path + "/key.pem", created.key);
    std::filesystem::create_directory_symlink(name, link + ".new");
    std::filesystem::rename(link + ".new", link);
  };
  put_in("1");
  tls::ServerOptions mode = options();
  mode.identities = {{.certificate = tls::Pem::file(link + "/cert.pem"),
                      .key = tls::Pem::file(link + "/key.pem")}};
  const auto server = or_throw(tls::ServerContext::create(mode));
  EXPECT_EQ(shake_hands(server).subject, "CN=1");
  put_in("2");
  shake_hands(server);
  await_messages(1);
  EXPECT_EQ(shake_hands(server).subject, "CN=2");
}

TEST_F(TlsChangedFiles, an_interval_of_zero_disables_it) {
  tls::ServerOptions mode = options();
  mode.file_check_interval = 0ns;
  const auto server = or_throw(tls::ServerContext::create(mode));
  put(certified("two"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shake_hands(server).subject, "CN=one");
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(server.reload());
  EXPECT_EQ(shake_hands(server).subject, "CN=two");
  EXPECT_EQ(server.stats().reloads, 0U);
}

TEST_F(TlsChangedFiles, clients_load_new_authorities) {
  const std::string path = folder.path() + "/authorities.pem";
  const auto server = or_throw(tls::ServerContext::create(options()));
  write_file(path, test::Authority("Other CA").certificate());
  tls::ClientOptions mode;
  mode.authorities = tls::Pem::file(path);
  mode.file_check_interval = 1ns;
  mode.on_reload = [this](const Result<void, tls::Failure>& result) {
    messages.push_back(result ? "loaded" : result.error().message);
  };
  client = or_throw(tls::ClientContext::create(mode));
  EXPECT_EQ(shake_hands(server).error, tls::ErrorCode::certificate_unknown_issuer);
  write_file(path, Contexts::authority().certificate());
  EXPECT_EQ(shake_hands(server).error, tls::ErrorCode::certificate_unknown_issuer);
  await_messages(1);
  EXPECT_EQ(shake_hands(server).error, Error());
  EXPECT_EQ(client.stats().reloads, 1U);
}

/// Options that reload() sets must not be replaced by those of a load that has begun before.
TEST_F(TlsChangedFiles, other_options_win_over_a_load_of_the_files) {
  for (int i = 0; i < 20; ++i) {
    const auto server = or_throw(tls::ServerContext::create(options()));
    std::thread loads([&] {
      for (int n = 0; n < 10; ++n) EXPECT_TRUE(server.reload());
    });
    tls::ServerOptions other;
    other.identities = {Contexts::localhost().identity()};
    EXPECT_TRUE(server.reload(other));
    loads.join();
    EXPECT_NE(shake_hands(server).subject, "CN=one");
  }
}

TEST_F(TlsChangedFiles, another_loop_loads_them_if_the_first_is_destroyed) {
  const auto server = or_throw(tls::ServerContext::create(options()));
  std::optional<EventLoop> first(std::in_place);
  put(certified("two"));
  EXPECT_EQ(test::handshake(*first, server, client, "localhost").subject, "CN=one");
  first.reset();
  while (shake_hands(server).subject != "CN=two") loop.run_once();
}

TEST_F(TlsChangedFiles, a_simulation_examines_them_by_its_own_clock) {
  tls::ServerOptions mode = options();
  mode.file_check_interval = 1min;
  sim::Simulation simulation(1);
  sim::Host& host = simulation.add_host("host");
  EventLoop simulated({.simulated_host = &host});
  ListenOptions with_tls;
  with_tls.tls = or_throw(tls::ServerContext::create(mode));
  const Endpoint at = Endpoint::parse(host.ip() + ":443").value();
  auto server = TcpServer::listen(simulated, at, with_tls).value();
  server.serve([](TcpStream stream) -> Task<> {
    Buffer ignored;
    static_cast<void>(co_await stream.read(ignored));
  });
  std::vector<std::string> subjects;
  const auto shake = [](Endpoint to, tls::ClientContext tls,
                        std::vector<std::string>& into) -> Task<> {
    TcpStream stream = (co_await TcpStream::connect(to)).value();
    EXPECT_TRUE(co_await tls::connect(stream, tls, "localhost"));
    into.push_back(stream.tls()->peer_certificate()->subject);
  };
  const auto clients = [&]() -> Task<> {
    co_await shake(at, client, subjects);
    put(certified("two"));
    co_await shake(at, client, subjects);
    EXPECT_TRUE(messages.empty());
    co_await sleep_for(1min);
    co_await shake(at, client, subjects);
    co_await sleep_for(1s);
    co_await shake(at, client, subjects);
  };
  TaskScope scope(simulated);
  scope.spawn(clients);
  while (!scope.empty()) simulated.run_once();
  EXPECT_EQ(messages, std::vector<std::string>{"loaded"});
  EXPECT_EQ(subjects, (std::vector<std::string>{"CN=one", "CN=one", "CN=one", "CN=two"}));
}

TEST_F(TlsChangedFiles, thousands_are_examined_in_parts) {
  constexpr std::size_t count = 10 * tls::detail::SourceFiles::files_per_call;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i) {
    paths.push_back(folder.path() + "/" + std::to_string(i));
    write_file(paths.back(), "x");
  }
  tls::detail::SourceFiles files;
  files.start(paths);
  TimePoint now = TimePoint() + 1h;
  EXPECT_FALSE(files.have_changed(now, 1s));
  write_file(paths.front(), "changed");
  write_file(paths.back(), "changed");
  // The first part has been examined, so its change is seen last.
  std::vector<int> seen;
  for (int part = 1; part <= 20; ++part) {
    now += 100ms;
    if (files.have_changed(now, 1s)) seen.push_back(part);
    EXPECT_FALSE(files.have_changed(now + 99ms, 1s));
  }
  EXPECT_EQ(seen, (std::vector<int>{9, 10}));
  files.forget();
  EXPECT_TRUE(files.have_changed(now + 100ms, 1s));
}

}  // namespace
}  // namespace tambour::changed_files_test
