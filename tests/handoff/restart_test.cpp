// Zero-downtime restarts under load: a server repeatedly hands its listeners to a new process, and
// no connection is refused or reset. Also the protocol of sd_listen_fds(3).
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/process/inherited_listeners.h>
#include <tambour/tambour.h>

#include "support/process.h"
#include "support/scale.h"
#include "support/streams.h"
#include "support/temporary_folder.h"

namespace tambour::restart_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* role = "TAMBOUR_TEST_RESTART_ROLE";

NewProcessOptions this_test(const char* name) {
  return {.arguments = {"/proc/self/exe", std::string("--gtest_filter=Restart.") + name,
                        "--gtest_brief=1"}};
}

/// Replies with the process id.
Task<> send_process_id(TcpStream peer) {
  std::array<std::byte, 16> asked;
  if (!co_await peer.read(asked)) co_return;
  static_cast<void>(co_await peer.write(std::to_string(::getpid())));
}

/// Runs a server process: SIGUSR1 makes it start the test `name` as its replacement, SIGTERM ends
/// it.
template <class Server>
void serve_until_stopped(EventLoop& loop, Server& server, const char* name) {
  const auto end = [&](Task<> first) {
    spawn(loop, [](EventLoop& local, Server& served, Task<> before) -> Task<> {
      co_await std::move(before);
      co_await served.shut_down(1min);
      local.stop();
    }(loop, server, std::move(first)));
  };
  Signal renew(loop, SIGUSR1, [&](int) {
    end([](Server& served, const char* successors) -> Task<> {
      // A named variable: GCC 12 rejects braces inside co_await.
      const std::vector<PassedListener> listeners{{&served, "web"}};
      const auto successor = co_await start_new_process(listeners, this_test(successors));
      if (!successor) std::_Exit(3);
    }(server, name));
  });
  Signal finish(loop, SIGTERM, [&](int) { end([]() -> Task<> { co_return; }()); });
  ASSERT_TRUE(renew.start());
  ASSERT_TRUE(finish.start());
  // After the signal watchers are started, because a client that has been answered sends signals.
  server.serve(send_process_id);
  notify_ready();
  loop.run();
}

// The processes started by the tests below.
TEST(Restart, server) {
  if (std::getenv(role) == nullptr) GTEST_SKIP() << "is started by another test";
  auto inherited = InheritedListeners::from_environment();
  ASSERT_TRUE(inherited) << inherited.error().message();
  EventLoop loop;
  auto server = TcpServer::adopt(loop, inherited->take("web"));
  ASSERT_TRUE(server) << server.error().message();
  serve_until_stopped(loop, *server, "server");
}

TEST(Restart, group) {
  const char* const threads = std::getenv(role);
  if (threads == nullptr) GTEST_SKIP() << "is started by another test";
  auto inherited = InheritedListeners::from_environment();
  ASSERT_TRUE(inherited) << inherited.error().message();
  // First more loops than listeners, then fewer, so that some loops get several.
  LoopGroup group({.threads = *threads == '2' ? 4U : 2U});
  ::setenv(role, *threads == '2' ? "4" : "2", 1);
  auto server = TcpServerGroup::adopt(group, inherited->take_all("web"));
  ASSERT_TRUE(server) << server.error().message();
  EventLoop loop;
  serve_until_stopped(loop, *server, "group");
}

struct Tally {
  std::map<int, int> answers;  ///< By process id.
  std::map<std::string, int> failures;
  bool over = false;
};

Task<> ask_again_and_again(Endpoint to, Tally& tally) {
  while (!tally.over) {
    auto stream = co_await TcpStream::connect(to);
    if (!stream) {
      ++tally.failures["connect: " + stream.error().message()];
      continue;
    }
    Buffer answer;
    const auto written = co_await stream->write("?");
    Result<std::size_t> got = 1;
    while (written && got && *got > 0) got = co_await stream->read(answer);
    int process = 0;
    const std::string text = answer.to_string();
    std::from_chars(text.data(), text.data() + text.size(), process);
    if (!written || !got || process == 0) {
      ++tally.failures["exchange: " + (!written ? written.error()
                                       : got    ? Error()
                                                : got.error())
                                          .message()];
    } else {
      ++tally.answers[process];
    }
  }
}

