// Any number of watchers on one descriptor, each with its own interest and trigger.
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::one_descriptor_test {
namespace {

class OneDescriptor : public test::OnEveryBackend {
 protected:
  test::Ends sockets = test::open_socketpair();
};

TAMBOUR_ON_EVERY_BACKEND(OneDescriptor);

TEST_P(OneDescriptor, each_of_a_thousand_watchers_is_invoked_once_per_iteration) {
  std::vector<int> calls(1000);
  std::vector<FdWatcher> watchers;
  for (int& count : calls)
    watchers.emplace_back(loop(), sockets.near.get(), Events::read, [&count](Events) { ++count; });
  for (FdWatcher& watcher : watchers) ASSERT_TRUE(watcher.start());
  run_iterations(2);
  EXPECT_EQ(calls, std::vector<int>(1000, 0));
  test::write_to(sockets.far);
  run_iterations(3);
  EXPECT_EQ(calls, std::vector<int>(1000, 3));
  // Stop every second one.
  for (std::size_t i = 0; i < watchers.size(); i += 2) watchers[i].stop();
  run_iterations(2);
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], i % 2 == 0 ? 3 : 5);
  watchers.clear();
  run_iterations(2);
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], i % 2 == 0 ? 3 : 5);
}

TEST_P(OneDescriptor, readers_and_writers_are_invoked_separately) {
  Events seen_by_reader = Events::none;
  Events seen_by_writer = Events::none;
  FdWatcher reader(loop(), sockets.near.get(), Events::read,
                   [&](Events events) { seen_by_reader |= events; });
  FdWatcher writer(loop(), sockets.near.get(), Events::write,
                   [&](Events events) { seen_by_writer |= events; });
  ASSERT_TRUE(reader.start());
  ASSERT_TRUE(writer.start());
  run_iterations();
  EXPECT_EQ(seen_by_reader, Events::none);
  EXPECT_EQ(seen_by_writer, Events::write);
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(seen_by_reader, Events::read);
  EXPECT_EQ(seen_by_writer, Events::write);
}

TEST_P(OneDescriptor, stopping_the_writer_does_not_invoke_the_waiting_reader) {
  int reads = 0;
  int writes = 0;
  FdWatcher reader(loop(), sockets.near.get(), Events::read, [&reads](Events) { ++reads; });
  FdWatcher writer(loop(), sockets.near.get(), Events::write, [&](Events) {
    ++writes;
    writer.stop();
  });
  ASSERT_TRUE(reader.start());
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(writer.start());
    run_iterations(5);
    EXPECT_EQ(writes, round);
  }
  EXPECT_EQ(reads, 0);
  test::write_to(sockets.far);
  run_iterations(1);
  EXPECT_EQ(reads, 1);
  using namespace std::chrono_literals;
  test::drain(sockets.near);
  EXPECT_TRUE(sleeps_through(50ms)) << "the descriptor is still writable";
}

TEST_P(OneDescriptor, the_interest_of_one_watcher_may_change_while_another_is_started) {
  Events seen = Events::none;
  FdWatcher steady(loop(), sockets.near.get(), Events::read, [](Events) {});
  FdWatcher changing(loop(), sockets.near.get(), Events::none,
                     [&](Events events) { seen |= events; });
  ASSERT_TRUE(steady.start());
  ASSERT_TRUE(changing.start());
  test::write_to(sockets.far);
  ASSERT_EQ(::shutdown(sockets.far.get(), SHUT_WR), 0);
  for (const Events interest : {Events::none, Events::read, Events::read | Events::write,
                                Events::write, Events::read | Events::closed, Events::none}) {
    changing.set(interest);
    seen = Events::none;
    run_iterations();
    EXPECT_EQ(seen, interest);
  }
}

TEST_P(OneDescriptor, watchers_may_be_started_and_destroyed_by_each_other) {
  std::vector<std::unique_ptr<FdWatcher>> watchers(50);
  int calls = 0;
  std::function<void(std::size_t)> add = [&](std::size_t index) {
    watchers[index] =
        std::make_unique<FdWatcher>(loop(), sockets.near.get(), Events::read, [&, index](Events) {
          ++calls;
          if (index + 1 < watchers.size()) add(index + 1);
          watchers[index].reset();
        });
    ASSERT_TRUE(watchers[index]->start());
  };
  test::write_to(sockets.far);
  add(0);
  run_iterations(100);
  EXPECT_EQ(calls, 50);
}

TEST_P(OneDescriptor, events_of_many_descriptors_reach_the_right_watchers) {
  // More descriptors than one batch of events or a small ring holds; select(2) is limited to
  // FD_SETSIZE.
  const std::size_t count = is(BackendKind::select) ? 300 : 1200;
  std::vector<test::Ends> pipes;
  std::vector<int> calls(count);
  std::vector<FdWatcher> watchers;
  for (std::size_t i = 0; i < count; ++i) {
    pipes.push_back(test::open_pipe());
    watchers.emplace_back(loop(), pipes[i].near.get(), Events::read, [&, i](Events) {
      ++calls[i];
      test::drain(pipes[i].near);
    });
  }
  for (FdWatcher& watcher : watchers) ASSERT_TRUE(watcher.start());
  for (std::size_t i = 0; i < count; i += 3) test::write_to(pipes[i].far);
  std::vector<int> expected(count);
  for (std::size_t i = 0; i < count; i += 3) expected[i] = 1;
  // A small ring delivers a few events at a time.
  EXPECT_TRUE(run_until([&] { return calls == expected; }));
  for (std::size_t i = 0; i < count; ++i) {
    test::write_to(pipes[i].far);
    ++expected[i];
  }
  EXPECT_TRUE(run_until([&] { return calls == expected; }));
  run_iterations();
  EXPECT_EQ(calls, expected);
}

}  // namespace
}  // namespace tambour::one_descriptor_test
