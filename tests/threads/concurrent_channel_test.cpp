// ConcurrentChannel: order, capacity, closing, cancellation and destruction, between tasks of one
// loop, loops and threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/random.h"

namespace tambour::concurrent_channel_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);
const Error closed = system_error(EPIPE);
const Error again = system_error(EAGAIN);
const Error late = system_error(ETIMEDOUT);

using Channel = ConcurrentChannel<int>;

class ConcurrentChannels : public test::OnEveryBackend {
 public:
  std::vector<int> received;
  std::vector<Error> ends;

  Task<> receive_all(Channel& from) {
    auto item = co_await from.receive();
    for (; item; item = co_await from.receive()) received.push_back(*item);
    ends.push_back(item.error());
  }
  Task<> receive_one(Channel& from) {
    const auto item = co_await from.receive();
    if (item) received.push_back(*item);
    ends.push_back(item ? Error() : item.error());
  }
  Task<> send_one(Channel& to, int item) {
    const auto sent = co_await to.send(item);
    ends.push_back(sent ? Error() : sent.error());
  }
};

TAMBOUR_ON_EVERY_BACKEND(ConcurrentChannels);

TEST_P(ConcurrentChannels, items_arrive_in_order_and_the_sender_waits_when_the_channel_is_full) {
  for (const std::size_t capacity : {1, 3, 100}) {
    received.clear();
    Channel channel(capacity);
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

TEST_P(ConcurrentChannels, try_send_and_try_receive_do_not_wait) {
  ConcurrentChannel<std::unique_ptr<int>> channel(1);
  EXPECT_EQ(channel.try_receive().error(), again);
  auto item = std::make_unique<int>(1);
  EXPECT_TRUE(channel.try_send(std::move(item)));
  EXPECT_EQ(item, nullptr);
  item = std::make_unique<int>(2);
  EXPECT_EQ(channel.try_send(std::move(item)).error(), again);
  EXPECT_NE(item, nullptr);
  EXPECT_EQ(**channel.try_receive(), 1);
  EXPECT_TRUE(channel.try_send(std::move(item)));
  channel.close();
  EXPECT_TRUE(channel.is_closed());
  EXPECT_EQ(channel.try_send(std::make_unique<int>(3)).error(), closed);
  EXPECT_EQ(**channel.try_receive(), 2);
  EXPECT_EQ(channel.try_receive().error(), closed);
}

TEST_P(ConcurrentChannels, an_item_is_kept_for_the_task_that_waited) {
  Channel channel(2);
  spawn(loop(), receive_one(channel));
  EXPECT_TRUE(channel.try_send(1));
  EXPECT_EQ(channel.size(), 0U);
  EXPECT_EQ(channel.try_receive().error(), again);
  EXPECT_TRUE(channel.try_send(2));
  EXPECT_EQ(channel.try_send(3).error(), again);
  EXPECT_EQ(channel.size(), 1U);
  loop().run();
  EXPECT_EQ(received, std::vector<int>{1});
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
}

TEST_P(ConcurrentChannels, a_stopped_receive_leaves_its_item) {
  Channel channel(4);
  TaskScope scope(loop());
  scope.spawn(receive_one(channel));
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(channel.try_send(i));
  scope.request_stop();
  EXPECT_EQ(channel.size(), 3U);
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(channel.try_receive(), Result<int>(i));
  // A stop before there is an item, and a destroyed receiver: the next one gets the item.
  auto destroyed = std::make_unique<TaskScope>(loop());
  TaskScope stopped(loop());
  destroyed->spawn(receive_one(channel));
  stopped.spawn(receive_one(channel));
  spawn(loop(), receive_one(channel));
  stopped.request_stop();
  EXPECT_TRUE(channel.try_send(4));
  destroyed.reset();
  loop().run();
  EXPECT_EQ(received, std::vector<int>{4});
  // A stop before the wait.
  stopped.spawn(receive_one(channel));
  loop().run();
  EXPECT_EQ(ends.back(), cancelled);
}

TEST_P(ConcurrentChannels, closing_leaves_an_item_that_is_given_back_to_the_others) {
  Channel channel(4);
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

TEST_P(ConcurrentChannels, a_stopped_send_has_not_sent_and_an_accepted_one_succeeds) {
  Channel channel(1);
  EXPECT_TRUE(channel.try_send(1));
  TaskScope scope(loop());
  auto destroyed = std::make_unique<TaskScope>(loop());
  scope.spawn(send_one(channel, 2));
  destroyed->spawn(send_one(channel, 3));
  scope.spawn(send_one(channel, 4));
  EXPECT_EQ(channel.try_receive(), Result<int>(1));  // Accepts 2.
  scope.request_stop();
  destroyed.reset();
  loop().run();
  EXPECT_EQ(ends.size(), 2U);
  EXPECT_EQ(std::ranges::count(ends, Error()), 1);
  EXPECT_EQ(std::ranges::count(ends, cancelled), 1);
  EXPECT_EQ(channel.try_receive(), Result<int>(2));
  EXPECT_EQ(channel.try_receive().error(), again);
}

TEST_P(ConcurrentChannels, closing_and_destroying_end_all_waits) {
  auto full = std::make_unique<Channel>(1);
  auto empty = std::make_unique<Channel>(1);
  EXPECT_TRUE(full->try_send(1));
  spawn(loop(), send_one(*full, 2));
  spawn(loop(), receive_one(*empty));
  full->close();
  empty->close();
  EXPECT_TRUE(ends.empty());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(2, closed));
  EXPECT_EQ(full->try_receive(), Result<int>(1));
  full = std::make_unique<Channel>(1);
  empty = std::make_unique<Channel>(1);
  EXPECT_TRUE(full->try_send(1));
  spawn(loop(), send_one(*full, 2));
  spawn(loop(), receive_one(*empty));
  full.reset();
  empty.reset();
  loop().run();
  EXPECT_EQ(std::ranges::count(ends, cancelled), 2);
}

TEST_P(ConcurrentChannels, a_receiver_whose_item_is_there_gets_it_from_a_destroyed_channel) {
  auto channel = std::make_unique<Channel>(2);
  spawn(loop(), receive_one(*channel));
  EXPECT_TRUE(channel->try_send(1));
  channel.reset();
  loop().run();
  EXPECT_EQ(received, std::vector<int>{1});
}

TEST_P(ConcurrentChannels, waits_may_outlive_the_loop) {
  Channel channel(1);
  TaskScope scope(loop());
  scope.spawn(receive_one(channel));
  scope.spawn(receive_one(channel));
  EXPECT_TRUE(channel.try_send(1));
  destroy_loop();
  // The item that was kept for the first task is not lost.
  EXPECT_EQ(channel.try_receive(), Result<int>(1));
  EXPECT_TRUE(channel.try_send(2));
  scope.request_stop();
}

TEST_P(ConcurrentChannels, waits_end_in_a_forked_child) {
  if (loop().backend().kind == BackendKind::simulated) GTEST_SKIP() << "no processes";
  Channel channel(2);
  Channel full(1);
  Broadcast<int> broadcast(1);
  auto receiver = broadcast.subscribe();
  EXPECT_TRUE(full.try_send(1));
  spawn(loop(), receive_one(channel));
  spawn(loop(), receive_one(channel));
  spawn(loop(), send_one(full, 2));
  spawn(loop(), [&]() -> Task<> {
    const auto message = co_await receiver.receive();
    ends.push_back(message ? Error() : message.error());
  });
  run_iterations();
  // The parent's loop has not taken this wakeup from its mailbox.
  EXPECT_TRUE(channel.try_send(1));
  EXPECT_EQ(test::in_child([&] {
              if (!loop().after_fork()) return 1;
              loop().run();
              if (ends != std::vector<Error>(4, cancelled)) return 2;
              const bool refuses = channel.try_send(1).error() == cancelled &&
                                   channel.try_receive().error() == cancelled &&
                                   broadcast.send(1).error() == cancelled;
              return refuses ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(ends.empty());
  channel.close();
  EXPECT_EQ(full.try_receive(), Result<int>(1));
  broadcast.close();
  loop().run();
  EXPECT_EQ(ends.size(), 4U);
  EXPECT_EQ(received, std::vector<int>{1});
}

TEST_P(ConcurrentChannels, combinators_lose_no_item) {
  run([](EventLoop& loop) -> Task<> {
    Channel left(1);
    Channel right(1);
    EXPECT_EQ((co_await timeout(1ms, left.receive())).error(), late);
    for (int i = 0; i < 10; ++i) {
      loop.post([&] {
        EXPECT_TRUE(left.try_send(1));
        EXPECT_TRUE(right.try_send(2));
      });
      const auto first = co_await when_any(left.receive(), right.receive());
      const bool is_left = first.index() == 0;
      EXPECT_EQ(is_left ? std::get<0>(first) : std::get<1>(first), Result<int>(is_left ? 1 : 2));
      EXPECT_EQ((is_left ? right : left).try_receive(), Result<int>(is_left ? 2 : 1));
      EXPECT_TRUE(left.empty() && right.empty());
    }
  }(loop()));
}

TEST_P(ConcurrentChannels, a_plain_thread_receives_from_tasks) {
  Channel channel(3);
  std::vector<int> taken;
  std::thread reader([&] {
    auto item = channel.blocking_receive();
    for (; item; item = channel.blocking_receive(1min)) taken.push_back(*item);
    EXPECT_EQ(item.error(), closed);
  });
  spawn(loop(), [&]() -> Task<> {
    for (int i = 0; i < 500; ++i) {
      if (!co_await channel.send(i)) ADD_FAILURE() << "not sent";
    }
    channel.close();
  });
  loop().run();
  reader.join();
  EXPECT_EQ(taken.size(), 500U);
  EXPECT_TRUE(std::ranges::is_sorted(taken));
}

TEST_P(ConcurrentChannels, a_plain_thread_sends_to_a_loop_that_waits) {
  Channel channel(3);
  spawn(loop(), receive_all(channel));
  std::thread writer([&] {
    for (int i = 0; i < 500; ++i) {
      if (!channel.blocking_send(i)) ADD_FAILURE() << "not sent";
    }
    channel.close();
  });
  loop().run();
  writer.join();
  EXPECT_EQ(received.size(), 500U);
  EXPECT_TRUE(std::ranges::is_sorted(received));
}

TEST(BlockingChannels, limits_of_time_and_closing_end_the_waits) {
  Channel channel(1);
  EXPECT_EQ(channel.blocking_receive(1ms).error(), late);
  EXPECT_EQ(channel.blocking_receive(0ms).error(), late);
  EXPECT_EQ(channel.blocking_receive(Duration::min()).error(), late);
  EXPECT_TRUE(channel.blocking_send(1));
  int item = 2;
  EXPECT_EQ(channel.blocking_send(std::move(item), 1ms).error(), late);
  EXPECT_EQ(channel.size(), 1U);
  std::thread blocked([&] { EXPECT_EQ(channel.blocking_send(3).error(), closed); });
  std::this_thread::yield();
  channel.close();
  blocked.join();
  EXPECT_EQ(channel.blocking_receive(), Result<int>(1));
  EXPECT_EQ(channel.blocking_receive().error(), closed);
}

TEST(BlockingChannels, must_not_block_a_loop) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EventLoop loop;
  Channel channel(1);
  // Without waiting.
  EXPECT_TRUE(channel.blocking_send(1));
  loop.post([&] { EXPECT_EQ(channel.blocking_receive(), Result<int>(1)); });
  loop.run();
  EXPECT_EQ(channel.blocking_receive(1ms).error(), late);
  loop.post([&] { static_cast<void>(channel.blocking_receive(1ms)); });
  EXPECT_DEATH(loop.run(), "blocking_receive.* called on a thread that runs an EventLoop");
  EXPECT_DEATH(Channel(0), "ConcurrentChannel .created in .*channel_test.cpp.* capacity of 0");
}

/// Each item arrives once, whatever is stopped, between tasks of several loops and threads.
TEST(ChannelsBetweenLoops, transfer_every_item_once) {
  TAMBOUR_TRACE_SEED();
  constexpr int senders = 4;
  constexpr int items = 300;
  for (const std::size_t capacity : {1, 5}) {
    LoopGroup group({.threads = 3});
    Channel channel(capacity);
    std::vector<std::atomic<int>> counts(senders * items + items);
    std::atomic<int> sending{senders + 1};
    std::atomic<int> receiving{4};
    const auto send_all = [&](int sender) -> Task<> {
      std::minstd_rand random(unsigned(test::seed()) + unsigned(sender));
      for (int i = 0; i < items; ++i) {
        // A send that was stopped is repeated.
        for (;;) {
          const auto sent = co_await timeout(random() % 3 * 50us, channel.send(sender * items + i));
          if (sent) break;
        }
      }
      if (--sending == 0) channel.close();
    };
    const auto receive_all = [&](int receiver) -> Task<> {
      std::minstd_rand random(unsigned(test::seed()) + 100 + unsigned(receiver));
      for (;;) {
        const auto item = co_await timeout(random() % 3 * 50us, channel.receive());
        if (item) ++counts.at(std::size_t(*item));
        if (!item && item.error() == closed) break;
      }
      --receiving;
    };
    for (int i = 0; i < senders; ++i) {
      EventLoop& loop = group[std::size_t(i) % 3];
      loop.post([&, i, here = &loop] { spawn(*here, send_all, i); });
    }
    for (int i = 0; i < 3; ++i) {
      EventLoop& loop = group[std::size_t(i)];
      loop.post([&, i, here = &loop] { spawn(*here, receive_all, i); });
    }
    std::thread sender([&] {
      for (int i = 0; i < items; ++i) EXPECT_TRUE(channel.blocking_send(senders * items + i));
      if (--sending == 0) channel.close();
    });
    std::thread receiver([&] {
      for (;;) {
        const auto item = channel.blocking_receive(100us);
        if (item) ++counts.at(std::size_t(*item));
        if (!item && item.error() == closed) break;
      }
      --receiving;
    });
    sender.join();
    receiver.join();
    while (receiving != 0) std::this_thread::yield();
    for (const auto& count : counts) ASSERT_EQ(count, 1);
  }
}

TEST(ChannelsBetweenLoops, a_loop_that_ends_keeps_no_item) {
  for (int round = 0; round < 20; ++round) {
    Channel channel(8);
    auto group = std::make_unique<LoopGroup>(LoopGroupOptions{.threads = 2});
    std::atomic<int> received{0};
    for (std::size_t i = 0; i < 2; ++i) {
      EventLoop& loop = (*group)[i];
      loop.post([&, here = &loop] {
        spawn(*here, [&]() -> Task<> {
          while (co_await channel.receive()) ++received;
        });
      });
    }
    int sent = 0;
    std::thread ending([&] { group.reset(); });
    for (; sent < 100; ++sent) {
      if (!channel.blocking_send(sent, 1ms)) break;
    }
    ending.join();
    int left = 0;
    while (channel.try_receive()) ++left;
    ASSERT_EQ(received + left, sent);
  }
}

/// What the channel must do, written plainly: tasks of two loops of one simulation.
struct Model {
  explicit Model(std::size_t items_max) : capacity(items_max) {}

  bool put(int item) {
    if (items.size() == capacity) return false;
    items.push_back(item);
    return true;
  }
  std::optional<int> take() {
    if (items.empty()) return std::nullopt;
    const int item = items.front();
    items.pop_front();
    while (!waiting.empty() && items.size() < capacity) {
      items.push_back(waiting.front());
      waiting.pop_front();
    }
    return item;
  }
  std::size_t capacity;
  std::deque<int> items;
  std::deque<int> waiting;  ///< The items of senders.
};

TEST(ChannelsInSimulation, behave_like_a_queue) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  for (int round = 0; round < 20; ++round) {
    sim::Simulation simulation(random.below(1'000'000));
    sim::Host& host = simulation.add_host("host");
    EventLoop first(host.loop_options());
    EventLoop second(host.loop_options());
    Channel channel(1 + random.below(3));
    Model model(channel.capacity());
    int next = 0;
    TaskScope scope(second);
    spawn(first, [&]() -> Task<> {
      for (int step = 0; step < 100; ++step) {
        switch (random.below(4)) {
          case 0:
            EXPECT_EQ(channel.try_send(next).has_value(), model.put(next));
            ++next;
            break;
          case 1: {
            // A sender on the other loop.
            if (!model.put(next)) model.waiting.push_back(next);
            co_await run_on(
                second,
                [](TaskScope& tasks, Channel& to, int item) {
                  tasks.spawn([](Channel& channel, int value) -> Task<> {
                    EXPECT_TRUE(co_await channel.send(value));
                  }(to, item));
                },
                std::ref(scope), std::ref(channel), next);
            ++next;
            break;
          }
          case 2: {
            const auto item = channel.try_receive();
            const auto modelled = model.take();
            EXPECT_EQ(item.has_value(), modelled.has_value());
            if (item && modelled) {
              EXPECT_EQ(*item, *modelled);
            }
            break;
          }
          case 3: {
            const auto modelled = model.take();
            const auto item = co_await timeout(1ms, channel.receive());
            EXPECT_EQ(item.has_value(), modelled.has_value());
            if (item && modelled) {
              EXPECT_EQ(*item, *modelled);
            }
            break;
          }
          default:
            break;
        }
        EXPECT_EQ(channel.size(), model.items.size());
      }
      while (channel.try_receive()) {
      }
    });
    EXPECT_EQ(simulation.run(), sim::End::finished);
    EXPECT_TRUE(scope.empty());
  }
}

}  // namespace
}  // namespace tambour::concurrent_channel_test
