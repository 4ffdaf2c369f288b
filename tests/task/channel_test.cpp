// Channels: order, capacity, closing, cancellation and destruction.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/random.h"

namespace tambour::channel_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);
const Error closed = system_error(EPIPE);
const Error again = system_error(EAGAIN);

class Channels : public test::OnEveryBackend {
 public:
  std::vector<int> received;
  std::vector<Error> ends;

  /// Receives until the channel ends.
  Task<> receive_all(TaskChannel<int>& from) {
    auto item = co_await from.receive();
    for (; item; item = co_await from.receive()) received.push_back(*item);
    ends.push_back(item.error());
  }
  Task<> receive_one(TaskChannel<int>& from) {
    const auto item = co_await from.receive();
    if (item) received.push_back(*item);
    ends.push_back(item ? Error() : item.error());
  }
  Task<> send_one(TaskChannel<int>& to, int item) {
    const auto sent = co_await to.send(item);
    ends.push_back(sent ? Error() : sent.error());
  }
};

TAMBOUR_ON_EVERY_BACKEND(Channels);

TEST_P(Channels, items_arrive_in_order_and_the_sender_waits_when_the_channel_is_full) {
  for (const std::size_t capacity : {0, 1, 3, 100}) {
    received.clear();
    TaskChannel<int> channel(loop(), capacity);
    EXPECT_EQ(channel.capacity(), capacity);
    int sent = 0;
    spawn(loop(), [&]() -> Task<> {
      for (; sent < 50; ++sent) {
        if (!co_await channel.send(sent)) ADD_FAILURE() << "not sent";
      }
      channel.close();
    });
    EXPECT_EQ(sent, int(std::min<std::size_t>(capacity, 50)));
    EXPECT_EQ(channel.size(), std::min<std::size_t>(capacity, 50));
    spawn(loop(), receive_all(channel));
    loop().run();
    EXPECT_EQ(received.size(), 50U);
    EXPECT_TRUE(std::ranges::is_sorted(received));
    EXPECT_EQ(ends.back(), closed);
    EXPECT_TRUE(channel.empty());
  }
}

TEST_P(Channels, try_send_and_try_receive_do_not_wait) {
  TaskChannel<std::unique_ptr<int>> channel(loop(), 1);
  EXPECT_EQ(channel.try_receive().error(), again);
  auto item = std::make_unique<int>(1);
  EXPECT_TRUE(channel.try_send(std::move(item)));
  EXPECT_EQ(item, nullptr);
  item = std::make_unique<int>(2);
  EXPECT_EQ(channel.try_send(std::move(item)).error(), again);
  // Only moved from on success.
  EXPECT_NE(item, nullptr);
  EXPECT_EQ(**channel.try_receive(), 1);
  EXPECT_TRUE(channel.try_send(std::move(item)));
  channel.close();
  EXPECT_TRUE(channel.is_closed());
  EXPECT_EQ(channel.try_send(std::make_unique<int>(3)).error(), closed);
  EXPECT_EQ(**channel.try_receive(), 2);
  EXPECT_EQ(channel.try_receive().error(), closed);
  TaskChannel<int> rendezvous(loop(), 0);
  const int number = 7;
  EXPECT_EQ(rendezvous.try_send(number).error(), again);
  spawn(loop(), receive_one(rendezvous));
  EXPECT_TRUE(rendezvous.try_send(number));
  EXPECT_EQ(rendezvous.try_send(number).error(), again);
  loop().run();
  EXPECT_EQ(received, std::vector<int>{7});
}

TEST_P(Channels, waiting_receivers_and_senders_are_served_in_order) {
  TaskChannel<int> channel(loop(), 0);
  std::vector<std::pair<int, int>> got;
  for (int i = 0; i < 3; ++i) {
    spawn(loop(),
          [&, i]() -> Task<> { got.emplace_back(i, (co_await channel.receive()).value()); });
  }
  for (int i = 0; i < 3; ++i) spawn(loop(), send_one(channel, i * 10));
  loop().run();
  EXPECT_EQ(got, (std::vector<std::pair<int, int>>{{0, 0}, {1, 10}, {2, 20}}));
  for (int i = 0; i < 3; ++i) spawn(loop(), send_one(channel, i));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(channel.try_receive(), Result<int>(i));
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(6));
}

TEST_P(Channels, a_receiver_does_not_overtake_those_that_wait) {
  TaskChannel<int> channel(loop(), 2);
  spawn(loop(), receive_one(channel));
  EXPECT_TRUE(channel.try_send(1));
  // The item belongs to the waiting task, which has not resumed yet.
  EXPECT_EQ(channel.size(), 0U);
  EXPECT_EQ(channel.try_receive().error(), again);
  EXPECT_TRUE(channel.try_send(2));
  EXPECT_TRUE(channel.try_send(3));
  EXPECT_EQ(channel.try_send(4).error(), again);
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
  loop().run();
  EXPECT_EQ(received, std::vector<int>{1});
}

