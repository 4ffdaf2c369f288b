// The floor: epoll, with one recv and one send for each readiness event of a connection.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/server.h"
#include "server/socket_helpers.h"

namespace {

class Floor {
 public:
  explicit Floor(const bench::ServerOptions& options)
      : service_(options.service), listener_(bench::listen_on(options.port)) {
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

  bench::SubjectInfo info() const { return {"floor", bench::kernel_release(), "epoll"}; }

 private:
  void watch(int fd, int mode, unsigned events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    if (epoll_ctl(epoll_, mode, fd, &event) != 0) bench::fail_errno("epoll_ctl");
  }

  void accept_all() {
    for (int fd; (fd = bench::accept_one(listener_)) >= 0;) {
      watch(fd, EPOLL_CTL_ADD, EPOLLIN);
      connections_.add(fd);
    }
  }

  void exchange(int fd, unsigned events) {
    if ((events & EPOLLOUT) != 0) return send_unsent(fd);
    const ssize_t got = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(fd);
      unsent_.erase(fd);
      connections_.remove(fd);
    } else if (service_ == bench::Service::echo) {
      deliver(fd, std::size_t(got));
    } else {
      for (const int connection : connections_) deliver(connection, std::size_t(got));
    }
  }

  void deliver(int fd, std::size_t size) {
    const auto unsent = unsent_.empty() ? unsent_.end() : unsent_.find(fd);
    std::size_t taken = 0;
    if (unsent == unsent_.end()) taken = bench::send_some(fd, buffer_.data(), size);
    if (taken == size) return;
    // Stop reading until the remaining bytes are sent.
    unsent_[fd].append(buffer_.data() + taken, size - taken);
    watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
  }

  void send_unsent(int fd) {
    std::string& unsent = unsent_[fd];
    unsent.erase(0, bench::send_some(fd, unsent.data(), unsent.size()));
    if (!unsent.empty()) return;
    unsent_.erase(fd);
    watch(fd, EPOLL_CTL_MOD, EPOLLIN);
  }

  bench::Service service_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int listener_;
  bench::DescriptorSet connections_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t(1) << 18);
  std::unordered_map<int, std::string> unsent_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Floor>(argc, argv); }
