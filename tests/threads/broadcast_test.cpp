// Broadcast: every receiver gets every message since it has subscribed, or learns how many it has
// missed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/random.h"

namespace tambour::broadcast_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);
const Error closed = system_error(EPIPE);
const Error again = system_error(EAGAIN);
const Error late = system_error(ETIMEDOUT);

using Numbers = Broadcast<int>;

class Broadcasts : public test::OnEveryBackend {
 public:
  std::vector<std::vector<int>> received{4};
  std::vector<Error> ends;

  Task<> receive_all(Numbers::Receiver receiver, std::size_t name) {
    auto message = co_await receiver.receive();
    for (; message; message = co_await receiver.receive()) {
      EXPECT_EQ(message->missed, 0U);
      received[name].push_back(message->value);
    }
    ends.push_back(message.error());
  }
  Task<> receive_one(Numbers::Receiver& receiver) {
    const auto message = co_await receiver.receive();
    if (message) received[0].push_back(message->value);
    ends.push_back(message ? Error() : message.error());
  }
};

TAMBOUR_ON_EVERY_BACKEND(Broadcasts);

TEST_P(Broadcasts, each_receiver_gets_each_message_since_its_subscription) {
  Numbers numbers(8);
  EXPECT_TRUE(numbers.send(0));  // There is no receiver.
  for (std::size_t i = 0; i < 3; ++i) spawn(loop(), receive_all(numbers.subscribe(), i));
  EXPECT_EQ(numbers.receivers(), 3U);
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(numbers.send(i));
  run_iterations();
  spawn(loop(), receive_all(numbers.subscribe(), 3));
  EXPECT_TRUE(numbers.send(4));
  numbers.close();
  EXPECT_TRUE(numbers.is_closed());
  EXPECT_EQ(numbers.send(5).error(), closed);
  loop().run();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(received[i], (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(received[3], std::vector<int>{4});
  EXPECT_EQ(ends, std::vector<Error>(4, closed));
  EXPECT_EQ(numbers.receivers(), 0U);
}

TEST_P(Broadcasts, a_slow_receiver_misses_the_oldest_messages_and_learns_how_many) {
  Numbers numbers(3);
  EXPECT_EQ(numbers.capacity(), 3U);
  auto receiver = numbers.subscribe();
  EXPECT_EQ(receiver.try_receive().error(), again);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(numbers.send(i));
  const auto first = receiver.try_receive();
  EXPECT_EQ(first->value, 7);
  EXPECT_EQ(first->missed, 7U);
  EXPECT_EQ(receiver.try_receive()->missed, 0U);
  EXPECT_TRUE(numbers.send(10));
  EXPECT_TRUE(numbers.send(11));
  EXPECT_EQ(receiver.try_receive()->value, 9);
  EXPECT_EQ(receiver.missed(), 7U);
  // A task that waits and is woken, but resumes late.
  run([](Numbers& sender, Numbers::Receiver& from) -> Task<> {
    EXPECT_EQ((co_await from.receive())->value, 10);
    EXPECT_EQ((co_await from.receive())->value, 11);
    TaskScope scope(*(co_await this_task).loop);
    scope.spawn([&]() -> Task<> {
      const auto message = co_await from.receive();
      EXPECT_EQ(message->missed, 2U);
      EXPECT_EQ(message->value, 102);
    });
    for (int i = 100; i < 105; ++i) EXPECT_TRUE(sender.send(i));
    co_await scope.join();
  }(numbers, receiver));
}

TEST_P(Broadcasts, a_stopped_receive_leaves_its_message) {
  Numbers numbers(4);
  auto receiver = numbers.subscribe();
  TaskScope scope(loop());
  scope.spawn(receive_one(receiver));
  EXPECT_TRUE(numbers.send(1));
  scope.request_stop();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  auto destroyed = std::make_unique<TaskScope>(loop());
  EXPECT_EQ(receiver.try_receive()->value, 1);
  destroyed->spawn(receive_one(receiver));
  EXPECT_TRUE(numbers.send(2));
  destroyed.reset();
  run([](Numbers::Receiver& from) -> Task<> {
    EXPECT_EQ((co_await timeout(1min, from.receive()))->value, 2);
    EXPECT_EQ((co_await timeout(1ms, from.receive())).error(), late);
  }(receiver));
}

TEST_P(Broadcasts, destroying_it_or_the_receiver_ends_the_waits) {
  auto numbers = std::make_unique<Numbers>(4);
  std::optional<Numbers::Receiver> kept(numbers->subscribe());
  std::optional<Numbers::Receiver> destroyed(numbers->subscribe());
  spawn(loop(), receive_one(*kept));
  spawn(loop(), receive_one(*destroyed));
  destroyed.reset();
  run_iterations();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  // Moved during the wait, and destroyed when it has been woken.
  std::optional<Numbers::Receiver> moved(std::move(*kept));
  EXPECT_TRUE(numbers->send(1));
  moved.reset();
  run_iterations();
  EXPECT_EQ(ends, std::vector<Error>(2, cancelled));
  // timeout() moves the awaitable, and destroys what is left of it afterwards.
  auto limited = std::make_unique<Numbers::Receiver>(numbers->subscribe());
  spawn(loop(), [](Numbers::Receiver& from) -> Task<> {
    EXPECT_EQ((co_await timeout(1h, from.receive())).error(), cancelled);
  }(*limited));
  run_iterations();
  limited.reset();
  run_iterations();
  moved.emplace(numbers->subscribe());
  spawn(loop(), receive_one(*moved));
  numbers.reset();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(3, cancelled));
  EXPECT_EQ(moved->try_receive().error(), cancelled);
}

TEST_P(Broadcasts, waits_may_outlive_the_loop) {
  Numbers numbers(4);
  auto receiver = numbers.subscribe();
  TaskScope scope(loop());
  scope.spawn(receive_one(receiver));
  destroy_loop();
  EXPECT_TRUE(numbers.send(1));
  EXPECT_EQ(receiver.try_receive()->value, 1);
}

TEST(BroadcastsOfObjects, an_exception_of_a_copy_consumes_nothing) {
  struct Fragile {
    explicit Fragile(bool& fails) : fails_(&fails) {}
    Fragile(const Fragile& other) : fails_(other.fails_) {
      if (*fails_) throw std::runtime_error("not copied");
    }
    Fragile(Fragile&&) noexcept = default;
    Fragile& operator=(const Fragile&) = default;
    Fragile& operator=(Fragile&&) noexcept = default;
    ~Fragile() = default;
    bool* fails_;
  };
  bool fails = false;
  Broadcast<Fragile> broadcast(2);
  auto receiver = broadcast.subscribe();
  EXPECT_TRUE(broadcast.send(Fragile(fails)));
  fails = true;
  EXPECT_THROW(static_cast<void>(receiver.try_receive()), std::runtime_error);
  fails = false;
  EXPECT_TRUE(receiver.try_receive());
}

TEST(BroadcastsOfObjects, one_task_waits_for_a_receiver) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EventLoop loop;
  Numbers numbers(1);
  auto receiver = numbers.subscribe();
  TaskScope scope(loop);
  const auto wait = [&]() -> Task<> { static_cast<void>(co_await receiver.receive()); };
  scope.spawn(wait());
  EXPECT_DEATH(scope.spawn(wait()), "Receiver::receive.. awaited by two tasks");
  EXPECT_DEATH(Numbers(0), "Broadcast .created in .*broadcast_test.cpp.* capacity of 0");
}

