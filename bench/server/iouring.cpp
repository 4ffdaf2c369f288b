// A hand-written server on io_uring, with its features for servers: multishot accept, a multishot
// receive per connection, buffers that the kernel selects from a ring, and sends that are submitted
// with the next wait. Messages of TAMBOUR_BENCH_ZERO_COPY_FROM bytes or more, if set, are sent
// without copying.
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <liburing.h>

#include "server/server.h"
#include "server/socket_helpers.h"

namespace {

enum class Kind : std::uint64_t { accept, receive, send };

class IoUring {
 public:
  explicit IoUring(const bench::ServerOptions& options)
      : service_(options.service), listener_(bench::listen_on(options.port)) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    params.cq_entries = 32768;
    if (io_uring_queue_init_params(4096, &ring_, &params) != 0)
      bench::fail("io_uring is not available");
    io_uring_buf_reg shared{};
    shared.ring_addr = reinterpret_cast<std::uint64_t>(buffers_);
    shared.ring_entries = buffer_count;
    if (io_uring_register_buf_ring(&ring_, &shared, 0) != 0)
      bench::fail("io_uring buffer rings are not available");
    io_uring_buf_ring_init(buffers_);
    for (unsigned id = 0; id < buffer_count; ++id) recycle(id);
    if (const char* from = std::getenv("TAMBOUR_BENCH_ZERO_COPY_FROM"))
      zero_copy_from_ = std::size_t(std::atol(from));
  }
  IoUring(const IoUring&) = delete;
  IoUring& operator=(const IoUring&) = delete;
  ~IoUring() { io_uring_queue_exit(&ring_); }

  void run() {
    accept();
    for (;;) {
      io_uring_submit_and_wait(&ring_, 1);
      unsigned head;
      unsigned count = 0;
      io_uring_cqe* done;
      io_uring_for_each_cqe(&ring_, head, done) {
        ++count;
        complete(*done);
      }
      io_uring_cq_advance(&ring_, count);
      for (const int fd : std::exchange(starved_, {})) receive(fd);
    }
  }

  bench::SubjectInfo info() const { return {"iouring", bench::kernel_release(), "io_uring"}; }

 private:
  static constexpr unsigned buffer_count = 512;
  static constexpr std::size_t buffer_bytes = std::size_t{64} * 1024;

  /// Unsent bytes in a buffer.
  struct Piece {
    unsigned buffer;
    std::size_t at;
    std::size_t size;
  };
  struct Connection {
    std::deque<Piece> output{};  ///< The first is being sent.
    bool ended = false;
  };

  io_uring_sqe* entry() {
    io_uring_sqe* const free = io_uring_get_sqe(&ring_);
    if (free != nullptr) return free;
    io_uring_submit(&ring_);
    return io_uring_get_sqe(&ring_);
  }
  static void mark(io_uring_sqe* entry, Kind kind, int fd) {
    io_uring_sqe_set_data64(entry, std::uint64_t(kind) << 32 | std::uint32_t(fd));
  }

  void accept() {
    io_uring_sqe* const sqe = entry();
    io_uring_prep_multishot_accept(sqe, listener_, nullptr, nullptr, SOCK_CLOEXEC);
    mark(sqe, Kind::accept, listener_);
  }

  void receive(int fd) {
    io_uring_sqe* const sqe = entry();
    io_uring_prep_recv_multishot(sqe, fd, nullptr, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = 0;
    mark(sqe, Kind::receive, fd);
  }

  void send_first(int fd) {
    const Piece& piece = connections_[std::size_t(fd)]->output.front();
    io_uring_sqe* const sqe = entry();
    char* const bytes = address(piece.buffer) + piece.at;
    if (piece.size >= zero_copy_from_) {
      io_uring_prep_send_zc(sqe, fd, bytes, piece.size, MSG_NOSIGNAL | MSG_WAITALL, 0);
    } else {
      io_uring_prep_send(sqe, fd, bytes, piece.size, MSG_NOSIGNAL | MSG_WAITALL);
    }
    mark(sqe, Kind::send, fd);
  }

  void complete(const io_uring_cqe& done) {
    const int fd = int(std::uint32_t(done.user_data));
    switch (Kind(done.user_data >> 32)) {
      case Kind::accept:
        if (done.res >= 0) add(done.res);
        if ((done.flags & IORING_CQE_F_MORE) == 0) accept();
        break;
      case Kind::receive:
        received(fd, done);
        break;
      case Kind::send:
        // A zero-copy send completes a second time when the kernel no longer uses the buffer.
        // Errors are ignored: the receive reports a lost connection.
        if ((done.flags & IORING_CQE_F_MORE) == 0) sent(fd);
        break;
    }
  }

  void add(int fd) {
    bench::set_no_delay(fd);
    if (connections_.size() <= std::size_t(fd)) connections_.resize(std::size_t(fd) * 2 + 1);
    connections_[std::size_t(fd)] = std::make_unique<Connection>();
    open_.add(fd);
    receive(fd);
  }

  void received(int fd, const io_uring_cqe& done) {
    if (done.res > 0) {
      const unsigned buffer = done.flags >> IORING_CQE_BUFFER_SHIFT;
      references_[buffer] = 1;
      if (service_ == bench::Service::echo) {
        send(fd, buffer, std::size_t(done.res));
      } else {
        for (const int value : open_) send(value, buffer, std::size_t(done.res));
      }
      release(buffer);
    }
    if ((done.flags & IORING_CQE_F_MORE) != 0) return;
    if (done.res > 0) return receive(fd);
    if (done.res == -ENOBUFS) return starved_.push_back(fd);
    open_.remove(fd);
    connections_[std::size_t(fd)]->ended = true;
    if (connections_[std::size_t(fd)]->output.empty()) end(fd);
  }

  void send(int fd, unsigned buffer, std::size_t size) {
    Connection& connection = *connections_[std::size_t(fd)];
    ++references_[buffer];
    connection.output.push_back({buffer, 0, size});
    if (connection.output.size() == 1) send_first(fd);
  }

  void sent(int fd) {
    Connection& connection = *connections_[std::size_t(fd)];
    release(connection.output.front().buffer);
    connection.output.pop_front();
    if (!connection.output.empty()) return send_first(fd);
    if (connection.ended) end(fd);
  }

  void end(int fd) {
    connections_[std::size_t(fd)].reset();
    close(fd);
  }

  char* address(unsigned buffer) { return memory_.data() + buffer * buffer_bytes; }
  void release(unsigned buffer) {
    if (--references_[buffer] == 0) recycle(buffer);
  }
  void recycle(unsigned buffer) {
    io_uring_buf_ring_add(buffers_, address(buffer), buffer_bytes, std::uint16_t(buffer),
                          io_uring_buf_ring_mask(buffer_count), 0);
    io_uring_buf_ring_advance(buffers_, 1);
  }

  bench::Service service_;
  int listener_;
  io_uring ring_;
  io_uring_buf_ring* const buffers_ = static_cast<io_uring_buf_ring*>(
      std::aligned_alloc(4096, buffer_count * sizeof(io_uring_buf)));
  std::vector<char> memory_ = std::vector<char>(buffer_count * buffer_bytes);
  std::vector<unsigned> references_ = std::vector<unsigned>(buffer_count);
  std::vector<std::unique_ptr<Connection>> connections_;  ///< Indexed by descriptor.
  bench::DescriptorSet open_;
  std::vector<int> starved_;  ///< Their receive ended because no buffer was free.
  std::size_t zero_copy_from_ = SIZE_MAX;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<IoUring>(argc, argv); }
