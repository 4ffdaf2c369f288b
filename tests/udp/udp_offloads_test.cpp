// UDP features of the kernel: segmentation and GRO, addresses, ECN, multicast.
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/udp/socket.h>

#include "support/on_every_backend.h"
#include "udp/datagrams.h"

namespace tambour::udp_offloads_test {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;

class UdpOffloads : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  UdpSocket bind(const Endpoint& at = Endpoint::loopback_v4(0), const UdpOptions& options = {}) {
    auto socket = UdpSocket::bind(loop(), at, options);
    if (!socket) throw std::system_error(socket.error());
    return std::move(*socket);
  }

  /// Receives until there are `count` datagrams.
  std::vector<std::string> receive(UdpSocket& socket, std::size_t count, std::size_t capacity = 16,
                                   std::size_t bytes_each = DatagramBatch::bytes_each_max) {
    std::vector<std::string> all;
    TaskScope scope(loop());
    scope.spawn([](UdpSocket& from, DatagramBatch batch, std::vector<std::string>& into) -> Task<> {
      while (const auto got = co_await from.receive(batch)) {
        std::size_t seen = 0;
        for (const Datagram datagram : batch) {
          into.emplace_back(datagram.text());
          ++seen;
        }
        EXPECT_EQ(seen, *got);
      }
    }(socket, DatagramBatch(capacity, bytes_each), all));
    EXPECT_TRUE(run_until([&] { return all.size() >= count; })) << all.size();
    run_iterations();
    return all;
  }

  /// Receives one datagram and calls `check` with it.
  void receive_one(UdpSocket& socket, const std::function<void(const Datagram&)>& check) {
    bool done = false;
    TaskScope scope(loop());
    scope.spawn([](UdpSocket& from, const std::function<void(const Datagram&)>& then,
                   bool& ended) -> Task<> {
      DatagramBatch batch(4);
      EXPECT_EQ(co_await from.receive(batch), 1U);
      if (!batch.empty()) then(batch.front());
      ended = true;
    }(socket, check, done));
    EXPECT_TRUE(run_until([&] { return done; }));
  }

  bool finishes(const std::function<Task<Result<>>()>& task) {
    bool done = false;
    spawn(loop(), [](Task<Result<>> inner, bool& ended) -> Task<> {
      const auto sent = co_await std::move(inner);
      EXPECT_TRUE(sent) << sent.error().message();
      ended = true;
    }(task(), done));
    return run_until([&] { return done; });
  }

  static Task<Result<>> send(UdpSocket& socket, DatagramBatch& batch) {
    co_return co_await socket.send(batch);
  }

  std::minstd_rand random_{1};
  std::string text_of(std::size_t size) {
    std::string text(size, '\0');
    for (char& byte : text) byte = char(random_());
    return text;
  }
};

TAMBOUR_ON_EVERY_BACKEND(UdpOffloads);

TEST_P(UdpOffloads, runs_of_one_size_arrive_unchanged) {
  const std::vector<std::size_t> sizes{200, 200, 200, 7,    300, 300, 0,   0, 1,
                                       1,   1,   2,   1200, 900, 900, 900, 64};
  for (const bool gro : {false, true}) {
    for (const Endpoint& at : {Endpoint::loopback_v4(0), Endpoint::loopback_v6(0)}) {
      UdpSocket server = bind(at, {.gro = gro});
      UdpSocket client = bind(at);
      const Endpoint to = server.local_endpoint().value();
      DatagramBatch batch(32, 2048);
      std::vector<std::string> sent;
      for (const std::size_t size : sizes) {
        sent.push_back(text_of(size));
        ASSERT_TRUE(batch.add(bytes_of(sent.back()), to));
      }
      EXPECT_EQ(batch.size(), sent.size());
      EXPECT_TRUE(finishes([&] { return send(client, batch); }));
      EXPECT_EQ(receive(server, sent.size()), sent);
    }
  }
}