TEST_P(Channels, closing_ends_all_waits) {
  TaskChannel<int> full(loop(), 1);
  EXPECT_TRUE(full.try_send(1));
  spawn(loop(), send_one(full, 2));
  full.close();
  full.close();
  TaskChannel<int> empty(loop(), 1);
  spawn(loop(), receive_one(empty));
  spawn(loop(), receive_one(empty));
  empty.close();
  EXPECT_TRUE(ends.empty());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(3, closed));
  ends.clear();
  spawn(loop(), send_one(full, 3));
  spawn(loop(), receive_all(full));
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(2, closed));
  EXPECT_EQ(received, std::vector<int>{1});
}

TEST_P(Channels, closing_leaves_an_item_that_is_given_back_to_the_others) {
  TaskChannel<int> channel(loop(), 4);
  TaskScope stopped(loop());
  stopped.spawn(receive_one(channel));
  spawn(loop(), receive_one(channel));
  spawn(loop(), receive_one(channel));
  EXPECT_TRUE(channel.try_send(7));
  channel.close();
  EXPECT_EQ(channel.try_receive().error(), again);
  stopped.request_stop();
  loop().run();
  EXPECT_EQ(received, std::vector<int>{7});
  EXPECT_EQ(ends.size(), 3U);
  EXPECT_EQ(std::ranges::count(ends, cancelled), 1);
  EXPECT_EQ(std::ranges::count(ends, closed), 1);
  EXPECT_EQ(channel.try_receive().error(), closed);
}

TEST_P(Channels, a_stopped_send_has_not_sent_and_an_accepted_one_succeeds) {
  TaskChannel<int> channel(loop(), 1);
  EXPECT_TRUE(channel.try_send(1));
  TaskScope scope(loop());
  scope.spawn(send_one(channel, 2));
  scope.spawn(send_one(channel, 3));
  EXPECT_EQ(channel.try_receive(), Result<int>(1));  // Accepts 2.
  scope.request_stop();
  loop().run();
  EXPECT_EQ(ends, (std::vector<Error>{Error(), cancelled}));
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
  EXPECT_EQ(channel.try_receive().error(), again);
}

TEST_P(Channels, a_stopped_receive_leaves_its_item) {
  TaskChannel<int> channel(loop(), 4);
  TaskScope scope(loop());
  scope.spawn(receive_one(channel));
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(channel.try_send(int(i)));
  scope.request_stop();
  EXPECT_EQ(channel.size(), 3U);
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  EXPECT_EQ(channel.try_receive(), Result<int>(1));
  // Another waiting receiver gets the item.
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
  EXPECT_EQ(channel.try_receive(), Result<int>(3));
  TaskScope stopped(loop());
  stopped.spawn(receive_one(channel));
  scope.request_stop();
  spawn(loop(), receive_one(channel));
  EXPECT_TRUE(channel.try_send(4));
  stopped.request_stop();
  loop().run();
  EXPECT_EQ(received, std::vector<int>{4});
  // A stop before the wait.
  stopped.spawn(receive_one(channel));
  loop().run();
  EXPECT_EQ(ends.back(), cancelled);
}

TEST_P(Channels, a_destroyed_receiver_leaves_its_item) {
  TaskChannel<int> channel(loop(), 0);
  auto scope = std::make_unique<TaskScope>(loop());
  for (int i = 0; i < 2; ++i) scope->spawn(receive_one(channel));
  EXPECT_TRUE(channel.try_send(1));
  EXPECT_TRUE(channel.try_send(2));
  scope.reset();
  EXPECT_EQ(channel.size(), 2U);
  EXPECT_EQ(channel.try_send(3).error(), again);
  EXPECT_EQ(channel.try_receive(), Result<int>(1));
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
}

TEST_P(Channels, no_item_is_lost_when_receivers_leave) {
  for (const std::vector<int>& order : {std::vector<int>{0, 2}, {2, 0}, {0, 1, 2, 3}, {3, 1, 0}}) {
    received.clear();
    TaskChannel<int> channel(loop(), 2);
    std::vector<std::unique_ptr<TaskScope>> scopes;
    for (int i = 0; i < 4; ++i) {
      scopes.push_back(std::make_unique<TaskScope>(loop()));
      scopes.back()->spawn(receive_one(channel));
    }
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(channel.try_send(int(i)));
    EXPECT_EQ(channel.size(), 2U);
    for (const int leaving : order) scopes[std::size_t(leaving)].reset();
    spawn(loop(), receive_all(channel));
    channel.close();
    loop().run();
    std::vector<int> expected(6);
    std::ranges::generate(expected, [next = 0]() mutable { return next++; });
    std::ranges::sort(received);
    EXPECT_EQ(received, expected);
  }
}

