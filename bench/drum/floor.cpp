// The floor: only the system calls that move the bytes, without any readiness notification.
//
// All bytes advance in lockstep, so the program knows which pair is readable. With timeouts, it
// computes and stores the deadlines, as any loop must, but never checks them.
#include <vector>

#include "drum/drum.h"

namespace {

class Floor {
 public:
  explicit Floor(bench::Ring& ring) : ring_(ring), idle_until_(ring.pairs()) {}

  void restart(int pair) {
    if (ring_.timeouts()) idle_until_[pair] = ring_.idle_seconds();
  }
  void run_pending() {}

  void run() {
    std::vector<int> holders;
    holders.reserve(ring_.active());
    for (int i = 0; i < ring_.active(); ++i) holders.push_back(i * ring_.spacing());
    while (!ring_.finished()) {
      for (int& pair : holders) {
        if (!ring_.receive(pair)) continue;  // All bytes were forwarded before the end of this lap.
        if (ring_.timeouts()) idle_until_[pair] = ring_.idle_seconds();
        ring_.forward(pair);
        pair = ring_.next(pair);
      }
    }
  }

  bench::SubjectInfo info() const { return {"floor", bench::kernel_release(), "none"}; }

 private:
  bench::Ring& ring_;
  std::vector<double> idle_until_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Floor>(argc, argv); }
