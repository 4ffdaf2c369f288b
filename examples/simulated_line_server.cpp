// A server that responds in capital letters, tested in a thousand simulations. With an
// argument, it serves real clients on the socket that it inherits as descriptor 3
// (systemd.socket(5)). It makes its system calls through `System`: the kernel, or a sim::Host
// with the same interface.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

struct Kernel {
  int accept4(int fd, sockaddr* a, socklen_t* n, int flags) { return ::accept4(fd, a, n, flags); }
  ssize_t read(int fd, void* into, size_t size) { return ::read(fd, into, size); }
  ssize_t send(int fd, const void* b, size_t n, int flags) { return ::send(fd, b, n, flags); }
  int close(int fd) { return ::close(fd); }
};

template <class System>
struct LineServer {
  struct Peer {
    ~Peer() {
      watcher.stop();
      server.system.close(fd);
    }
    void exchange() {
      char bytes[1024];
      const ssize_t got = server.system.read(fd, bytes, sizeof bytes);
      for (ssize_t i = 0; i < got; ++i) out += char(std::toupper(uint8_t(bytes[i])));
      const bool lost = got == 0 || (got < 0 && errno != EAGAIN);
      const ssize_t sent = server.system.send(fd, out.data(), out.size(), MSG_NOSIGNAL);
      if (lost || (sent < 0 && errno != EAGAIN)) return void(server.peers.erase(fd));
      out.erase(0, size_t(std::max<ssize_t>(sent, 0)));
      watcher.set(out.empty() ? Events::read : Events::read | Events::write);
    }
    LineServer& server;
    int fd;
    std::string out{};
    FdWatcher watcher{server.loop, fd, Events::read, [this](Events) { exchange(); }};
  };
  void accept() {
    const int peer = system.accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    if (peer < 0) return;
    peers[peer] = std::unique_ptr<Peer>(new Peer{*this, peer});
    or_throw(peers[peer]->watcher.start());
  }
  EventLoop& loop;
  System& system;
  int listener;
  std::map<int, std::unique_ptr<Peer>> peers{};
  FdWatcher watcher{loop, listener, Events::read, [this](Events) { accept(); }};
};

void scenario(sim::Simulation& simulation) {
  sim::Host& near = simulation.add_host("near");
  sim::Host& far = simulation.add_host("far");
  simulation.options().no_descriptors = 0;  // For brevity, this server does not handle EMFILE.
  const sockaddr_in at = near.endpoint(7000);
  const int listener = near.socket(AF_INET, SOCK_STREAM, 0);
  near.bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  near.listen(listener, 5);
  EventLoop near_loop(near.loop_options()), far_loop(far.loop_options());
  LineServer<sim::Host> server{near_loop, near, listener};
  or_throw(server.watcher.start());

  const int fd = far.socket(AF_INET, SOCK_STREAM, 0);
  far.connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  const std::string answer = "WHO IS THERE?\nIT IS ME\n";
  std::string unsent = "who is there?\nit is me\n", got;
  FdWatcher watcher(far_loop, fd, Events::read | Events::write, [&](Events) {
    char bytes[100];
    const ssize_t sent = far.send(fd, unsent.data(), unsent.size(), 0);
    const bool lost = sent < 0 && errno != EAGAIN;  // Some simulations reset connections.
    unsent.erase(0, size_t(std::max<ssize_t>(sent, 0)));
    if (unsent.empty()) watcher.set(Events::read);
    const ssize_t count = far.read(fd, bytes, sizeof bytes);
    if (count > 0) got.append(bytes, size_t(count));
    if (!answer.starts_with(got)) simulation.fail("a wrong answer: " + got);
    if (got == answer || lost || count == 0 || (count < 0 && errno != EAGAIN)) simulation.stop();
  });
  or_throw(watcher.start());
  if (simulation.run(std::chrono::hours(1)) != sim::End::stopped) simulation.fail("no answer");
}

int main(int argc, char**) {
  const auto failure = sim::simulate({.first = 1, .count = 1000}, &scenario);
  if (failure) std::fputs(failure->report().c_str(), stderr);
  if (argc < 2) return failure ? 1 : 0;
  EventLoop loop;
  Kernel kernel;
  LineServer<Kernel> server{loop, kernel, 3};
  or_throw(server.watcher.start());
  loop.run();
}
