// Single waits on handles whose descriptors are ready, not ready yet, or invalid.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/detail/first_call.h>
#include <tambour/net/io_handle.h>
#include <tambour/tambour.h>

#include "io/transport.h"
#include "loop/core.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::io_operations_test {
namespace {

class IoOperations : public test::OnEveryBackend {
 protected:
  using Call = std::function<std::int32_t(detail::backend::System&, int fd)>;

  /// A handle that leaves its descriptor open.
  struct Borrowed : IoHandle {
    Borrowed(EventLoop& loop, int fd) : IoHandle(loop, fd) {}
    Borrowed(Borrowed&&) = default;
    ~Borrowed() { static_cast<void>(release()); }
    using IoHandle::release;
    using IoHandle::stop_waiting;
  };

  /// Makes `call` when the descriptor is ready, or at once.
  struct Transfer final : detail::IoWait {
    Transfer(Borrowed& handle, Events readiness, detail::FirstCall first, Call its_call)
        : detail::IoWait(handle, readiness, first), call(std::move(its_call)) {}
    Transfer(Transfer&&) = default;
    ~Transfer() override = default;

    bool start() { return try_now_or_wait(); }
    bool step(detail::loop::Core& core) noexcept override {
      return finish(call(core.backend().system(), fd()));
    }
    void completed() override {
      leave();
      ++calls;
    }
    using detail::IoWait::outcome;

    Call call;
    int calls = 0;
  };

  Transfer receiving(Borrowed& borrowed) {
    return {borrowed, Events::read, detail::FirstCall::when_ready,
            [this](detail::backend::System& system, int fd) {
              return detail::io::retry(
                  [&] { return system.recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT); });
            }};
  }
  Transfer sending(Borrowed& borrowed, std::size_t size) {
    return {borrowed, Events::write, detail::FirstCall::within_budget,
            [this, size](detail::backend::System& system, int fd) {
              return detail::io::retry(
                  [&] { return system.send(fd, bytes.data(), size, MSG_DONTWAIT); });
            }};
  }
  static Transfer accepting(Borrowed& borrowed) {
    return {borrowed, Events::read, detail::FirstCall::when_ready,
            [](detail::backend::System& system, int fd) {
              return detail::io::retry(
                  [&] { return system.accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); });
            }};
  }

  /// Returns the outcome; runs the loop until the transfer completes.
  std::int32_t outcome_of(Transfer transfer) {
    if (!transfer.start()) {
      EXPECT_EQ(transfer.calls, 0) << "never from inside";
      EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
    }
    return transfer.outcome;
  }

  std::array<std::byte, 16> bytes{};
};

TAMBOUR_ON_EVERY_BACKEND(IoOperations);

TEST_P(IoOperations, transfer_bytes_when_the_descriptor_is_ready) {
  const auto pair = test::open_socketpair();
  Borrowed near(loop(), pair.near.get());
  Borrowed far(loop(), pair.far.get());
  EXPECT_EQ(outcome_of(sending(near, 7)), 7);
  EXPECT_EQ(outcome_of(receiving(far)), 7);
}

TEST_P(IoOperations, an_invalid_descriptor_is_an_error) {
  for (const int fd : {-1, 900}) {
    Borrowed invalid(loop(), fd);
    EXPECT_EQ(outcome_of(receiving(invalid)), -EBADF);
    EXPECT_EQ(outcome_of(sending(invalid, 1)), -EBADF);
  }
}

TEST_P(IoOperations, an_operation_that_finishes_at_once_has_no_completion) {
  const auto pair = test::open_socketpair();
  Borrowed near(loop(), pair.near.get());
  Transfer transfer = sending(near, 4);
  EXPECT_TRUE(transfer.start());
  EXPECT_EQ(transfer.outcome, 4);
  run_iterations();
  EXPECT_EQ(transfer.calls, 0);
}

TEST_P(IoOperations, a_destroyed_accept_operation_leaks_no_connection) {
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  const test::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Endpoint& to = server->endpoint();
  ASSERT_EQ(::connect(client.get(), to.data(), to.size()), 0);
  const std::size_t before = test::open_descriptors();
  Borrowed listener(loop(), server->fd());
  {
    Transfer transfer = accepting(listener);
    EXPECT_FALSE(transfer.start());
  }
  {
    // An operation that is destroyed after its loop leaks no connection either.
    std::optional<EventLoop> other(std::in_place, options());
    Borrowed elsewhere(*other, server->fd());
    Transfer transfer = accepting(elsewhere);
    EXPECT_FALSE(transfer.start());
    other.reset();
  }
  EXPECT_EQ(test::open_descriptors(), before);
  Transfer transfer = accepting(listener);
  EXPECT_FALSE(transfer.start());
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_GE(transfer.outcome, 0);
  ::close(transfer.outcome);
}

