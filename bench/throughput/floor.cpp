// Echo by hand: epoll, and one recv and one send for each time that a connection is ready.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <unordered_map>
#include <vector>

#include "throughput/throughput.h"

namespace {

class Floor {
 public:
  explicit Floor(std::uint16_t port) : place_(std::size_t(1) << 18) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const int on = 1;
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 4096) != 0)
      bench::fail_errno("listening");
    watch(listener_, EPOLL_CTL_ADD, EPOLLIN);
  }
  ~Floor() {
    close(listener_);
    close(epoll_);
  }
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  void run() {
    std::array<epoll_event, 1024> events;
    while (accepted_ == 0 || open_ > 0) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == listener_) {
          accept_all();
        } else {
          exchange(events[i].data.fd, events[i].events);
        }
      }
    }
  }

  bench::About about() const { return {"floor", bench::kernel_release(), "epoll"}; }

 private:
  void watch(int fd, int how, unsigned events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    if (epoll_ctl(epoll_, how, fd, &event) != 0) bench::fail_errno("epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      watch(fd, EPOLL_CTL_ADD, EPOLLIN);
      ++accepted_;
      ++open_;
    }
  }

  void exchange(int fd, unsigned events) {
    if ((events & EPOLLOUT) != 0 && !send_rest(fd)) return;
    const ssize_t got = recv(fd, place_.data(), place_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(fd);
      rests_.erase(fd);
      --open_;
      return;
    }
    const ssize_t sent = send(fd, place_.data(), std::size_t(got), MSG_NOSIGNAL);
    const std::size_t taken = sent < 0 ? 0 : std::size_t(sent);
    if (taken == std::size_t(got)) return;
    // Reads no more until the rest has gone.
    rests_[fd].assign(place_.begin() + std::ptrdiff_t(taken), place_.begin() + got);
    watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
  }

  bool send_rest(int fd) {
    std::vector<char>& rest = rests_[fd];
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) rest.erase(rest.begin(), rest.begin() + sent);
    if (!rest.empty()) return false;
    watch(fd, EPOLL_CTL_MOD, EPOLLIN);
    return false;
  }

  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int listener_;
  int accepted_ = 0;
  int open_ = 0;
  std::vector<char> place_;
  std::unordered_map<int, std::vector<char>> rests_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_throughput<Floor>(argc, argv); }
