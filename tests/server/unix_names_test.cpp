// Paths of Unix servers: which are replaced, which are removed, with which permissions they are
// created, and how the lock file works.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/server_group.h>
#include <tambour/net/tcp.h>
#include <tambour/net/unix.h>
#include <tambour/sim/simulation.h>
#include <tambour/threads/loop_group.h>

#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::unix_names_test {
namespace {

Endpoint at_path(const std::string& path) { return Endpoint::unix_name(path).value(); }

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Calls connect(2) with a blocking socket. Returns 0 or an errno value.
int connect_error(const Endpoint& to) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), to.data(), to.size()) == 0 ? 0 : errno;
}

/// Binds a socket to the path that never listens: the stale file of a killed server.
void leave_stale_name(const Endpoint& at) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(fd.get(), at.data(), at.size()), 0);
}

/// Returns no error on success; the server is destroyed at once.
Error listen_error(EventLoop& loop, const Endpoint& at, const ListenOptions& options = {}) {
  const auto server = UnixServer::listen(loop, at, options);
  return server ? Error() : server.error();
}

class UnixNames : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "socket") const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] Endpoint at() const { return at_path(path()); }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      found.insert(entry.path().filename());
    return found;
  }
  [[nodiscard]] mode_t mode() const {
    struct stat status{};
    EXPECT_EQ(::lstat(path().c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  EventLoop loop;

 private:
  test::TemporaryFolder folder_;
};

using Names = std::set<std::string>;

TEST_F(UnixNames, a_regular_file_is_not_replaced) {
  write_file(path(), "data");
  EXPECT_EQ(listen_error(loop, at()), system_error(EADDRINUSE));
  EXPECT_EQ(read_file(path()), "data");
  EXPECT_EQ(names(), Names{"socket"});
}

TEST_F(UnixNames, only_sockets_are_replaced) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(path("directory").c_str(), 0700), 0);
  leave_stale_name(at_path(path("stale")));
  ASSERT_EQ(::symlink("stale", path("link").c_str()), 0);
  for (const char* name : {"fifo", "directory", "link"})
    EXPECT_EQ(listen_error(loop, at_path(path(name))), system_error(EADDRINUSE));
  EXPECT_EQ(names(), (Names{"fifo", "directory", "stale", "link"}));
  auto server = UnixServer::listen(loop, at_path(path("stale")));
  EXPECT_TRUE(server);
}

