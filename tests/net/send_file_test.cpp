// Stream::send_file() on every backend.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::send_file_test {
namespace {

using namespace std::chrono_literals;

/// Text in which no part equals another one at a different offset.
std::string numbers(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + " ";
  text.resize(size);
  return text;
}

class SendFile : public test::OnEveryBackend {
 public:
  Task<File> file_of(std::string content) {
    const std::string path = folder_.path() + "/file";
    std::ofstream(path, std::ios::binary) << content;
    auto file = co_await File::open(path);
    co_return or_throw(std::move(file), "open");
  }

 private:
  test::TemporaryFolder folder_;
};

TAMBOUR_ON_EVERY_BACKEND(SendFile);

/// Reads until the end of the stream, slowly at first.
Task<> receive(Stream& stream, std::string& received) {
  Buffer in;
  for (int count = 0;; ++count) {
    const auto got = co_await stream.read(in, 100'000);
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
    if (count < 5) static_cast<void>(co_await sleep_for(1ms));
  }
  received = in.to_string();
}

TEST_P(SendFile, sends_a_part_of_a_file) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    const std::string content = numbers(2'000'000);
    const File file = co_await test.file_of(content);
    for (const std::uint64_t offset : {0U, 1U, 1'999'999U, 2'000'000U}) {
      auto [sender, receiver] = UnixStream::pair(loop).value();
      std::string received;
      TaskScope scope(loop);
      scope.spawn(receive(receiver, received));
      std::uint64_t size = content.size() - offset;
      const auto sent = co_await sender.send_file(file, offset, size);
      EXPECT_TRUE(sent);
      EXPECT_EQ(size, 0U);
      sender.close();
      co_await scope.join();
      EXPECT_TRUE(received == content.substr(offset)) << offset;
    }
  }(*this, loop()));
}

TEST_P(SendFile, sends_less_if_the_file_is_shorter) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    const File file = co_await test.file_of("0123456789");
    auto [sender, receiver] = UnixStream::pair(loop).value();
    std::uint64_t size = 9;
    const auto sent = co_await sender.send_file(file, 3, size);
    EXPECT_EQ(sent.error(), StreamError::truncated);
    EXPECT_EQ(size, 2U);
    Buffer in;
    EXPECT_TRUE(co_await receiver.read(in));
    EXPECT_EQ(in.to_string(), "3456789");
  }(*this, loop()));
}

TEST_P(SendFile, is_for_sockets_only) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    const File file = co_await test.file_of("0123456789");
    PipeStream::Ends ends = PipeStream::open(loop).value();
    std::uint64_t size = 10;
    const auto sent = co_await ends.writer.send_file(file, 0, size);
    EXPECT_EQ(sent.error(), system_error(EOPNOTSUPP));
    EXPECT_EQ(size, 10U);
  }(*this, loop()));
}

TEST_P(SendFile, fails_if_the_peer_has_closed_and_raises_no_signal) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    const File file = co_await test.file_of("0123456789");
    auto [sender, receiver] = UnixStream::pair(loop).value();
    receiver.close();
    std::uint64_t size = 10;
    const auto sent = co_await sender.send_file(file, 0, size);
    EXPECT_EQ(sent.error(), system_error(EPIPE));
  }(*this, loop()));
}

/// Returns two connected sockets.
std::array<int, 2> tcp_pair() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), name, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), name, &size), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(client, name, size), 0);
  return {::accept(listener.get(), nullptr, nullptr), client};
}

/// Ends its side of a connection, reads `size` bytes and closes the socket. The kernel answers what
/// arrives later with a reset, which a sender that has received the end sees as EPIPE.
void read_and_close(UniqueFd fd, std::size_t size) {
  ::shutdown(fd.get(), SHUT_WR);
  std::vector<char> in(64 * 1024);
  while (size > 0) {
    const ssize_t got = ::read(fd.get(), in.data(), std::min(size, in.size()));
    if (got <= 0) return;
    size -= std::min(size, static_cast<std::size_t>(got));
  }
}

TEST_P(SendFile, raises_no_signal_if_the_peer_closes_during_a_call) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    // sendfile(2) then returns the size of the part that it sent before, with SIGPIPE raised.
    const std::uint64_t content_size = 8'000'000;
    const File file = co_await test.file_of(numbers(content_size));
    for (std::size_t round = 0; round < 50; ++round) {
      const auto fds = tcp_pair();
      SocketStream sender(loop, fds[0]);
      std::thread peer(read_and_close, UniqueFd(fds[1]), 1'000'000 + round * 10'007);
      std::uint64_t size = content_size;
      const auto sent = co_await sender.send_file(file, 0, size);
      peer.join();
      EXPECT_FALSE(sent);
      EXPECT_LT(size, content_size);
    }
  }(*this, loop()));
}

TEST_P(SendFile, waits_and_can_be_cancelled) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    const File file = co_await test.file_of(numbers(2'000'000));
    auto [sender, receiver] = UnixStream::pair(loop).value();
    std::uint64_t size = 2'000'000;
    const auto sent = co_await timeout(20ms, sender.send_file(file, 0, size));
    EXPECT_EQ(sent.error(), system_error(ETIMEDOUT));
    EXPECT_GT(size, 0U);
    EXPECT_LT(size, 2'000'000U);
    // What was sent is a part, and the rest can follow.
    std::string received;
    TaskScope scope(loop);
    scope.spawn(receive(receiver, received));
    const auto rest = co_await sender.send_file(file, 2'000'000 - size, size);
    EXPECT_TRUE(rest);
    sender.close();
    co_await scope.join();
    EXPECT_TRUE(received == numbers(2'000'000));
  }(*this, loop()));
}

TEST_P(SendFile, does_not_block_on_a_socket_in_blocking_mode) {
  run([](SendFile& test, EventLoop& loop) -> Task<> {
    const File file = co_await test.file_of(numbers(2'000'000));
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
    SocketStream sender(loop, fds[0]);
    const UniqueFd receiver(fds[1]);
    std::uint64_t size = 2'000'000;
    const auto sent = co_await timeout(20ms, sender.send_file(file, 0, size));
    EXPECT_EQ(sent.error(), system_error(ETIMEDOUT));
  }(*this, loop()));
}

}  // namespace
}  // namespace tambour::send_file_test
