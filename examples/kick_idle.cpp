// An echo server that closes connections after a number of milliseconds without data. Postponing
// such an idle timeout takes constant time, independent of the number of connections.
//
//   build/examples/kick_idle 127.0.0.1:7000 10000
//
// Without arguments, it serves two clients of its own, an active one and an idle one, and ends.
#include <cstdio>
#include <cstdlib>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

ConnectionCallbacks echo_until_idle(Duration idle, int& closed) {
  return {.on_connection = [idle](Connection& client) { client.set_idle_timeout(idle); },
          .on_message = [](Connection& client, Buffer& bytes) { client.send(std::move(bytes)); },
          .on_close =
              [&closed](Connection& client, Error error) {
                if (error != system_error(ETIMEDOUT)) return;
                ++closed;
                const auto peer = client.peer_endpoint();
                std::printf("%s timed out\n", peer ? peer->to_string().c_str() : "a client");
              }};
}

/// Sends `times` messages and then waits until the server closes the connection. Returns whether
/// all messages were echoed and the connection was closed.
Task<bool> visit(Endpoint where, int times) {
  auto stream = co_await TcpStream::connect(where);
  Buffer answers;
  while (stream && times-- > 0) {
    if (!co_await stream->write("tick\n")) co_return false;
    if (!co_await read_line(*stream, answers)) co_return false;
    co_await sleep_for(50ms);
  }
  co_return stream && (co_await read_line(*stream, answers)).error() == StreamError::eof;
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  const auto idle = std::chrono::milliseconds(argc > 2 ? std::atoi(argv[2]) : 3000);
  EventLoop loop;
  int closed = 0;
  auto server = TcpServer::listen(loop, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(echo_until_idle(idle, closed));
  bool is_well = true;
  if (argc < 2) {
    spawn(loop, [](TcpServer& local, bool& well) -> Task<> {
      const Endpoint where = local.endpoint();
      // The first client is active for longer than the idle timeout.
      const auto [talked, slept] = co_await when_all(visit(where, 70), visit(where, 0));
      well = talked && slept;
      co_await local.shut_down(1s);
    }(*server, is_well));
  }
  loop.run();
  return is_well && (argc > 1 || closed == 2) ? 0 : 1;
}
