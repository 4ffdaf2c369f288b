// Timers on libuv: uv_timer_start starts and restarts a timer. The unit of its clock is
// milliseconds.
#include <cstdint>
#include <vector>

#include <uv.h>

#include "timers/timers.h"

namespace {

class Libuv {
 public:
  Libuv(int timers, bench::Expiries& expiries) : timers_(timers) {
    uv_loop_init(&loop_);
    loop_.data = &expiries;
    for (uv_timer_t& timer : timers_) uv_timer_init(&loop_, &timer);
  }
  ~Libuv() {
    for (uv_timer_t& timer : timers_) uv_close(reinterpret_cast<uv_handle_t*>(&timer), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void arm(int i, double seconds) {
    uv_timer_start(&timers_[i], on_expiry, to_ms(seconds), to_ms(seconds));
  }
  void reset(int i, double seconds) { arm(i, seconds); }
  void cancel(int i) { uv_timer_stop(&timers_[i]); }
  void once(int i, double seconds) { uv_timer_start(&timers_[i], on_expiry, to_ms(seconds), 0); }
  void run_pending() { uv_run(&loop_, UV_RUN_NOWAIT); }

  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  static std::uint64_t to_ms(double seconds) { return std::uint64_t(seconds * 1000); }
  static void on_expiry(uv_timer_t* timer) {
    ++static_cast<bench::Expiries*>(timer->loop->data)->count;
  }

  uv_loop_t loop_;
  std::vector<uv_timer_t> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Libuv>(argc, argv); }
