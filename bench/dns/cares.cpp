// c-ares on epoll: its sockets are registered as it asks for it.
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include <ares.h>

#include "dns/dns.h"

namespace {

class Cares {
 public:
  Cares() {
    ares_library_init(ARES_LIB_INIT_ALL);
    ares_options options{};
    options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
      static_cast<Cares*>(self)->watch(fd, readable != 0, writable != 0);
    };
    options.sock_state_cb_data = this;
    if (ares_init_options(&channel_, &options, ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
      bench::fail("ares_init_options");
  }
  ~Cares() {
    ares_destroy(channel_);
    close(epoll_);
  }
  Cares(const Cares&) = delete;
  Cares& operator=(const Cares&) = delete;

  void run(bench::Lookups& lookups) {
    lookups_ = &lookups;
    for (int i = 0; i < lookups.in_flight(); ++i) start_next();
    while (!lookups.finished()) {
      timeval limit{1, 0};
      timeval left;
      const timeval* const until = ares_timeout(channel_, &limit, &left);
      std::array<epoll_event, 64> events;
      const int count = epoll_wait(epoll_, events.data(), int(events.size()),
                                   int(until->tv_sec * 1000 + until->tv_usec / 1000 + 1));
      for (int i = 0; i < count; ++i) {
        const epoll_event& entry = events[std::size_t(i)];
        const bool writable = (entry.events & EPOLLOUT) != 0;
        ares_process_fd(channel_, entry.data.fd, writable ? entry.data.fd : ARES_SOCKET_BAD);
      }
      if (count == 0) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    }
  }
  bench::SubjectInfo info() const { return {"c-ares", ares_version(nullptr), "epoll"}; }

 private:
  void watch(int fd, bool readable, bool writable) const {
    epoll_event event{.events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U),
                      .data = {.fd = fd}};
    if (event.events == 0) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    } else if (epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) {
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }
  }

  void start_next() {
    const char* const name = lookups_->next();
    if (name == nullptr) return;
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(
        channel_, name, "80", &hints,
        [](void* self, int, int, ares_addrinfo* found) { static_cast<Cares*>(self)->end(found); },
        this);
  }

  void end(ares_addrinfo* found) {
    std::size_t count = 0;
    for (auto* node = found != nullptr ? found->nodes : nullptr; node != nullptr;
         node = node->ai_next)
      ++count;
    if (found != nullptr) ares_freeaddrinfo(found);
    lookups_->found(count);
    start_next();
  }

  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  ares_channel channel_ = nullptr;
  bench::Lookups* lookups_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns<Cares>(argc, argv); }
