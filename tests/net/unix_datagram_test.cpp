// Unix datagram sockets: on every backend, and in a simulation where that applies.
#include <tambour/net/unix_datagram.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/rough_host.h"
#include "support/temporary_folder.h"

namespace tambour::unix_datagram_test {
namespace {

using namespace std::chrono_literals;

Error error_of(const auto& result) { return result ? Error() : result.error(); }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string_view text_of(std::span<const std::byte> bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

Endpoint name_of(const std::string& text) { return Endpoint::unix_name(text).value(); }

/// Sockets with the names `first` and `second`, and one without a name.
Task<> exchange(EventLoop& loop, std::string first, std::string second) {
  auto a = UnixDatagramSocket::bind(loop, name_of(first));
  auto b = UnixDatagramSocket::bind(loop, name_of(second));
  auto unnamed = UnixDatagramSocket::open(loop);
  EXPECT_TRUE(a) << error_of(a).message();
  EXPECT_TRUE(b && unnamed);
  if (!a || !b || !unnamed) co_return;
  EXPECT_EQ(a->local_endpoint(), name_of(first));
  EXPECT_EQ(error_of(UnixDatagramSocket::bind(loop, name_of(first))), system_error(EADDRINUSE));
  std::array<std::byte, 100> bytes{};
  EXPECT_TRUE(co_await a->send_to(bytes_of("hello"), name_of(second)));
  EXPECT_TRUE(co_await unnamed->send_to({}, name_of(second)));
  EXPECT_TRUE(co_await a->send_to(bytes_of(std::string(200, 'x')), name_of(second)));
  const auto hello = co_await b->receive(bytes);
  EXPECT_TRUE(hello);
  if (!hello) co_return;
  EXPECT_EQ(text_of(bytes, hello->size), "hello");
  EXPECT_EQ(hello->from, name_of(first));
  EXPECT_FALSE(hello->is_truncated);
  EXPECT_FALSE(hello->credentials);
  const auto empty = co_await b->receive(bytes);
  EXPECT_TRUE(empty);
  if (empty) {
    EXPECT_EQ(empty->size, 0U);
  }
  if (empty) {
    EXPECT_EQ(empty->from.address(), "");
  }
  const auto cut = co_await b->receive(bytes);
  EXPECT_TRUE(cut);
  if (cut) {
    EXPECT_EQ(cut->size, 100U);
  }
  if (cut) {
    EXPECT_TRUE(cut->is_truncated);
  }
  // Connected: a reply without a name.
  EXPECT_TRUE(b->connect(hello->from));
  EXPECT_EQ(b->peer_endpoint(), name_of(first));
  EXPECT_TRUE(co_await b->send(bytes_of("reply")));
  const auto tried = b->try_send(bytes_of("again"));
  if (!tried) {  // Injected in a simulation.
    EXPECT_EQ(tried.error(), system_error(EAGAIN));
    EXPECT_TRUE(co_await b->send(bytes_of("again")));
  }
  for (const std::string_view expected : {"reply", "again"}) {
    const auto reply = co_await a->receive(bytes);
    EXPECT_TRUE(reply);
    if (reply) {
      EXPECT_EQ(text_of(bytes, reply->size), expected);
    }
  }
  EXPECT_EQ(error_of(co_await unnamed->send(bytes_of("x"))), system_error(ENOTCONN));
  // `b` accepts datagrams of its peer only.
  EXPECT_EQ(error_of(co_await unnamed->send_to(bytes_of("x"), name_of(second))),
            system_error(EPERM));
  EXPECT_EQ(error_of(co_await a->send_to(bytes_of("x"), Endpoint::loopback_v4(1))),
            system_error(EAFNOSUPPORT));
  EXPECT_EQ(error_of(a->connect(Endpoint::loopback_v4(1))), system_error(EAFNOSUPPORT));
  a->close();
  EXPECT_EQ(error_of(co_await b->send(bytes_of("x"))), system_error(ECONNREFUSED));
  EXPECT_EQ(error_of(a->try_send(bytes_of("x"))), system_error(EBADF));
  EXPECT_EQ(error_of(a->local_endpoint()), system_error(EBADF));
}

Task<> exchange_batches(EventLoop& loop, std::string name) {
  auto to = UnixDatagramSocket::bind(loop, name_of(name));
  auto from = UnixDatagramSocket::open(loop);
  EXPECT_TRUE(to && from);
  if (!to || !from) co_return;
  UnixDatagramBatch sent(40, 100);
  UnixDatagramBatch received(16, 60);
  for (int i = 0; i < 40; ++i)
    EXPECT_TRUE(sent.add(std::string(std::size_t(i) * 2, 'x'), name_of(name)));
  EXPECT_EQ(error_of(sent.add("x")), system_error(ENOBUFS));
  std::size_t count = 0;
  auto receive_all = [](UnixDatagramSocket& socket, UnixDatagramBatch& batch,
                        std::size_t& arrived) -> Task<> {
    while (arrived < 40) {
      const auto got = co_await socket.receive(batch);
      EXPECT_TRUE(got);
      if (!got) co_return;
      EXPECT_EQ(batch.size(), *got);
      for (const UnixDatagram& datagram : batch) {
        EXPECT_EQ(datagram.bytes.size(), std::min<std::size_t>(arrived * 2, 60));
        EXPECT_EQ(datagram.is_truncated, arrived > 30);
        ++arrived;
      }
    }
  };
  auto send_all = [](UnixDatagramSocket& socket, UnixDatagramBatch& batch) -> Task<> {
    EXPECT_TRUE(co_await socket.send(batch));
    EXPECT_TRUE(batch.empty());
  };
  // More than the kernel queues for a receiver.
  co_await when_all(send_all(*from, sent), receive_all(*to, received, count));
  EXPECT_EQ(count, 40U);
  // The second one fails, and the first one has been sent.
  EXPECT_TRUE(sent.add("good", name_of(name)));
  EXPECT_TRUE(sent.add("bad", name_of(name + "-none")));
  EXPECT_TRUE(sent.add("last", name_of(name)));
  EXPECT_EQ(error_of(sent.add(std::string(101, 'x'))), system_error(EMSGSIZE));
  EXPECT_EQ(error_of(sent.add("x", Endpoint::loopback_v4(1))), system_error(EAFNOSUPPORT));
  const auto failed = co_await from->send(sent);
  EXPECT_FALSE(failed);
  EXPECT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].text(), "bad");
  sent.drop_front();
  EXPECT_TRUE(co_await from->send(sent));
  std::string texts;
  while (texts.size() < 8) {
    const auto got = co_await to->receive(received);
    EXPECT_TRUE(got);
    if (!got) break;
    for (const UnixDatagram& datagram : received) texts += datagram.text();
  }
  EXPECT_EQ(texts, "goodlast");
}

/// Sends more datagrams than the receiver's queue holds.
Task<> overfill(UnixDatagramSocket& from, UnixDatagramSocket& to, const Endpoint* name) {
  constexpr int count = 100;
  auto send_all = [](UnixDatagramSocket& socket, const Endpoint* at) -> Task<> {
    for (int i = 0; i < count; ++i) {
      const std::string text = std::to_string(i);
      if (at == nullptr) {
        EXPECT_TRUE(co_await socket.send(bytes_of(text)));
      } else {
        EXPECT_TRUE(co_await socket.send_to(bytes_of(text), *at));
      }
    }
  };
  auto receive_all = [](UnixDatagramSocket& socket) -> Task<> {
    co_await sleep_for(5ms);
    std::array<std::byte, 10> bytes{};
    for (int i = 0; i < count; ++i) {
      const auto got = co_await socket.receive(bytes);
      EXPECT_TRUE(got);
      if (got) {
        EXPECT_EQ(text_of(bytes, got->size), std::to_string(i));
      }
    }
  };
  co_await when_all(send_all(from, name), receive_all(to));
}

class UnixDatagrams : public test::OnEveryBackend {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder.path() + "/" + name;
  }
  [[nodiscard]] std::string abstract(const std::string& name) const {
    return "@" + folder.path() + name;
  }
  test::TemporaryFolder folder;
};

