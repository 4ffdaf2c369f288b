// A timer of libuv, whose unit is milliseconds: the length of a sleep is rounded up, plus one,
// because the loop's time is rounded down.
#include <cstdint>

#include <uv.h>

#include "sleep/sleep.h"

namespace {

class Libuv {
 public:
  Libuv() {
    uv_loop_init(&loop_);
    uv_timer_init(&loop_, &timer_);
  }
  ~Libuv() {
    uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void sleep(std::int64_t length_ns) {
    // Timers are relative to the loop's cached time, which is outdated here.
    uv_update_time(&loop_);
    uv_timer_start(
        &timer_, [](uv_timer_t*) {}, std::uint64_t(length_ns + 999'999) / 1'000'000 + 1, 0);
    uv_run(&loop_, UV_RUN_DEFAULT);
  }
  bench::SubjectInfo info() const { return {"libuv", uv_version_string(), "epoll"}; }

 private:
  uv_loop_t loop_;
  uv_timer_t timer_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Libuv>(argc, argv); }
