// Datagrams when system calls fail: no datagram is lost without an error. Also the number of system
// calls.
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "faults/faults.h"
#include "support/on_every_backend.h"

namespace tambour::udp_test {
namespace {

using test::Call;
using test::Faults;

std::string text_of(std::size_t number) { return std::string(200, char('a' + number % 26)); }

class UdpFaults : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

 protected:
  UdpSocket bind(const UdpOptions& options = {}) {
    auto socket = UdpSocket::bind(loop(), Endpoint::loopback_v4(0), options);
    if (!socket) throw std::system_error(socket.error());
    return std::move(*socket);
  }

  /// Collects all datagrams that the server receives from now on.
  void collect(std::size_t places = 64, std::size_t bytes_each = 2048) {
    ASSERT_TRUE(server.serve({.on_datagrams =
                                  [this](UdpSocket&, DatagramBatch& came) {
                                    for (const Datagram datagram : came)
                                      got.emplace_back(datagram.text());
                                  }},
                             places, bytes_each));
  }
  void fill(DatagramBatch& batch, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(text_of(i));
      ASSERT_TRUE(
          batch.add(std::as_bytes(std::span(wanted.back())), server.local_endpoint().value()));
    }
  }
  bool all_come() {
    return run_until([this] { return got.size() >= wanted.size(); }) && got == wanted;
  }
  bool send_and_wait(DatagramBatch& batch, Result<>& outcome) {
    bool done = false;
    spawn(loop(),
          [](UdpSocket& socket, DatagramBatch& all, Result<>& result, bool& ended) -> Task<> {
            result = co_await socket.send(all);
            ended = true;
          }(client, batch, outcome, done));
    return run_until([&] { return done; });
  }

  UdpSocket server;
  UdpSocket client;
  std::vector<std::string> got;
  std::vector<std::string> wanted;

  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    server = bind();
    client = bind();
  }
  void TearDown() override {
    server.close();
    client.close();
    OnEveryBackend::TearDown();
  }
};

TAMBOUR_ON_EVERY_BACKEND(UdpFaults);

TEST_P(UdpFaults, sending_waits_while_the_send_buffer_is_full) {
  collect();
  for (const Call call : {Call::sendmsg, Call::sendmmsg}) {
    DatagramBatch batch(200, 200);
    fill(batch, call == Call::sendmsg ? 10 : 150);
    Faults faults;
    faults.fail(call, 1, EAGAIN, 3);
    // Without waiting, EAGAIN is returned and the batch is unchanged.
    const std::size_t before = batch.size();
    EXPECT_EQ(client.try_send(batch).error(), system_error(EAGAIN));
    EXPECT_EQ(batch.size(), before);
    Result<> outcome;
    EXPECT_TRUE(send_and_wait(batch, outcome));
    EXPECT_TRUE(outcome);
    EXPECT_TRUE(batch.empty());
    EXPECT_EQ(faults.count(call), 4U);
    EXPECT_TRUE(all_come());
  }
}

TEST_P(UdpFaults, a_failure_leaves_the_unsent_datagrams_in_the_batch) {
  collect();
  DatagramBatch batch(100, 200);
  fill(batch, 100);
  Result<> outcome;
  {
    Faults faults;
    faults.fail(Call::sendmmsg, 1, ENOBUFS);
    EXPECT_TRUE(send_and_wait(batch, outcome));
    EXPECT_EQ(outcome.error(), system_error(ENOBUFS));
    EXPECT_EQ(batch.size(), 100U);
  }
  EXPECT_TRUE(send_and_wait(batch, outcome));
  EXPECT_TRUE(outcome);
  EXPECT_TRUE(all_come());
}

TEST_P(UdpFaults, segmentation_is_not_retried_after_the_device_rejected_it) {
  for (const int error : {EIO, EINVAL, EMSGSIZE}) {
    got.clear();
    wanted.clear();
    server = bind();
    client = bind();
    collect();
    DatagramBatch batch(100, 200);
    Faults faults;
    faults.fail(Call::sendmsg, 1, error);
    fill(batch, 20);
    EXPECT_TRUE(client.try_send(batch));
    EXPECT_TRUE(faults.hit());
    EXPECT_EQ(faults.count(Call::sendmsg), 1U);
    EXPECT_EQ(faults.count(Call::sendmmsg), 1U);
    EXPECT_TRUE(all_come());
    // EIO is remembered, because the device does not change; other errors are not, because the path
    // may.
    fill(batch, 20);
    EXPECT_TRUE(client.try_send(batch));
    EXPECT_EQ(faults.count(Call::sendmsg), error == EIO ? 1U : 2U);
    EXPECT_EQ(faults.count(Call::sendmmsg), error == EIO ? 2U : 1U);
    EXPECT_TRUE(all_come());
  }
}

TEST_P(UdpFaults, an_error_without_segmentation_is_reported_once) {
  DatagramBatch batch(100, 200);
  fill(batch, 20);
  Faults faults;
  // First with segmentation, then one by one: the second error counts.
  faults.fail(Call::sendmsg, 1, EINVAL);
  EXPECT_TRUE(client.try_send(batch));
  fill(batch, 20);
  faults.fail(Call::sendmsg, faults.count(Call::sendmsg) + 1, EPERM);
  EXPECT_EQ(client.try_send(batch).error(), system_error(EPERM));
  EXPECT_EQ(batch.size(), 20U);
}

/// For 64 datagrams of 200 bytes to one destination: the figures of docs/datagrams.md.
TEST_P(UdpFaults, a_batch_makes_the_documented_number_of_system_calls) {
  for (const bool gro : {false, true}) {
    server = bind({.gro = gro});
    collect(64, gro ? DatagramBatch::bytes_each_max : 2048);
    for (const bool cut : {false, true}) {
      got.clear();
      wanted.clear();
      client = bind();
      DatagramBatch batch(64, 200);
      if (!cut) {
        // The first refusal is remembered.
        fill(batch, 2);
        Faults refusing;
        refusing.fail(Call::sendmsg, 1, EIO);
        EXPECT_TRUE(client.try_send(batch));
        EXPECT_TRUE(all_come());
        got.clear();
        wanted.clear();
      }
      fill(batch, 64);
      const Faults counting;
      EXPECT_TRUE(client.try_send(batch));
      EXPECT_TRUE(all_come());
      EXPECT_EQ(counting.count(Call::sendmsg) + counting.count(Call::sendmmsg), 1U);
      EXPECT_EQ(counting.count(Call::sendmsg), cut ? 1U : 0U);
      EXPECT_EQ(counting.count(Call::recvmmsg), 1U);
    }
  }
}

}  // namespace
}  // namespace tambour::udp_test
