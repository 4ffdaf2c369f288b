// Scenarios with streams, connections and datagrams.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>

#include <gtest/gtest.h>

#include "faults/scenarios.h"

namespace tambour::test {
namespace {

/// The first error that any participant received; errors of the others are its consequences.
class FirstError {
 public:
  template <class Outcome>
  bool note(const Outcome& outcome) {
    if (!outcome && !error_) error_ = outcome.error();
    return outcome.has_value();
  }
  void note_exception() {
    static_cast<void>(note(Result<>(std::unexpected(system_error(ENOMEM)))));
  }
  [[nodiscard]] Error error() const noexcept { return error_; }

 private:
  Error error_;
};

/// Runs a task until it ends. Any exception is treated as ENOMEM.
Error play_task(EventLoop& loop, FirstError& first_error, Task<> task) {
  TaskScope scope(loop);
  scope.set_exception_handler(
      [&first_error](const std::exception_ptr&) { first_error.note_exception(); });
  scope.spawn(std::move(task));
  run_until(loop, [&scope] { return scope.empty(); }, "the end of the task");
  // An exception of the other end may still be pending in the loop; run() throws it. If this task
  // has failed before the other end was accepted, that happens first.
  for (int i = 0; i < 2; ++i) loop.run_ready();
  return first_error.error();
}

/// The options of a server whose exceptions are treated as ENOMEM, too.
ListenOptions noting(FirstError& first_error) {
  return {.on_error = [&first_error](const std::exception_ptr&) { first_error.note_exception(); }};
}

/// Reads until EOF and compares the bytes with `text`.
template <class S>
Task<> expect_from(S& stream, std::string_view text, FirstError& first_error) {
  Buffer all;
  for (;;) {
    const auto got = co_await stream.read(all);
    if (!first_error.note(got)) co_return;
    if (*got == 0) break;
  }
  // Unless the other end received the error that kept it from sending.
  if (all != text) first_error.note(Result<>(std::unexpected(system_error(ECONNRESET))));
}

template <class S>
Task<> echo(S peer, FirstError& first_error) {
  Buffer buffer;
  for (;;) {
    const auto got = co_await peer.read(buffer);
    if (!first_error.note(got) || *got == 0 || !first_error.note(co_await peer.write(buffer)))
      co_return;
  }
}

template <class S = TcpStream>
Task<> talk(Endpoint to, FirstError& first_error) {
  auto stream = co_await S::connect(to);
  if (!first_error.note(stream) || !first_error.note(co_await stream->write("hello"))) co_return;
  if (!first_error.note(co_await stream->shutdown_write())) co_return;
  co_await expect_from(*stream, "hello", first_error);
}

}  // namespace

Error play_streams(EventLoop& loop) {
  FirstError first_error;
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), noting(first_error));
  if (!server) return server.error();
  server->serve([&first_error](TcpStream peer) { return echo(std::move(peer), first_error); });
  for (int i = 0; i < 2 && !first_error.error(); ++i)
    play_task(loop, first_error, talk<>(server->endpoint(), first_error));
  return first_error.error();
}

Error play_connections(EventLoop& loop) {
  FirstError first_error;
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), noting(first_error));
  if (!server) return server.error();
  int open = 0;
  server->serve({.on_connection = [&open](Connection&) { ++open; },
                 .on_message = [](Connection& peer, Buffer& bytes) { peer.send(std::move(bytes)); },
                 .on_close =
                     [&](Connection&, Error error) {
                       --open;
                       if (error)
                         static_cast<void>(first_error.note(Result<>(std::unexpected(error))));
                     }});
  play_task(loop, first_error, talk<>(server->endpoint(), first_error));
  run_until(loop, [&open] { return open == 0; }, "the end of the connection");
  return first_error.error();
}

/// Sends bytes together with a descriptor.
Error play_unix(EventLoop& loop) {
  auto pair = UnixStream::pair(loop);
  if (!pair) return pair.error();
  auto& [near, far] = *pair;
  FirstError first_error;
  if (!first_error.note(far.peer_credentials())) return first_error.error();
  return play_task(loop, first_error,
                   [](UnixStream& from, UnixStream& to, FirstError& outcome) -> Task<> {
                     const std::array<int, 1> passed{to.fd()};
                     const auto bytes = std::as_bytes(std::span(std::string_view("hello")));
                     if (!outcome.note(co_await from.send(bytes, passed))) co_return;
                     std::array<std::byte, 100> place;
                     const auto got = co_await to.receive(place);
                     if (!outcome.note(got)) co_return;
                     EXPECT_EQ(got->size, 5U);
                     EXPECT_EQ(got->descriptors.size(), 1U);
                     if (!outcome.note(co_await to.shutdown_write())) co_return;
                     co_await expect_from(from, "", outcome);
                   }(near, far, first_error));
}

