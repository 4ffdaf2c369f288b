// The stack does not grow with the number of tasks when they end, wait or are destroyed, with any
// compiler flags.
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <coroutine>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/codec.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/combinators.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

namespace tambour::stack_test {
namespace {

using namespace std::chrono_literals;

constexpr int many = 200'000;

class TaskStack : public testing::Test {
 protected:
  EventLoop loop;
  int ended = 0;
};

Task<int> one() { co_return 1; }

TEST_F(TaskStack, awaits_that_are_ready_at_once_do_not_grow_it) {
  spawn(loop, [](int& sum) -> Task<> {
    for (int i = 0; i < many; ++i) sum += co_await one();
  }(ended));
  EXPECT_EQ(ended, many);
}

TEST_F(TaskStack, groups_that_are_ready_at_once_do_not_grow_it) {
  constexpr int rounds = 100'000;
  spawn(loop, [](int& sum) -> Task<> {
    for (int i = 0; i < rounds; ++i) {
      const auto [first, second] = co_await when_all(one(), one());
      sum += first + second;
      sum += std::get<0>(co_await when_any(one(), one()));
      sum += (co_await timeout(1h, one())).value();
    }
  }(ended));
  EXPECT_EQ(ended, 4 * rounds);
}

/// A peer that sends many lines at once must not overflow the stack of the server.
TEST_F(TaskStack, a_burst_of_short_lines_does_not_grow_it) {
  constexpr int lines = 100'000;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  SocketStream near(loop, ends[0]);
  SocketStream far(loop, ends[1]);
  std::string burst;
  for (int i = 0; i < lines; ++i) burst += "x\n";
  spawn(loop, [](Stream& to, std::string_view bytes) -> Task<> {
    EXPECT_TRUE(co_await to.write(bytes));
    to.close();
  }(far, burst));
  spawn(loop, [](Stream& from, int& count) -> Task<> {
    Buffer buffer;
    while (co_await timeout(1h, read_line(from, buffer))) ++count;
  }(near, ended));
  loop.run();
  EXPECT_EQ(ended, lines);
}

Task<int> nested(int depth, TaskEvent& event) {
  if (depth == 0) {
    static_cast<void>(co_await event.wait());
    co_return 0;
  }
  co_return 1 + co_await nested(depth - 1, event);
}

TEST_F(TaskStack, a_deep_chain_of_awaits_suspends_and_ends) {
  TaskEvent event(loop);
  spawn(loop, [](TaskEvent& awaited, int& depth) -> Task<> {
    depth = co_await nested(many, awaited);
  }(event, ended));
  EXPECT_EQ(ended, 0);
  event.set();
  loop.run();
  EXPECT_EQ(ended, many);
}

TEST_F(TaskStack, a_deep_chain_of_awaits_is_destroyed) {
  TaskEvent event(loop);
  {
    TaskScope scope(loop);
    scope.spawn([](TaskEvent& awaited) -> Task<> {
      co_await nested(many, awaited);
      ADD_FAILURE() << "the event is never set";
    }(event));
  }
  loop.run();
}

TEST_F(TaskStack, a_chain_of_scopes_that_are_joined_ends) {
  constexpr int scopes = 20'000;
  TaskEvent event(loop);
  std::vector<std::unique_ptr<TaskScope>> chain;
  for (int i = 0; i <= scopes; ++i) chain.push_back(std::make_unique<TaskScope>(loop));
  const auto join = [](TaskScope& joined, int& count) -> Task<> {
    co_await joined.join();
    ++count;
  };
  chain[0]->spawn(
      [](TaskEvent& awaited) -> Task<> { static_cast<void>(co_await awaited.wait()); }(event));
  // Two tasks join each scope; only the first can continue without another resumption.
  for (int i = 1; i <= scopes; ++i) {
    chain[i]->spawn(join(*chain[i - 1], ended));
    chain[i]->spawn(join(*chain[i - 1], ended));
  }
  event.set();
  loop.run();
  EXPECT_EQ(ended, 2 * scopes);
}

/// Appends its name to a log when it is destroyed.
class Logger {
 public:
  Logger(std::string& log, char name) : log_(log), name_(name) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  ~Logger() { log_ += name_; }

 private:
  std::string& log_;
  char name_;
};

Task<> log_chain(std::string& log, char name) {
  const Logger logger(log, name);
  if (name == 'e') {
    static_cast<void>(co_await sleep_for(1h));
  } else {
    const Logger second(log, char(name - 'a' + 'A'));
    co_await log_chain(log, char(name + 1));
  }
}

TEST_F(TaskStack, a_chain_is_destroyed_from_the_inside_out) {
  std::string log;
  {
    TaskScope scope(loop);
    scope.spawn(log_chain(log, 'a'));
    EXPECT_EQ(log, "");
  }
  EXPECT_EQ(log, "eDdCcBbAa");
}

/// Resumes its task from a plain callback, as a user-defined awaitable may.
struct Posted {
  EventLoop& loop;
  static bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) const {
    loop.post([awaiting] { awaiting.resume(); });
  }
  static void await_resume() noexcept {}
};

TEST_F(TaskStack, an_awaitable_of_the_program_may_resume_a_task_directly) {
  spawn(loop, [](EventLoop& posted_to, int& sum) -> Task<> {
    co_await Posted{posted_to};
    for (int i = 0; i < many; ++i) sum += co_await one();
    const auto child = [](EventLoop& to) -> Task<int> {
      co_await Posted{to};
      co_return 1;
    };
    sum += co_await child(posted_to);
    const auto [first, second] = co_await when_all(child(posted_to), child(posted_to));
    sum += first + second;
  }(loop, ended));
  loop.run();
  EXPECT_EQ(ended, many + 3);
  EXPECT_TRUE(detail::tasks_of(loop).empty());
}

}  // namespace
}  // namespace tambour::stack_test
