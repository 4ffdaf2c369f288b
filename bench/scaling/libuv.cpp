// The echo server on libuv with a loop per thread. Each loop has a listener of its own on the same
// port (SO_REUSEPORT), because a loop cannot be used by another thread.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <uv.h>

#include "server/server.h"

namespace {

class Loop {
 public:
  explicit Loop(const bench::ServerOptions& options) {
    uv_loop_init(&loop_);
    uv_tcp_init(&loop_, &listener_);
    listener_.data = this;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0)
      bench::fail_errno("SO_REUSEPORT");
    uv_tcp_open(&listener_, fd);
    sockaddr_in address{};
    uv_ip4_addr("127.0.0.1", options.port, &address);
    uv_tcp_bind(&listener_, reinterpret_cast<const sockaddr*>(&address), 0);
    if (const int error = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), 4096, on_accept))
      bench::fail(std::string("listening: ") + uv_strerror(error));
  }

  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

 private:
  /// A queued write and its bytes.
  struct Pending {
    uv_write_t request;
    std::unique_ptr<char[]> bytes;
  };

  static Loop& of(const void* data) { return *const_cast<Loop*>(static_cast<const Loop*>(data)); }

  static void on_accept(uv_stream_t* listener, int) {
    Loop& self = of(listener->data);
    auto* connection = new uv_tcp_t;
    uv_tcp_init(&self.loop_, connection);
    connection->data = &self;
    auto* stream = reinterpret_cast<uv_stream_t*>(connection);
    if (uv_accept(listener, stream) != 0) bench::fail("accept");
    uv_tcp_nodelay(connection, 1);
    uv_read_start(stream, on_alloc, on_read);
  }
  static void on_alloc(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    std::vector<char>& memory = of(handle->data).buffer_;
    *buffer = uv_buf_init(memory.data(), unsigned(memory.size()));
  }
  static void on_read(uv_stream_t* stream, ssize_t got, const uv_buf_t* buffer) {
    if (got < 0) {
      uv_close(reinterpret_cast<uv_handle_t*>(stream), on_closed);
    } else {
      deliver(stream, buffer->base, std::size_t(got));
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

  uv_loop_t loop_;
  uv_tcp_t listener_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
};

class Libuv {
 public:
  explicit Libuv(const bench::ServerOptions& options) {
    for (int i = 0; i < options.loops; ++i) loops_.push_back(std::make_unique<Loop>(options));
  }

  void run() {
    std::vector<std::jthread> threads;
    for (auto& entry : loops_) threads.emplace_back([&loop = *entry] { loop.run(); });
  }

  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Libuv>(argc, argv); }
