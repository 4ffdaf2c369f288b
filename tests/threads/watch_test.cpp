// Watch: receivers see the latest value.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::watch_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);
const Error closed = system_error(EPIPE);
const Error late = system_error(ETIMEDOUT);

using Text = Watch<std::string>;

class Watches : public test::OnEveryBackend {
 public:
  std::vector<std::string> seen;
  std::vector<Error> ends;

  Task<> watch(Text::Receiver& receiver) {
    const auto changed = co_await receiver.changed();
    if (changed) seen.push_back(*changed);
    ends.push_back(changed ? Error() : changed.error());
  }
};

TAMBOUR_ON_EVERY_BACKEND(Watches);

TEST_P(Watches, a_receiver_sees_the_latest_value_once) {
  Text text("a");
  auto receiver = text.subscribe();
  EXPECT_EQ(receiver.get(), "a");
  EXPECT_FALSE(receiver.has_changed());
  spawn(loop(), watch(receiver));
  run_iterations();
  EXPECT_TRUE(seen.empty());
  text.set("b");
  text.set("c");
  EXPECT_EQ(text.get(), "c");
  run_iterations();
  EXPECT_EQ(seen, std::vector<std::string>{"c"});
  // Set while no task waits.
  text.set("d");
  EXPECT_TRUE(receiver.has_changed());
  run(watch(receiver));
  EXPECT_EQ(seen.back(), "d");
  text.set("e");
  EXPECT_EQ(receiver.get(), "e");
  EXPECT_FALSE(receiver.has_changed());
  EXPECT_FALSE(text.subscribe().has_changed());
}

TEST_P(Watches, a_stopped_wait_leaves_the_change) {
  Text text("a");
  auto receiver = text.subscribe();
  TaskScope scope(loop());
  scope.spawn(watch(receiver));
  text.set("b");
  scope.request_stop();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  EXPECT_TRUE(receiver.has_changed());
  auto destroyed = std::make_unique<TaskScope>(loop());
  EXPECT_EQ(receiver.get(), "b");
  destroyed->spawn(watch(receiver));
  text.set("c");
  destroyed.reset();
  run(watch(receiver));
  EXPECT_EQ(seen, std::vector<std::string>{"c"});
  run([](Text::Receiver& from) -> Task<> {
    EXPECT_EQ((co_await timeout(1ms, from.changed())).error(), late);
  }(receiver));
}

TEST_P(Watches, closing_and_destroying_end_the_waits) {
  auto text = std::make_unique<Text>("a");
  auto receiver = text->subscribe();
  std::optional<Text::Receiver> destroyed(text->subscribe());
  spawn(loop(), watch(*destroyed));
  destroyed.reset();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  // timeout() moves the awaitable, and destroys what is left of it afterwards.
  auto limited = std::make_unique<Text::Receiver>(text->subscribe());
  spawn(loop(), [](Text::Receiver& from) -> Task<> {
    EXPECT_EQ((co_await timeout(1h, from.changed())).error(), cancelled);
  }(*limited));
  run_iterations();
  limited.reset();
  loop().run();
  text->set("b");
  text->close();
  run(watch(receiver));
  run(watch(receiver));
  EXPECT_EQ(seen, std::vector<std::string>{"b"});
  EXPECT_EQ(ends.back(), closed);
  text = std::make_unique<Text>("a");
  receiver = text->subscribe();
  spawn(loop(), watch(receiver));
  text.reset();
  loop().run();
  EXPECT_EQ(ends.back(), cancelled);
}

TEST_P(Watches, waits_may_outlive_the_loop) {
  Text text("a");
  auto receiver = text.subscribe();
  TaskScope scope(loop());
  scope.spawn(watch(receiver));
  destroy_loop();
  text.set("b");
  EXPECT_EQ(receiver.get(), "b");
}

TEST(WatchesBetweenLoops, every_receiver_sees_the_last_value) {
  LoopGroup group({.threads = 3});
  Watch<int> number(0);
  constexpr int last = 3000;
  std::atomic<int> done{0};
  const auto watch_all = [&](Watch<int>::Receiver receiver) -> Task<> {
    int before = 0;
    while (auto changed = co_await receiver.changed()) {
      EXPECT_GT(*changed, before);
      before = *changed;
    }
    EXPECT_EQ(before, last);
    ++done;
  };
  for (std::size_t i = 0; i < 6; ++i) {
    EventLoop& loop = group[i % 3];
    loop.post([&watch_all, here = &loop, receiver = number.subscribe()]() mutable {
      spawn(*here, watch_all, std::move(receiver));
    });
  }
  std::thread reader([&, receiver = number.subscribe()]() mutable {
    int before = 0;
    while (auto changed = receiver.blocking_changed(1min)) before = *changed;
    EXPECT_EQ(before, last);
    EXPECT_EQ(receiver.blocking_changed(1ms).error(), closed);
    ++done;
  });
  for (int i = 1; i <= last; ++i) number.set(i);
  number.close();
  reader.join();
  while (done != 7) std::this_thread::yield();
}

}  // namespace
}  // namespace tambour::watch_test
