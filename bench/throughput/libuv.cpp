// Echo on libuv: streams, one buffer a connection that is read into and written from; a write is
// tried at once, as its documentation recommends, and queued as far as that does not take it.
#include <netinet/in.h>

#include <algorithm>
#include <vector>

#include <uv.h>

#include "throughput/throughput.h"

namespace {

class Libuv {
 public:
  explicit Libuv(std::uint16_t port) {
    uv_loop_init(&loop_);
    uv_tcp_init(&loop_, &listener_);
    listener_.data = this;
    sockaddr_in address{};
    uv_ip4_addr("127.0.0.1", port, &address);
    uv_tcp_bind(&listener_, reinterpret_cast<const sockaddr*>(&address), 0);
    if (const int error = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), 4096, on_accept))
      bench::fail(std::string("listening: ") + uv_strerror(error));
  }
  ~Libuv() {
    uv_close(reinterpret_cast<uv_handle_t*>(&listener_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

  bench::About about() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  struct Connection {
    uv_tcp_t stream;
    uv_write_t request;
    Libuv* owner;
    std::vector<char> place = std::vector<char>(65536);
  };

  static Connection& of(uv_stream_t* stream) { return *static_cast<Connection*>(stream->data); }

  static void on_accept(uv_stream_t* listener, int) {
    auto& self = *static_cast<Libuv*>(listener->data);
    auto* connection = new Connection;
    connection->owner = &self;
    uv_tcp_init(&self.loop_, &connection->stream);
    connection->stream.data = connection;
    auto* stream = reinterpret_cast<uv_stream_t*>(&connection->stream);
    if (uv_accept(listener, stream) != 0) bench::fail("accept");
    uv_tcp_nodelay(&connection->stream, 1);
    ++self.open_;
    uv_read_start(stream, on_room, on_read);
  }
  static void on_room(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    Connection& connection = of(reinterpret_cast<uv_stream_t*>(handle));
    *buffer = uv_buf_init(connection.place.data(), unsigned(connection.place.size()));
  }
  static void on_read(uv_stream_t* stream, ssize_t got, const uv_buf_t* buffer) {
    if (got == 0) return;
    if (got < 0) return uv_close(reinterpret_cast<uv_handle_t*>(stream), on_closed);
    uv_buf_t rest = uv_buf_init(buffer->base, unsigned(got));
    const int taken = uv_try_write(stream, &rest, 1);
    if (taken == got) return;
    rest.base += std::max(taken, 0);
    rest.len -= std::size_t(std::max(taken, 0));
    // The place is written from: nothing is read into it until that is done.
    uv_read_stop(stream);
    uv_write(&of(stream).request, stream, &rest, 1, on_written);
  }
  static void on_written(uv_write_t* request, int error) {
    if (error == 0) uv_read_start(request->handle, on_room, on_read);
  }
  static void on_closed(uv_handle_t* handle) {
    auto* connection = static_cast<Connection*>(handle->data);
    Libuv& self = *connection->owner;
    delete connection;
    if (--self.open_ == 0) uv_stop(&self.loop_);
  }

  uv_loop_t loop_;
  uv_tcp_t listener_;
  int open_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_throughput<Libuv>(argc, argv); }
