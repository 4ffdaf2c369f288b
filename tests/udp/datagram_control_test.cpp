// Ancillary data of received datagrams: truncated by the kernel, and more than Tambour enables.
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/udp/socket.h>

#include "support/on_every_backend.h"
#include "udp/datagrams.h"
#include "udp/received_control.h"

namespace tambour::datagram_control_test {
namespace {

using test::bytes_of;

/// A received message whose buffer ends where the kernel stopped writing, so that AddressSanitizer
/// detects every read beyond it.
class Control {
 public:
  /// `present`: how many bytes of the value arrived. The length of the control message is reduced
  /// to match, as put_cmsg() in the kernel does.
  template <class Value>
  Control(int level, int type, const Value& value, std::size_t present = sizeof(Value)) {
    const std::size_t size = CMSG_LEN(present);
    bytes_ = std::make_unique<std::byte[]>(size);
    cmsghdr header{};
    header.cmsg_len = size;
    header.cmsg_level = level;
    header.cmsg_type = type;
    std::memcpy(bytes_.get(), &header, sizeof(header));
    std::memcpy(bytes_.get() + CMSG_LEN(0), &value, present);
    message_.msg_control = bytes_.get();
    message_.msg_controllen = size;
    if (present < sizeof(Value)) message_.msg_flags = MSG_CTRUNC;
  }

  [[nodiscard]] detail::udp::ReceivedControl read(bool merges = false) const {
    return detail::udp::read_control(message_, merges);
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  msghdr message_{};
};

template <class Value>
Value filled_with_ones() {
  Value value;
  std::memset(&value, 0xff, sizeof(value));
  return value;
}

TEST(ReceivedControl, whole_values_are_read) {
  EXPECT_EQ(Control(IPPROTO_UDP, UDP_GRO, int{1000}).read().segment, 1000);
  EXPECT_EQ(Control(IPPROTO_IP, IP_TOS, std::uint8_t{3}).read().ecn, Ecn::ce);
  EXPECT_EQ(Control(IPPROTO_IPV6, IPV6_TCLASS, int{2}).read().ecn, Ecn::ect0);
  EXPECT_TRUE(Control(IPPROTO_IP, IP_PKTINFO, in_pktinfo{}).read().has_to);
  EXPECT_TRUE(Control(IPPROTO_IPV6, IPV6_PKTINFO, in6_pktinfo{}).read().has_to);
  EXPECT_FALSE(Control(IPPROTO_UDP, UDP_GRO, int{1000}).read().truncated);
}

TEST(ReceivedControl, a_value_that_was_cut_off_counts_as_missing) {
  const auto number = filled_with_ones<int>();
  const auto four = filled_with_ones<in_pktinfo>();
  const auto six = filled_with_ones<in6_pktinfo>();
  for (std::size_t present = 0; present < sizeof(number); ++present) {
    EXPECT_EQ(Control(IPPROTO_UDP, UDP_GRO, number, present).read().segment, 0) << present;
    EXPECT_EQ(Control(IPPROTO_IPV6, IPV6_TCLASS, number, present).read().ecn, Ecn::none) << present;
  }
  EXPECT_EQ(Control(IPPROTO_IP, IP_TOS, std::uint8_t{0xff}, 0).read().ecn, Ecn::none);
  for (std::size_t present = 0; present < sizeof(four); ++present) {
    const auto read = Control(IPPROTO_IP, IP_PKTINFO, four, present).read();
    EXPECT_FALSE(read.has_to) << present;
    EXPECT_EQ(read.interface, 0U) << present;
  }
  for (std::size_t present = 0; present < sizeof(six); ++present) {
    const auto read = Control(IPPROTO_IPV6, IPV6_PKTINFO, six, present).read();
    EXPECT_FALSE(read.has_to) << present;
    EXPECT_EQ(read.interface, 0U) << present;
  }
  EXPECT_TRUE(Control(IPPROTO_UDP, UDP_GRO, number, 2).read().truncated);
}

TEST(ReceivedControl, without_the_size_of_merged_datagrams_their_boundaries_are_lost) {
  const auto number = filled_with_ones<int>();
  EXPECT_TRUE(Control(IPPROTO_UDP, UDP_GRO, number, 2).read(true).boundaries_lost);
  EXPECT_TRUE(Control(IPPROTO_IP, IP_TTL, number, 2).read(true).boundaries_lost);
  EXPECT_FALSE(Control(IPPROTO_UDP, UDP_GRO, int{1000}).read(true).boundaries_lost);
  EXPECT_FALSE(Control(IPPROTO_IP, IP_TTL, int{64}).read(true).boundaries_lost);
  EXPECT_FALSE(Control(IPPROTO_IP, IP_TTL, number, 2).read(false).boundaries_lost);
}

class DatagramControlOnLoopback : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  UdpSocket bind(const Endpoint& at, const UdpOptions& options = {}) {
    auto socket = UdpSocket::bind(loop(), at, options);
    if (!socket) throw std::system_error(socket.error());
    return std::move(*socket);
  }

  struct Seen {
    std::string text;
    bool truncated;
    bool control_truncated;
    Ecn ecn;
    bool has_to;
  };

