// System calls of a simulated host that the kernel comparisons do not cover: vectors, messages,
// paths without a file system, options, and invalid arguments.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::calls_test {
namespace {

class SimulatedSystemCalls : public testing::Test {
 protected:
  struct UnixName {
    explicit UnixName(std::string_view path) {
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path, path.data(), path.size());
      size = socklen_t(offsetof(sockaddr_un, sun_path) + path.size());
    }
    [[nodiscard]] const sockaddr* get() const {
      return reinterpret_cast<const sockaddr*>(&address);
    }
    sockaddr_un address{};
    socklen_t size;
  };

  /// Returns 0 or the errno value of a failed call.
  static int error_of(ssize_t outcome) { return outcome < 0 ? errno : 0; }

  std::array<int, 2> pair(int type = SOCK_STREAM) {
    std::array<int, 2> fds{};
    EXPECT_EQ(host.socketpair(AF_UNIX, type, 0, fds.data()), 0);
    return fds;
  }

  int bound_udp(int family) {
    const int fd = host.socket(family, SOCK_DGRAM, 0);
    sockaddr_storage any{};
    any.ss_family = sa_family_t(family);
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    EXPECT_EQ(host.bind(fd, reinterpret_cast<sockaddr*>(&any), size), 0);
    return fd;
  }

  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
};

TEST_F(SimulatedSystemCalls, vectors_are_gathered_and_scattered) {
  const auto fds = pair();
  std::string first = "hello ";
  std::string second = "world";
  std::array<iovec, 3> from{{{.iov_base = first.data(), .iov_len = first.size()},
                             {.iov_base = nullptr, .iov_len = 0},
                             {.iov_base = second.data(), .iov_len = second.size()}}};
  EXPECT_EQ(host.writev(fds[0], from.data(), 3), 11);
  std::string start(3, '\0');
  std::string rest(20, '\0');
  std::array<iovec, 2> into{{{.iov_base = start.data(), .iov_len = start.size()},
                             {.iov_base = rest.data(), .iov_len = rest.size()}}};
  EXPECT_EQ(host.readv(fds[1], into.data(), 2), 11);
  EXPECT_EQ(start + rest.substr(0, 8), "hello world");
  EXPECT_EQ(error_of(host.readv(fds[1], into.data(), -1)), EINVAL);
  EXPECT_EQ(error_of(host.readv(fds[1], nullptr, 1)), EINVAL);
  EXPECT_EQ(error_of(host.writev(fds[1], from.data(), 1025)), EINVAL);
}

TEST_F(SimulatedSystemCalls, messages_carry_names_and_flags) {
  for (const int family : {AF_INET, AF_INET6}) {
    const int one = bound_udp(family);
    const int other = bound_udp(family);
    sockaddr_storage name{};
    socklen_t name_size = sizeof name;
    ASSERT_EQ(host.getsockname(other, reinterpret_cast<sockaddr*>(&name), &name_size), 0);
    std::string text = "message";
    iovec buffer{.iov_base = text.data(), .iov_len = text.size()};
    msghdr message{};
    message.msg_name = &name;
    message.msg_namelen = name_size;
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    EXPECT_EQ(host.sendmsg(one, &message, MSG_NOSIGNAL), 7);
    buffer.iov_len = 4;
    message.msg_namelen = sizeof name;
    EXPECT_EQ(host.recvmsg(other, &message, 0), 4);
    EXPECT_EQ(message.msg_flags, MSG_TRUNC);
    EXPECT_EQ(message.msg_namelen, name_size);

    EXPECT_EQ(error_of(host.sendmsg(one, &message, MSG_OOB)), EOPNOTSUPP);
    EXPECT_EQ(error_of(host.recvmsg(other, &message, MSG_ERRQUEUE)), EOPNOTSUPP);
    message.msg_controllen = 10;
    EXPECT_EQ(error_of(host.sendmsg(one, &message, 0)), EOPNOTSUPP) << "no ancillary data";
    message.msg_iovlen = 2000;
    EXPECT_EQ(error_of(host.sendmsg(one, &message, 0)), EMSGSIZE);
    EXPECT_EQ(error_of(host.recvmsg(other, &message, 0)), EMSGSIZE);
  }
}

