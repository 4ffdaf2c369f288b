// Zero-downtime restart: on SIGHUP, the server starts a new process and hands its listener to it,
// so that no connection is refused.
//
//   build/examples/restart 127.0.0.1:7000    then send SIGHUP to the process whose PID it sends
//   build/examples/restart --demo            restarts itself three times while a client connects
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

Task<> answer(TcpStream peer) {
  static_cast<void>(co_await peer.write(std::to_string(::getpid())));
}

/// Starts a new process, and ends this one as SIGTERM would.
Task<> renew(EventLoop& loop, TcpServer& server) {
  const std::vector<PassedListener> passed{{&server, "web"}};
  const auto started = co_await start_new_process(passed);
  if (!started) {
    std::fprintf(stderr, "no new process: %s\n", started.error().message().c_str());
    co_return;
  }
  Signal::feed(loop, SIGTERM);
}

/// Returns the PID that the server sends; 0 if no server answers.
Task<pid_t> ask(Endpoint server) {
  auto stream = co_await TcpStream::connect(server);
  Buffer text;
  while (stream) {
    const auto got = co_await stream->read(text);
    if (!got || *got == 0) break;
  }
  co_return std::atoi(text.to_string().c_str());
}

/// Restarts three times: sends SIGHUP to each process that answers, and SIGTERM to the last one.
Task<> demonstrate(TcpServer& server, bool& refused) {
  const std::vector<PassedListener> passed{{&server, "web"}};
  if (!co_await start_new_process(passed)) co_return;
  const Endpoint at = server.endpoint();
  server.stop();
  std::set<pid_t> signalled;
  while (signalled.size() < 4) {
    const pid_t answered = co_await ask(at);
    if (answered == 0) refused = true;
    if (answered == 0) co_return;
    if (!signalled.insert(answered).second) continue;
    std::printf("process %d answers\n", answered);
    ::kill(answered, signalled.size() < 4 ? SIGHUP : SIGTERM);
  }
}

int main(int argc, char** argv) {
  auto inherited = InheritedListeners::from_environment();
  if (!inherited) return std::fprintf(stderr, "bad LISTEN_FDS\n"), 2;
  const bool demo = argc > 1 && std::string_view(argv[1]) == "--demo";
  const auto at = Endpoint::parse(argc > 1 && !demo ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;

  EventLoop loop;
  UniqueFd web = inherited->take("web");
  auto server =
      web.is_open() ? TcpServer::adopt(loop, std::move(web)) : TcpServer::listen(loop, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  bool refused = false;
  if (demo) {
    spawn(loop, demonstrate(*server, refused));
    loop.run();
    return refused ? 1 : 0;
  }
  Signal hang_up(loop, SIGHUP, [&](int) { spawn(loop, renew(loop, *server)); });
  if (!hang_up.start()) return 1;
  // After its signals are watched, because a client may send one as soon as it has a response.
  loop.post([&server] {
    server->serve(answer);
    notify_ready();
  });
  return run_until_signal(loop, 10s, *server) ? 0 : 1;
}
