// The places in a turn of the loop: prepare before it waits, check after, idle when nothing is due.
#include <cstdio>

#include <tambour/tambour.h>

int main() {
  tambour::EventLoop loop;
  int turns = 0;

  tambour::Prepare prepare(loop, [] { std::puts("about to wait"); });
  tambour::Check check(loop, [] { std::puts("waited"); });
  tambour::Idle idle(loop, [&] {
    std::puts("nothing to do");
    if (++turns == 2) loop.stop();
  });

  prepare.start();
  check.start();
  idle.start();
  loop.run();
}