/// As if the receivers that leave had never waited.
TEST_P(Channels, the_order_is_kept_for_the_receivers_that_stay) {
  TaskChannel<int> channel(loop(), 0);
  std::vector<std::pair<int, int>> got;
  std::vector<std::unique_ptr<TaskScope>> scopes;
  for (int i = 0; i < 4; ++i) {
    scopes.push_back(std::make_unique<TaskScope>(loop()));
    scopes.back()->spawn([&, i]() -> Task<> {
      if (const auto item = co_await channel.receive()) got.emplace_back(i, *item);
    });
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(channel.try_send(int(i)));
  scopes[2]->request_stop();
  scopes[0].reset();
  EXPECT_EQ(channel.size(), 2U);
  loop().run();
  EXPECT_EQ(got, (std::vector<std::pair<int, int>>{{1, 0}, {3, 1}}));
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
  EXPECT_EQ(channel.try_receive(), Result<int>(3));
}

TEST_P(Channels, a_destroyed_sender_has_not_sent) {
  TaskChannel<int> channel(loop(), 0);
  {
    TaskScope scope(loop());
    scope.spawn(send_one(channel, 1));
  }
  EXPECT_EQ(channel.try_receive().error(), again);
}

TEST_P(Channels, destroying_a_channel_ends_the_waits) {
  auto channel = std::make_unique<TaskChannel<int>>(loop(), 1);
  for (int i = 0; i < 3; ++i) spawn(loop(), receive_one(*channel));
  EXPECT_TRUE(channel->try_send(1));
  auto full = std::make_unique<TaskChannel<int>>(loop(), 1);
  EXPECT_TRUE(full->try_send(1));
  spawn(loop(), send_one(*full, 2));
  channel.reset();
  full.reset();
  loop().run();
  // The first receiver had its item already.
  EXPECT_EQ(received, std::vector<int>{1});
  EXPECT_EQ(ends, (std::vector<Error>{Error(), cancelled, cancelled, cancelled}));
}

TEST_P(Channels, combinators_lose_no_item) {
  run([](EventLoop& loop, std::vector<int>& all) -> Task<> {
    TaskChannel<int> left(loop, 1);
    TaskChannel<int> right(loop, 1);
    EXPECT_EQ((co_await timeout(1ms, left.receive())).error(), system_error(ETIMEDOUT));
    for (int i = 0; i < 10; ++i) {
      loop.post([&] {
        EXPECT_TRUE(left.try_send(1));
        EXPECT_TRUE(right.try_send(2));
      });
      const auto first = co_await when_any(left.receive(), right.receive());
      EXPECT_EQ(first.index(), 0U);
      all.push_back(std::get<0>(first).value());
      all.push_back(right.try_receive().value());
    }
    EXPECT_TRUE(left.empty());
  }(loop(), received));
  EXPECT_EQ(received.size(), 20U);
}

TEST_P(Channels, many_senders_and_receivers_transfer_every_item_once) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  for (const std::size_t capacity : {0, 1, 7}) {
    TaskChannel<int> channel(loop(), capacity);
    std::vector<int> counts(600);
    int done = 0;
    for (int sender = 0; sender < 6; ++sender) {
      spawn(loop(), [&, sender]() -> Task<> {
        for (int i = 0; i < 100; ++i) {
          // A send that was stopped is repeated.
          while (!co_await timeout(random.below(3) * 50us, channel.send(sender * 100 + i))) {
          }
        }
        if (++done == 6) channel.close();
      });
    }
    for (int receiver = 0; receiver < 4; ++receiver) {
      spawn(loop(), [&]() -> Task<> {
        for (;;) {
          const auto item = co_await timeout(random.below(3) * 50us, channel.receive());
          if (item) ++counts.at(std::size_t(*item));
          if (!item && item.error() == closed) co_return;
        }
      });
    }
    loop().run();
    EXPECT_EQ(counts, std::vector<int>(600, 1));
  }
}

TEST_P(Channels, other_threads_post) {
  TaskChannel<int> channel(loop(), 1000);
  spawn(loop(), receive_all(channel));
  loop().ref();
  std::thread other([&] {
    for (int i = 0; i < 100; ++i)
      loop().post([&channel, i] { EXPECT_TRUE(channel.try_send(int(i))); });
    loop().post([&] {
      channel.close();
      loop().unref();
    });
  });
  loop().run();
  other.join();
  EXPECT_EQ(received.size(), 100U);
}

TEST_P(Channels, other_threads_must_not_use_it) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  TaskChannel<int> channel(loop(), 1);
  EXPECT_DEATH(std::thread([&] { static_cast<void>(channel.try_send(1)); }).join(),
               "try_send.*channel_test.cpp");
}

}  // namespace
}  // namespace tambour::channel_test