TEST_F(SimulatedSystemCalls, names_of_unix_sockets_stay_until_they_are_unlinked) {
  const UnixName name("/run/service");
  const int client = host.socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(error_of(host.connect(client, name.get(), name.size)), ENOENT);
  int listener = host.socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(host.bind(listener, name.get(), name.size), 0);
  sockaddr_un found{};
  socklen_t size = sizeof found;
  EXPECT_EQ(host.getsockname(listener, reinterpret_cast<sockaddr*>(&found), &size), 0);
  EXPECT_STREQ(found.sun_path, "/run/service");
  EXPECT_EQ(size, name.size + 1) << "with the zero at its end";
  host.close(listener);
  EXPECT_EQ(error_of(host.connect(client, name.get(), name.size)), ECONNREFUSED);
  listener = host.socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(error_of(host.bind(listener, name.get(), name.size)), EADDRINUSE);
  struct stat first{};
  EXPECT_EQ(host.lstat("/run/service", &first), 0);
  EXPECT_TRUE(S_ISSOCK(first.st_mode));
  EXPECT_EQ(host.unlink("/run/service"), 0);
  EXPECT_EQ(error_of(host.unlink("/run/service")), ENOENT);
  EXPECT_EQ(error_of(host.lstat("/run/service", &first)), ENOENT);
  EXPECT_EQ(host.bind(listener, name.get(), name.size), 0);
  struct stat second{};
  EXPECT_EQ(host.lstat("/run/service", &second), 0);
  EXPECT_NE(second.st_ino, first.st_ino);
  EXPECT_EQ(host.listen(listener, 5), 0);
  EXPECT_EQ(host.connect(client, name.get(), name.size), 0);
  EXPECT_GE(host.accept4(listener, nullptr, nullptr, 0), 0);
}