template <class Server>
Task<> restart_many_times(EventLoop& loop, Server& first, const char* name, int times,
                          Tally& tally) {
  const std::vector<PassedListener> passed{{&first, "web"}};
  const auto started = co_await start_new_process(passed, this_test(name));
  EXPECT_TRUE(started) << started.error().message();
  if (!started) co_return;
  const Endpoint at = first.endpoint();
  co_await first.shut_down(10s);
  TaskScope clients(loop);
  for (int i = 0; i < 8; ++i) clients.spawn(ask_again_and_again(at, tally));
  int current = *started;
  int previous = current;
  const TimePoint give_up = Clock::now() + 90s;
  for (int i = 0; i < times && Clock::now() < give_up; ++i) {
    const auto before = tally.answers;
    ::kill(std::exchange(current, 0), SIGUSR1);
    while (current == 0 && Clock::now() < give_up) {
      for (const auto& [process, count] : tally.answers) {
        if (!before.contains(process) && process != previous) current = process;
      }
      static_cast<void>(co_await sleep_for(1ms));
    }
    int status = -1;
    while (::waitpid(previous, &status, WNOHANG) == 0 && Clock::now() < give_up)
      static_cast<void>(co_await sleep_for(1ms));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    previous = current;
  }
  tally.over = true;
  co_await clients.join();
  ::kill(current, SIGTERM);
  int status = 0;
  EXPECT_EQ(::waitpid(current, &status, 0), current);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// Starts the test `name` as the replacement of `first`, repeatedly, and checks that no client
/// failed.
template <class Server>
void expect_no_refusals(EventLoop& loop, Server& first, const char* name) {
  // Orphans are reparented to this process; each server is a child of the one before it.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  ::setenv(role, "2", 1);
  Tally tally;
  const int times = test::sanitized ? 5 : 20;
  spawn(loop, restart_many_times(loop, first, name, times, tally));
  loop.run();
  ::unsetenv(role);
  EXPECT_EQ(tally.answers.size(), std::size_t(times) + 1);
  for (const auto& [subject, count] : tally.failures)
    ADD_FAILURE() << count << " times " << subject;
  int answers = 0;
  for (const auto& [process, count] : tally.answers) answers += count;
  EXPECT_GT(answers, times * 8);
  testing::Test::RecordProperty("answers", answers);
}

TEST(Restart, under_load_refuses_and_resets_no_connection) {
  EventLoop loop;
  auto first = TcpServer::listen(loop, Endpoint::loopback_v4(0));
  ASSERT_TRUE(first);
  expect_no_refusals(loop, *first, "server");
}

TEST(Restart, of_a_group_under_load_refuses_and_resets_no_connection) {
  LoopGroup group({.threads = 2});
  auto first = TcpServerGroup::listen(group, Endpoint::loopback_v4(0));
  ASSERT_TRUE(first);
  EventLoop loop;
  expect_no_refusals(loop, *first, "group");
}

class Successors : public testing::Test {
 protected:
  Result<pid_t> start(std::vector<PassedListener> listeners, NewProcessOptions options) {
    Result<pid_t> outcome = std::unexpected(Error());
    spawn(loop,
          [](Result<pid_t>& to, std::vector<PassedListener> passed,
             NewProcessOptions mode) -> Task<> {
            to = co_await start_new_process(std::move(passed), std::move(mode));
          }(outcome, std::move(listeners), std::move(options)));
    loop.run();
    return outcome;
  }

  EventLoop loop;
};

TEST_F(Successors, that_cannot_be_started_are_errors) {
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  const std::size_t before = test::open_descriptors();
  EXPECT_EQ(start({{&server, "a"}}, {.arguments = {"/no/such/program"}}).error(),
            system_error(ENOENT));
  EXPECT_EQ(start({{&server, "a:b"}}, {}).error(), system_error(EINVAL));
  EXPECT_EQ(start({{&server, "a"}}, {.arguments = {"/bin/true"}}).error(), system_error(ECHILD));
  EXPECT_EQ(
      start({{&server, "a"}}, {.arguments = {"/bin/sh", "-c", "sleep 5 >/dev/null 2>&1 & wait"},
                               .ready_timeout = 20ms})
          .error(),
      system_error(ETIMEDOUT));
  EXPECT_EQ(test::open_descriptors(), before);
  server.stop();
  EXPECT_EQ(start({{&server, "a"}}, {.arguments = {"/bin/true"}}).error(), system_error(EINVAL));
}

TEST_F(Successors, receive_the_descriptors_and_variables_of_the_protocol) {
  auto one = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  auto two = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  ::setenv("LISTEN_FDS", "7", 1);
  // A descriptor of other code, without close-on-exec.
  const UniqueFd other(::fcntl(one.fd(), F_DUPFD, 77));
  ASSERT_TRUE(other.is_open());
  const std::string no_other = "! test -e /proc/$$/fd/" + std::to_string(other.get()) + " && ";
  const auto started = start(
      {{&one, "first"}, {&two, ""}},
      {.arguments = {"/bin/sh", "-c",
                     no_other +
                         "test $LISTEN_PID = $$ -a $LISTEN_FDS = 2 -a \"$LISTEN_FDNAMES\" = first: "
                         "-a -S /proc/$$/fd/3 -a -S /proc/$$/fd/4 -a $TAMBOUR_READY_FD = 5 && "
                         "printf 1 >&5"}});
  EXPECT_TRUE(started) << started.error().message();
  ::unsetenv("LISTEN_FDS");
  if (started) ::waitpid(*started, nullptr, 0);
}

/// Runs `look` in a child with these environment variables and a listener as descriptor 3.
int take_over(const char* process, const char* count, const char* names,
              const std::function<int(InheritedListeners&)>& look) {
  return test::in_child([&] {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::listen(fd, 1) != 0) return 90;
    if (fd != 3) ::dup2(fd, 3);
    if (process != nullptr)
      ::setenv("LISTEN_PID", *process == '=' ? std::to_string(::getpid()).c_str() : process, 1);
    if (count != nullptr) ::setenv("LISTEN_FDS", count, 1);
    if (names != nullptr) ::setenv("LISTEN_FDNAMES", names, 1);
    auto inherited = InheritedListeners::from_environment();
    if (::getenv("LISTEN_PID") != nullptr || ::getenv("LISTEN_FDS") != nullptr ||
        ::getenv("LISTEN_FDNAMES") != nullptr)
      return 91;
    return inherited ? look(*inherited) : 100 + inherited.error().value();
  });
}