TEST_F(UnixNames, a_socket_of_another_type_is_in_use) {
  const UniqueFd datagrams(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Endpoint endpoint = at();
  ASSERT_EQ(::bind(datagrams.get(), endpoint.data(), endpoint.size()), 0);
  EXPECT_EQ(listen_error(loop, endpoint), system_error(EADDRINUSE));
  EXPECT_EQ(names(), Names{"socket"});
}

TEST_F(UnixNames, stop_keeps_the_name_of_a_newer_server) {
  auto older = UnixServer::listen(loop, at());
  ASSERT_TRUE(older);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  auto newer = UnixServer::listen(loop, at());
  ASSERT_TRUE(newer);
  older->stop();
  EXPECT_EQ(connect_error(at()), 0);
  newer->stop();
  EXPECT_EQ(names(), Names{});
}

TEST_F(UnixNames, stop_keeps_a_file_that_has_taken_the_name) {
  auto server = UnixServer::listen(loop, at());
  ASSERT_TRUE(server);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  write_file(path(), "data");
  server->stop();
  EXPECT_EQ(read_file(path()), "data");
}

TEST_F(UnixNames, a_relative_path_stays_in_its_directory) {
  ASSERT_EQ(::mkdir(path("here").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(path("there").c_str(), 0700), 0);
  write_file(path("there/socket"), "data");
  const int status = test::in_child([&] {
    EventLoop local_loop;
    if (::chdir(path("here").c_str()) != 0) return 1;
    auto server = UnixServer::listen(local_loop, at_path("socket"));
    if (!server || ::chdir(path("there").c_str()) != 0) return 2;
    server->stop();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path("there/socket")), "data");
  EXPECT_FALSE(std::filesystem::exists(path("here/socket")));
}

TEST_F(UnixNames, a_name_is_removed_after_its_directory_was_renamed) {
  ASSERT_EQ(::mkdir(path("old").c_str(), 0700), 0);
  auto server = UnixServer::listen(loop, at_path(path("old/socket")));
  ASSERT_TRUE(server);
  ASSERT_EQ(::rename(path("old").c_str(), path("new").c_str()), 0);
  server->stop();
  EXPECT_FALSE(std::filesystem::exists(path("new/socket")));
}

TEST_F(UnixNames, of_two_servers_that_start_at_once_one_succeeds) {
  constexpr int rounds = 300;
  std::atomic<int> listening{0};
  std::barrier line(3);
  const auto start = [&] {
    EventLoop local_loop;
    for (int round = 0; round < rounds; ++round) {
      line.arrive_and_wait();
      auto server = UnixServer::listen(local_loop, at());
      if (server) {
        ++listening;
      } else {
        EXPECT_EQ(server.error(), system_error(EADDRINUSE));
      }
      line.arrive_and_wait();
      line.arrive_and_wait();
    }
  };
  std::thread one(start);
  std::thread two(start);
  int rounds_with_one = 0;
  int rounds_answering = 0;
  for (int round = 0; round < rounds; ++round) {
    leave_stale_name(at());
    line.arrive_and_wait();
    line.arrive_and_wait();
    rounds_with_one += listening.exchange(0) == 1 ? 1 : 0;
    rounds_answering += connect_error(at()) == 0 ? 1 : 0;
    line.arrive_and_wait();
    // The server of this round has been destroyed before its thread continues; the stale file is
    // created again.
    while (std::filesystem::exists(path())) std::this_thread::yield();
  }
  one.join();
  two.join();
  EXPECT_EQ(rounds_with_one, rounds);
  EXPECT_EQ(rounds_answering, rounds);
}

TEST_F(UnixNames, the_lock_file_exists_only_while_a_server_starts_or_stops) {
  auto server = UnixServer::listen(loop, at());
  ASSERT_TRUE(server);
  EXPECT_EQ(names(), Names{"socket"});
  server->stop();
  EXPECT_EQ(names(), Names{});
}

TEST_F(UnixNames, a_name_whose_lock_is_held_is_in_use) {
  leave_stale_name(at());
  const std::string lock = path("socket.tambour-lock");
  const UniqueFd held(::open(lock.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  EXPECT_EQ(listen_error(loop, at()), system_error(EADDRINUSE));
  EXPECT_EQ(names(), (Names{"socket", "socket.tambour-lock"}));
  ASSERT_EQ(::flock(held.get(), LOCK_UN), 0);
  // Now it is a lock file that a killed server left.
  EXPECT_EQ(listen_error(loop, at()), Error());
  EXPECT_EQ(names(), Names{});
}

TEST_F(UnixNames, stop_does_not_wait_for_a_lock_that_is_held) {
  auto server = UnixServer::listen(loop, at());
  ASSERT_TRUE(server);
  const std::string lock = path("socket.tambour-lock");
  const UniqueFd held(::open(lock.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  rusage before{};
  rusage after{};
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &before), 0);
  server->stop();
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &after), 0);
  // A wait of one second would sleep hundreds of times.
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 50);
  EXPECT_EQ(names(), Names{"socket.tambour-lock"});
}

TEST_F(UnixNames, an_existing_file_at_the_lock_path_is_not_modified) {
  const std::string lock = path("socket.tambour-lock");
  write_file(lock, "data");
  EXPECT_EQ(listen_error(loop, at()), Error());
  EXPECT_EQ(read_file(lock), "data");
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  ASSERT_EQ(::symlink("target", lock.c_str()), 0);
  EXPECT_EQ(listen_error(loop, at()), system_error(ELOOP));
  EXPECT_EQ(names(), Names{"socket.tambour-lock"});
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_EQ(listen_error(loop, at()), system_error(EADDRINUSE));
}

TEST_F(UnixNames, a_child_that_leaves_the_name_does_not_remove_it) {
  auto server = UnixServer::listen(loop, at());
  ASSERT_TRUE(server);
  const int status = test::in_child([&] {
    server->keep_path();
    server->stop();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(connect_error(at()), 0);
}

TEST_F(UnixNames, a_child_that_destroys_its_copy_of_the_server_does_not_remove_the_name) {
  auto server = UnixServer::listen(loop, at());
  ASSERT_TRUE(server);
  const int status = test::in_child([&] {
    auto moved = std::move(*server);
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(connect_error(at()), 0);
  server->stop();
  EXPECT_EQ(names(), Names{});
}

TEST_F(UnixNames, the_mode_is_as_requested_with_any_umask) {
  const int status = test::in_child([&] {
    EventLoop local_loop;
    for (const mode_t mask : {0000, 0022, 0777}) {
      ::umask(mask);
      for (const mode_t asked : {0600, 0660, 0666, 0777}) {
        auto server = UnixServer::listen(local_loop, at(), {.unix_mode = asked});
        if (!server || mode() != asked) return 1;
      }
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(UnixNames, the_mode_of_a_group_server) {
  LoopGroup group({.threads = 1});
  auto server = UnixServerGroup::listen(group, at(),
                                        {.placement = Placement::round_robin, .unix_mode = 0640});
  ASSERT_TRUE(server);
  EXPECT_EQ(mode(), 0640U);
}

TEST_F(UnixNames, the_socket_file_never_has_more_permissions_than_requested) {
  const int status = test::in_child([&] {
    ::umask(0);
    std::atomic<bool> done{false};
    std::atomic<bool> was_open{false};
    std::thread observer([&] {
      while (!done) {
        struct stat found{};
        if (::lstat(path().c_str(), &found) == 0 && (found.st_mode & 0077) != 0) was_open = true;
      }
    });
    EventLoop local_loop;
    bool all_listened = true;
    for (int i = 0; i < 300; ++i)
      all_listened =
          UnixServer::listen(local_loop, at(), {.unix_mode = 0600}).has_value() && all_listened;
    done = true;
    observer.join();
    return was_open || !all_listened ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(UnixNames, a_mode_is_for_paths_and_has_permission_bits_only) {
  const Error invalid = system_error(EINVAL);
  EXPECT_EQ(listen_error(loop, at(), {.unix_mode = 01777}), invalid);
  EXPECT_EQ(listen_error(loop, Endpoint::unix_name("@" + path()).value(), {.unix_mode = 0600}),
            invalid);
  const auto tcp = TcpServer::listen(loop, Endpoint::loopback_v4(0), {.unix_mode = 0600});
  ASSERT_FALSE(tcp);
  EXPECT_EQ(tcp.error(), invalid);
  EXPECT_EQ(names(), Names{});
}

TEST_F(UnixNames, a_group_server_removes_only_its_own_name) {
  LoopGroup group({.threads = 2});
  auto older = UnixServerGroup::listen(group, at(), {.placement = Placement::round_robin});
  ASSERT_TRUE(older);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  {
    auto newer = UnixServerGroup::listen(group, at(), {.placement = Placement::round_robin});
    ASSERT_TRUE(newer);
    {
      const auto ends = std::move(*older);
    }
    EXPECT_EQ(connect_error(at()), 0);
  }
  EXPECT_EQ(names(), Names{});
}

TEST(SimulatedUnixNames, stop_keeps_the_name_of_a_newer_server) {
  sim::Simulation simulation(1);
  sim::Host& host = simulation.add_host("one");
  EventLoop loop(host.loop_options());
  const Endpoint at = at_path("/socket");
  auto older = UnixServer::listen(loop, at);
  ASSERT_TRUE(older);
  ASSERT_EQ(host.unlink("/socket"), 0);
  auto newer = UnixServer::listen(loop, at);
  ASSERT_TRUE(newer);
  older->stop();
  EXPECT_EQ(listen_error(loop, at), system_error(EADDRINUSE));
  EXPECT_EQ(host.unlink("/socket"), 0);
}

}  // namespace
}  // namespace tambour::unix_names_test