TEST_F(SimulatedSystemCalls, unix_datagrams_are_sent_by_name) {
  const UnixName name("/run/log");
  const UnixName sender_name("/run/sender");
  const int sender = host.socket(AF_UNIX, SOCK_DGRAM, 0);
  const auto send = [&] { return host.sendto(sender, "line", 4, 0, name.get(), name.size); };
  EXPECT_EQ(error_of(host.send(sender, "line", 4, 0)), ENOTCONN);
  EXPECT_EQ(error_of(send()), ENOENT);
  EXPECT_EQ(error_of(host.connect(sender, name.get(), name.size)), ENOENT);
  const int log = host.socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_EQ(host.bind(log, name.get(), name.size), 0);
  ASSERT_EQ(host.bind(sender, sender_name.get(), sender_name.size), 0);
  EXPECT_EQ(error_of(host.bind(sender, name.get(), name.size)), EINVAL);
  EXPECT_EQ(send(), 4);
  EXPECT_EQ(host.connect(sender, name.get(), name.size), 0);
  EXPECT_EQ(host.send(sender, "again", 5, 0), 5);
  std::array<char, 10> bytes{};
  sockaddr_un from{};
  socklen_t size = sizeof from;
  EXPECT_EQ(
      host.recvfrom(log, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size),
      4);
  EXPECT_STREQ(from.sun_path, "/run/sender");
  EXPECT_EQ(error_of(host.send(sender, std::string(300'000, 'x').data(), 300'000, 0)), EMSGSIZE);
  EXPECT_EQ(host.shutdown(log, SHUT_RD), 0);
  EXPECT_EQ(error_of(host.send(sender, "line", 4, 0)), EPIPE);
  host.close(log);
  EXPECT_EQ(error_of(send()), ECONNREFUSED);
  EXPECT_EQ(error_of(host.connect(sender, name.get(), name.size)), ECONNREFUSED);
}

TEST_F(SimulatedSystemCalls, a_path_is_bound_for_one_socket_type) {
  const UnixName name("/run/service");
  const int datagrams = host.socket(AF_UNIX, SOCK_DGRAM, 0);
  const int stream = host.socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(host.bind(datagrams, name.get(), name.size), 0);
  EXPECT_EQ(error_of(host.connect(stream, name.get(), name.size)), EPROTOTYPE);
  EXPECT_EQ(error_of(host.bind(stream, name.get(), name.size)), EADDRINUSE);
  host.close(datagrams);
  EXPECT_EQ(error_of(host.connect(stream, name.get(), name.size)), ECONNREFUSED);
}

TEST_F(SimulatedSystemCalls, a_pipe_with_space_for_one_byte_accepts_one_byte) {
  simulation.options().short_write = 1;
  simulation.options().pipe_buffer_bytes = 8192;
  std::array<int, 2> fds{};
  ASSERT_EQ(host.pipe2(fds.data(), 0), 0);
  const std::string much(5000, 'x');
  ASSERT_EQ(host.write(fds[1], much.data(), 4096), 4096);
  ASSERT_EQ(host.write(fds[1], much.data(), 4095), 4095);
  EXPECT_EQ(host.write(fds[1], much.data(), much.size()), 1);
  EXPECT_EQ(error_of(host.write(fds[1], much.data(), much.size())), EAGAIN);
}

TEST_F(SimulatedSystemCalls, datagram_sockets_are_shut_down) {
  const auto fds = pair(SOCK_DGRAM);
  EXPECT_EQ(error_of(host.shutdown(fds[0], 7)), EINVAL);
  EXPECT_EQ(host.shutdown(fds[0], SHUT_RDWR), 0);
  std::array<char, 10> bytes{};
  EXPECT_EQ(error_of(host.recv(fds[0], bytes.data(), bytes.size(), 0)), EAGAIN);
  EXPECT_EQ(error_of(host.send(fds[0], "x", 1, 0)), EPIPE);
}

TEST_F(SimulatedSystemCalls, invalid_addresses_are_rejected) {
  const int fd = host.socket(AF_INET, SOCK_STREAM, 0);
  const int fd6 = host.socket(AF_INET6, SOCK_STREAM, 0);
  const int local = host.socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_in in = host.endpoint(80);
  const sockaddr_in6 in6 = host.endpoint6(80);
  const auto* generic = reinterpret_cast<const sockaddr*>(&in);
  const auto* generic6 = reinterpret_cast<const sockaddr*>(&in6);
  EXPECT_EQ(error_of(host.bind(fd, nullptr, sizeof in)), EFAULT);
  EXPECT_EQ(error_of(host.bind(fd, generic, 1)), EINVAL);
  EXPECT_EQ(error_of(host.bind(fd, generic, sizeof in - 1)), EINVAL);
  EXPECT_EQ(error_of(host.bind(fd6, generic6, sizeof in6 - 5)), EINVAL);
  EXPECT_EQ(error_of(host.connect(fd, generic6, sizeof in6)), EAFNOSUPPORT);
  const UnixName name("x");
  EXPECT_EQ(error_of(host.bind(local, name.get(), sizeof(sockaddr_un) + 1)), EINVAL);
  EXPECT_EQ(error_of(host.bind(local, name.get(), sizeof(sa_family_t))), EOPNOTSUPP);
  EXPECT_EQ(host.bind(fd6, generic6, sizeof in6), 0);
  sockaddr_storage found{};
  socklen_t size = 4;
  EXPECT_EQ(host.getsockname(fd6, reinterpret_cast<sockaddr*>(&found), &size), 0);
  EXPECT_EQ(size, sizeof in6) << "the full size of the address";
  EXPECT_EQ(host.getsockname(fd6, nullptr, nullptr), 0);
}

TEST_F(SimulatedSystemCalls, the_wildcard_connects_to_this_host) {
  for (const int family : {AF_INET, AF_INET6}) {
    const int listener = host.socket(family, SOCK_STREAM, 0);
    ASSERT_EQ(host.listen(listener, 5), 0);
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    ASSERT_EQ(host.getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size), 0);
    const int client = host.socket(family, SOCK_STREAM, 0);
    sockaddr_storage any{};
    any.ss_family = sa_family_t(family);
    ASSERT_EQ(host.bind(client, reinterpret_cast<sockaddr*>(&any), size), 0);
    EXPECT_EQ(error_of(host.connect(client, reinterpret_cast<sockaddr*>(&name), size)),
              EINPROGRESS);
    EXPECT_EQ(host.connect(client, reinterpret_cast<sockaddr*>(&name), size), 0);
    sockaddr_storage peer{};
    ASSERT_EQ(host.getpeername(client, reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(host.send(client, "x", 1, 0), 1);
    EXPECT_GE(host.accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, 0), 0);
  }
}

TEST_F(SimulatedSystemCalls, options_are_stored_rejected_or_ignored) {
  const int fd = host.socket(AF_INET, SOCK_STREAM, 0);
  const int local = pair()[0];
  const int one = 1;
  const int bytes = 5000;
  EXPECT_EQ(host.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
  EXPECT_EQ(host.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
  EXPECT_EQ(error_of(host.setsockopt(local, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)),
            ENOPROTOOPT);
  EXPECT_EQ(error_of(host.setsockopt(fd, 12345, 1, &one, sizeof one)), ENOPROTOOPT);
  EXPECT_EQ(error_of(host.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, 1)), EINVAL);
  EXPECT_EQ(error_of(host.setsockopt(fd, SOL_SOCKET, SO_LINGER, &one, sizeof one)), EINVAL);
  EXPECT_EQ(error_of(host.setsockopt(fd, SOL_SOCKET, SO_LINGER, nullptr, 8)), EINVAL);
  EXPECT_EQ(host.setsockopt(local, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
  const std::string much(10'000, 'x');
  EXPECT_EQ(host.send(local, much.data(), much.size(), 0), 5000);
  const int datagrams = host.socket(AF_INET, SOCK_DGRAM, 0);
  EXPECT_EQ(host.setsockopt(datagrams, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
  for (const auto& [subject, option, expected] :
       {std::tuple(local, SO_SNDBUF, 5000), std::tuple(datagrams, SO_RCVBUF, 5000),
        std::tuple(fd, SO_RCVBUF, 256 * 1024), std::tuple(fd, SO_SNDBUF, 256 * 1024)}) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(host.getsockopt(subject, SOL_SOCKET, option, &value, &size), 0);
    EXPECT_EQ(value, expected);
  }
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(error_of(host.getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size)), ENOPROTOOPT);
  EXPECT_EQ(error_of(host.getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size)), ENOPROTOOPT);
}

TEST_F(SimulatedSystemCalls, unsupported_sockets_are_rejected) {
  std::array<int, 2> fds{};
  EXPECT_EQ(error_of(host.socket(AF_INET, SOCK_SEQPACKET, 0)), ESOCKTNOSUPPORT);
  EXPECT_EQ(error_of(host.socketpair(AF_INET, SOCK_STREAM, 0, fds.data())), EOPNOTSUPP);
  EXPECT_EQ(error_of(host.socketpair(AF_INET, 77, 0, fds.data())), EINVAL);
  const int counter = host.eventfd(0, 0);
  EXPECT_EQ(error_of(host.send(counter, "x", 1, 0)), ENOTSOCK);
  host.reset(counter);
  host.reset(7);
}

TEST_F(SimulatedSystemCalls, dup2_replaces_an_open_descriptor) {
  const auto fds = pair();
  const auto others = pair();
  EXPECT_EQ(host.dup2(fds[0], others[0]), others[0]);
  std::array<char, 10> bytes{};
  EXPECT_EQ(host.recv(others[1], bytes.data(), bytes.size(), 0), 0) << "the other end was closed";
  EXPECT_EQ(host.send(others[0], "x", 1, 0), 1);
  EXPECT_EQ(host.recv(fds[1], bytes.data(), bytes.size(), 0), 1);
  EXPECT_EQ(host.dup2(fds[0], fds[0]), fds[0]);
  EXPECT_EQ(host.dup2(fds[0], 2000), 2000);
  EXPECT_EQ(error_of(host.dup2(fds[0], 3)), EBADF);
  EXPECT_EQ(error_of(host.dup2(3, 2000)), EBADF);
  EXPECT_EQ(error_of(host.dup2(fds[0], 2'000'000'000)), EBADF);
  EXPECT_EQ(host.descriptors(), 5);
}

}  // namespace
}  // namespace tambour::calls_test