TEST(Inherited, listeners_are_only_those_addressed_to_this_process) {
  const auto size = [](InheritedListeners& all) { return int(all.size()); };
  EXPECT_EQ(take_over("=", "1", nullptr, size), 1);
  EXPECT_EQ(take_over("=", "0", nullptr, size), 0);
  EXPECT_EQ(take_over("1", "1", "a", size), 0);
  EXPECT_EQ(take_over(nullptr, nullptr, nullptr, size), 0);
  EXPECT_EQ(take_over(nullptr, "1", nullptr, size), 0);
  EXPECT_EQ(take_over("=", "many", nullptr, size), 100 + EINVAL);
  EXPECT_EQ(take_over("=", "-1", nullptr, size), 100 + EINVAL);
  EXPECT_EQ(take_over("", "1", nullptr, size), 100 + EINVAL);
  EXPECT_EQ(take_over("=", "60000", nullptr, size), 100 + EBADF);
}

TEST(Inherited, listeners_are_found_by_name_and_address_and_are_close_on_exec) {
  EXPECT_EQ(take_over("=", "1", "web:more",
                      [](InheritedListeners& all) {
                        if (all.take("more").is_open() || all.take("").is_open()) return 1;
                        const UniqueFd fd = all.take("web");
                        if (fd.get() != 3 || !all.empty() || all.take("web").is_open()) return 2;
                        return ::fcntl(3, F_GETFD) == FD_CLOEXEC ? 0 : 3;
                      }),
            0);
  EXPECT_EQ(take_over("=", "1", nullptr,
                      [](InheritedListeners& all) {
                        sockaddr_in address{};
                        socklen_t length = sizeof address;
                        auto* const place = reinterpret_cast<sockaddr*>(&address);
                        if (::getsockname(3, place, &length) != 0) return 1;
                        if (all.take(Endpoint::loopback_v4(1)).is_open()) return 2;
                        return all.take(Endpoint::from(place, length).value()).is_open() ? 0 : 3;
                      }),
            0);
}

/// The pipe on which the old process waits. Its descriptor is above 3, which from_environment()
/// uses, and is named in the environment.
class ReadyPipe {
 public:
  ReadyPipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_NONBLOCK | O_CLOEXEC) != 0) std::abort();
    reader_.reset(fds[0]);
    const UniqueFd writer(fds[1]);
    // Without close-on-exec, as after execve(2).
    writer_.reset(::fcntl(writer.get(), F_DUPFD, 50));
    ::setenv("TAMBOUR_READY_FD", std::to_string(writer_.get()).c_str(), 1);
  }
  ReadyPipe(const ReadyPipe&) = delete;
  ReadyPipe& operator=(const ReadyPipe&) = delete;
  ~ReadyPipe() { ::unsetenv("TAMBOUR_READY_FD"); }

  [[nodiscard]] int writer() const { return writer_.get(); }
  /// Everything written to the pipe by any process.
  [[nodiscard]] std::string said() const {
    std::array<char, 16> bytes{};
    const ssize_t got = ::read(reader_.get(), bytes.data(), bytes.size());
    return got > 0 ? std::string(bytes.data(), std::size_t(got)) : std::string();
  }

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

