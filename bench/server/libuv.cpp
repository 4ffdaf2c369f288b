// The server on libuv. All streams read into one buffer, because the data is processed before the
// next read. A write is first tried with uv_try_write, as libuv's documentation recommends; the
// remaining bytes are copied and queued.
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <vector>

#include <uv.h>

#include "server/server.h"

namespace {

class Libuv {
 public:
  explicit Libuv(const bench::ServerOptions& options) : service_(options.service) {
    uv_loop_init(&loop_);
    uv_tcp_init(&loop_, &listener_);
    listener_.data = this;
    sockaddr_in address{};
    uv_ip4_addr("127.0.0.1", options.port, &address);
    uv_tcp_bind(&listener_, reinterpret_cast<const sockaddr*>(&address), 0);
    if (const int error = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), 4096, on_accept))
      bench::fail(std::string("listening: ") + uv_strerror(error));
  }

  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  /// A queued write and its bytes.
  struct Pending {
    uv_write_t request;
    std::unique_ptr<char[]> bytes;
  };

  static Libuv& of(const uv_handle_t* handle) { return *static_cast<Libuv*>(handle->data); }
  static Libuv& of(const uv_stream_t* stream) { return *static_cast<Libuv*>(stream->data); }

  static void on_accept(uv_stream_t* listener, int) {
    Libuv& self = of(listener);
    auto* connection = new uv_tcp_t;
    uv_tcp_init(&self.loop_, connection);
    connection->data = &self;
    auto* stream = reinterpret_cast<uv_stream_t*>(connection);
    if (uv_accept(listener, stream) != 0) bench::fail("accept");
    uv_tcp_nodelay(connection, 1);
    self.connections_.insert(stream);
    uv_read_start(stream, on_alloc, on_read);
  }
  static void on_alloc(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    std::vector<char>& memory = of(handle).buffer_;
    *buffer = uv_buf_init(memory.data(), unsigned(memory.size()));
  }
  static void on_read(uv_stream_t* stream, ssize_t got, const uv_buf_t* buffer) {
    Libuv& self = of(stream);
    if (got < 0) {
      self.connections_.erase(stream);
      uv_close(reinterpret_cast<uv_handle_t*>(stream), on_closed);
    } else if (self.service_ == bench::Service::echo) {
      deliver(stream, buffer->base, std::size_t(got));
    } else {
      for (uv_stream_t* connection : self.connections_)
        deliver(connection, buffer->base, std::size_t(got));
    }
  }
  static void deliver(uv_stream_t* stream, char* bytes, std::size_t size) {
    uv_buf_t whole = uv_buf_init(bytes, unsigned(size));
    const auto taken = std::size_t(std::max(uv_try_write(stream, &whole, 1), 0));
    if (taken == size) return;
    // Stop reading until the remaining bytes are written.
    uv_read_stop(stream);
    auto* pending = new Pending{{}, std::make_unique_for_overwrite<char[]>(size - taken)};
    std::memcpy(pending->bytes.get(), bytes + taken, size - taken);
    pending->request.data = pending;
    const uv_buf_t rest = uv_buf_init(pending->bytes.get(), unsigned(size - taken));
    uv_write(&pending->request, stream, &rest, 1, on_written);
  }
  static void on_written(uv_write_t* request, int error) {
    if (error == 0) uv_read_start(request->handle, on_alloc, on_read);
    delete static_cast<Pending*>(request->data);
  }
  static void on_closed(uv_handle_t* handle) { delete reinterpret_cast<uv_tcp_t*>(handle); }

  bench::Service service_;
  uv_loop_t loop_;
  uv_tcp_t listener_;
  std::unordered_set<uv_stream_t*> connections_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Libuv>(argc, argv); }
