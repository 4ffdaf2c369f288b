// The send queue of the kernel, by which a connection recognizes the progress of a slow peer.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include <tambour/base/unique_fd.h>

#include "backend/system.h"

namespace tambour::unacknowledged_test {
namespace {

TEST(Unacknowledged, counts_bytes_until_the_peer_of_a_unix_socket_reads_them) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd near(fds[0]);
  const UniqueFd far(fds[1]);
  detail::backend::System& system = detail::backend::kernel();
  EXPECT_EQ(system.unacknowledged(fds[0]), 0U);
  std::string bytes(10'000, 'x');
  ASSERT_EQ(::send(fds[0], bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
  EXPECT_GE(system.unacknowledged(fds[0]), bytes.size());
  ASSERT_EQ(::recv(fds[1], bytes.data(), bytes.size(), MSG_WAITALL), ssize_t(bytes.size()));
  EXPECT_EQ(system.unacknowledged(fds[0]), 0U);
}

TEST(Unacknowledged, is_zero_if_unknown) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  const UniqueFd reading(fds[0]);
  const UniqueFd writing(fds[1]);
  ASSERT_EQ(::write(fds[1], "x", 1), 1);
  EXPECT_EQ(detail::backend::kernel().unacknowledged(fds[1]), 0U);
  EXPECT_EQ(detail::backend::kernel().unacknowledged(-1), 0U);
}

}  // namespace
}  // namespace tambour::unacknowledged_test
