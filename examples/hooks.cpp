// The hooks of an iteration: Prepare runs before the wait, Check after it, Idle when nothing is
// due.
#include <cstdio>

#include <tambour/tambour.h>

int main() {
  tambour::EventLoop loop;
  int iterations = 0;

  tambour::Prepare prepare(loop, [] { std::puts("about to wait"); });
  tambour::Check check(loop, [] { std::puts("waited"); });
  tambour::Idle idle(loop, [&] {
    std::puts("nothing to do");
    if (++iterations == 2) loop.stop();
  });

  prepare.start();
  check.start();
  idle.start();
  loop.run();
}
