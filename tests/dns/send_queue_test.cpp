// The packets that a port of the resolver sends at the end of an iteration.
#include "dns/transport/send_queue.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/endpoint.h>

namespace tambour::send_queue_test {
namespace {

using dns::detail::SendQueue;

/// A connected socket, and the one that receives what it sends.
class Sockets {
 public:
  Sockets() {
    const Endpoint any = Endpoint::loopback_v4(0);
    EXPECT_EQ(::bind(receiver_, any.data(), any.size()), 0);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(::getsockname(receiver_, address, &size), 0);
    EXPECT_EQ(::connect(sender_, address, size), 0);
  }
  ~Sockets() {
    ::close(sender_);
    ::close(receiver_);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  /// Sends the messages, and returns the number that were sent.
  [[nodiscard]] int send(SendQueue::Messages& messages) const {
    const auto headers = messages.headers();
    return ::sendmmsg(sender_, headers.data(), unsigned(headers.size()), 0);
  }
  /// What has arrived.
  [[nodiscard]] std::vector<std::string> received() const {
    std::vector<std::string> packets;
    std::array<char, 1000> bytes;
    ssize_t got;
    while ((got = ::recv(receiver_, bytes.data(), bytes.size(), MSG_DONTWAIT)) >= 0)
      packets.emplace_back(bytes.data(), std::size_t(got));
    return packets;
  }

 private:
  int sender_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int receiver_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

class Sending : public testing::TestWithParam<bool> {
 protected:
  void add(std::string_view packet, bool is_alone = false) {
    queue.add(packet, is_alone);
    added.emplace_back(packet);
  }
  /// Sends everything; returns the number of packets in each message.
  std::vector<std::size_t> send_all() {
    std::vector<std::size_t> sizes;
    while (!queue.empty() && !HasFailure()) {
      SendQueue::Messages messages;
      queue.prepare(messages, GetParam());
      const int sent = sockets.send(messages);
      EXPECT_EQ(sent, int(messages.headers().size()));
      for (int i = 0; i < sent; ++i) sizes.push_back(messages.packets(std::size_t(i)));
      EXPECT_GT(queue.remove(messages, std::size_t(sent)), 0U);
    }
    EXPECT_EQ(sockets.received(), added);
    return sizes;
  }
  using Sizes = std::vector<std::size_t>;

  SendQueue queue;
  Sockets sockets;
  std::vector<std::string> added;
};

TEST_P(Sending, joins_packets_of_one_size) {
  for (const char* const text : {"aa", "bb", "c", "dd", "ee", "ff"}) add(text);
  EXPECT_EQ(send_all(), GetParam() ? (Sizes{2, 1, 3}) : Sizes(6, 1));
}

TEST_P(Sending, sends_repeated_packets_alone) {
  add("aa");
  add("bb", true);
  add("cc");
  add("dd");
  EXPECT_EQ(send_all(), GetParam() ? (Sizes{1, 1, 2}) : Sizes(4, 1));
}

TEST_P(Sending, has_no_limit) {
  for (int i = 0; i < 150; ++i) add(std::to_string(1000 + i));
  for (int i = 0; i < 40; ++i) add(std::string(std::size_t(i) + 5, 'x'));
  const Sizes sizes = send_all();
  EXPECT_EQ(sizes.size(), GetParam() ? 3U + 40U : 190U);
}

TEST_P(Sending, continues_after_the_packets_that_were_sent) {
  for (const char* const text : {"aa", "bb", "c", "dd"}) add(text);
  SendQueue::Messages messages;
  queue.prepare(messages, GetParam());
  EXPECT_EQ(queue.remove(messages, 1), GetParam() ? 2U : 1U);
  added.erase(added.begin(), added.begin() + (GetParam() ? 2 : 1));
  send_all();
}

TEST_P(Sending, forgets_a_packet_that_was_added_last) {
  add("aa");
  queue.add("bbb", false);
  queue.remove_last();
  add("cc");
  EXPECT_EQ(send_all(), GetParam() ? Sizes{2} : Sizes(2, 1));
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

INSTANTIATE_TEST_SUITE_P(Segments, Sending, testing::Bool());

}  // namespace
}  // namespace tambour::send_queue_test
