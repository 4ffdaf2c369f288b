// run_until_signal(): servers, groups and scopes are shut down by the first signal and by the
// failure of one of them, at once by the second signal, and not at all if the loop is stopped.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::run_until_signal_test {
namespace {

using namespace std::chrono_literals;

class RunUntilSignal : public test::OnEveryBackend {
 public:
  std::vector<std::string> log;
};

TAMBOUR_ON_EVERY_BACKEND(RunUntilSignal);

/// A service of a program.
struct Service {
  std::vector<std::string>& log;
  Task<> shut_down(Duration grace) {
    const Result<> drained = co_await sleep_for(grace);
    log.emplace_back(drained ? "drained" : "cut short");
  }
};

Task<> signal_later(int number) {
  static_cast<void>(co_await sleep_for(1ms));
  ::raise(number);
}

TEST_P(RunUntilSignal, returns_when_all_services_have_ended) {
  for (const int number : {SIGINT, SIGTERM}) {
    Service service{log};
    TaskScope scope(loop());
    scope.spawn([this]() -> Task<> {
      static_cast<void>(co_await sleep_for(1h));
      log.emplace_back("scope");
    });
    std::optional<Service> none;
    spawn(loop(), signal_later(number));
    EXPECT_EQ(run_until_signal(loop(), 2ms, service, scope, none), Result<int>(number));
    EXPECT_EQ(log.size(), 2U);
    log.clear();
  }
}

TEST_P(RunUntilSignal, works_without_services) {
  spawn(loop(), signal_later(SIGTERM));
  EXPECT_EQ(run_until_signal(loop(), 1h), Result<int>(SIGTERM));
}

TEST_P(RunUntilSignal, a_second_signal_ends_the_grace_period) {
  Service service{log};
  spawn(loop(), [](EventLoop& local) -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    Signal::feed(local, SIGTERM);
    static_cast<void>(co_await sleep_for(1ms));
    Signal::feed(local, SIGINT);
  }(loop()));
  EXPECT_EQ(run_until_signal(loop(), 1h, service), Result<int>(SIGTERM));
  EXPECT_EQ(log, std::vector<std::string>{"cut short"});
}

TEST_P(RunUntilSignal, a_third_signal_ends_the_process) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto run_child = [this] {
    struct Stubborn {
      static Task<> shut_down(Duration) {
        static_cast<void>(co_await uncancellable(sleep_for(1h)));
      }
    };
    EventLoop other(options());
    Stubborn service;
    spawn(other, []() -> Task<> {
      for (int i = 0; i < 3; ++i) {
        static_cast<void>(co_await sleep_for(1ms));
        ::raise(SIGTERM);
      }
    });
    static_cast<void>(run_until_signal(other, 1h, service));
  };
  EXPECT_EXIT(run_child(), testing::KilledBySignal(SIGTERM), "");
}

TEST_P(RunUntilSignal, a_stop_of_the_loop_shuts_nothing_down) {
  Service service{log};
  loop().post([this] { loop().stop(); });
  EXPECT_EQ(run_until_signal(loop(), 1h, service), Result<int>(0));
  EXPECT_TRUE(log.empty());
}

TEST_P(RunUntilSignal, exceptions_leave_it) {
  struct Throws {
    static Task<> shut_down(Duration) {
      throw std::runtime_error("of a service");
      co_return;
    }
  };
  Throws service;
  spawn(loop(), signal_later(SIGTERM));
  EXPECT_THROW(static_cast<void>(run_until_signal(loop(), 1h, service)), std::runtime_error);
  loop().post([] { throw std::logic_error("of a callback"); });
  EXPECT_THROW(static_cast<void>(run_until_signal(loop(), 1h, service)), std::logic_error);
}

/// A service that ends by itself, with a result.
struct Ending {
  std::vector<std::string>& log;
  Result<> result{};
  [[nodiscard]] Task<Result<>> join() const {
    static_cast<void>(co_await sleep_for(1ms));
    co_return result;
  }
  Task<> shut_down(Duration) {
    log.emplace_back("ended");
    co_return;
  }
};

