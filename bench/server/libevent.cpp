// The server on libevent: a listener and bufferevents. Input is moved to the output without
// copying, as in the echo server of libevent's documentation.
#include <unordered_set>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "common/network.h"
#include "server/server.h"

namespace {

class Libevent {
 public:
  explicit Libevent(const bench::ServerOptions& options) : service_(options.service) {
    const sockaddr_in address = bench::loopback(options.port);
    const unsigned flags = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE;
    if (evconnlistener_new_bind(base_, on_accept, this, flags, 4096,
                                reinterpret_cast<const sockaddr*>(&address),
                                sizeof address) == nullptr)
      bench::fail_errno("listening");
  }

  void run() { event_base_dispatch(base_); }

  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_accept(evconnlistener*, evutil_socket_t fd, sockaddr*, int, void* context) {
    auto& self = *static_cast<Libevent*>(context);
    bench::set_no_delay(fd);
    bufferevent* connection = bufferevent_socket_new(self.base_, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(connection, on_read, nullptr, on_event, context);
    bufferevent_enable(connection, EV_READ | EV_WRITE);
    self.connections_.insert(connection);
  }
  static void on_read(bufferevent* connection, void* context) {
    auto& self = *static_cast<Libevent*>(context);
    evbuffer* input = bufferevent_get_input(connection);
    if (self.service_ == bench::Service::echo) {
      evbuffer_add_buffer(bufferevent_get_output(connection), input);
      return;
    }
    const std::size_t size = evbuffer_get_length(input);
    const void* message = evbuffer_pullup(input, -1);
    for (bufferevent* entry : self.connections_) bufferevent_write(entry, message, size);
    evbuffer_drain(input, size);
  }
  static void on_event(bufferevent* connection, short kind, void* context) {
    if ((kind & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;
    static_cast<Libevent*>(context)->connections_.erase(connection);
    bufferevent_free(connection);
  }

  bench::Service service_;
  event_base* base_ = event_base_new();
  std::unordered_set<bufferevent*> connections_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Libevent>(argc, argv); }
