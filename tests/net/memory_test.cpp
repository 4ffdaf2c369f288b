// How much memory a peer, or a program that keeps what it receives, makes buffers and connections
// hold with pieces of 1, 2, 100 and 1,000 bytes, and how much idle connections hold. Replaces
// operator new, to count.
#include <memory>

#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>
#include <tambour/net/connection.h>
#include <tambour/net/tcp.h>

#include "support/files.h"
#include "support/live_memory.h"
#include "support/peer.h"
#include "support/scale.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::memory_test {
namespace {

using test::live_bytes;

/// What the pool may keep: see the header of Buffer.
constexpr std::size_t pool_bytes_max = 2'500'000;

/// Holds what the pool has kept, so that all memory is counted.
std::vector<Buffer> empty_pool() {
  std::vector<Buffer> held;
  for (const std::size_t size : {100U, 4096U, 65536U, 262144U}) {
    for (int i = 0; i < 256 && (size < 65536 || i < 16); ++i)
      held.emplace_back(std::string(size, 'x'));
  }
  return held;
}
constexpr std::size_t total = std::size_t{1} << 20;

class PiecesOfBytes : public testing::TestWithParam<std::size_t> {
 protected:
  /// Expects that a buffer to which `add(buffer, text)` was applied holds at most `factor` times
  /// its size.
  template <class Add>
  void expect_memory(std::size_t factor, Add add) {
    const std::size_t before = live_bytes;
    Buffer all;
    const std::string text(GetParam(), 'x');
    while (all.size() < total) add(all, text);
    EXPECT_LE(all.memory_bytes(), factor * all.size());
    EXPECT_LE(live_bytes, before + factor * all.size() + pool_bytes_max);
  }
};

INSTANTIATE_TEST_SUITE_P(Every, PiecesOfBytes, testing::Values(1, 2, 100, 1000, 1025),
                         [](const auto& size) { return std::to_string(size.param); });

TEST_P(PiecesOfBytes, appended_as_text) {
  expect_memory(2, [](Buffer& all, const std::string& text) { all.append(text); });
}

TEST_P(PiecesOfBytes, appended_as_buffers) {
  expect_memory(10, [](Buffer& all, const std::string& text) { all.append(Buffer(text)); });
}

TEST_P(PiecesOfBytes, prepended_as_text) {
  expect_memory(10, [](Buffer& all, const std::string& text) { all.prepend(text); });
}

TEST_P(PiecesOfBytes, prepended_as_buffers) {
  expect_memory(10, [](Buffer& all, const std::string& text) { all.prepend(Buffer(text)); });
}

TEST_P(PiecesOfBytes, committed) {
  for (const std::size_t room : {0, 1, 4096, 65536, 262144}) {
    expect_memory(10, [room](Buffer& all, const std::string& text) {
      const auto memory = all.prepare(std::max(room, text.size()));
      text.copy(reinterpret_cast<char*>(memory.data()), text.size());
      all.commit(text.size());
    });
  }
}

TEST_P(PiecesOfBytes, taken_and_sliced_from_large_blocks) {
  Buffer large(std::string(total / 4, 'y'));
  expect_memory(10, [&](Buffer& all, const std::string& text) {
    if (large.size() < 2 * text.size()) large.append(std::string(total / 4, 'y'));
    all.append(large.slice(text.size(), text.size()));
    all.append(large.take(text.size()));
  });
}

TEST_P(PiecesOfBytes, appended_while_another_buffer_shares_the_last_block) {
  expect_memory(10, [](Buffer& all, const std::string& text) {
    const Buffer shared = all.slice(all.size() - std::min<std::size_t>(all.size(), 200), 200);
    const Buffer whole = all.size() < 5000 ? all.slice() : Buffer();
    all.append(text);
  });
}

TEST_P(PiecesOfBytes, between_pieces_of_other_sizes) {
  expect_memory(10, [](Buffer& all, const std::string& text) {
    all.append("ab");
    all.append(Buffer(std::string(1100, 'z')));
    all.append(Buffer(text));
    all.prepend(Buffer(text));
    all.append(Buffer(std::string(70'000, 'z')));
    all.append("c");
    all.consume(1000);
  });
}

TEST_P(PiecesOfBytes, what_remains_of_consumed_blocks) {
  std::vector<Buffer> kept;
  const std::size_t before = live_bytes;
  for (int i = 0; i < 500; ++i) {
    for (const std::size_t size : {300U, 4096U, 65536U, 200'000U}) {
      Buffer buffer(std::string(size, 'x'));
      buffer.append("tail");
      buffer.consume(buffer.size() - std::min(GetParam(), size));
      EXPECT_LE(buffer.memory_bytes(), 128 * buffer.size() + 512);
      kept.push_back(std::move(buffer));
    }
  }
  EXPECT_LE(live_bytes - before, 2000 * (64 * GetParam() + 600) + pool_bytes_max);
}

/// What a program keeps as one buffer for each message.
TEST_P(PiecesOfBytes, kept_as_buffers_of_their_own) {
  const std::string text(GetParam(), 'x');
  constexpr std::size_t count = 20'000;
  const std::vector<Buffer> held = empty_pool();
  const std::size_t allowed = count * (GetParam() + (GetParam() <= 128 ? 300 : 4400)) + 500'000;
  std::vector<Buffer> kept;
  kept.reserve(count);
  const std::size_t before = live_bytes;
  for (std::size_t i = 0; i < count; ++i) kept.emplace_back(text);
  EXPECT_LE(live_bytes - before, allowed) << "made of text";
  kept.clear();
  for (std::size_t i = 0; i < count; ++i) {
    Buffer read;
    const auto room = read.prepare(0);
    text.copy(reinterpret_cast<char*>(room.data()), text.size());
    read.commit(text.size());
    kept.push_back(std::move(read));
  }
  EXPECT_LE(live_bytes - before, allowed) << "read";
}

class ConnectionMemory : public test::OnEveryBackend {
 protected:
  Connection& connect(ConnectionCallbacks callbacks) {
    test::StreamEnds both = test::open_stream_ends(loop());
    peer = std::move(both.far);
    return Connection::start(std::move(both.near),
                             std::make_shared<const ConnectionCallbacks>(std::move(callbacks)));
  }
  Stream peer;
};

TAMBOUR_ON_EVERY_TRANSPORT(ConnectionMemory);

TEST_P(ConnectionMemory, unsent_bytes_hold_little_more_than_their_size) {
  const std::vector<Buffer> held = empty_pool();
  for (const std::size_t size : {1U, 2U, 3U, 100U, 1000U, 1025U}) {
    Connection& connection = connect({.high_water_bytes = 1 << 20});
    // The kernel's buffers are full then.
    while (connection.unsent() == 0) connection.send(std::string(1 << 16, 'x'));
    const std::size_t before = live_bytes, unsent = connection.unsent();
    const std::string text(size, 'x');
    while (connection.unsent() < unsent + total / 4) connection.send(Buffer(text));
    EXPECT_LE(live_bytes - before, 5 * total / 4 + 200'000) << size;
    connection.close();
    peer.close();
    run_iterations();
  }
}

TEST_P(ConnectionMemory, messages_that_the_program_keeps_hold_little_more_than_their_size) {
  const std::vector<Buffer> held = empty_pool();
  for (const bool in_one : {true, false}) {
    for (const std::size_t size : {1U, 3U, 100U, 1000U}) {
      constexpr std::size_t count = 300;
      std::vector<Buffer> kept;
      kept.reserve(count);
      Buffer all;
      std::size_t received = 0;
      Connection& connection = connect({.on_message = [&](Connection&, Buffer& bytes) {
        received += bytes.size();
        if (in_one) {
          all.append(std::move(bytes));
        } else {
          kept.push_back(std::move(bytes));
        }
      }});
      const std::size_t before = live_bytes;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(test::send_now(peer, std::string(size, 'x')), size);
        ASSERT_TRUE(run_until([&] { return received == (i + 1) * size; }));
      }
      const std::size_t value = in_one ? 5 * size : size <= 128 ? 300 + size : 4400;
      EXPECT_LE(live_bytes - before, count * value + 150'000) << size << (in_one ? " in one" : "");
      connection.close();
      peer.close();
      run_iterations();
    }
  }
}

/// The peer of a server without memory of the library's.
class PlainPeer {
 public:
  explicit PlainPeer(const Endpoint& server)
      // Above the descriptors of the server, for which the loop has a table.
      : socket_(test::duplicate_above(UniqueFd(::socket(AF_INET, SOCK_STREAM, 0)), 600)) {
    EXPECT_EQ(::connect(socket_.get(), server.data(), server.size()), 0);
  }
  void send() const { EXPECT_EQ(::send(socket_.get(), "x", 1, MSG_NOSIGNAL), 1); }
  /// Returns whether the echo has arrived, which it leaves there.
  [[nodiscard]] bool has_received() const {
    char byte;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }

 private:
  UniqueFd socket_;
};

class IdleConnections : public test::OnEveryBackend {
 protected:
  [[nodiscard]] std::size_t memory_max(std::size_t bytes) const;

  /// The bytes that each of many connections of a server holds, after it was used once.
  std::size_t bytes_of_each(TcpServer& server) {
    constexpr std::size_t count = 128;  // Few enough for select(2).
    std::vector<PlainPeer> peers;
    peers.reserve(2 * count);
    const std::vector<Buffer> held = empty_pool();
    const auto open = [&](std::size_t wanted) {
      while (peers.size() < wanted) {
        peers.emplace_back(server.endpoint());
        peers.back().send();
        EXPECT_TRUE(run_until([&] { return peers.back().has_received(); }));
      }
    };
    open(count);
    const std::size_t before = live_bytes;
    open(2 * count);
    return (live_bytes - before) / count;
  }
};

/// poll(2) needs an entry for each descriptor. Sanitizers enlarge the frames of coroutines.
std::size_t IdleConnections::memory_max(std::size_t bytes) const {
  return (bytes + (is(BackendKind::poll) ? 32 : 0)) * (test::sanitized ? 4 : 1);
}

TAMBOUR_ON_EVERY_BACKEND(IdleConnections);

TEST_P(IdleConnections, with_a_task_hold_little_memory) {
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  server.serve(&test::echo<TcpStream>);
  const std::size_t bytes = bytes_of_each(server);
  RecordProperty("bytes", int(bytes));
  EXPECT_LE(bytes, memory_max(512));
}

TEST_P(IdleConnections, with_callbacks_hold_little_memory) {
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  server.serve({.on_message = [](Connection& connection, Buffer& buffer) {
    connection.send(std::move(buffer));
  }});
  const std::size_t bytes = bytes_of_each(server);
  RecordProperty("bytes", int(bytes));
  EXPECT_LE(bytes, memory_max(240));
}

}  // namespace
}  // namespace tambour::memory_test