TEST_P(RunUntilSignal, returns_when_all_services_end_by_themselves) {
  TaskScope scope(loop());
  EXPECT_EQ(run_until_signal(loop(), 1h, scope), Result<int>(0)) << "no task";
  scope.spawn([this]() -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    log.emplace_back("task");
  });
  std::optional<Ending> ending(Ending{log});
  std::optional<Service> none;
  EXPECT_EQ(run_until_signal(loop(), 1h, scope, ending, none), Result<int>(0));
  EXPECT_EQ(log, (std::vector<std::string>{"task", "ended"}));
}

TEST_P(RunUntilSignal, goes_on_while_one_service_has_not_ended) {
  TaskScope scope(loop());
  Service service{log};
  Ending ending{log};
  spawn(loop(), []() -> Task<> {
    static_cast<void>(co_await sleep_for(20ms));
    ::raise(SIGTERM);
  });
  EXPECT_EQ(run_until_signal(loop(), 1ms, scope, ending, service), Result<int>(SIGTERM));
  EXPECT_EQ(log, (std::vector<std::string>{"ended", "drained"}));
}

TEST_P(RunUntilSignal, an_exception_of_a_task_shuts_all_services_down) {
  for (const bool throws_at_once : {true, false}) {
    Service service{log};
    TaskScope scope(loop());
    scope.spawn([this]() -> Task<> {
      const Result<> slept = co_await sleep_for(1h);
      log.emplace_back(slept ? "slept" : "stopped");
    });
    scope.spawn([throws_at_once]() -> Task<> {
      if (!throws_at_once) static_cast<void>(co_await sleep_for(1ms));
      throw std::runtime_error("of a task");
    });
    EXPECT_THROW(static_cast<void>(run_until_signal(loop(), 2ms, service, scope)),
                 std::runtime_error);
    EXPECT_EQ(log, (std::vector<std::string>{"stopped", "drained"}));
    log.clear();
  }
}

TEST_P(RunUntilSignal, an_error_of_a_service_shuts_all_services_down) {
  Service service{log};
  Ending ending{log, std::unexpected(system_error(EIO))};
  EXPECT_EQ(run_until_signal(loop(), 2ms, service, ending),
            Result<int>(std::unexpected(system_error(EIO))));
  EXPECT_EQ(log, (std::vector<std::string>{"ended", "drained"}));
}

TEST_P(RunUntilSignal, a_signal_ends_the_grace_period_after_a_failure) {
  Service service{log};
  Ending ending{log, std::unexpected(system_error(EIO))};
  spawn(loop(), [](EventLoop& local, std::vector<std::string>& ended) -> Task<> {
    while (ended.empty()) static_cast<void>(co_await sleep_for(1ms));
    Signal::feed(local, SIGTERM);
  }(loop(), log));
  EXPECT_EQ(run_until_signal(loop(), 1h, service, ending),
            Result<int>(std::unexpected(system_error(EIO))));
  EXPECT_EQ(log, (std::vector<std::string>{"ended", "cut short"}));
}

TEST_P(RunUntilSignal, an_exception_during_the_grace_period_is_thrown) {
  TaskScope scope(loop());
  scope.spawn([]() -> Task<> {
    static_cast<void>(co_await uncancellable(sleep_for(5ms)));
    throw std::runtime_error("of a task");
  });
  spawn(loop(), signal_later(SIGTERM));
  EXPECT_THROW(static_cast<void>(run_until_signal(loop(), 1h, scope)), std::runtime_error);
}

/// Cleanup after run_until_signal(): the next signal ends the process, unless the program watches
/// it.
TEST_P(RunUntilSignal, a_signal_during_cleanup_has_its_former_disposition) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto run_child = [this](bool is_watched) {
    EventLoop other(options());
    const auto ignore = [](int) {};
    Signal interrupt(other, SIGINT, ignore);
    Signal terminate(other, SIGTERM, ignore);
    if (is_watched && (!interrupt.start() || !terminate.start())) ::_exit(2);
    spawn(other, signal_later(SIGTERM));
    if (!run_until_signal(other, 1h)) ::_exit(3);
    ::raise(SIGTERM);
    ::_exit(0);
  };
  EXPECT_EXIT(run_child(false), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(run_child(true), testing::ExitedWithCode(0), "");
}

