// A program of somebody else's: the least that shows that headers, library and what the library
// needs were all found.
#include <chrono>
#include <cstdio>

#include <tambour/tambour.h>

int main() {
  tambour::EventLoop loop;
  int expired = 0;
  tambour::Timer timer(loop, [&] { ++expired; });
  timer.start(std::chrono::milliseconds(1));
  loop.run();
  std::printf("expired %d\n", expired);
  return expired == 1 ? 0 : 1;
}
