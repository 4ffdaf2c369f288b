// The time limits and endings of streams in tasks: cancel_read(), cancel_write(), reset(), and the
// timers and the lingering close of net/pace/.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>
#include <tambour/task/sleep.h>

#include "net/pace/lingering_close.h"
#include "net/pace/stream_timers.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::pace_test {
namespace {

using namespace std::chrono_literals;

class Pace : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    ends = test::open_stream_ends(loop());
  }
  void TearDown() override {
    ends = {};
    OnEveryBackend::TearDown();
  }

  test::StreamEnds ends;
};

TAMBOUR_ON_EVERY_TRANSPORT(Pace);

TEST_P(Pace, a_cancelled_read_fails_and_the_stream_stays_open) {
  ends.near.cancel_read();  // No task reads.
  std::optional<Result<std::size_t>> first;
  std::optional<Result<std::size_t>> second;
  Buffer received;
  spawn(loop(), [&]() -> Task<> {
    first = co_await ends.near.read(received);
    second = co_await ends.near.read(received);
  });
  loop().run_ready();
  EXPECT_FALSE(first);
  ends.near.cancel_read();
  EXPECT_TRUE(run_until([&] { return first.has_value(); }));
  EXPECT_EQ(first->error(), system_error(ECANCELED));
  run([](SocketStream& far) -> Task<> { EXPECT_TRUE(co_await far.write("later")); }(ends.far));
  EXPECT_TRUE(run_until([&] { return second.has_value(); }));
  EXPECT_EQ(received, "later");
}

/// Writes until the peer's buffers are full.
Task<> fill(SocketStream& stream, Result<>& written) {
  const std::string bytes(1'000'000, 'x');
  while (written) written = co_await stream.write(bytes);
}

TEST_P(Pace, a_cancelled_write_fails) {
  Result<> written;
  spawn(loop(), fill(ends.near, written));
  for (int i = 0; i < 10; ++i) loop().run_ready();
  EXPECT_TRUE(written);
  ends.near.cancel_write();
  EXPECT_TRUE(run_until([&] { return !written; }));
  EXPECT_EQ(written.error(), system_error(ECANCELED));
  EXPECT_TRUE(ends.near.is_open());
}

TEST_P(Pace, a_reset_reaches_the_peer_as_an_error) {
  auto server = test::listen(loop());
  ASSERT_TRUE(server);
  server->serve([](TcpStream near) -> Task<> {
    Buffer received;
    EXPECT_TRUE(co_await near.read(received));
    EXPECT_TRUE(co_await near.write("a part"));
    near.reset();
    EXPECT_FALSE(near.is_open());
    near.reset();
  });
  run([](Endpoint to) -> Task<> {
    auto far = co_await test::connect_to(to);
    if (!far) co_return ADD_FAILURE();
    EXPECT_TRUE(co_await far->write("x"));
    Buffer received;
    Result<std::size_t> got = 1;
    while (got.value_or(0) > 0) got = co_await far->read(received);
    EXPECT_FALSE(got);
    if (!got) {
      EXPECT_EQ(got.error(), system_error(ECONNRESET));
    }
  }(server->endpoint()));
}

TEST_P(Pace, a_read_timer_ends_the_read_with_ETIMEDOUT) {
  detail::net::ReadTimer timer(ends.near);
  run([](SocketStream& near, SocketStream& far, detail::net::ReadTimer& limit) -> Task<> {
    Buffer received;
    limit.start(10ms);
    const Result<std::size_t> late = co_await near.read(received);
    const Result<std::size_t> expired = limit.finish(late);
    EXPECT_FALSE(expired);
    if (!expired) {
      EXPECT_EQ(expired.error(), system_error(ETIMEDOUT));
    }
    EXPECT_TRUE(co_await far.write("x"));
    limit.start(1h);
    const Result<std::size_t> read = co_await near.read(received);
    EXPECT_EQ(limit.finish(read), 1U);
    limit.start(Duration::zero());
    limit.end_by(near.loop().now() + 10ms);
    const Result<std::size_t> ended = co_await near.read(received);
    EXPECT_EQ(limit.finish(ended).error(), system_error(ETIMEDOUT));
  }(ends.near, ends.far, timer));
}

TEST_P(Pace, a_write_timer_ends_a_write_without_progress_and_no_other) {
  Buffer unsent(std::string(8'000'000, 'x'));
  detail::net::WriteTimer timer(ends.near, [&unsent]() -> std::uint64_t { return unsent.size(); });
  run([](SocketStream& near, Buffer& bytes, detail::net::WriteTimer& limit) -> Task<> {
    limit.start(20ms, bytes.size());
    const Result<> written = co_await near.write(bytes);
    const Result<> expired = limit.finish(written);
    EXPECT_FALSE(expired);
    if (!expired) {
      EXPECT_EQ(expired.error(), system_error(ETIMEDOUT));
    }
    EXPECT_GT(bytes.size(), 0U);
  }(ends.near, unsent, timer));
}

TEST_P(Pace, progress_extends_the_time_of_a_write) {
  std::uint64_t left = 1000;
  detail::net::WriteTimer timer(ends.near, [&left] { return left; });
  Result<> written;
  spawn(loop(), fill(ends.near, written));
  run([](EventLoop& place, std::uint64_t& unsent, Result<>& result,
         detail::net::WriteTimer& limit) -> Task<> {
    limit.start(50ms, unsent);
    for (const TimePoint end = place.now() + 300ms; place.now() < end;) {
      --unsent;
      co_await sleep_for(5ms);
    }
    EXPECT_TRUE(result);
    while (result) co_await sleep_for(5ms);
    EXPECT_EQ(limit.finish(result).error(), system_error(ETIMEDOUT));
  }(loop(), left, written, timer));
}

TEST_P(Pace, lingering_ends_when_the_peer_closes_its_side) {
  detail::net::LingeringClose closing(ends.near);
  bool has_ended = false;
  run([](SocketStream& far, detail::net::LingeringClose& close, bool& ended) -> Task<> {
    const TaskContext& context = co_await this_task;
    TaskScope scope(*context.loop);
    EXPECT_TRUE(co_await far.write("discarded"));
    scope.spawn([&]() -> Task<> {
      co_await close.run(1h, 1h);
      ended = true;
    });
    Buffer received;
    EXPECT_EQ(co_await far.read(received), 0U);
    EXPECT_FALSE(ended);
    EXPECT_TRUE(co_await far.shutdown_write());
    co_await scope.join();
  }(ends.far, closing, has_ended));
  EXPECT_TRUE(has_ended);
}

TEST_P(Pace, lingering_has_a_limit_that_can_be_shortened) {
  detail::net::LingeringClose closing(ends.near);
  run(closing.run(10ms, 1h));
  bool has_ended = false;
  spawn(loop(), [&]() -> Task<> {
    co_await closing.run(1h, 1h);
    has_ended = true;
  });
  loop().run_ready();
  closing.end_by(loop().now() + 10ms);
  EXPECT_TRUE(run_until([&] { return has_ended; }));
}

TEST_P(Pace, without_lingering_only_the_write_side_is_shut_down) {
  detail::net::LingeringClose closing(ends.near);
  run(closing.run(Duration::zero(), 1h));
  EXPECT_TRUE(ends.near.is_open());
  Buffer received;
  run([](SocketStream& far, Buffer& into) -> Task<> { EXPECT_EQ(co_await far.read(into), 0U); }(
                                              ends.far, received));
}

}  // namespace
}  // namespace tambour::pace_test
