// Buffers with parts of files that exist only in memory, sent by sockets and pipes on every
// backend.
#include "files/memory_file.h"

#include <sys/resource.h>

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "bytes/buffer_memory.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::memory_file_test {
namespace {

using detail::BufferMemory;
using detail::files::MemoryFile;

/// Text in which no part equals another one at a different offset.
std::string numbers(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + " ";
  text.resize(size);
  return text;
}

class MemoryFiles : public test::OnEveryBackend {
 public:
  /// A buffer of the file; it keeps the file.
  [[nodiscard]] Buffer file_of(const std::string& text) {
    const auto file = MemoryFile::copy_of(loop(), Buffer(text));
    EXPECT_NE(file, nullptr);
    return file != nullptr ? MemoryFile::contents_of(file) : Buffer(text);
  }
};

TAMBOUR_ON_EVERY_BACKEND(MemoryFiles);

/// Heads, whole files and parts of them, as a connection of HTTP queues them.
Buffer messages(const Buffer& file, std::string& text) {
  const std::string contents = file.to_string();
  Buffer queue;
  for (std::size_t i = 0; i < 30; ++i) {
    const std::string head = "head " + std::to_string(i) + " ";
    queue.append(head);
    queue.append(file.slice(i * 100, contents.size() / (1 + i % 3)));
    text += head + contents.substr(i * 100, contents.size() / (1 + i % 3));
  }
  return queue;
}

Task<> receive(Stream& stream, std::string& received) {
  Buffer in;
  for (;;) {
    const auto got = co_await stream.read(in, 70'000);
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
  }
  received = in.to_string();
}

template <class Sender, class Receiver>
Task<> exchange(Sender& sender, Receiver& receiver, const Buffer& file) {
  std::string sent;
  Buffer queue = messages(file, sent);
  std::string received;
  TaskScope scope(sender.loop());
  scope.spawn(receive(receiver, received));
  static_cast<void>(sender.try_write(queue));  // Usually more than the kernel accepts at once.
  EXPECT_TRUE(co_await sender.write(queue));
  sender.close();
  co_await scope.join();
  EXPECT_TRUE(received == sent);
}

TEST_P(MemoryFiles, are_sent_between_other_bytes) {
  run([](MemoryFiles& test, EventLoop& loop) -> Task<> {
    const Buffer file = test.file_of(numbers(400'000));
    EXPECT_GE(BufferMemory::find_file_part(file, 400'000, 1).fd, 0);
    TcpServer server = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
    auto connecting = co_await TcpStream::connect(server.endpoint());
    auto accepted = co_await server.accept();
    EXPECT_TRUE(connecting && accepted);
    co_await exchange(*accepted, *connecting, file);
    auto [left, right] = UnixStream::pair(loop).value();
    co_await exchange(left, right, file);
    PipeStream::Ends ends = PipeStream::open(loop).value();
    co_await exchange(ends.writer, ends.reader, file);
  }(*this, loop()));
}

TEST_P(MemoryFiles, report_a_peer_that_has_closed) {
  run([](MemoryFiles& test, EventLoop& loop) -> Task<> {
    auto [left, right] = UnixStream::pair(loop).value();
    right.close();
    Buffer file = test.file_of(numbers(100'000));
    EXPECT_EQ((co_await left.write(file)).error(), system_error(EPIPE));
  }(*this, loop()));
}

// fallocate(2) would raise SIGXFSZ, whose default action ends the process.
TEST(MemoryFilesOfLimitedProcesses, are_not_made) {
  EXPECT_EQ(test::in_child([] {
              const rlimit limit{.rlim_cur = 0, .rlim_max = 0};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              EventLoop loop;
              return MemoryFile::copy_of(loop, Buffer("text")) == nullptr ? 0 : 2;
            }),
            0);
}

TEST(MemoryFilesInSimulation, are_not_made) {
  sim::Simulation simulation(1);
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  EXPECT_EQ(MemoryFile::copy_of(loop, Buffer("text")), nullptr);
}

}  // namespace
}  // namespace tambour::memory_file_test