bool names_ready_pipe() { return ::getenv("TAMBOUR_READY_FD") != nullptr; }

TEST(ReadyPipes, are_not_inherited_by_programs_that_a_successor_starts) {
  for (const char* const count : {"1", "0"}) {
    const ReadyPipe pipe;
    EXPECT_EQ(take_over("=", count, nullptr,
                        [&pipe](InheritedListeners&) {
                          if (names_ready_pipe()) return 1;
                          if (::fcntl(pipe.writer(), F_GETFD) != FD_CLOEXEC) return 2;
                          notify_ready();
                          if (::fcntl(pipe.writer(), F_GETFD) >= 0) return 3;
                          notify_ready();  // The second call does nothing.
                          return 0;
                        }),
              0);
    EXPECT_EQ(pipe.said(), "1");
  }
}

TEST(ReadyPipes, work_for_programs_started_by_a_script_or_without_listeners) {
  const auto notify = [](InheritedListeners&) {
    if (!names_ready_pipe()) return 1;
    notify_ready();
    return names_ready_pipe() ? 2 : 0;
  };
  const ReadyPipe pipe;
  EXPECT_EQ(take_over("1", "1", nullptr, notify), 0);
  EXPECT_EQ(pipe.said(), "1");
  EXPECT_EQ(take_over(nullptr, nullptr, nullptr, notify), 0);
  EXPECT_EQ(pipe.said(), "1");
  EXPECT_EQ(test::in_child([] {
              notify_ready();
              return 0;
            }),
            0);
  EXPECT_EQ(pipe.said(), "1");
}

TEST(ReadyPipes, ignore_invalid_values_of_the_environment) {
  for (const char* const text : {"", "x", "-1", "0", "2", "3x", " 3", "99999999999999999999"}) {
    for (const bool takes_over : {false, true}) {
      const ReadyPipe pipe;
      const auto notify = [](InheritedListeners&) {
        notify_ready();
        if (names_ready_pipe()) return 1;
        for (int fd = 0; fd <= 3; ++fd) {
          if (::fcntl(fd, F_GETFD) < 0) return 10 + fd;
        }
        return 0;
      };
      ::setenv("TAMBOUR_READY_FD", text, 1);
      EXPECT_EQ(take_over(takes_over ? "=" : nullptr, "1", nullptr, notify), 0) << text;
      EXPECT_EQ(pipe.said(), "") << text;
    }
  }
  // A listener, and a closed descriptor.
  for (const char* const text : {"3", "1000"}) {
    const ReadyPipe pipe;
    ::setenv("TAMBOUR_READY_FD", text, 1);
    EXPECT_EQ(take_over("=", "1", nullptr,
                        [](InheritedListeners&) {
                          notify_ready();
                          if (names_ready_pipe()) return 1;
                          return ::fcntl(3, F_GETFD) < 0 ? 2 : 0;
                        }),
              0)
        << text;
  }
}

TEST(Adopting, accepts_only_stream_listeners) {
  EventLoop loop;
  const auto adopt = [&loop](int type, bool listens) {
    UniqueFd fd(::socket(AF_INET, type, 0));
    if (listens) ::listen(fd.get(), 1);
    return TcpServer::adopt(loop, std::move(fd));
  };
  EXPECT_TRUE(adopt(SOCK_STREAM, true));
  EXPECT_EQ(adopt(SOCK_STREAM, false).error(), system_error(EINVAL));
  EXPECT_EQ(adopt(SOCK_DGRAM, false).error(), system_error(EINVAL));
  EXPECT_EQ(TcpServer::adopt(loop, UniqueFd()).error(), system_error(EBADF));
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  ::listen(fd.get(), 1);
  EXPECT_EQ(UnixServer::adopt(loop, std::move(fd)).error(), system_error(EAFNOSUPPORT));
}

