// A hand-written loop for this one purpose: level-triggered epoll, one array per kind of state, no
// callbacks, no unnecessary registration.
//
// Idle timeouts are an array of deadlines, which is scanned when the earliest known one could be
// due. A general-purpose library is compared with this special-purpose loop.
#include <sys/epoll.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "drum/drum.h"

namespace {

class Epoll {
 public:
  explicit Epoll(bench::Ring& ring) : ring_(ring), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) bench::fail_errno("epoll_create1");
  }
  ~Epoll() { close(epoll_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  void restart(int pair) {
    // The level-triggered registration of an earlier round is still valid.
    if (pair == registered_) add(pair);
    if (!ring_.timeouts()) return;
    if (pair == 0) now_ns_ = bench::now_ns();
    set_idle_timeout(pair);
    next_sweep_ns_ = pair == 0 ? idle_until_ns_[0] : std::min(next_sweep_ns_, idle_until_ns_[pair]);
  }
  void run_pending() {}

  void run() {
    std::array<epoll_event, 1024> events;
    while (!ring_.finished()) {
      const int ready = epoll_wait(epoll_, events.data(), events.size(), wait_ms());
      if (ready < 0) bench::fail_errno("epoll_wait");
      if (ring_.timeouts()) now_ns_ = bench::now_ns();
      for (int i = 0; i < ready; ++i) on_readable(int(events[i].data.u32));
      if (ring_.timeouts() && now_ns_ >= next_sweep_ns_) sweep();
    }
  }

  bench::SubjectInfo info() const { return {"epoll", bench::kernel_release(), "epoll"}; }

 private:
  void on_readable(int pair) {
    if (!ring_.receive(pair)) return;
    if (ring_.timeouts()) set_idle_timeout(pair);
    ring_.forward(pair);
  }

  void add(int pair) {
    epoll_event event{.events = EPOLLIN, .data = {.u32 = std::uint32_t(pair)}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, ring_.fd(pair), &event) != 0) {
      bench::fail_errno("epoll_ctl");
    }
    idle_until_ns_.push_back(0);
    ++registered_;
  }

  void set_idle_timeout(int pair) {
    idle_until_ns_[pair] = now_ns_ + std::int64_t(ring_.idle_seconds() * 1e9);
  }

  int wait_ms() const {
    if (!ring_.timeouts()) return -1;
    return int(std::max<std::int64_t>(0, (next_sweep_ns_ - now_ns_) / 1'000'000 + 1));
  }

  void sweep() {
    next_sweep_ns_ = *std::ranges::min_element(idle_until_ns_);
    if (next_sweep_ns_ <= now_ns_) bench::Ring::idle_timeout_expired();
  }

  bench::Ring& ring_;
  int epoll_;
  int registered_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t next_sweep_ns_ = 0;
  std::vector<std::int64_t> idle_until_ns_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Epoll>(argc, argv); }