/// Each receiver sees an increasing sequence whose gaps are the messages that it has missed.
TEST(BroadcastsBetweenLoops, reach_every_loop_and_thread) {
  constexpr int messages = 2000;
  for (const std::size_t capacity : {std::size_t{2}, std::size_t{messages}}) {
    LoopGroup group({.threads = 3});
    auto numbers = std::make_unique<Numbers>(capacity);
    std::atomic<int> done{0};
    const auto check = [&](int& expected, const Numbers::Message& message) {
      expected += int(message.missed);
      EXPECT_EQ(message.value, expected++);
    };
    const auto receive_all = [&](Numbers::Receiver receiver) -> Task<> {
      int expected = 0;
      while (auto message = co_await receiver.receive()) check(expected, *message);
      EXPECT_EQ(expected, messages);
      if (capacity == messages) {
        EXPECT_EQ(receiver.missed(), 0U);
      }
      ++done;
    };
    for (std::size_t i = 0; i < 6; ++i) {
      EventLoop& loop = group[i % 3];
      // The receiver is made here, before the first message.
      loop.post([&receive_all, here = &loop, receiver = numbers->subscribe()]() mutable {
        spawn(*here, receive_all, std::move(receiver));
      });
    }
    std::thread reader([&, receiver = numbers->subscribe()]() mutable {
      int expected = 0;
      while (auto message = receiver.blocking_receive()) check(expected, *message);
      EXPECT_EQ(expected, messages);
      ++done;
    });
    for (int i = 0; i < messages; ++i) EXPECT_TRUE(numbers->send(i));
    numbers->close();
    reader.join();
    while (done != 7) std::this_thread::yield();
  }
}

/// Random calls on one loop, compared with a list of all messages.
TEST(BroadcastsOfNumbers, behave_like_a_list) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  for (int round = 0; round < 50; ++round) {
    const std::size_t capacity = 1 + random.below(4);
    Numbers numbers(capacity);
    std::vector<int> all;
    struct Subscriber {
      Numbers::Receiver receiver;
      std::size_t next;
    };
    std::deque<Subscriber> subscribers;
    for (int step = 0; step < 200; ++step) {
      const std::size_t kind = random.below(8);
      if (kind == 0) {
        subscribers.push_back({numbers.subscribe(), all.size()});
      } else if (kind == 1 && !subscribers.empty()) {
        subscribers.pop_front();
      } else if (kind < 5) {
        if (!subscribers.empty()) all.push_back(step);
        EXPECT_TRUE(numbers.send(step));
      } else if (!subscribers.empty()) {
        Subscriber& chosen = subscribers[random.below(subscribers.size())];
        const auto message = chosen.receiver.try_receive();
        ASSERT_EQ(message.has_value(), chosen.next < all.size());
        if (!message) continue;
        const std::size_t oldest = all.size() > capacity ? all.size() - capacity : 0;
        const std::size_t missed = chosen.next < oldest ? oldest - chosen.next : 0;
        EXPECT_EQ(message->missed, missed);
        EXPECT_EQ(message->value, all[chosen.next + missed]);
        chosen.next += missed + 1;
      }
    }
  }
}

}  // namespace
}  // namespace tambour::broadcast_test
