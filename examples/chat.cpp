// A chat server: each line from one client is sent to all others. With an address, it serves there:
//
//   build/examples/chat 127.0.0.1:7000        and, in several terminals:        nc 127.0.0.1 7000
//
// Without an address, three clients of its own talk and the program ends. Shows a server on all
// processors, line framing with callbacks, and a ConnectionGroup that closes clients that do not
// read.
#include <atomic>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

class Chat {
 public:
  explicit Chat(LoopGroup& loops)
      // A client that does not read is closed when 1 MB waits for it.
      : clients_(loops, {.unsent_bytes_max = 1'000'000, .when_slow = WhenSlow::close}) {}

  ConnectionCallbacks callbacks() {
    return {.on_connection =
                [this](Connection& client) {
                  client.context() = "client " + std::to_string(++clients_accepted_);
                  broadcast(client, "has joined");
                  clients_.add(client);
                },
            .on_message = [this](Connection& client,
                                 Buffer& received) { read_lines(client, received); },
            .on_close = [this](Connection& client, Error) { broadcast(client, "has left"); }};
  }

 private:
  void read_lines(Connection& client, Buffer& received) {
    Result<std::optional<Buffer>> line;
    while ((line = take_line(received, {.bytes_max = 1000})) && *line)
      broadcast(client, (*line)->coalesce());
    if (!line) client.close();  // The line is too long.
  }

  /// Sends a line to all clients except the one it comes from.
  void broadcast(Connection& from, std::string_view text) {
    Buffer line(std::any_cast<std::string&>(from.context()) + ": ");
    // A line that contains a carriage return cannot be appended; it is dropped.
    if (append_line(line, text)) clients_.send_except(from, std::move(line));
  }

  ConnectionGroup clients_;
  std::atomic<int> clients_accepted_ = 0;
};

/// Connects after `when`, sends `say`, and prints `lines` received lines.
Task<> visit(Endpoint where, Duration when, std::string say, int lines) {
  co_await sleep_for(when);
  auto stream = co_await TcpStream::connect(where);
  if (!stream || !co_await stream->write(say)) co_return;
  Buffer heard;
  while (lines-- > 0) {
    auto line = co_await timeout(5s, read_line(*stream, heard));
    if (!line) co_return;
    std::printf("%s heard: %s\n", say.substr(0, 3).c_str(), line->to_string().c_str());
  }
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  LoopGroup loops;
  Chat chat(loops);
  auto server = TcpServerGroup::listen(loops, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(chat.callbacks());
  if (argc < 2) {
    EventLoop clients;
    spawn(
        clients,
        [](Endpoint where) -> Task<> {
          co_await when_all(visit(where, 0ms, "Ann says hello\n", 4),
                            visit(where, 50ms, "Bob says hello\r\n", 2),
                            visit(where, 100ms, "Cay says hello\nCay leaves\n", 0));
        },
        server->endpoint());
    clients.run();
    loops.stop();
  }
  loops.join();
}