namespace {

/// A directory with the stale socket file of a server that was killed. Allocates no memory.
class FolderWithStaleName {
 public:
  FolderWithStaleName() {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    std::snprintf(address_.sun_path, sizeof address_.sun_path, "%s/socket", path_.data());
    const UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(stale.get(), address(), sizeof address_), 0);
  }
  FolderWithStaleName(const FolderWithStaleName&) = delete;
  FolderWithStaleName& operator=(const FolderWithStaleName&) = delete;
  ~FolderWithStaleName() {
    // Files that a failure may leave behind.
    std::array<char, 128> lock{};
    std::snprintf(lock.data(), lock.size(), "%s.tambour-lock", address_.sun_path);
    ::unlink(lock.data());
    ::unlink(address_.sun_path);
    EXPECT_EQ(::rmdir(path_.data()), 0);
  }
  [[nodiscard]] Endpoint endpoint() const {
    return Endpoint::from(address(), sizeof address_).value();
  }

 private:
  [[nodiscard]] const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&address_);
  }

  std::array<char, 32> path_{"/tmp/tambour-test-XXXXXX"};
  sockaddr_un address_{.sun_family = AF_UNIX, .sun_path = {}};
};

}  // namespace

/// A server that replaces a stale socket file, sets its mode, serves one client and removes the
/// path.
Error play_unix_server(EventLoop& loop) {
  const FolderWithStaleName folder;
  FirstError first_error;
  ListenOptions options = noting(first_error);
  options.unix_mode = 0600;
  auto server = UnixServer::listen(loop, folder.endpoint(), options);
  if (!server) return server.error();
  server->serve([&first_error](UnixStream peer) { return echo(std::move(peer), first_error); });
  play_task(loop, first_error, talk<UnixStream>(folder.endpoint(), first_error));
  // connect(2) to a Unix socket succeeds before the server accepts, so the server's error may come
  // later.
  loop.run_ready();
  run_until(loop, [&] { return server->connections() == 0; }, "the end of the stream");
  loop.run_ready();
  return first_error.error();
}

Error play_pipes(EventLoop& loop) {
  auto ends = PipeStream::open(loop);
  if (!ends) return ends.error();
  FirstError first_error;
  return play_task(loop, first_error,
                   [](PipeStream& from, PipeStream& to, FirstError& outcome) -> Task<> {
                     if (!outcome.note(co_await from.write("hello"))) co_return;
                     from.close();
                     co_await expect_from(to, "hello", outcome);
                   }(ends->writer, ends->reader, first_error));
}

/// Datagrams to a server and back: several in one call, and one alone.
Error play_datagrams(EventLoop& loop) {
  auto server = UdpSocket::bind(loop, Endpoint::loopback_v4(0));
  auto client = UdpSocket::bind(loop, Endpoint::loopback_v4(0));
  if (!server || !client) return (server ? client : server).error();
  Error first_error;
  std::size_t back = 0;
  const auto note = [&first_error](const Result<>& outcome) {
    if (!outcome && !first_error) first_error = outcome.error();
  };
  const auto on_error = [&note](UdpSocket&, Error error) { note(std::unexpected(error)); };
  const auto echo_them = [&note](UdpSocket& socket, DatagramBatch& batch) {
    note(socket.try_send(batch));
  };
  const auto count = [&back](UdpSocket&, DatagramBatch& batch) { back += batch.size(); };
  note(server->serve({.on_datagrams = echo_them, .on_error = on_error}, 4, 100));
  note(client->serve({.on_datagrams = count, .on_error = on_error}, 1, 100));
  const auto to = server->local_endpoint();
  if (!to) return to.error();
  const auto bytes = std::as_bytes(std::span("hello"));
  DatagramBatch batch(2, 100);
  note(batch.add(bytes, *to));
  note(batch.add(bytes, *to, {.ecn = Ecn::ect0}));
  note(client->try_send(batch));
  note(client->try_send_to(bytes, *to));
  run_until(loop, [&] { return first_error || back == 3; }, "each datagram");
  return first_error;
}

}  // namespace tambour::test
