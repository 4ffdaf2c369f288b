// What each type of stream and socket has, and what it does not have.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/base/unique_fd.h>
#include <tambour/net/connection.h>
#include <tambour/net/pipe.h>
#include <tambour/net/tcp.h>
#include <tambour/net/unix.h>
#include <tambour/task/scope.h>
#include <tambour/udp/socket.h>

#include "support/on_every_backend.h"
#include "support/streams.h"

namespace tambour::stream_types_test {
namespace {

template <class Handle>
concept HasEndpoints = requires(const Handle& handle) {
  handle.local_endpoint();
  handle.peer_endpoint();
};
template <class Handle>
concept HasEndpoint = requires(const Handle& handle) { handle.local_endpoint(); } ||
                      requires(const Handle& handle) { handle.peer_endpoint(); };
template <class Handle>
concept HasOptions = requires(Handle& handle) { handle.set_option(0, 0, 0); };
template <class Handle>
concept HasProxyHeader = requires(const Handle& handle) { handle.proxy_header(); } ||
                         requires(Handle& handle) { handle.set_proxy_header({}); };
template <class Handle>
concept ReadsAndWrites = requires(Handle& handle, Buffer& buffer) {
  handle.read(buffer);
  handle.write(buffer);
  handle.shutdown_write();
};
template <class Handle>
concept IsOwner = std::movable<Handle> && !std::copyable<Handle> && requires(Handle& handle) {
  { handle.is_open() } -> std::same_as<bool>;
  { handle.fd() } -> std::same_as<int>;
  { handle.loop() } -> std::same_as<EventLoop&>;
  { handle.release() } -> std::same_as<int>;
  handle.close();
};

template <class Server>
concept ServesConnections = requires(Server& server) { server.serve(ConnectionCallbacks()); } ||
                            requires(Server& server) { server.for_each_connection(nullptr); };
static_assert(ServesConnections<TcpServer> && ServesConnections<TcpServerGroup>);
// The bases of servers of HTTP, whose streams are not connections of callbacks.
static_assert(!ServesConnections<StreamServerBase> && !ServesConnections<StreamServerGroupBase>);

static_assert(IsOwner<Socket> && HasEndpoints<Socket> && HasOptions<Socket>);
static_assert(!HasProxyHeader<Socket> && !ReadsAndWrites<Socket>);

static_assert(IsOwner<Stream> && ReadsAndWrites<Stream>);
static_assert(!HasEndpoint<Stream> && !HasOptions<Stream> && !HasProxyHeader<Stream>);

static_assert(IsOwner<PipeStream> && ReadsAndWrites<PipeStream>);
static_assert(!HasEndpoint<PipeStream> && !HasOptions<PipeStream> && !HasProxyHeader<PipeStream>);

static_assert(IsOwner<UdpSocket> && HasEndpoints<UdpSocket> && HasOptions<UdpSocket>);
static_assert(!HasProxyHeader<UdpSocket> && !ReadsAndWrites<UdpSocket>);

template <class S>
constexpr bool is_socket_stream =
    IsOwner<S> && ReadsAndWrites<S> && HasEndpoints<S> && HasOptions<S> && HasProxyHeader<S>;
static_assert(is_socket_stream<SocketStream>);
static_assert(is_socket_stream<TcpStream>);
static_assert(is_socket_stream<UnixStream>);

// A pipe does not become a socket, and a socket that is not connected is not read from.
static_assert(!std::constructible_from<Socket, PipeStream>);
static_assert(!std::constructible_from<SocketStream, PipeStream>);
static_assert(!std::constructible_from<SocketStream, Stream>);
static_assert(!std::convertible_to<Socket, SocketStream>);
static_assert(std::constructible_from<SocketStream, Socket>);
static_assert(std::constructible_from<TcpStream, SocketStream>);
static_assert(std::constructible_from<UnixStream, SocketStream>);
static_assert(!std::constructible_from<TcpStream, UnixStream>);
static_assert(!std::constructible_from<UnixStream, TcpStream>);

// A wait on an UdpSocket uses its members, so the socket must not be moved into a base with public
// constructors.
static_assert(!std::constructible_from<Socket, UdpSocket>);
static_assert(!std::constructible_from<SocketStream, UdpSocket>);
static_assert(!std::constructible_from<TcpStream, UdpSocket>);

// What a server holds for each connection. A member must not be added without need.
static_assert(sizeof(Stream) <= 48 && sizeof(PipeStream) <= 48);
static_assert(sizeof(TcpStream) <= 56 && sizeof(UnixStream) <= 56);
static_assert(sizeof(UdpSocket) <= 48);

class StreamTypes : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(StreamTypes);

TEST_P(StreamTypes, a_connection_takes_over_the_header_of_its_stream) {
  auto ends = test::open_stream_ends(loop());
  const Endpoint source = Endpoint::parse("192.0.2.1:1234").value();
  ends.near.set_proxy_header({.source = source, .destination = source});
  EXPECT_EQ(ends.near.peer_endpoint(), source);
  Connection& connection =
      Connection::start(std::move(ends.near), std::make_shared<const ConnectionCallbacks>());
  ASSERT_NE(connection.proxy_header(), nullptr);
  EXPECT_EQ(connection.peer_endpoint(), source);
  connection.close();
  loop().run();
}

TEST_P(StreamTypes, a_closed_stream_has_no_endpoints_and_options) {
  TcpStream closed;
  EXPECT_EQ(closed.local_endpoint().error(), system_error(EBADF));
  EXPECT_EQ(closed.peer_endpoint().error(), system_error(EBADF));
  EXPECT_EQ(closed.set_no_delay(true).error(), system_error(EBADF));
  EXPECT_EQ(closed.set_tcp_options({}).error(), system_error(EBADF));
  run([](Stream& stream) -> Task<> {
    EXPECT_EQ((co_await stream.shutdown_write()).error(), system_error(EBADF));
  }(closed));
  const Socket socket;
  EXPECT_EQ(socket.local_endpoint().error(), system_error(EBADF));
  EXPECT_EQ(socket.peer_endpoint().error(), system_error(EBADF));
}

/// A wait on a socket that is not a stream, as of a listener.
class ReadableWait final : public detail::IoWait {
 public:
  explicit ReadableWait(Socket& socket) noexcept
      : detail::IoWait(socket, Events::read, detail::FirstCall::when_ready) {}
  [[nodiscard]] std::int32_t await_resume() const noexcept { return outcome; }

