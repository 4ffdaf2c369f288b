// Single I/O operations on descriptors that are ready, not ready yet, or invalid.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

#include <gtest/gtest.h>

#include <tambour/detail/io_operation.h>
#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour {
namespace {

class IoOperations : public test::OnEveryBackend {
 protected:
  struct Transfer : detail::IoOperation {
    explicit Transfer(detail::IoKind what) noexcept : detail::IoOperation(what, &complete) {}
    static void complete(detail::IoOperation& operation) {
      ++static_cast<Transfer&>(operation).calls;
    }
    int calls = 0;
  };

  /// Returns the outcome of the transfer of `size` bytes; runs the loop until it completes.
  std::int32_t outcome_of(detail::IoKind kind, int fd, void* data, std::size_t size) {
    Transfer transfer(kind);
    transfer.data = data;
    transfer.size = size;
    transfer.submit(loop(), fd);
    EXPECT_EQ(transfer.calls, 0) << "never from inside";
    EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
    EXPECT_FALSE(transfer.busy());
    return transfer.outcome;
  }

  std::array<char, 16> bytes{};
};

TAMBOUR_ON_EVERY_BACKEND(IoOperations);

TEST_P(IoOperations, each_kind_transfers_its_bytes) {
  const auto pipe = test::open_pipe();
  std::string_view word = "written";
  void* const from = const_cast<char*>(word.data());
  EXPECT_EQ(outcome_of(detail::IoKind::write, pipe.far.get(), from, 7), 7);
  EXPECT_EQ(outcome_of(detail::IoKind::read, pipe.near.get(), bytes.data(), bytes.size()), 7);
  EXPECT_EQ(std::string_view(bytes.data(), 7), word);
  const auto pair = test::open_socketpair();
  EXPECT_EQ(outcome_of(detail::IoKind::send, pair.near.get(), from, 7), 7);
  EXPECT_EQ(outcome_of(detail::IoKind::recv, pair.far.get(), bytes.data(), 3), 3);
  iovec rest{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &rest;
  message.msg_iovlen = 1;
  EXPECT_EQ(outcome_of(detail::IoKind::recvmsg, pair.far.get(), &message, 1), 4);
  rest.iov_len = 5;
  EXPECT_EQ(outcome_of(detail::IoKind::sendmsg, pair.far.get(), &message, 1), 5);
  EXPECT_EQ(outcome_of(detail::IoKind::recv, pair.near.get(), bytes.data(), bytes.size()), 5);
}

TEST_P(IoOperations, an_invalid_descriptor_is_reported_by_the_completion) {
  for (const detail::IoKind kind :
       {detail::IoKind::read, detail::IoKind::recv, detail::IoKind::write, detail::IoKind::send}) {
    EXPECT_EQ(outcome_of(kind, -1, bytes.data(), 1), -EBADF);
    EXPECT_EQ(outcome_of(kind, 900, bytes.data(), 1), -EBADF);
  }
}

TEST_P(IoOperations, an_operation_that_finishes_at_once_has_no_completion) {
  const auto pair = test::open_socketpair();
  Transfer transfer(detail::IoKind::send);
  transfer.data = bytes.data();
  transfer.size = 4;
  EXPECT_TRUE(transfer.submit_or_finish(loop(), pair.near.get()));
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
    Transfer transfer(detail::IoKind::accept);
    transfer.submit(loop(), server->descriptor());
    EXPECT_TRUE(transfer.busy());
  }
  {
    // The same if the loop is destroyed before the operation.
    Transfer transfer(detail::IoKind::accept);
    EventLoop other(options());
    transfer.submit(other, server->descriptor());
    EXPECT_TRUE(transfer.busy());
  }
  EXPECT_EQ(test::open_descriptors(), before);
  Transfer transfer(detail::IoKind::accept);
  transfer.submit(loop(), server->descriptor());
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_GE(transfer.outcome, 0);
  ::close(transfer.outcome);
}

TEST_P(IoOperations, a_reused_descriptor_number_works) {
  for (int round = 0; round < 3; ++round) {
    const auto pair = test::open_socketpair();
    Transfer transfer(detail::IoKind::recv);
    transfer.data = bytes.data();
    transfer.size = bytes.size();
    transfer.submit(loop(), pair.near.get());
    run_iterations();
    test::write_to(pair.far);
    EXPECT_TRUE(run_until([&] { return transfer.calls == 1; })) << round;
  }
}

TEST_P(IoOperations, a_cancelled_operation_completes_once_with_ecanceled) {
  const auto pair = test::open_socketpair();
  Transfer transfer(detail::IoKind::recv);
  transfer.cancel();
  transfer.data = bytes.data();
  transfer.size = bytes.size();
  transfer.submit(loop(), pair.near.get());
  run_iterations();
  transfer.cancel();
  transfer.cancel();
  EXPECT_EQ(transfer.calls, 0);
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(transfer.outcome, -ECANCELED);
  // Cancelling a completed operation does not change its outcome.
  transfer.io_kind = detail::IoKind::send;
  transfer.wait_first = false;
  transfer.submit(loop(), pair.near.get());
  transfer.cancel();
  EXPECT_TRUE(run_until([&] { return transfer.calls == 2; }));
  EXPECT_EQ(transfer.outcome, std::int32_t(bytes.size()));
}

TEST_P(IoOperations, a_failed_buffer_allocation_completes_with_enomem) {
  const auto pair = test::open_socketpair();
  Transfer transfer(detail::IoKind::recv);
  transfer.make_room = [](detail::IoOperation&) noexcept { return false; };
  transfer.submit(loop(), pair.near.get());
  test::write_to(pair.far);
  EXPECT_TRUE(run_until([&] { return transfer.calls == 1; }));
  EXPECT_EQ(transfer.outcome, -ENOMEM);
}

}  // namespace
}  // namespace tambour
