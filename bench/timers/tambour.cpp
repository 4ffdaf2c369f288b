// Timers on Tambour's C++ interface.
//
// An idle timeout is armed with Timer::reset, which counts from the start of the iteration, as
// every peer's timer does. Timer::start counts from the call, for which it reads the clock.
#include <tambour/tambour.h>

#include <chrono>
#include <string>
#include <vector>

#include "timers/timers.h"

namespace {

class Tambour {
 public:
  Tambour(int timers, bench::Expiries& expiries) {
    timers_.reserve(timers);
    for (int i = 0; i < timers; ++i) timers_.emplace_back(loop_, [&expiries] { ++expiries.count; });
  }

  void arm(int i, double seconds) { timers_[i].reset(duration(seconds)); }
  void reset(int i, double seconds) { timers_[i].reset(duration(seconds)); }
  void cancel(int i) { timers_[i].stop(); }
  void once(int i, double seconds) { timers_[i].start(duration(seconds)); }
  void run_pending() { loop_.run_ready(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  static tambour::Duration duration(double seconds) {
    return tambour::Duration(long(seconds * 1e9));
  }

  tambour::EventLoop loop_;
  std::vector<tambour::Timer> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Tambour>(argc, argv); }
