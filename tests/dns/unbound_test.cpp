// The resolver and unbound(8), a name server that others have written, over a real network.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/network.h"
#include "support/temporary_folder.h"

namespace tambour::unbound_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* configuration = R"(server:
  interface: 127.0.0.1
  access-control: 127.0.0.0/8 allow
  do-daemonize: no
  username: ""
  chroot: ""
  directory: ""
  pidfile: ""
  use-syslog: no
  logfile: /dev/null
  module-config: "iterator"
  num-threads: 1
  local-zone: "test." static
  local-data: "www.test. 300 IN A 192.0.2.1"
  local-data: "www.test. 300 IN AAAA 2001:db8::1"
  local-data: "test. 300 IN MX 10 mail.test."
  local-data: "_ldap._tcp.test. 300 IN SRV 1 2 389 www.test."
  local-data: "www.test. 300 IN HTTPS 1 . alpn=h2 port=8443 ipv4hint=192.0.2.1"
  local-data: 'www.test. 300 IN CAA 0 issue "ca.test"'
  local-data-ptr: "192.0.2.1 www.test"
)";

/// A process of unbound.
class Unbound {
 public:
  explicit Unbound(const std::string& folder, const std::string& more = "")
      : file_(folder + "/unbound.conf") {
    std::ofstream file(file_);
    file << configuration << more;
    for (int i = 0; i < 250; ++i)
      file << "  local-data: \"big.test. 300 IN A 10.0.0." << i << "\"\n";
    // More than 512 bytes, and less than 1232.
    for (int i = 0; i < 50; ++i)
      file << "  local-data: \"medium.test. 300 IN A 10.0.1." << i << "\"\n";
    file.close();
    start();
  }
  Unbound(const Unbound&) = delete;
  Unbound& operator=(const Unbound&) = delete;
  ~Unbound() { stop(); }

  void start() {
    process_ = ::fork();
    if (process_ != 0) return;
    ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    ::execlp("unbound", "unbound", "-c", file_.c_str(), nullptr);
    ::_exit(127);
  }
  void stop() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

 private:
  std::string file_;
  pid_t process_ = -1;
};

dns::ResolverOptions options_with(std::vector<std::string> settings = {}) {
  return {.resolv_conf = "",
          .hosts = "",
          .nsswitch_conf = "",
          .servers = {Endpoint::loopback_v4(53)},
          .settings = std::move(settings)};
}

template <class T>
T run(EventLoop& loop, Task<T> task) {
  std::optional<T> result;
  spawn(loop, [](Task<T> inner, std::optional<T>& into) -> Task<> {
    into.emplace(co_await std::move(inner));
  }(std::move(task), result));
  loop.run();
  return std::move(result).value();
}

/// Waits until the server answers, for at most a minute.
Task<bool> wait_for_server(dns::Resolver& resolver) {
  for (int i = 0; i < 600; ++i) {
    const auto found = co_await resolver.query("www.test", dns::Type::a);
    resolver.clear_cache();
    if (found) co_return true;
    static_cast<void>(co_await sleep_for(100ms));
  }
  co_return false;
}

std::size_t thread_count() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator()));
}

void with_unbound(const std::string& more, const std::function<void(Unbound&)>& body) {
  if (!test::has_program("unbound")) GTEST_SKIP() << "unbound is not installed";
  test::in_own_network([&] {
    const test::TemporaryFolder folder;
    Unbound unbound(folder.path(), more);
    body(unbound);
  });
}