 private:
  [[nodiscard]] bool step(detail::loop::Core& /*core*/) noexcept override { return finish(0); }
};

TEST_P(StreamTypes, a_wait_on_a_socket_fails_when_the_socket_becomes_a_stream) {
  auto ends = test::open_stream_ends(loop());
  Socket socket(loop(), ends.near.release());
  std::int32_t outcome = 0;
  TaskScope scope(loop());
  scope.spawn([](Socket& local, std::int32_t& result) -> Task<> {
    result = co_await ReadableWait(local);
  }(socket, outcome));
  run_iterations();
  SocketStream stream(std::move(socket));
  run_iterations();
  EXPECT_EQ(outcome, -ECANCELED);
  // The stream itself may be read.
  run([](SocketStream& near, SocketStream& far) -> Task<> {
    EXPECT_TRUE(co_await far.write("x"));
    std::array<std::byte, 2> place;
    EXPECT_EQ(co_await near.read(place), 1U);
  }(stream, ends.far));
}

/// A socket that is inherited in blocking mode, as from inetd.
struct Inherited {
  std::array<int, 2> ends{-1, -1};
  UniqueFd kept, far;

  Inherited() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    kept = UniqueFd(::dup(ends[0]));
    far = UniqueFd(ends[1]);
  }
  [[nodiscard]] bool is_blocking() const {
    return (::fcntl(kept.get(), F_GETFL) & O_NONBLOCK) == 0;
  }
};

TEST_P(StreamTypes, a_pipe_that_is_moved_into_a_stream_is_restored_to_blocking_mode) {
  const Inherited destroyed, assigned, closed, released;
  {
    Stream stream = PipeStream(loop(), destroyed.ends[0]);
    const Stream moved = std::move(stream);
    EXPECT_FALSE(destroyed.is_blocking());
  }
  EXPECT_TRUE(destroyed.is_blocking());

  Stream stream = PipeStream(loop(), assigned.ends[0]);
  EXPECT_FALSE(assigned.is_blocking());
  stream = PipeStream(loop(), closed.ends[0]);
  EXPECT_TRUE(assigned.is_blocking());
  EXPECT_FALSE(closed.is_blocking());
  stream.close();
  EXPECT_TRUE(closed.is_blocking());

  stream = PipeStream(loop(), released.ends[0]);
  EXPECT_FALSE(released.is_blocking());
  const UniqueFd fd(stream.release());
  EXPECT_EQ(fd.get(), released.ends[0]);
  EXPECT_TRUE(released.is_blocking());
}

}  // namespace
}  // namespace tambour::stream_types_test