/// A request in progress is answered, on one loop and on a group.
TEST_P(RunUntilSignal, servers_answer_what_is_in_progress) {
  LoopGroup group({.threads = 2, .loop = options()});
  const auto answer_slowly = [](http::Request&, http::Response& response) -> Task<> {
    ::kill(::getpid(), SIGTERM);
    static_cast<void>(co_await sleep_for(20ms));
    response.send("answered");
  };
  for (const bool on_group : {false, true}) {
    std::optional<http::Server> server;
    std::optional<http::ServerGroup> servers;
    const Endpoint at = Endpoint::loopback_v4(0);
    if (on_group) {
      servers = http::ServerGroup::listen(group, at, answer_slowly).value();
    } else {
      server = http::Server::listen(loop(), at, answer_slowly).value();
    }
    std::string answer;
    auto client = spawn(loop(), [](Endpoint to, std::string& text) -> Task<> {
      auto stream = (co_await TcpStream::connect(to)).value();
      static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
      Buffer received;
      for (auto got = co_await stream.read(received); got && *got > 0;
           got = co_await stream.read(received)) {
      }
      text = received.to_string();
    }(on_group ? servers->endpoint() : server->endpoint(), answer));
    EXPECT_EQ(run_until_signal(loop(), 1h, server, servers), Result<int>(SIGTERM));
    EXPECT_TRUE(run_until([&] { return client.has_ended(); }));
    EXPECT_TRUE(answer.ends_with("answered")) << answer;
  }
}

/// A stop request ends the grace period of servers.
TEST_P(RunUntilSignal, a_second_signal_stops_handlers) {
  LoopGroup group({.threads = 2, .loop = options()});
  const auto wait_long = [](TcpStream peer) -> Task<> {
    static_cast<void>(co_await peer.write("x"));
    static_cast<void>(co_await sleep_for(1h));
  };
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
  auto servers = TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value();
  server.serve(wait_long);
  servers.serve(wait_long);
  TaskScope clients(loop());
  clients.spawn([](EventLoop& local, Endpoint one, Endpoint other) -> Task<> {
    auto first = (co_await TcpStream::connect(one)).value();
    auto second = (co_await TcpStream::connect(other)).value();
    Buffer received;
    static_cast<void>(co_await first.read(received));
    static_cast<void>(co_await second.read(received));
    Signal::feed(local, SIGTERM);
    static_cast<void>(co_await sleep_for(1ms));
    Signal::feed(local, SIGTERM);
    // The servers close their connections.
    while ((co_await first.read(received)).value_or(0) > 0) {
    }
    while ((co_await second.read(received)).value_or(0) > 0) {
    }
  }(loop(), server.endpoint(), servers.endpoint()));
  EXPECT_EQ(run_until_signal(loop(), 1h, server, servers), Result<int>(SIGTERM));
  EXPECT_EQ(server.connections(), 0U);
  EXPECT_EQ(servers.connections(), 0U);
}

TEST(RunUntilSignalOfAGroup, makes_a_loop_of_its_own) {
  // So that no signal has its default action, until the thread that sends them has ended.
  EventLoop other;
  Signal ignored(other, SIGINT, [](int) {});
  ASSERT_TRUE(ignored.start());
  LoopGroup group({.threads = 1});
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value();
  server.serve([](TcpStream) -> Task<> { co_return; });
  spawn_on(group[0], []() -> Task<> {
    for (;;) {
      if (!co_await sleep_for(5ms)) co_return;
      ::kill(::getpid(), SIGINT);
    }
  });
  EXPECT_EQ(run_until_signal(1h, server), Result<int>(SIGINT));
}

}  // namespace
}  // namespace tambour::run_until_signal_test
