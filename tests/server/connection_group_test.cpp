// ConnectionGroup on one loop: who gets a message, slow members, and changes during a delivery.
#include <tambour/net/connection_group.h>

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/peer.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::connection_group_test {
namespace {

/// Pairs of a member of a group and the stream of its peer.
class ConnectionGroups : public test::OnEveryBackend {
 protected:
  Connection& add_member(test::StreamEnds ends,
                         const std::shared_ptr<const ConnectionCallbacks>& callbacks) {
    peers_.push_back(std::move(ends.far));
    Connection& member = Connection::start(std::move(ends.near), callbacks);
    group_->add(member);
    return member;
  }
  std::vector<Connection*> open_members(int count, ConnectionCallbacks callbacks = {}) {
    if (!group_) group_.emplace(loop());
    std::vector<Connection*> members;
    const auto shared = std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
    for (int i = 0; i < count; ++i)
      members.push_back(&add_member(test::open_stream_ends(loop()), shared));
    return members;
  }

  /// What the peer has received so far.
  std::string received(std::size_t peer) { return test::receive_now(peers_[peer], 100'000); }
  void run_some() { run_iterations(5); }

  std::optional<ConnectionGroup> group_;
  std::vector<SocketStream> peers_;
};

TAMBOUR_ON_EVERY_TRANSPORT(ConnectionGroups);

TEST_P(ConnectionGroups, a_message_reaches_all_members) {
  const auto members = open_members(3);
  EXPECT_EQ(group_->size(), 3U);
  group_->send("one ");
  group_->send_except(*members[1], "two ");
  group_->send("three");
  run_some();
  EXPECT_EQ(received(0), "one two three");
  EXPECT_EQ(received(1), "one three");
  EXPECT_EQ(received(2), "one two three");
  EXPECT_EQ(group_->stats().sent, 8U);
  EXPECT_EQ(group_->stats().skipped, 0U);
}

TEST_P(ConnectionGroups, a_member_is_added_once) {
  const auto members = open_members(1);
  group_->add(*members[0]);
  EXPECT_EQ(group_->size(), 1U);
  group_->send("x");
  run_some();
  EXPECT_EQ(received(0), "x");
}

TEST_P(ConnectionGroups, who_is_removed_or_has_ended_gets_nothing) {
  const auto members = open_members(4);
  group_->send("x");
  group_->remove(*members[1]);
  group_->remove(*members[1]);
  EXPECT_FALSE(group_->contains(*members[1]));
  members[2]->close();
  EXPECT_FALSE(group_->contains(*members[2]));
  EXPECT_EQ(group_->size(), 2U);
  // Not an author any more: excludes nobody.
  group_->send_except(*members[1], "y");
  group_->add(*members[2]);
  EXPECT_FALSE(group_->contains(*members[2]));
  run_some();
  EXPECT_EQ(received(0), "xy");
  EXPECT_EQ(received(1), "");
  EXPECT_EQ(received(2), "");
  EXPECT_EQ(received(3), "xy");
  peers_.erase(peers_.begin());
  run_some();
  EXPECT_EQ(group_->size(), 1U);
}

TEST_P(ConnectionGroups, a_connection_may_be_in_several_groups) {
  ConnectionGroup other(loop());
  const auto members = open_members(2);
  other.add(*members[0]);
  group_->send("a");
  other.send("b");
  run_some();
  EXPECT_EQ(received(0), "ab");
  EXPECT_EQ(received(1), "a");
  members[0]->close();
  EXPECT_EQ(group_->size(), 1U);
  EXPECT_EQ(other.size(), 0U);
}

TEST_P(ConnectionGroups, empty_messages_and_empty_groups) {
  ConnectionGroup none(loop());
  none.send("lost");
  EXPECT_EQ(none.size(), 0U);
  open_members(1);
  group_->send("");
  group_->send(Buffer());
  run_some();
  EXPECT_EQ(received(0), "");
  EXPECT_EQ(group_->stats().sent, 0U);
}

TEST_P(ConnectionGroups, a_slow_member_is_skipped_until_it_reads) {
  std::size_t skipped = 0;
  group_.emplace(loop(), ConnectionGroupOptions{
                             .unsent_bytes_max = 100'000,
                             .on_skip = [&skipped](Connection&, std::size_t n) { skipped += n; }});
  open_members(2);
  const std::string message(50'000, 'm');
  std::size_t read = 0;
  std::uint64_t sent = 0;
  while (skipped == 0) {
    ASSERT_LT(sent, 1000U);
    group_->send(message);
    ++sent;
    run_some();
    for (std::string text = received(0); !text.empty(); text = received(0)) {
      read += text.size();
      run_some();
    }
  }
  EXPECT_EQ(skipped, 1U);
  EXPECT_EQ(read, message.size() * sent);  // The other member got everything.
  EXPECT_EQ(group_->stats().skipped, 1U);
  EXPECT_EQ(group_->stats().sent, 2 * sent - 1);
  std::size_t slow = 0;
  for (std::string text = received(1); !text.empty(); text = received(1)) {
    slow += text.size();
    run_some();
  }
  EXPECT_EQ(slow, message.size() * (sent - 1));  // No message was cut.
  group_->send("again");
  run_some();
  EXPECT_EQ(received(1), "again");
}

TEST_P(ConnectionGroups, a_slow_member_may_be_closed) {
  group_.emplace(loop(),
                 ConnectionGroupOptions{.unsent_bytes_max = 1000, .when_slow = WhenSlow::close});
  std::vector<Error> ends;
  open_members(2, {.on_close = [&](Connection&, Error error) { ends.push_back(error); }});
  for (int i = 0; i < 1000 && ends.empty(); ++i) {
    group_->send(std::string(50'000, 'm'));
    run_some();
    while (!received(0).empty()) run_some();
  }
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0], system_error(ENOBUFS));
  EXPECT_EQ(group_->stats().closed, 1U);
  EXPECT_EQ(group_->size(), 1U);
}

TEST_P(ConnectionGroups, callbacks_may_change_the_members_during_a_delivery) {
  std::vector<Connection*> members;
  test::StreamEnds later = test::open_stream_ends(loop());
  ConnectionCallbacks callbacks;
  callbacks.high_water_bytes = 1;
  callbacks.on_high_water = [&](Connection& connection, std::size_t) {
    // The first callback closes its own connection and another, removes one and adds one.
    if (&connection != members[0]) return;
    members[0]->close();
    members[1]->close();
    group_->remove(*members[2]);
    add_member(std::move(later), std::make_shared<const ConnectionCallbacks>());
    group_->send("later");
  };
  members = open_members(5, std::move(callbacks));
  // No socket buffer takes so much at once.
  group_->send(std::string(10'000'000, 'm'));
  run_some();
  EXPECT_EQ(group_->size(), 3U);
  EXPECT_EQ(received(2), "");
  EXPECT_EQ(received(5), "later");
  EXPECT_NE(received(3), "");
  EXPECT_NE(received(4), "");
  EXPECT_GT(members[3]->unsent(), 0U);
}

TEST_P(ConnectionGroups, an_exception_is_thrown_after_all_members_got_the_message) {
  group_.emplace(loop(), ConnectionGroupOptions{.unsent_bytes_max = 0,
                                                .on_skip = [](Connection&, std::size_t) {
                                                  throw std::runtime_error("skipped");
                                                }});
  open_members(2);
  group_->send("x");
  EXPECT_THROW(run_some(), std::runtime_error);
  EXPECT_EQ(group_->stats().skipped, 2U);
  run_some();
}

TEST_P(ConnectionGroups, may_be_destroyed_during_a_delivery) {
  ConnectionCallbacks callbacks;
  callbacks.high_water_bytes = 1;
  int calls = 0;
  callbacks.on_high_water = [&](Connection&, std::size_t) {
    ++calls;
    group_.reset();
  };
  const auto members = open_members(3, std::move(callbacks));
  group_->send(std::string(10'000'000, 'm'));
  group_->send("lost");
  run_some();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(group_);
  for (Connection* member : members) member->close();
  run_some();
}

TEST_P(ConnectionGroups, the_queue_of_a_loop_is_limited) {
  group_.emplace(loop(), ConnectionGroupOptions{.queued_bytes_max = 10'000});
  open_members(3);
  int sent = 0;
  while (group_->send("x")) ASSERT_LT(++sent, 10'000);
  EXPECT_GT(sent, 10);
  EXPECT_EQ(group_->stats().skipped, 3U);
  run_some();
  EXPECT_EQ(received(0), std::string(std::size_t(sent), 'x'));
  EXPECT_TRUE(group_->send("y"));
  run_some();
  EXPECT_EQ(received(0), "y");
}

TEST_P(ConnectionGroups, may_outlive_their_loop) {
  open_members(2);
  group_->send("x");
  peers_.clear();
  destroy_loop();
  EXPECT_EQ(group_->size(), 0U);
}

}  // namespace
}  // namespace tambour::connection_group_test
