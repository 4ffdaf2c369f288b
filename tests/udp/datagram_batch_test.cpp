// A batch without a socket: datagrams come out unchanged and in order.
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/udp/datagrams.h>

#include "udp/datagrams.h"

namespace tambour::datagram_batch_test {
namespace {

using test::bytes_of;

const Endpoint one = Endpoint::loopback_v4(1);
const Endpoint two = Endpoint::loopback_v6(2);

std::vector<std::string> texts(const DatagramBatch& batch) {
  std::vector<std::string> all;
  for (const Datagram datagram : batch) all.emplace_back(datagram.text());
  return all;
}

TEST(DatagramBatches, have_sizes_within_bounds) {
  EXPECT_THROW(DatagramBatch(0), std::length_error);
  EXPECT_THROW(DatagramBatch(1, 0), std::length_error);
  EXPECT_THROW(DatagramBatch(1025), std::length_error);
  EXPECT_THROW(DatagramBatch(1, 65'536), std::length_error);
  EXPECT_THROW(DatagramBatch(SIZE_MAX, SIZE_MAX), std::length_error);
  const DatagramBatch largest(1024, 65'535);
  EXPECT_EQ(largest.capacity(), 1024U);
  EXPECT_EQ(largest.bytes_each(), 65'535U);
  EXPECT_TRUE(largest.empty());
}

TEST(DatagramBatches, report_when_they_are_full) {
  DatagramBatch batch(2, 10);
  EXPECT_EQ(batch.add(bytes_of(std::string(21, 'x')), one).error(), system_error(EMSGSIZE));
  EXPECT_TRUE(batch.add(bytes_of(std::string(15, 'x')), one));
  EXPECT_EQ(batch.add(bytes_of("123456"), one).error(), system_error(ENOBUFS));
  EXPECT_TRUE(batch.add(bytes_of("12345"), one));
  EXPECT_EQ(batch.size(), 2U);
  batch.clear();
  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(batch.add({}, one));
  EXPECT_TRUE(batch.add({}, two));
  EXPECT_EQ(batch.add({}, one).error(), system_error(ENOBUFS));
  EXPECT_EQ(batch.add({}, Endpoint::unix_name("@x").value()).error(), system_error(EAFNOSUPPORT));
  EXPECT_EQ(batch.size(), 2U);
}

TEST(DatagramBatches, return_the_datagrams_to_be_sent) {
  DatagramBatch batch(8, 100);
  EXPECT_TRUE(batch.add(bytes_of("a"), one));
  EXPECT_TRUE(batch.add(bytes_of("b"), two));
  EXPECT_TRUE(batch.add(bytes_of("c"), {.ecn = Ecn::ect0}));
  auto at = batch.begin();
  EXPECT_EQ((*at).peer(), one);
  EXPECT_EQ((*at++).ecn(), Ecn::none);
  EXPECT_EQ((*at++).peer(), two);
  EXPECT_EQ((*at).peer(), Endpoint());
  EXPECT_EQ((*at).ecn(), Ecn::ect0);
  EXPECT_EQ((*at).to(), std::nullopt);
  DatagramBatch moved = std::move(batch);
  EXPECT_EQ(texts(moved), (std::vector<std::string>{"a", "b", "c"}));
  batch = std::move(moved);
  EXPECT_EQ(batch.size(), 3U);
}

TEST(DatagramBatches, keep_their_order_after_random_additions_and_removals) {
  std::minstd_rand random(3);
  for (int round = 0; round < 300; ++round) {
    DatagramBatch batch(1 + random() % 40, 1 + random() % 300);
    std::vector<std::string> model;
    for (int step = 0; step < 100; ++step) {
      if (random() % 4 == 0) {
        if (model.empty()) continue;
        EXPECT_EQ(batch.front().text(), model.front());
        batch.drop_front();
        model.erase(model.begin());
      } else {
        // Mostly of one size and destination, as in practice.
        std::string text(random() % 3 != 0 ? 20 : random() % 50, char('a' + random() % 26));
        if (batch.add(bytes_of(text), random() % 9 != 0 ? one : two)) model.push_back(text);
      }
      ASSERT_EQ(batch.size(), model.size());
      ASSERT_EQ(batch.empty(), model.empty());
    }
    EXPECT_EQ(texts(batch), model);
  }
}

}  // namespace
}  // namespace tambour::datagram_batch_test
