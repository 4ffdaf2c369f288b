// The floor: the system calls that move the bytes, and nothing that tells when they may be made.
//
// The first bytes go round in step, so where the next one lies is known without asking. With
// timeouts the draws are made and the deadlines stored, as any loop must; nothing looks at them.
#include <vector>

#include "drum/drum.h"

namespace {

class Floor {
 public:
  explicit Floor(bench::Ring& ring) : ring_(ring), idle_until_(ring.pairs()) {}

  void restart(int pair) {
    if (ring_.timeouts()) idle_until_[pair] = ring_.idle_seconds();
  }
  void settle() {}

  void run() {
    std::vector<int> holders;
    holders.reserve(ring_.active());
    for (int i = 0; i < ring_.active(); ++i) holders.push_back(i * ring_.space());
    while (!ring_.over()) {
      for (int& pair : holders) {
        if (!ring_.receive(pair)) continue;  // The hand-overs ran out in the middle of a lap.
        if (ring_.timeouts()) idle_until_[pair] = ring_.idle_seconds();
        ring_.pass_on(pair);
        pair = ring_.next(pair);
      }
    }
  }

  bench::About about() const { return {"floor", bench::kernel_release(), "none"}; }

 private:
  bench::Ring& ring_;
  std::vector<double> idle_until_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_drum<Floor>(argc, argv); }
