// Single I/O operations on descriptors that are ready, not ready yet, or invalid.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/detail/io_operation.h>
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
  using Call = std::function<std::int32_t(backend::System&, int fd)>;

  /// Makes `call` when the descriptor is ready, or at once.
  struct Transfer final : detail::IoOperation {
    Transfer(Events readiness, detail::FirstCall first, Call its_call)
        : detail::IoOperation(readiness, first), call(std::move(its_call)) {}
    ~Transfer() override = default;

    bool step(loop::Core& core) noexcept override {
      return finish(call(core.backend().system(), fd));
    }
    void completed() override { ++calls; }

    Call call;
    int calls = 0;
  };

  Transfer receiving() {
    return {Events::read, detail::FirstCall::when_ready, [this](backend::System& system, int fd) {
              return io::retry(
                  [&] { return system.recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT); });
            }};
  }
  Transfer sending(std::size_t size) {
    return {Events::write, detail::FirstCall::within_budget,
            [this, size](backend::System& system, int fd) {
              return io::retry([&] { return system.send(fd, bytes.data(), size, MSG_DONTWAIT); });
            }};
  }
  static Transfer accepting() {
    return {Events::read, detail::FirstCall::when_ready, [](backend::System& system, int fd) {
              return io::retry([&] { return system.accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); });
            }};
  }

  /// Starts the transfer on a descriptor that is new to the loop.
  bool start(Transfer& transfer, EventLoop& on, int fd) {
    loop::core_of(on).backend().invalidate(fd);
    return transfer.start(on, fd);
  }

  /// Returns the outcome; runs the loop until the transfer completes.
  std::int32_t outcome_of(Transfer transfer, int fd) {
    if (!start(transfer, loop(), fd)) {
      EXPECT_EQ(transfer.calls, 0) << "never from inside";
      EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
    }
    EXPECT_FALSE(transfer.busy());
    return transfer.outcome;
  }

  std::array<std::byte, 16> bytes{};
};

TAMBOUR_ON_EVERY_BACKEND(IoOperations);

TEST_P(IoOperations, transfer_bytes_when_the_descriptor_is_ready) {
  const auto pair = test::open_socketpair();
  EXPECT_EQ(outcome_of(sending(7), pair.near.get()), 7);
  EXPECT_EQ(outcome_of(receiving(), pair.far.get()), 7);
}

TEST_P(IoOperations, an_invalid_descriptor_is_an_error) {
  for (const int fd : {-1, 900}) {
    EXPECT_EQ(outcome_of(receiving(), fd), -EBADF);
    EXPECT_EQ(outcome_of(sending(1), fd), -EBADF);
  }
}

TEST_P(IoOperations, an_operation_that_finishes_at_once_has_no_completion) {
  const auto pair = test::open_socketpair();
  Transfer transfer = sending(4);
  EXPECT_TRUE(start(transfer, loop(), pair.near.get()));
  EXPECT_EQ(transfer.outcome, 4);
  EXPECT_FALSE(transfer.busy());
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
  {
    Transfer transfer = accepting();
    EXPECT_FALSE(start(transfer, loop(), server->descriptor()));
    EXPECT_TRUE(transfer.busy());
  }
  {
    // An operation that is destroyed after its loop leaks no connection either.
    Transfer transfer = accepting();
    EventLoop other(options());
    EXPECT_FALSE(start(transfer, other, server->descriptor()));
    EXPECT_TRUE(transfer.busy());
  }
  EXPECT_EQ(test::open_descriptors(), before);
  Transfer transfer = accepting();
  EXPECT_FALSE(start(transfer, loop(), server->descriptor()));
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_GE(transfer.outcome, 0);
  ::close(transfer.outcome);
}

TEST_P(IoOperations, a_reused_descriptor_number_works) {
  for (int round = 0; round < 3; ++round) {
    const auto pair = test::open_socketpair();
    Transfer transfer = receiving();
    EXPECT_FALSE(start(transfer, loop(), pair.near.get()));
    run_iterations();
    test::write_to(pair.far);
    EXPECT_TRUE(run_until([&] { return transfer.calls == 1; })) << round;
  }
}

TEST_P(IoOperations, a_cancelled_operation_completes_once_with_ecanceled) {
  const auto pair = test::open_socketpair();
  Transfer transfer = receiving();
  transfer.cancel();
  EXPECT_FALSE(start(transfer, loop(), pair.near.get()));
  run_iterations();
  transfer.cancel();
  transfer.cancel();
  EXPECT_EQ(transfer.calls, 0);
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(transfer.outcome, -ECANCELED);
  // Cancelling a completed operation does not change its outcome.
  test::write_to(pair.far, "abc");
  EXPECT_FALSE(transfer.start(loop(), pair.near.get()));
  EXPECT_TRUE(run_until([&] { return transfer.calls == 2; }));
  transfer.cancel();
  run_iterations();
  EXPECT_EQ(transfer.outcome, 3);
}

TEST_P(IoOperations, a_spurious_event_starts_another_wait) {
  const auto pair = test::open_socketpair();
  int attempts = 0;
  Transfer transfer(Events::read, detail::FirstCall::when_ready,
                    [&](backend::System&, int) { return ++attempts < 3 ? -EAGAIN : 5; });
  EXPECT_FALSE(start(transfer, loop(), pair.near.get()));
  test::write_to(pair.far);
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(transfer.outcome, 5);
}

}  // namespace
}  // namespace tambour::io_operations_test
