// A service on all processors with a database connection for each loop: no lock, and no connection
// that is used by two threads. docs/per-loop-state.md quotes this program.
//
//   build/examples/per_loop_state 127.0.0.1:8080
//
// Without an address, it serves clients of its own and ends.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// A connection to a database: here a server that answers each line with a line.
class Database {
 public:
  static Task<Result<Database>> connect(Endpoint at) {
    auto stream = co_await TcpStream::connect(at);
    if (!stream) co_return std::unexpected(stream.error());
    co_return Database(std::move(*stream));
  }

  /// One query at a time: the tasks of the loop wait for each other.
  Task<Result<std::string>> query(std::string text) {
    const auto guard = co_await mutex_->lock();
    if (!guard) co_return std::unexpected(guard.error());
    text += '\n';
    if (auto sent = co_await stream_.write(text); !sent) co_return std::unexpected(sent.error());
    auto line = co_await read_line(stream_, input_);
    if (!line) co_return std::unexpected(line.error());
    co_return line->to_string();
  }

 private:
  explicit Database(TcpStream stream)
      : stream_(std::move(stream)), mutex_(std::make_unique<TaskMutex>(stream_.loop())) {}

  TcpStream stream_;
  Buffer input_;
  std::unique_ptr<TaskMutex> mutex_;
};

Task<> serve_queries(TcpStream peer) {
  Buffer input;
  while (auto line = co_await read_line(peer, input)) {
    const std::string answer = "<" + line->to_string() + ">\n";
    const auto sent = co_await peer.write(answer);
    if (!sent) break;
  }
}

Task<> ask(Endpoint server, int& answered) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream || !co_await stream->write("GET /user/Ann HTTP/1.0\r\n\r\n")) co_return;
  Buffer answer;
  while (auto got = co_await stream->read(answer)) {
    if (*got == 0) break;
  }
  if (answer.to_string().ends_with("<Ann>")) ++answered;
}

int main(int argc, char** argv) try {
  // The database, on a thread of its own.
  LoopGroup database_thread({.threads = 1});
  auto database = or_throw(TcpServerGroup::listen(database_thread, Endpoint::loopback_v4(0)));
  database.serve(serve_queries);
  const Endpoint database_at = database.endpoint();

  LoopGroup group;
  PerLoop<Database> databases(group, [=](EventLoop&) { return Database::connect(database_at); });

  http::Router router;
  router.get("/user/{name}", [&](http::Request& request, http::Response& response) -> Task<> {
    const std::string name(request.parameter("name"));
    const auto row = co_await databases->query(name);
    if (row) {
      response.send(*row);
    } else {
      response.send(http::Status::bad_gateway);
    }
  });
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::ServerGroup::listen(group, at, std::move(router).handler()));
  std::printf("http://%s/user/Ann\n", server.endpoint().to_string().c_str());

  EventLoop loop;
  int answered = 0;
  constexpr int clients = 20;
  if (argc < 2) {
    spawn(loop, [&]() -> Task<> {
      TaskScope asking(loop);
      for (int i = 0; i < clients; ++i) asking.spawn(ask(server.endpoint(), answered));
      co_await asking.join();
      Signal::feed(loop, SIGTERM);
    });
  }
  or_throw(run_until_signal(loop, 10s, server));
  return argc < 2 && answered != clients ? 1 : 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
