// GCC 12 destroys some temporaries of a co_await twice. Arguments that are passed to Tambour's
// functions in the documented ways are destroyed once.
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/move_to.h>
#include <tambour/net/socket.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/spawn_on.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>
#include <tambour/threads/worker_pool.h>

namespace tambour::destructions_test {
namespace {

using namespace std::chrono_literals;

/// Counts its live instances.
class Counted {
 public:
  explicit Counted(int& count) noexcept : count_(&count) { ++*count_; }
  Counted(const Counted& other) noexcept : count_(other.count_) { ++*count_; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*count_; }

 private:
  int* count_;
};

class Destructions : public testing::Test {
 protected:
  EventLoop loop;
  WorkerPool pool{1};
  int alive = 0;
};

TEST_F(Destructions, callable_of_a_worker_pool) {
  spawn(loop, [](WorkerPool& workers, int& count) -> Task<> {
    auto named = [counted = Counted(count)] { return 1; };
    EXPECT_EQ(co_await workers.run(std::move(named)), 1);
    EXPECT_EQ(co_await workers.run(named, WhenStopped::abandon), 1);
  }(pool, alive));
  loop.run();
  EXPECT_EQ(alive, 0);
}

TEST_F(Destructions, arguments_of_a_worker_pool) {
  spawn(loop, [](WorkerPool& workers, int& count) -> Task<> {
    EXPECT_EQ(co_await workers.run([](const Counted&) { return 1; }, Counted(count)), 1);
    const Result<std::size_t> size = co_await workers.run(
        [](const std::string& text) { return text.size(); }, std::string("four"));
    EXPECT_EQ(size, 4U);
  }(pool, alive));
  loop.run();
  EXPECT_EQ(alive, 0);
}

Task<> take(Counted counted) {
  static_cast<void>(counted);
  co_return;
}

TEST_F(Destructions, arguments_of_tasks) {
  spawn(loop, [](int& count) -> Task<> {
    co_await take(Counted(count));
    co_await when_all(take(Counted(count)), take(Counted(count)));
    co_await when_any(take(Counted(count)), take(Counted(count)));
    EXPECT_TRUE(co_await timeout(1h, take(Counted(count))));
    // A lambda with captures must be named first.
    auto named = [counted = Counted(count)]() -> Task<> { co_return; };
    co_await named();
  }(alive));
  loop.run();
  EXPECT_EQ(alive, 0);
}

TEST_F(Destructions, handlers_of_spawn_on_and_move_to) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  spawn(loop, [](EventLoop& to, std::array<int, 2> fds, int& count) -> Task<> {
    spawn_on(to, SocketStream(to, fds[0]),
             [counted = Counted(count)](SocketStream) -> Task<> { co_return; });
    move_to(to, Socket(to, fds[1]), [counted = Counted(count)](const Socket&) {});
    co_return;
  }(loop, ends, alive));
  loop.run();
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tambour::destructions_test