TEST_P(IoOperations, a_reused_descriptor_number_works) {
  for (int round = 0; round < 3; ++round) {
    const auto pair = test::open_socketpair();
    Borrowed near(loop(), pair.near.get());
    Transfer transfer = receiving(near);
    EXPECT_FALSE(transfer.start());
    run_iterations();
    test::write_to(pair.far);
    EXPECT_TRUE(run_until([&] { return transfer.calls == 1; })) << round;
  }
}

TEST_P(IoOperations, a_cancelled_operation_completes_once_with_ecanceled) {
  const auto pair = test::open_socketpair();
  Borrowed near(loop(), pair.near.get());
  near.stop_waiting(false);
  Transfer transfer = receiving(near);
  EXPECT_FALSE(transfer.start());
  run_iterations();
  near.stop_waiting(false);
  near.stop_waiting(false);
  EXPECT_EQ(transfer.calls, 0);
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(transfer.outcome, -ECANCELED);
  // Cancelling a completed operation does not change its outcome.
  test::write_to(pair.far, "abc");
  Transfer next = receiving(near);
  EXPECT_FALSE(next.start());
  EXPECT_TRUE(run_until([&] { return next.calls == 1; }));
  near.stop_waiting(false);
  run_iterations();
  EXPECT_EQ(next.outcome, 3);
  EXPECT_EQ(next.calls, 1);
}

TEST_P(IoOperations, a_cancelled_operation_that_is_destroyed_does_not_complete) {
  const auto pair = test::open_socketpair();
  Borrowed near(loop(), pair.near.get());
  std::optional<Transfer> transfer(receiving(near));
  EXPECT_FALSE(transfer->start());
  near.stop_waiting(false);
  transfer.reset();
  // The next wait does not use what the cancelled one owned.
  Transfer next = receiving(near);
  EXPECT_FALSE(next.start());
  test::write_to(pair.far, "ab");
  EXPECT_TRUE(run_until([&] { return next.calls == 1; }));
  EXPECT_EQ(next.outcome, 2);
}

TEST_P(IoOperations, a_wait_follows_its_handle) {
  const auto pair = test::open_socketpair();
  Borrowed first(loop(), pair.near.get());
  Transfer transfer = receiving(first);
  EXPECT_FALSE(transfer.start());
  Borrowed second(std::move(first));
  test::write_to(pair.far, "abcd");
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(transfer.outcome, 4);
  Transfer next = receiving(second);
  EXPECT_FALSE(next.start());
  static_cast<void>(second.release());
  EXPECT_TRUE(run_until([&] { return next.calls == 1; }));
  EXPECT_EQ(next.outcome, -ECANCELED);
}

/// The watch stays for the next wait.
TEST_P(IoOperations, bytes_that_no_task_reads_cost_one_event) {
  const auto pair = test::open_socketpair();
  Borrowed near(loop(), pair.near.get());
  for (const std::int32_t size : {3, 5}) {
    Transfer transfer = receiving(near);
    EXPECT_FALSE(transfer.start());
    if (size == 3) test::write_to(pair.far, "abc");
    EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
    EXPECT_EQ(transfer.outcome, size);
    loop().run();  // A watch does not keep it from returning.
    test::write_to(pair.far, "defgh");
    const std::uint64_t before = loop().stats().iterations;
    bool has_expired = false;
    Timer timer(loop(), [&] { has_expired = true; });
    timer.start(std::chrono::milliseconds(20));
    EXPECT_TRUE(run_until([&] { return has_expired; }));
    EXPECT_LT(loop().stats().iterations - before, 50U);
  }
  // Closed or handed over while it is watched.
  Transfer last = receiving(near);
  EXPECT_FALSE(last.start());
  EXPECT_TRUE(run_until([&] { return last.calls == 1; }));
  test::write_to(pair.far, "i");
  EXPECT_EQ(near.release(), pair.near.get());
  run_iterations();
  Borrowed again(loop(), pair.near.get());
  EXPECT_EQ(outcome_of(receiving(again)), 1);
}

TEST_P(IoOperations, a_spurious_event_starts_another_wait) {
  const auto pair = test::open_socketpair();
  Borrowed near(loop(), pair.near.get());
  int attempts = 0;
  Transfer transfer(near, Events::read, detail::FirstCall::when_ready,
                    [&](detail::backend::System&, int) { return ++attempts < 3 ? -EAGAIN : 5; });
  EXPECT_FALSE(transfer.start());
  test::write_to(pair.far);
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(transfer.outcome, 5);
}

}  // namespace
}  // namespace tambour::io_operations_test
