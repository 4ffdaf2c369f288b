// What the system calls cost: epoll_wait, recv and send, and a search for the ends of requests. The
// responses are always the same, and nothing of a request is examined.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "common/network.h"
#include "http/http.h"

namespace {

class Floor {
 public:
  explicit Floor(const bench::ServerOptions& options) {
    const std::string body(std::size_t(options.answer_bytes), 'b');
    response_ = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body;
    const sockaddr_in address = bench::loopback(options.port);
    const int enabled = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 4096) != 0)
      bench::fail_errno("listening");
    watch(listener_);
  }

  void run() {
    while (true) {
      std::array<epoll_event, 256> events;
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[std::size_t(i)].data.fd;
        if (fd == listener_) {
          watch(accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK));
        } else {
          serve(fd);
        }
      }
    }
  }

  static bench::SubjectInfo info() { return {"floor", "-", "epoll"}; }

 private:
  void watch(int fd) const {
    if (fd < 0) return;
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void serve(int fd) {
    const ssize_t got = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(fd);
      return;
    }
    responses_.clear();
    const std::string_view requests(buffer_.data(), std::size_t(got));
    for (std::size_t at = 0; (at = requests.find("\r\n\r\n", at)) != std::string_view::npos;
         at += 4)
      responses_ += response_;
    // Clients send whole requests, and read the responses before they send more.
    if (send(fd, responses_.data(), responses_.size(), MSG_NOSIGNAL) != ssize_t(responses_.size()))
      close(fd);
  }

  int epoll_ = epoll_create1(0);
  int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  std::string response_;
  std::string responses_;
  std::array<char, 64 * 1024> buffer_{};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Floor>(argc, argv); }