TEST(Unbound, answers_typed_questions) {
  with_unbound("", [](Unbound&) {
    EventLoop loop;
    dns::Resolver resolver(loop, options_with());
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    EXPECT_EQ(run(loop, resolver.resolve("www.test", 80))->size(), 2U);
    const auto mail = run(loop, resolver.query("test", dns::Type::mx));
    ASSERT_TRUE(mail) << mail.error().message();
    EXPECT_EQ(mail->answers_of<dns::Mx>().at(0)->exchange.to_string(), "mail.test.");
    const auto https = run(loop, resolver.query("www.test", dns::Type::https));
    ASSERT_TRUE(https) << https.error().message();
    EXPECT_EQ(https->answers_of<dns::Svcb>().at(0)->alpn(), std::vector<std::string>{"h2"});
    EXPECT_EQ(https->answers_of<dns::Svcb>().at(0)->port(), 8443);
    const auto caa = run(loop, resolver.query("www.test", dns::Type::caa));
    ASSERT_TRUE(caa);
    EXPECT_EQ(caa->answers_of<dns::Caa>().at(0)->value, "ca.test");
    const auto service = run(loop, resolver.resolve_service("_ldap._tcp.test"));
    ASSERT_TRUE(service);
    EXPECT_EQ(service->at(0).port(), 389);
    const auto names = run(loop, resolver.reverse(Endpoint::parse("192.0.2.1", 0).value()));
    EXPECT_EQ(names.value(), std::vector<std::string>{"www.test"});
    EXPECT_EQ(run(loop, resolver.query("no.test", dns::Type::a)).error(),
              dns::ErrorCode::no_such_name);
    EXPECT_EQ(run(loop, resolver.query("www.test", dns::Type::mx)).error(),
              dns::ErrorCode::no_data);
    EXPECT_EQ(thread_count(), 1U);
  });
}

TEST(Unbound, sends_large_answers_over_tcp) {
  with_unbound("", [](Unbound& server) {
    EventLoop loop;
    dns::Resolver resolver(loop, options_with());
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    for (int i = 0; i < 3; ++i) {
      const auto big = run(loop, resolver.resolve("big.test", 80, AddressFamily::v4));
      ASSERT_TRUE(big) << big.error().message();
      EXPECT_EQ(big->size(), 250U);
      resolver.clear_cache();
    }
    EXPECT_EQ(resolver.stats().tcp_sent, 3U);
    // The connection is lost.
    server.stop();
    server.start();
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    EXPECT_EQ(run(loop, resolver.resolve("big.test", 80, AddressFamily::v4))->size(), 250U);
  });
}

/// The TCP connections that this network namespace has opened.
int connections_opened() {
  std::ifstream file("/proc/net/snmp");
  for (std::string line; std::getline(file, line);) {
    int opened = 0;
    // The fourth number after those of the retransmission timeout.
    if (std::sscanf(line.c_str(), "Tcp: %*d %*d %*d %*d %d", &opened) == 1) return opened;
  }
  ADD_FAILURE() << "/proc/net/snmp has no counters of TCP";
  return 0;
}

TEST(Unbound, sends_medium_answers_over_udp_if_edns_is_used) {
  with_unbound("", [](Unbound&) {
    EventLoop loop;
    dns::Resolver resolver(loop, options_with());
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    EXPECT_EQ(run(loop, resolver.resolve("medium.test", 80, AddressFamily::v4))->size(), 50U);
    EXPECT_EQ(resolver.stats().tcp_sent, 0U);
    dns::ResolverOptions plain = options_with();
    plain.edns = false;
    dns::Resolver without_edns(loop, plain);
    EXPECT_EQ(run(loop, without_edns.resolve("medium.test", 80, AddressFamily::v4))->size(), 50U);
    EXPECT_EQ(without_edns.stats().tcp_sent, 1U);
  });
}

TEST(Unbound, answers_many_queries_on_one_connection) {
  with_unbound("  do-udp: no\n", [](Unbound& server) {
    EventLoop loop;
    dns::Resolver resolver(loop, options_with({"use-vc"}));
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    int before = connections_opened();
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(run(loop, resolver.resolve("www.test", 80))->size(), 2U);
      resolver.clear_cache();
    }
    EXPECT_EQ(connections_opened(), before);
    server.stop();
    server.start();
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    before = connections_opened();
    EXPECT_EQ(run(loop, resolver.resolve("big.test", 80, AddressFamily::v4))->size(), 250U);
    EXPECT_EQ(connections_opened(), before);
  });
}

TEST(Unbound, answers_over_tcp_only) {
  with_unbound("  do-udp: no\n", [](Unbound&) {
    EventLoop loop;
    dns::Resolver resolver(loop, options_with({"use-vc"}));
    ASSERT_TRUE(run(loop, wait_for_server(resolver)));
    EXPECT_EQ(run(loop, resolver.resolve("www.test", 80))->size(), 2U);
    EXPECT_EQ(resolver.stats().udp_sent, 0U);
  });
}

}  // namespace
}  // namespace tambour::unbound_test