TAMBOUR_ON_EVERY_BACKEND(UnixDatagrams);

TEST_P(UnixDatagrams, are_exchanged_over_paths_and_abstract_names) {
  run(exchange(loop(), path("a"), path("b")));
  EXPECT_EQ(::access(path("a").c_str(), F_OK), 0);
  run(exchange(loop(), abstract("a"), abstract("b")));
  run(exchange(loop(), abstract("a"), abstract("b")));
}

TEST_P(UnixDatagrams, are_exchanged_in_batches) {
  run(exchange_batches(loop(), abstract("batch")));
}

TEST_P(UnixDatagrams, wait_for_room_in_the_queue_of_a_receiver) {
  auto pair = UnixDatagramSocket::pair(loop());
  ASSERT_TRUE(pair);
  run(overfill(pair->first, pair->second, nullptr));
  const Endpoint name = name_of(abstract("full"));
  auto to = UnixDatagramSocket::bind(loop(), name);
  auto from = UnixDatagramSocket::open(loop());
  ASSERT_TRUE(to && from);
  run(overfill(*from, *to, &name));
}

TEST_P(UnixDatagrams, do_not_spin_while_the_queue_of_a_receiver_is_full) {
  const Endpoint name = name_of(abstract("full"));
  auto to = UnixDatagramSocket::bind(loop(), name);
  auto from = UnixDatagramSocket::open(loop());
  ASSERT_TRUE(to && from);
  while (from->try_send_to(bytes_of("x"), name)) {
  }
  EXPECT_EQ(error_of(from->try_send_to(bytes_of("x"), name)), system_error(EAGAIN));
  TaskScope scope(loop());
  Error error;
  scope.spawn([](UnixDatagramSocket& socket, Endpoint at, Error& outcome) -> Task<> {
    outcome = error_of(co_await socket.send_to(bytes_of("x"), at));
  }(*from, name, error));
  EXPECT_TRUE(sleeps_through(300ms));
  scope.request_stop();
  EXPECT_TRUE(run_until([&] { return error == system_error(ECANCELED); }));
}