TEST(Adopting, a_group_accepts_listeners_that_its_loops_can_serve) {
  LoopGroup group({.threads = 2});
  const auto listener = [](bool listens = true) {
    std::vector<UniqueFd> one;
    one.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listens) ::listen(one.back().get(), 1);
    return one;
  };
  EXPECT_EQ(TcpServerGroup::adopt(group, {}).error(), system_error(EINVAL));
  EXPECT_EQ(TcpServerGroup::adopt(group, listener(false)).error(), system_error(EINVAL));
  auto two_places = listener();
  two_places.push_back(std::move(listener().front()));
  EXPECT_EQ(TcpServerGroup::adopt(group, std::move(two_places)).error(), system_error(EINVAL));
  // EADDRINUSE: the listener was opened without SO_REUSEPORT.
  EXPECT_EQ(TcpServerGroup::adopt(group, listener()).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(TcpServerGroup::adopt(group, listener(), {.placement = Placement::least_loaded}));
  EXPECT_EQ(
      UnixServerGroup::adopt(group, listener(), {.placement = Placement::least_loaded}).error(),
      system_error(EAFNOSUPPORT));
  auto first = TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value();
  auto more = first.copy_listeners().value();
  EXPECT_EQ(more.size(), 2U);
  more.emplace_back(::dup(more[0].get()));
  LoopGroup pinned({.threads = 2, .pin = true});
  EXPECT_EQ(
      TcpServerGroup::adopt(pinned, std::move(more), {.placement = Placement::processor}).error(),
      system_error(EINVAL));
  EXPECT_TRUE(TcpServerGroup::adopt(pinned, first.copy_listeners().value(),
                                    {.placement = Placement::processor}));
}

TEST(Adopting, a_group_with_several_listeners_keeps_its_limit) {
  LoopGroup group({.threads = 2});
  auto first = TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value();
  auto server = TcpServerGroup::adopt(group, first.copy_listeners().value(),
                                      {.placement = Placement::round_robin, .connections_max = 2})
                    .value();
  std::atomic<int> now = 0;
  std::atomic<int> limit = 0;
  server.serve([&](TcpStream peer) -> Task<> {
    const int mine = ++now;
    int before = limit;
    while (before < mine && !limit.compare_exchange_weak(before, mine)) {
    }
    static_cast<void>(co_await peer.write("x"));
    static_cast<void>(co_await sleep_for(1ms));
    --now;
  });
  EventLoop loop;
  spawn(loop, [](Endpoint to, TcpServerGroup& local) -> Task<> {
    std::vector<TcpStream> all;
    co_await test::connect_all(to, 16, all);
    std::array<std::byte, 1> byte;
    for (TcpStream& stream : all) EXPECT_EQ(co_await stream.read(byte), 1U);
    co_await local.shut_down(10s);
  }(server.endpoint(), server));
  loop.run();
  EXPECT_EQ(server.accepted(), 16U);
  EXPECT_EQ(limit, 2);
  EXPECT_TRUE(server.copy_listeners().value().empty());
}

TEST(Adopting, a_group_leaves_its_path_to_its_successor) {
  const test::TemporaryFolder folder;
  const auto at = Endpoint::unix_name(folder.path() + "/socket").value();
  LoopGroup group({.threads = 2});
  auto old = UnixServerGroup::listen(group, at, {.placement = Placement::round_robin}).value();
  auto listeners = old.copy_listeners().value();
  EXPECT_EQ(UnixServerGroup::adopt(group, std::move(listeners)).error(), system_error(EOPNOTSUPP));
  auto renewed = UnixServerGroup::adopt(group, old.copy_listeners().value(),
                                        {.placement = Placement::round_robin})
                     .value();
  renewed.serve(test::echo<UnixStream>);
  EventLoop loop;
  spawn(loop, [](UnixServerGroup& before, UnixServerGroup& now) -> Task<> {
    // Must not fail: the new server already accepts connections.
    static_assert(noexcept(before.keep_path()));
    before.keep_path();
    co_await before.shut_down(1s);
    co_await test::expect_echo_from<UnixStream>(now.endpoint());
    co_await now.shut_down(1s);
  }(old, renewed));
  loop.run();
  EXPECT_EQ(renewed.accepted(), 1U);
  EXPECT_EQ(::access(at.address().c_str(), F_OK), 0);
}

TEST(Adopting, leaves_the_path_to_the_server_that_listens_there) {
  const test::TemporaryFolder folder;
  const auto at = Endpoint::unix_name(folder.path() + "/socket").value();
  EventLoop loop;
  auto old = UnixServer::listen(loop, at).value();
  auto renewed = UnixServer::adopt(loop, UniqueFd(::dup(old.fd()))).value();
  old.keep_path();
  old.stop();
  EXPECT_EQ(::access((folder.path() + "/socket").c_str(), F_OK), 0);
  bool served = false;
  renewed.serve([&served](UnixStream) -> Task<> {
    served = true;
    co_return;
  });
  spawn(loop, [](Endpoint to, UnixServer& server) -> Task<> {
    EXPECT_TRUE(co_await UnixStream::connect(to));
    while (server.accepted() == 0) static_cast<void>(co_await sleep_for(1ms));
    co_await server.shut_down(1s);
  }(at, renewed));
  loop.run();
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace tambour::restart_test
