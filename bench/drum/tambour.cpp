// The drum on Tambour's C++ interface.
//
// Between rounds, each watcher is stopped, its events are set, and it is started again on the same
// open file. Passing the descriptor again would make the loop ask the kernel whether it still
// refers to that file. Idle timeouts are postponed with Timer::reset, which is meant for them.
#include <tambour/tambour.h>

#include <chrono>
#include <string>
#include <vector>

#include "common/observed.h"
#include "drum/drum.h"

namespace {

class Tambour {
 public:
  explicit Tambour(bench::Ring& ring) : ring_(ring) {
    pairs_.reserve(ring.pairs());
    for (int i = 0; i < ring.pairs(); ++i) pairs_.emplace_back(*this, i);
  }

  void restart(int i) {
    Pair& pair = pairs_[i];
    pair.watcher.stop();
    pair.watcher.set(tambour::Events::read);
    check(pair.watcher.start());
    if (ring_.timeouts()) {
      pair.idle.stop();
      postpone(pair);
    }
  }
  void run_pending() { loop_.run_ready(); }
  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  struct Pair {
    Pair(Tambour& self, int i)
        : watcher(self.loop_, self.ring_.fd(i), tambour::Events::read,
                  [this, &self](tambour::Events) { self.on_readable(*this); }),
          idle(self.loop_, &bench::Ring::idle_timeout_expired),
          index(i) {}

    tambour::FdWatcher watcher;
    tambour::Timer idle;
    int index;
  };

  void on_readable(Pair& pair) {
    if (!ring_.receive(pair.index)) return;
    if (ring_.timeouts()) postpone(pair);
    ring_.forward(pair.index);
    if (ring_.finished()) loop_.stop();
  }

  void postpone(Pair& pair) {
    pair.idle.reset(tambour::Duration(long(ring_.idle_seconds() * 1e9)));
  }

  static void check(const tambour::Result<>& result) {
    if (!result) bench::fail(result.error().message());
  }

  bench::Ring& ring_;
  tambour::EventLoop loop_;
  bench::Observed observed_{loop_};
  std::vector<Pair> pairs_;  ///< Must not reallocate: callbacks refer to its elements.
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Tambour>(argc, argv); }
