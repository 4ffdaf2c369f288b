// The server is hitch, which decrypts for a plain server. That is part of this program; its
// processor time and memory do not count.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/network.h"
#include "common/processor.h"
#include "tls/tls.h"

namespace {

/// Answers requests until `lifeline`, whose other end hitch holds, is closed.
class PlainServer {
 public:
  PlainServer(int listener, int lifeline, int bytes)
      : listener_(listener), lifeline_(lifeline), answer_(bench::answer_of(bytes)) {
    watch(listener_);
    watch(lifeline_);
  }

  void run() {
    std::array<epoll_event, 64> events{};
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[std::size_t(i)].data.fd;
        if (fd == lifeline_) return;
        if (fd == listener_) {
          watch(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
        } else {
          serve(fd);
        }
      }
    }
  }

 private:
  void watch(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0) epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  /// Requests are small, and hitch reads each answer, so no call blocks for long.
  void serve(int fd) const {
    std::array<char, 4096> request{};
    const ssize_t size = recv(fd, request.data(), request.size(), 0);
    if (size <= 0) {
      close(fd);
      return;
    }
    if (!bench::requested_bytes({request.data(), std::size_t(size)})) return;
    for (std::size_t sent = 0; sent < answer_.size();) {
      const ssize_t done = send(fd, answer_.data() + sent, answer_.size() - sent, MSG_NOSIGNAL);
      if (done <= 0) return;
      sent += std::size_t(done);
    }
  }

  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int listener_;
  int lifeline_;
  const std::string& answer_;
};

class Hitch {
 public:
  explicit Hitch(const bench::ServerOptions& options)
      : certificate_(options.folder + "/server.pem"), port_(options.port) {
    std::array<int, 2> lifeline{};
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in at = bench::loopback(plain_port_);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        listen(listener, 4096) != 0)
      bench::fail_errno("listen");
    if (pipe(lifeline.data()) != 0) bench::fail_errno("pipe");
    // Inherited by the plain server, which would otherwise share the measured processor.
    bench::move_to_another_processor();
    // Forks twice, so that the plain server is not among the processes of hitch.
    const pid_t child = fork();
    if (child < 0) bench::fail_errno("fork");
    if (child == 0) {
      if (fork() != 0) _exit(0);
      close(lifeline[1]);
      PlainServer(listener, lifeline[0], options.answer_bytes).run();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    bench::move_to_pinned_processor();
    close(lifeline[0]);
    close(listener);
  }

  /// Replaces the process.
  [[noreturn]] void run() const {
    std::vector<std::string> words{"hitch",
                                   "--frontend=[127.0.0.1]:" + std::to_string(port_),
                                   "--backend=[127.0.0.1]:" + std::to_string(plain_port_),
                                   "--workers=1",
                                   "--quiet",
                                   "--tls-protos=TLSv1.2 TLSv1.3"};
    // It refuses to serve as root.
    if (geteuid() == 0) words.emplace_back("--user=nobody");
    words.push_back(certificate_);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(HITCH, arguments.data());
    bench::fail_errno(HITCH);
  }

  static bench::SubjectInfo info() { return {"hitch", HITCH_VERSION, "epoll"}; }

 private:
  std::string certificate_;
  int port_;
  std::uint16_t plain_port_ = bench::free_port();
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Hitch>(argc, argv); }
