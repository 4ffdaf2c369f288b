// What a loop must do inside the loop of another library, whichever that is.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/process.h"

namespace tambour::test {

/// `run` runs the host until `done()` returns true, and fails after a time; it checks `done` after
/// each iteration.
using RunHost = std::function<bool(const std::function<bool()>& done)>;

/// Runs `loop` until `done()`. Returns false if that takes longer than `limit`.
inline bool run_until(EventLoop& loop, const std::function<bool()>& done, Duration limit) {
  bool is_late = false;
  Timer timer(loop, [&] { is_late = true; });
  timer.start(limit);
  while (!done() && !is_late) loop.run_once();
  return !is_late;
}

inline Task<> echo(TcpStream peer) {
  Buffer received;
  while (const auto count = co_await peer.read(received)) {
    if (*count == 0) break;
    const auto written = co_await peer.write(received);
    if (!written) break;
  }
}

inline Task<> ask(Endpoint server, std::string& answer) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream) co_return;
  static_cast<void>(co_await stream->write("question"));
  Buffer received;
  const auto count = co_await stream->read(received);
  if (count) answer = received.to_string();
}

/// Whether the thread uses less than a tenth of the processor while nothing is due for 200 ms. On a
/// busy machine, the kernel may charge interrupts to this thread: up to five attempts.
inline bool host_sleeps(EventLoop& loop, const RunHost& run) {
  using namespace std::chrono_literals;
  for (int attempt = 0; attempt < 5; ++attempt) {
    bool is_over = false;
    Timer end(loop, [&] { is_over = true; });
    end.start(200ms);
    const Duration before = processor_time();
    if (!run([&] { return is_over; })) return false;
    if (processor_time() - before < 20ms) return true;
  }
  return false;
}

inline void expect_works_in_host(EventLoop& loop, const RunHost& run) {
  using namespace std::chrono_literals;
  // Timers, in order and not early.
  std::string order;
  const TimePoint began = Clock::now();
  Timer late(loop, [&] { order += 'b'; });
  Timer soon(loop, [&] { order += 'a'; });
  soon.start(5ms);
  late.start(20ms);
  EXPECT_TRUE(run([&] { return order.size() == 2; }));
  EXPECT_EQ(order, "ab");
  EXPECT_GE(Clock::now() - began, 20ms);
  // Descriptors.
  const Ends pipe = open_pipe();
  int reads = 0;
  FdWatcher reader(loop, pipe.near.get(), Events::read, [&](Events) {
    ++reads;
    drain(pipe.near);
  });
  EXPECT_TRUE(reader.start());
  EXPECT_TRUE(host_sleeps(loop, run));
  for (int round = 1; round <= 3; ++round) {
    write_to(pipe.far);
    EXPECT_TRUE(run([&] { return reads == round; }));
  }
  // Tasks and streams.
  auto server = TcpServer::listen(loop, *Endpoint::parse("127.0.0.1:0"));
  ASSERT_TRUE(server);
  server->serve(echo);
  std::string answer;
  spawn(loop, ask(server->endpoint(), answer));
  EXPECT_TRUE(run([&] { return answer == "question"; }));
  // Other threads.
  for (int round = 1; round <= 10; ++round) {
    int posted = 0;
    std::jthread poster([&] { loop.post([&posted] { ++posted; }); });
    EXPECT_TRUE(run([&] { return posted == 1; }));
  }
  EXPECT_TRUE(host_sleeps(loop, run));
}

}  // namespace tambour::test
