// Changes of real files, and forked processes.
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/name_server.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::reload_test {
namespace {

using namespace std::chrono_literals;

class Reloading : public testing::Test {
 protected:
  Reloading() {
    write("hosts", "10.0.0.1 name\n");
    write("resolv.conf", "");
    write("nsswitch.conf", "hosts: files\n");
  }

  void write(const std::string& file, const std::string& text) {
    std::ofstream(path(file), std::ios::trunc) << text;
  }
  [[nodiscard]] std::string path(const std::string& file) const {
    return folder.path() + '/' + file;
  }
  dns::Resolver& the_resolver() {
    if (!resolver) {
      resolver.emplace(loop, dns::ResolverOptions{.resolv_conf = path("resolv.conf"),
                                                  .hosts = path("hosts"),
                                                  .nsswitch_conf = path("nsswitch.conf"),
                                                  .reload_interval = 0ms,
                                                  .environment = false});
    }
    return *resolver;
  }
  std::string text_of(const std::string& name) {
    std::string text;
    spawn(loop, [](dns::Resolver& from, std::string host, std::string& into) -> Task<> {
      const auto found = co_await from.resolve(host, 0, AddressFamily::v4);
      into = found ? found->front().address() : found.error().message();
    }(the_resolver(), name, text));
    loop.run();
    return text;
  }

  test::TemporaryFolder folder;
  EventLoop loop;
  std::optional<dns::Resolver> resolver;
};

TEST_F(Reloading, uses_files_that_are_written_replaced_removed_and_linked) {
  EXPECT_EQ(text_of("name"), "10.0.0.1");
  write("hosts", "10.0.0.22 name\n");
  EXPECT_EQ(text_of("name"), "10.0.0.22");
  write("new", "10.0.0.33 name\n");
  std::filesystem::rename(path("new"), path("hosts"));
  EXPECT_EQ(text_of("name"), "10.0.0.33");
  std::filesystem::remove(path("hosts"));
  EXPECT_EQ(text_of("name"), "Name or service not known");
  write("first", "10.0.0.44 name\n");
  write("second", "10.0.0.55 name\n");
  std::filesystem::create_symlink("first", path("hosts"));
  EXPECT_EQ(text_of("name"), "10.0.0.44");
  std::filesystem::create_symlink("second", path("link"));
  std::filesystem::rename(path("link"), path("hosts"));
  EXPECT_EQ(text_of("name"), "10.0.0.55");
  write("second", "10.0.0.66 name\n");
  EXPECT_EQ(text_of("name"), "10.0.0.66");
}

TEST_F(Reloading, loads_a_large_file_while_the_former_one_is_used) {
  EXPECT_EQ(text_of("name"), "10.0.0.1");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "10.1.1.1 host" + std::to_string(i) + ".example.org\n";
  write("hosts", text + "10.0.0.2 name\n");
  const std::uint64_t before = the_resolver().stats().reloads;
  EXPECT_EQ(text_of("name"), "10.0.0.1") << "the first slice blocks the lookup";
  // The slices run in iterations of the loop, without a lookup.
  loop.run();
  EXPECT_EQ(the_resolver().stats().reloads, before + 1);
  EXPECT_EQ(text_of("name"), "10.0.0.2");
  EXPECT_EQ(text_of("host99999.example.org"), "10.1.1.1");
}

TEST_F(Reloading, loads_a_bounded_part_of_a_file_in_each_iteration) {
  EXPECT_EQ(text_of("name"), "10.0.0.1");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "10.1.1.1 host" + std::to_string(i) + ".example.org\n";
  write("hosts", text);
  const std::uint64_t reloads = the_resolver().stats().reloads;
  const std::uint64_t before = loop.stats().iterations;
  int timers = 0;
  Timer timer(loop, [&] {
    ++timers;
    if (the_resolver().stats().reloads != reloads) timer.stop();
  });
  timer.start(0ns, 1ns);
  // Runs the loop until the file is loaded.
  EXPECT_EQ(text_of("name"), "10.0.0.1");
  constexpr std::size_t slice_bytes = std::size_t{128} << 10;
  EXPECT_GE(loop.stats().iterations - before, text.size() / slice_bytes);
  EXPECT_GE(static_cast<std::size_t>(timers), text.size() / slice_bytes - 2)
      << "the loop does not run its other timers meanwhile";
}

TEST_F(Reloading, reads_new_servers) {
  write("resolv.conf", "nameserver 192.0.2.1\nnameserver 192.0.2.2\n");
  ASSERT_EQ(the_resolver().servers().size(), 2U);
  write("resolv.conf", "nameserver 192.0.2.3\n");
  ASSERT_EQ(the_resolver().servers().size(), 1U);
  EXPECT_EQ(the_resolver().servers()[0].to_string(), "192.0.2.3:53");
  write("resolv.conf", "");
  EXPECT_EQ(the_resolver().servers()[0].to_string(), "127.0.0.1:53");
}

Result<dns::Message> ask(EventLoop& loop, dns::Resolver& resolver) {
  std::optional<Result<dns::Message>> result;
  spawn(loop,
        [](dns::Resolver& from, EventLoop& place,
           std::optional<Result<dns::Message>>& into) -> Task<> {
          into = co_await from.query("www.example.org", dns::Type::a);
          place.stop();
        }(resolver, loop, result));
  loop.run();
  return std::move(result).value();
}

/// The socket of a name server that does not answer.
UniqueFd silent_server() {
  UniqueFd server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Endpoint any = Endpoint::loopback_v4(0);
  EXPECT_EQ(::bind(server.get(), any.data(), any.size()), 0);
  // So that a failed test ends.
  constexpr timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return server;
}

Endpoint bound_endpoint(const UniqueFd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::getsockname(socket.get(), any, &size), 0);
  return Endpoint::from(any, size).value();
}

/// A name server in a process of its own.
class ServerProcess {
 public:
  ServerProcess() {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    process_ = ::fork();
    if (process_ == 0) serve(ready[1]);
    ::close(ready[1]);
    EXPECT_EQ(::read(ready[0], &port_, sizeof port_), ssize_t(sizeof port_));
    ::close(ready[0]);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  [[nodiscard]] Endpoint endpoint() const { return Endpoint::loopback_v4(port_); }

 private:
  [[noreturn]] static void serve(int ready) {
    EventLoop loop;
    for (;;) {
      auto probe = UdpSocket::bind(loop, Endpoint::loopback_v4(0)).value();
      const Endpoint at = probe.local_endpoint().value();
      probe.close();
      // Another program may have the port for TCP.
      auto listener = TcpServer::listen(loop, at);
      if (!listener) continue;
      listener->stop();
      test::NameServer server(loop, at);
      server.add(test::a_record("www.example.org", {192, 0, 2, 1}));
      const std::uint16_t port = at.port();
      static_cast<void>(!::write(ready, &port, sizeof port));
      loop.run();
    }
  }

  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

TEST(Forking, leaves_both_processes_with_a_resolver) {
  const ServerProcess server;
  for (const bool over_tcp : {false, true}) {
    EventLoop loop;
    dns::ResolverOptions options{
        .resolv_conf = "", .servers = {server.endpoint()}, .cache_bytes_max = 0};
    if (over_tcp) options.settings = {"use-vc"};
    dns::Resolver resolver(loop, options);
    ASSERT_TRUE(ask(loop, resolver));
    const int status = test::in_child([&] {
      if (!loop.after_fork()) return 1;
      return ask(loop, resolver) ? 0 : 2;
    });
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(ask(loop, resolver));
  }
}

TEST(Forking, keeps_the_queries_that_wait_until_others_end) {
  const ServerProcess server;
  EventLoop loop;
  dns::Resolver resolver(
      loop,
      {.resolv_conf = "", .servers = {server.endpoint()}, .cache_bytes_max = 0, .queries_max = 1});
  std::vector<Error> errors;
  for (const dns::Type type : {dns::Type::a, dns::Type::aaaa, dns::Type::mx}) {
    spawn(loop, [](dns::Resolver& from, dns::Type asked, std::vector<Error>& into) -> Task<> {
      const auto answer = co_await from.query("www.example.org", asked);
      into.push_back(answer ? Error() : answer.error());
    }(resolver, type, errors));
  }
  const std::vector<Error> expected{Error(), dns::ErrorCode::no_data, dns::ErrorCode::no_data};
  const int status = test::in_child([&] {
    if (!loop.after_fork()) return 1;
    loop.run();
    return errors == expected && resolver.stats().in_flight == 0 ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  loop.run();
  EXPECT_EQ(errors, expected);
}

/// A task that asks, and drops the answer.
void start_query(EventLoop& loop, dns::Resolver& resolver, const std::string& name) {
  spawn(loop, [](dns::Resolver& from, std::string asked) -> Task<> {
    static_cast<void>(co_await from.query(asked, dns::Type::a));
  }(resolver, name));
}

TEST(Forking, gives_both_processes_ids_of_their_own) {
  const UniqueFd server = silent_server();
  EventLoop loop;
  dns::Resolver resolver(loop, {.resolv_conf = "", .servers = {bound_endpoint(server)}});
  const std::vector<std::string> names{"b.test", "c.test", "d.test", "e.test"};
  // The resolver has random numbers from now on.
  start_query(loop, resolver, "a.test");
  const auto ask_all = [&] {
    for (const std::string& text : names) start_query(loop, resolver, text);
    loop.run_ready();
    return 0;
  };
  ASSERT_EQ(test::in_child([&] { return loop.after_fork() ? ask_all() : 1; }), 0);
  ask_all();
  std::map<std::string, std::vector<std::uint16_t>> ids;
  std::size_t received = 0;
  while (received < 2 * names.size()) {
    std::array<std::byte, 1500> bytes;
    const ssize_t got = ::recv(server.get(), bytes.data(), bytes.size(), 0);
    ASSERT_GT(got, 0);
    const auto query = dns::Message::parse(std::span(bytes).first(static_cast<std::size_t>(got)));
    ASSERT_TRUE(query);
    const std::string name = query->questions.at(0).name.to_string();
    if (name == "a.test.") continue;
    ids[name].push_back(query->id);
    ++received;
  }
  const auto are_equal = [](const auto& entry) { return entry.second[0] == entry.second[1]; };
  EXPECT_FALSE(std::ranges::all_of(ids, are_equal));
}

TEST(Forking, closes_the_sockets_that_order_addresses) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/hosts") << "10.0.0.1 name\n10.0.0.2 name\n";
  EventLoop loop;
  dns::Resolver resolver(loop, {.resolv_conf = "",
                                .hosts = folder.path() + "/hosts",
                                .nsswitch_conf = "",
                                .environment = false});
  const auto closed_in_child = [&] {
    return test::in_child([&] {
      const std::size_t before = test::open_descriptors();
      if (!loop.after_fork()) return 255;
      constexpr std::size_t opened_max = 100;
      return static_cast<int>(opened_max + before - test::open_descriptors());
    });
  };
  loop.run();
  const int closed = closed_in_child();
  std::size_t found = 0;
  spawn(loop, [](dns::Resolver& from, std::size_t& into) -> Task<> {
    into = (co_await from.resolve("name", 80)).value().size();
  }(resolver, found));
  loop.run();
  ASSERT_EQ(found, 2U);
  EXPECT_GT(closed_in_child(), closed);
}

TEST_F(Reloading, leaves_the_files_of_a_child_that_has_closed_all_descriptors) {
  // Nothing answers there.
  write("resolv.conf", "nameserver 127.3.2.1\n");
  write("nsswitch.conf", "");
  start_query(loop, the_resolver(), "www.example.org");
  // The query keeps its sockets.
  write("resolv.conf", "nameserver 127.3.2.2\n");
  ASSERT_EQ(the_resolver().servers().front().address(), "127.3.2.2");
  start_query(loop, the_resolver(), "mail.example.org");
  const int status = test::in_child([&] {
    constexpr int descriptors = 64;
    ::close_range(3, ~0U, 0);
    for (int i = 3; i < descriptors; ++i) ::open("/dev/null", O_RDONLY);
    if (!loop.after_fork()) return 1;
    for (int i = 3; i < descriptors; ++i) {
      if (::fcntl(i, F_GETFD) < 0) return 2;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
  resolver.reset();
}

}  // namespace
}  // namespace tambour::reload_test
