// The drum on libuv: a uv_poll_t and a uv_timer_t for each pair.
//
// uv_poll_start on an active handle is documented to stop and restart it. Calling uv_poll_stop
// first would remove the descriptor from epoll twice.
#include <cstdint>
#include <string>
#include <vector>

#include <uv.h>

#include "drum/drum.h"

namespace {

class Libuv {
 public:
  explicit Libuv(bench::Ring& ring) : ring_(ring), pairs_(ring.pairs()) {
    uv_loop_init(&loop_);
    loop_.data = this;
    for (int i = 0; i < ring.pairs(); ++i) {
      Pair& pair = pairs_[i];
      pair.index = i;
      if (int error = uv_poll_init_socket(&loop_, &pair.poll, ring.fd(i)); error != 0) {
        bench::fail(std::string("uv_poll_init_socket: ") + uv_strerror(error));
      }
      uv_timer_init(&loop_, &pair.idle);
      pair.poll.data = &pair;
    }
  }
  ~Libuv() {
    for (Pair& pair : pairs_) {
      uv_close(reinterpret_cast<uv_handle_t*>(&pair.poll), nullptr);
      uv_close(reinterpret_cast<uv_handle_t*>(&pair.idle), nullptr);
    }
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void restart(int i) {
    Pair& pair = pairs_[i];
    uv_poll_start(&pair.poll, UV_READABLE, on_readable);
    if (ring_.timeouts()) set_idle_timeout(pair);
  }
  void run_pending() { uv_run(&loop_, UV_RUN_NOWAIT); }
  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  struct Pair {
    uv_poll_t poll;
    uv_timer_t idle;
    int index;
  };

  void set_idle_timeout(Pair& pair) {
    uv_timer_start(&pair.idle, on_idle, std::uint64_t(ring_.idle_seconds() * 1000), 0);
  }

  static void on_readable(uv_poll_t* poll, int, int) {
    auto& self = *static_cast<Libuv*>(poll->loop->data);
    Pair& pair = *static_cast<Pair*>(poll->data);
    if (!self.ring_.receive(pair.index)) return;
    if (self.ring_.timeouts()) self.set_idle_timeout(pair);
    self.ring_.forward(pair.index);
    if (self.ring_.finished()) uv_stop(poll->loop);
  }
  static void on_idle(uv_timer_t*) { bench::Ring::idle_timeout_expired(); }

  bench::Ring& ring_;
  uv_loop_t loop_;
  std::vector<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Libuv>(argc, argv); }