TEST_P(UnixDatagrams, are_stopped_and_closed) {
  auto pair = UnixDatagramSocket::pair(loop());
  ASSERT_TRUE(pair);
  TaskScope scope(loop());
  int ended = 0;
  scope.spawn([](UnixDatagramSocket& socket, int& count) -> Task<> {
    std::array<std::byte, 10> bytes{};
    EXPECT_EQ(error_of(co_await socket.receive(bytes)), system_error(ECANCELED));
    ++count;
  }(pair->first, ended));
  scope.spawn([](UnixDatagramSocket& socket, int& count) -> Task<> {
    UnixDatagramBatch batch(4, 10);
    EXPECT_EQ(error_of(co_await socket.receive(batch)), system_error(ECANCELED));
    EXPECT_TRUE(batch.empty());
    ++count;
  }(pair->second, ended));
  run_iterations();
  pair->first.close();
  run_iterations();
  EXPECT_EQ(ended, 1);
  scope.request_stop();
  EXPECT_TRUE(run_until([&] { return ended == 2; }));
}

TEST_P(UnixDatagrams, pass_descriptors_and_credentials) {
  UnixDatagramOptions options;
  options.credentials = true;
  auto pair = UnixDatagramSocket::pair(loop(), options);
  ASSERT_TRUE(pair);
  const std::size_t before = test::open_descriptors();
  run([](UnixDatagramSocket& from, UnixDatagramSocket& to) -> Task<> {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const UniqueFd first(pipe[0]);
    const UniqueFd second(pipe[1]);
    EXPECT_TRUE(co_await from.send(bytes_of("two"), pipe));
    EXPECT_TRUE(co_await from.send(bytes_of("one of two"), pipe));
    EXPECT_TRUE(co_await from.send(bytes_of("none of two"), pipe));
    std::array<std::byte, 20> bytes{};
    const auto two = co_await to.receive(bytes, 10);
    EXPECT_TRUE(two);
    if (!two) co_return;
    EXPECT_EQ(two->descriptors.size(), 2U);
    EXPECT_FALSE(two->are_descriptors_truncated);
    EXPECT_TRUE(two->credentials);
    if (two->credentials) {
      EXPECT_EQ(two->credentials->process, ::getpid());
    }
    if (two->descriptors.size() == 2) {
      EXPECT_EQ(::write(two->descriptors[1].get(), "x", 1), 1);
      char byte = 0;
      EXPECT_EQ(::read(first.get(), &byte, 1), 1);
    }
    const auto one = co_await to.receive(bytes, 1);
    EXPECT_TRUE(one);
    if (one) {
      EXPECT_EQ(one->descriptors.size(), 1U);
    }
    if (one) {
      EXPECT_TRUE(one->are_descriptors_truncated);
    }
    const auto none = co_await to.receive(bytes);
    EXPECT_TRUE(none);
    if (none) {
      EXPECT_TRUE(none->descriptors.empty());
    }
    if (none) {
      EXPECT_TRUE(none->are_descriptors_truncated);
    }
    const std::vector<int> many(254, pipe[0]);
    EXPECT_EQ(error_of(co_await from.send(bytes_of("x"), many)), system_error(EINVAL));
  }(pair->first, pair->second));
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_P(UnixDatagrams, longer_than_the_send_buffer_fail) {
  UnixDatagramOptions options;
  options.send_buffer_bytes = 8192;
  auto pair = UnixDatagramSocket::pair(loop(), options);
  ASSERT_TRUE(pair);
  run([](UnixDatagramSocket& from) -> Task<> {
    const std::string text(100'000, 'x');
    EXPECT_EQ(error_of(co_await from.send(bytes_of(text))), system_error(EMSGSIZE));
  }(pair->first));
}

TEST(SimulatedUnixDatagrams, behave_like_those_of_the_kernel) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    test::run_on_rough_host(seed, [](sim::Host&, EventLoop& loop) {
      spawn(loop, exchange(loop, "/tmp/a", "/tmp/b"));
      spawn(loop, exchange(loop, "@a", "@b"));
      spawn(loop, exchange_batches(loop, "@batch"));
    });
}

}  // namespace
}  // namespace tambour::unix_datagram_test
