// By hand: epoll, and one recv and one send for each time that a connection is ready.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/by_hand.h"
#include "server/server.h"

namespace {

class Floor {
 public:
  explicit Floor(const bench::ServerOptions& options)
      : service_(options.service), listener_(bench::listen_at(options.port)) {
    watch(listener_, EPOLL_CTL_ADD, EPOLLIN);
  }

  void run() {
    std::array<epoll_event, 1024> events;
    for (;;) {
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
    for (int fd; (fd = bench::accept_one(listener_)) >= 0;) {
      watch(fd, EPOLL_CTL_ADD, EPOLLIN);
      connections_.add(fd);
    }
  }

  void exchange(int fd, unsigned events) {
    if ((events & EPOLLOUT) != 0) return send_rest(fd);
    const ssize_t got = recv(fd, place_.data(), place_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(fd);
      rests_.erase(fd);
      connections_.remove(fd);
    } else if (service_ == bench::Service::echo) {
      deliver(fd, std::size_t(got));
    } else {
      for (const int each : connections_) deliver(each, std::size_t(got));
    }
  }

  void deliver(int fd, std::size_t size) {
    const auto rest = rests_.empty() ? rests_.end() : rests_.find(fd);
    std::size_t taken = 0;
    if (rest == rests_.end()) taken = bench::send_some(fd, place_.data(), size);
    if (taken == size) return;
    // Reads no more until the rest has gone.
    rests_[fd].append(place_.data() + taken, size - taken);
    watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
  }

  void send_rest(int fd) {
    std::string& rest = rests_[fd];
    rest.erase(0, bench::send_some(fd, rest.data(), rest.size()));
    if (!rest.empty()) return;
    rests_.erase(fd);
    watch(fd, EPOLL_CTL_MOD, EPOLLIN);
  }

  bench::Service service_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int listener_;
  bench::Descriptors connections_;
  std::vector<char> place_ = std::vector<char>(std::size_t(1) << 18);
  std::unordered_map<int, std::string> rests_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_server<Floor>(argc, argv); }