TEST_P(UdpOffloads, a_run_is_as_long_as_the_kernel_accepts) {
  for (const std::size_t size : {1U, 200U, 1472U, 1500U, 9000U, 30'000U}) {
    UdpSocket server =
        bind(Endpoint::loopback_v4(0), {.receive_buffer_bytes = 8'000'000, .gro = true});
    UdpSocket client = bind();
    const Endpoint to = server.local_endpoint().value();
    DatagramBatch batch(150, 30'000);
    std::vector<std::string> sent;
    const std::size_t count = size > 2000 ? 9 : 150;
    for (std::size_t i = 0; i < count; ++i) {
      sent.push_back(text_of(size));
      ASSERT_TRUE(batch.add(bytes_of(sent.back()), to));
    }
    TaskScope scope(loop());
    scope.spawn([](UdpSocket& socket, DatagramBatch& all) -> Task<> {
      EXPECT_TRUE(co_await socket.send(all));
    }(client, batch));
    EXPECT_EQ(receive(server, sent.size()), sent) << size;
  }
}

TEST_P(UdpOffloads, a_received_batch_can_be_sent_back_as_a_batch) {
  UdpSocket server = bind(Endpoint::loopback_v4(0), {.gro = true, .pktinfo = true});
  UdpSocket client = bind();
  ASSERT_TRUE(server.serve(
      {.on_datagrams = [](UdpSocket& socket,
                          DatagramBatch& batch) { EXPECT_TRUE(socket.try_send(batch)); }},
      4, DatagramBatch::bytes_each_max));
  DatagramBatch batch;
  std::vector<std::string> sent;
  for (int i = 0; i < 50; ++i) {
    sent.push_back(text_of(i == 49 ? 10 : 500));
    ASSERT_TRUE(batch.add(bytes_of(sent.back()), server.local_endpoint().value()));
  }
  EXPECT_TRUE(finishes([&] { return send(client, batch); }));
  EXPECT_EQ(receive(client, sent.size()), sent);
}

TEST_P(UdpOffloads, send_segments_splits_a_long_buffer) {
  UdpSocket server = bind(Endpoint::loopback_v4(0), {.receive_buffer_bytes = 4'000'000});
  UdpSocket client = bind();
  const std::string text = text_of(150'001);
  TaskScope scope(loop());
  scope.spawn([](UdpSocket& socket, Endpoint to, const std::string& all) -> Task<> {
    EXPECT_TRUE(co_await socket.send_segments(bytes_of(all), 1000, to));
    EXPECT_TRUE(co_await socket.send_segments(bytes_of("short"), 1000, to));
    EXPECT_TRUE(co_await socket.send_segments({}, 1000, to));
    EXPECT_EQ((co_await socket.send_segments(bytes_of(all), 0, to)).error(), system_error(EINVAL));
    EXPECT_EQ((co_await socket.send_segments(bytes_of(all), 70'000, to)).error(),
              system_error(EMSGSIZE));
  }(client, server.local_endpoint().value(), text));
  const auto got = receive(server, 152);
  ASSERT_EQ(got.size(), 152U);
  std::string together;
  for (std::size_t i = 0; i < 151; ++i) together += got[i];
  EXPECT_TRUE(together == text);
  EXPECT_EQ(got[149].size(), 1000U);
  EXPECT_EQ(got[150].size(), 1U);
  EXPECT_EQ(got[151], "short");
}

TEST_P(UdpOffloads, a_socket_without_segmentation_sends_datagrams_one_by_one) {
  UdpSocket server = bind();
  UdpSocket client = bind();
  // With checksums disabled, the kernel refuses segmentation with EINVAL.
  ASSERT_TRUE(client.set_option(SOL_SOCKET, SO_NO_CHECK, 1));
  const Endpoint to = server.local_endpoint().value();
  DatagramBatch batch;
  std::vector<std::string> sent;
  for (int i = 0; i < 40; ++i) {
    sent.push_back(text_of(300));
    ASSERT_TRUE(batch.add(bytes_of(sent.back()), to));
  }
  EXPECT_TRUE(finishes([&] { return send(client, batch); }));
  const std::string text = text_of(900);
  EXPECT_TRUE(finishes([&]() -> Task<Result<>> {
    return [](UdpSocket& socket, const std::string& all, Endpoint at) -> Task<Result<>> {
      co_return co_await socket.send_segments(bytes_of(all), 300, at);
    }(client, text, to);
  }));
  for (std::size_t i = 0; i < 3; ++i) sent.push_back(text.substr(i * 300, 300));
  EXPECT_EQ(receive(server, sent.size(), 16, 2048), sent);
}

TEST_P(UdpOffloads, gro_requires_large_batches) {
  UdpSocket socket = bind(Endpoint::loopback_v4(0), {.gro = true});
  const Error error = system_error(EINVAL);
  EXPECT_EQ(socket.serve({}).error(), error);
  bool done = false;
  spawn(loop(), [](UdpSocket& from, Error expected, bool& ended) -> Task<> {
    DatagramBatch batch;
    EXPECT_EQ((co_await from.receive(batch)).error(), expected);
    ended = true;
  }(socket, error, done));
  EXPECT_TRUE(done);
  // An adopted descriptor, on which other code has set the option, requires large batches too.
  UdpSocket adopted(loop(), socket.release());
  EXPECT_EQ(adopted.serve({}).error(), error);
}

TEST_P(UdpOffloads, reports_the_destination_address_and_answers_from_it) {
  const unsigned lo = ::if_nametoindex("lo");
  UdpSocket client = bind(Endpoint::any_v4(0));
  UdpSocket server = bind(Endpoint::any_v4(0), {.pktinfo = true});
  const std::uint16_t port = server.local_endpoint()->port();
  const Endpoint at = Endpoint::parse("127.0.0.77", port).value();
  const Endpoint from = Endpoint::parse("127.0.0.99", 0).value();
  EXPECT_TRUE(client.try_send_to(bytes_of("x"), at, {.from = from, .interface = lo}));
  DatagramBatch answers;
  receive_one(server, [&](const Datagram& datagram) {
    EXPECT_EQ(datagram.to(), at.with_port(0));
    EXPECT_EQ(datagram.interface(), lo);
    EXPECT_EQ(datagram.peer().address(), "127.0.0.99");
    EXPECT_TRUE(answers.add_reply(datagram, bytes_of("answer")));
  });
  EXPECT_TRUE(server.try_send(answers));
  receive_one(client, [&](const Datagram& datagram) {
    EXPECT_EQ(datagram.peer(), at);
    EXPECT_EQ(datagram.to(), std::nullopt);
    EXPECT_EQ(datagram.interface(), 0U);
  });
  // Not an address of this machine, or one of the other IP version.
  for (const char* wrong : {"192.0.2.77", "::1"}) {
    const Endpoint source = Endpoint::parse(wrong, 0).value();
    EXPECT_FALSE(client.try_send_to(bytes_of("x"), at, {.from = source})) << wrong;
  }
}

TEST_P(UdpOffloads, a_dual_stack_socket_reports_mapped_ipv6_addresses) {
  UdpSocket server = bind(Endpoint::any_v6(0), {.ecn = true, .pktinfo = true});
  const std::uint16_t port = server.local_endpoint()->port();
  for (const char* ip : {"127.0.0.77", "::1"}) {
    const Endpoint at = Endpoint::parse(ip, port).value();
    UdpSocket client = bind(at.with_port(0), {.ecn = true});
    EXPECT_TRUE(client.try_send_to(bytes_of("x"), at, {.ecn = Ecn::ect1}));
    DatagramBatch answers;
    std::optional<Endpoint> endpoint;
    receive_one(server, [&](const Datagram& datagram) {
      const std::string shown = at.family() == AF_INET ? "::ffff:127.0.0.77" : "::1";
      EXPECT_EQ(datagram.to()->address(), shown);
      EXPECT_EQ(datagram.peer().address(), shown);
      EXPECT_EQ(datagram.ecn(), Ecn::ect1);
      EXPECT_TRUE(answers.add_reply(datagram, bytes_of("y")));
      endpoint = datagram.to();
    });
    EXPECT_TRUE(server.try_send(answers));
    receive_one(client, [&](const Datagram& datagram) {
      EXPECT_EQ(datagram.peer(), at);
      EXPECT_EQ(datagram.ecn(), Ecn::none);
    });
    const DatagramOptions options{.ecn = Ecn::ect0, .from = endpoint};
    EXPECT_TRUE(server.try_send_to(bytes_of("z"), client.local_endpoint().value(), options));
    receive_one(client, [&](const Datagram& datagram) {
      EXPECT_EQ(datagram.peer(), at);
      EXPECT_EQ(datagram.ecn(), Ecn::ect0);
    });
  }
}

TEST_P(UdpOffloads, ecn_is_sent_and_received) {
  for (const Endpoint& at : {Endpoint::loopback_v4(0), Endpoint::loopback_v6(0)}) {
    UdpSocket server = bind(at, {.ecn = true});
    UdpSocket client = bind(at, {.ecn = true});
    const Endpoint to = server.local_endpoint().value();
    for (const Ecn ecn : {Ecn::none, Ecn::ect1, Ecn::ect0, Ecn::ce}) {
      EXPECT_TRUE(client.try_send_to(bytes_of("x"), to, {.ecn = ecn}));
      DatagramBatch batch(1);
      bool back = false;
      TaskScope scope(loop());
      scope.spawn([](UdpSocket& socket, DatagramBatch& into, Ecn expected, bool& ended) -> Task<> {
        EXPECT_TRUE(co_await socket.receive(into));
        EXPECT_EQ(into.front().ecn(), expected);
        EXPECT_TRUE(co_await socket.send(into));
        ended = true;
      }(server, batch, ecn, back));
      EXPECT_TRUE(run_until([&] { return back; }));
      // The congestion mark of the received datagram is not sent back.
      receive_one(client, [](const Datagram& datagram) { EXPECT_EQ(datagram.ecn(), Ecn::none); });
    }
    ASSERT_TRUE(client.connect(to));
    EXPECT_TRUE(client.try_send(bytes_of("x"), {.ecn = Ecn::ect0}));
    receive_one(server, [](const Datagram& datagram) { EXPECT_EQ(datagram.ecn(), Ecn::ect0); });
    // Two datagrams with different options are not merged into a run.
    DatagramBatch batch;
    EXPECT_TRUE(batch.add(bytes_of("a"), {.ecn = Ecn::ect0}));
    EXPECT_TRUE(batch.add(bytes_of("b"), {.ecn = Ecn::ect1}));
    EXPECT_TRUE(client.try_send(batch));
    std::string seen;
    for (int i = 0; i < 2 && seen.size() < 4; ++i) {
      bool done = false;
      TaskScope scope(loop());
      scope.spawn([](UdpSocket& socket, std::string& into, bool& ended) -> Task<> {
        DatagramBatch got;
        EXPECT_TRUE(co_await socket.receive(got));
        for (const Datagram datagram : got)
          (into += datagram.text()) += char('0' + int(datagram.ecn()));
        ended = true;
      }(server, seen, done));
      EXPECT_TRUE(run_until([&] { return done; }));
    }
    EXPECT_EQ(seen, "a2b1");
  }
}

TEST_P(UdpOffloads, groups_are_joined_and_left) {
  const unsigned lo = ::if_nametoindex("lo");
  for (const char* ip : {"239.255.77.1", "ff11::7701"}) {
    const Endpoint group_address = Endpoint::parse(ip, 0).value();
    const bool v4 = group_address.family() == AF_INET;
    UdpSocket member = bind(v4 ? Endpoint::any_v4(0) : Endpoint::any_v6(0), {.pktinfo = true});
    UdpSocket sender = bind(v4 ? Endpoint::loopback_v4(0) : Endpoint::any_v6(0));
    const Endpoint group = group_address.with_port(member.local_endpoint()->port());
    EXPECT_EQ(member.join(v4 ? Endpoint::loopback_v4(0) : Endpoint::loopback_v6(0), lo).error(),
              system_error(EINVAL));
    ASSERT_TRUE(member.join(group, lo)) << ip;
    EXPECT_EQ(member.join(group, lo).error(), system_error(EADDRINUSE));
    ASSERT_TRUE(sender.set_multicast_interface(lo));
    ASSERT_TRUE(sender.set_multicast_hops(0));
    ASSERT_TRUE(sender.set_multicast_loop(true));
    EXPECT_EQ(sender.set_multicast_hops(-1).error(), system_error(EINVAL));
    EXPECT_EQ(sender.set_multicast_hops(256).error(), system_error(EINVAL));
    if (const auto sent = sender.try_send_to(bytes_of("x"), group); !sent) {
      EXPECT_EQ(sent.error(), system_error(ENETUNREACH));
      EXPECT_FALSE(v4);
      EXPECT_TRUE(member.leave(group, lo));
      continue;  // lo has no multicast route on this machine.
    }
    DatagramBatch answers;
    receive_one(member, [&](const Datagram& datagram) {
      EXPECT_EQ(datagram.to(), group.with_port(0));
      EXPECT_EQ(datagram.interface(), lo);
      EXPECT_TRUE(answers.add_reply(datagram, bytes_of("y")));
    });
    EXPECT_TRUE(member.try_send(answers));
    receive_one(sender, [](const Datagram& datagram) { EXPECT_EQ(datagram.text(), "y"); });
    ASSERT_TRUE(member.leave(group, lo));
    EXPECT_EQ(member.leave(group, lo).error(), system_error(EADDRNOTAVAIL));
  }
}

TEST_P(UdpOffloads, a_group_may_be_limited_to_one_source) {
  const unsigned lo = ::if_nametoindex("lo");
  UdpSocket member = bind(Endpoint::any_v4(0));
  const Endpoint group = Endpoint::parse("232.77.1.1", member.local_endpoint()->port()).value();
  const Endpoint wanted = Endpoint::parse("127.0.0.5", 0).value();
  const Endpoint other = Endpoint::parse("127.0.0.6", 0).value();
  ASSERT_TRUE(member.set_option(IPPROTO_IP, IP_MULTICAST_ALL, 0));
  ASSERT_TRUE(member.join_source(group, wanted, lo));
  UdpSocket non_members = bind(other);
  UdpSocket friends = bind(wanted);
  for (UdpSocket* socket : {&non_members, &friends}) {
    ASSERT_TRUE(socket->set_multicast_interface(lo));
    EXPECT_TRUE(socket->try_send_to(bytes_of(socket == &friends ? "friend" : "other"), group));
  }
  receive_one(member, [](const Datagram& datagram) { EXPECT_EQ(datagram.text(), "friend"); });
  EXPECT_TRUE(member.leave_source(group, wanted, lo));
  EXPECT_EQ(member.join_source(group, Endpoint::unix_name("@x").value(), lo).error(),
            system_error(EAFNOSUPPORT));
}

}  // namespace
}  // namespace tambour::udp_offloads_test