  /// Receives `bytes` bytes in total.
  std::vector<Seen> receive(UdpSocket& socket, std::size_t bytes) {
    std::vector<Seen> seen;
    std::size_t received = 0;
    TaskScope scope(loop());
    const auto receive_all = [](UdpSocket& from, std::vector<Seen>& into,
                                std::size_t& count) -> Task<> {
      DatagramBatch batch(16, DatagramBatch::bytes_each_max);
      while (co_await from.receive(batch)) {
        for (const Datagram datagram : batch) {
          count += datagram.bytes().size();
          into.push_back({.text = std::string(datagram.text()),
                          .truncated = datagram.is_truncated(),
                          .control_truncated = datagram.control_truncated(),
                          .ecn = datagram.ecn(),
                          .has_to = datagram.to().has_value()});
        }
      }
    };
    scope.spawn(receive_all(socket, seen, received));
    EXPECT_TRUE(run_until([&] { return received >= bytes; })) << received;
    return seen;
  }

  static void enable(UdpSocket& socket, int level, int option, int value = 1) {
    EXPECT_TRUE(socket.set_option(level, option, value)) << level << ' ' << option;
  }

  static void enable_everything_of_fixed_size(UdpSocket& socket, bool is_v6) {
    enable(socket, SOL_SOCKET, SO_TIMESTAMPNS);
    enable(socket, SOL_SOCKET, SO_TIMESTAMPING,
           SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
    enable(socket, SOL_SOCKET, SO_RXQ_OVFL);
    enable(socket, IPPROTO_IP, IP_RECVTTL);
    enable(socket, IPPROTO_IP, IP_RECVOPTS);
    enable(socket, IPPROTO_IP, IP_RETOPTS);
    enable(socket, IPPROTO_IP, IP_RECVORIGDSTADDR);
    if (!is_v6) return;
    enable(socket, IPPROTO_IPV6, IPV6_RECVHOPLIMIT);
    enable(socket, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR);
  }

  /// Sends ten datagrams in one message.
  void send_ten(UdpSocket& client, const Endpoint& to) {
    const std::string text(10'000, 'x');
    DatagramBatch batch(16, 2048);
    for (int i = 0; i < 10; ++i)
      ASSERT_TRUE(batch.add(bytes_of(text).subspan(0, 1000), to, {.ecn = Ecn::ect0}));
    ASSERT_TRUE(client.try_send(batch));
  }
};

TAMBOUR_ON_EVERY_BACKEND(DatagramControlOnLoopback);

TEST_P(DatagramControlOnLoopback, options_enabled_by_the_program_hide_no_control_message) {
  for (const Endpoint& at :
       {Endpoint::loopback_v4(0), Endpoint::loopback_v6(0), Endpoint::any_v6(0)}) {
    UdpSocket server = bind(at, {.gro = true, .ecn = true, .pktinfo = true});
    const bool is_v6 = at.family() == AF_INET6;
    enable_everything_of_fixed_size(server, is_v6);
    const Endpoint endpoint = server.local_endpoint().value();
    const Endpoint to =
        at == Endpoint::any_v6(0) ? Endpoint::loopback_v4(endpoint.port()) : endpoint;
    UdpSocket client = bind(to.with_port(0));
    send_ten(client, to);
    const auto seen = receive(server, 10'000);
    EXPECT_EQ(seen.size(), 10U);
    for (const Seen& entry : seen) {
      EXPECT_EQ(entry.text.size(), 1000U);
      EXPECT_FALSE(entry.truncated);
      EXPECT_FALSE(entry.control_truncated);
      EXPECT_EQ(entry.ecn, Ecn::ect0);
      EXPECT_TRUE(entry.has_to);
    }
  }
}

TEST_P(DatagramControlOnLoopback, truncated_control_messages_are_reported) {
  UdpSocket server = bind(Endpoint::loopback_v6(0), {.ecn = true, .pktinfo = true});
  UdpSocket client = bind(Endpoint::loopback_v6(0));
  enable(server, IPPROTO_IPV6, IPV6_RECVHOPOPTS);
  // RFC 8200, section 4.2: a header of 768 bytes with unknown options, which receivers skip.
  std::vector<std::uint8_t> options(768, 0);
  options[1] = 768 / 8 - 1;
  for (std::size_t at = 2; at < options.size();) {
    const std::size_t data = std::min<std::size_t>(options.size() - at - 2, 250);
    options[at] = 0x1e;  // RFC 4727: an experimental option type.
    options[at + 1] = static_cast<std::uint8_t>(data);
    at += 2 + data;
  }
  if (::setsockopt(client.fd(), IPPROTO_IPV6, IPV6_HOPOPTS, options.data(),
                   static_cast<socklen_t>(options.size())) != 0)
    GTEST_SKIP() << "IPV6_HOPOPTS: " << std::strerror(errno);
  ASSERT_TRUE(client.try_send_to(bytes_of("text"), server.local_endpoint().value()));
  const auto seen = receive(server, 4);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].text, "text");
  EXPECT_TRUE(seen[0].control_truncated);
  EXPECT_FALSE(seen[0].truncated);
}

}  // namespace
}  // namespace tambour::datagram_control_test
