// A program that uses only the component core.
#include <tambour/loop.h>

#include <chrono>

int main() {
  tambour::EventLoop loop;
  int expired = 0;
  tambour::Timer timer(loop, [&] { ++expired; });
  timer.start(std::chrono::milliseconds(1));
  loop.run();
  return expired == 1 ? 0 : 1;
}
