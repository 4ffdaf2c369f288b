// The server on libevent: a listener and bufferevents of bufferevent_openssl_socket_new().
#include <string>
#include <string_view>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/ssl.h>

#include "common/network.h"
#include "tls/tls.h"

namespace {

class Libevent {
 public:
  explicit Libevent(const bench::ServerOptions& options) {
    const std::string pem = options.folder + "/server.pem";
    if (SSL_CTX_use_certificate_chain_file(tls_, pem.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls_, pem.c_str(), SSL_FILETYPE_PEM) != 1)
      bench::fail("cannot load " + pem);
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
    bufferevent* connection = bufferevent_openssl_socket_new(
        self.base_, fd, SSL_new(self.tls_), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(connection, on_read, nullptr, on_event, context);
    bufferevent_enable(connection, EV_READ | EV_WRITE);
  }
  static void on_read(bufferevent* connection, void*) {
    evbuffer* input = bufferevent_get_input(connection);
    const std::size_t size = evbuffer_get_length(input);
    const auto* text = reinterpret_cast<const char*>(evbuffer_pullup(input, -1));
    const auto bytes = bench::requested_bytes(std::string_view(text, size));
    if (!bytes) return;
    evbuffer_drain(input, size);
    const std::string& answer = bench::answer_of(*bytes);
    evbuffer_add_reference(bufferevent_get_output(connection), answer.data(), answer.size(),
                           nullptr, nullptr);
  }
  static void on_event(bufferevent* connection, short kind, void*) {
    if ((kind & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) bufferevent_free(connection);
  }

  event_base* base_ = event_base_new();
  SSL_CTX* tls_ = SSL_CTX_new(TLS_server_method());
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Libevent>(argc, argv); }
