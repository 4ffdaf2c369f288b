// Echo on libevent: a listener and bufferevents; what has come is moved to the output without
// copying, as its documentation's echo server does.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "throughput/throughput.h"

namespace {

class Libevent {
 public:
  explicit Libevent(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    listener_ =
        evconnlistener_new_bind(base_, on_accept, this, LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE,
                                4096, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (listener_ == nullptr) bench::fail_errno("listening");
  }
  ~Libevent() {
    evconnlistener_free(listener_);
    event_base_free(base_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void run() { event_base_dispatch(base_); }

  bench::About about() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_accept(evconnlistener*, evutil_socket_t fd, sockaddr*, int, void* context) {
    auto& self = *static_cast<Libevent*>(context);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    bufferevent* connection = bufferevent_socket_new(self.base_, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(connection, on_read, nullptr, on_event, context);
    bufferevent_enable(connection, EV_READ | EV_WRITE);
    ++self.open_;
  }
  static void on_read(bufferevent* connection, void*) {
    evbuffer_add_buffer(bufferevent_get_output(connection), bufferevent_get_input(connection));
  }
  static void on_event(bufferevent* connection, short what, void* context) {
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;
    auto& self = *static_cast<Libevent*>(context);
    bufferevent_free(connection);
    if (--self.open_ == 0) event_base_loopbreak(self.base_);
  }

  event_base* base_ = event_base_new();
  evconnlistener* listener_;
  int open_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_throughput<Libevent>(argc, argv); }
