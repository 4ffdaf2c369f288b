// A minimal program outside the tree: it compiles, links and runs if the headers, the library and
// the library's dependencies were found.
#include <chrono>
#include <cstdio>

#include <tambour/adapters/libev.h>
#include <tambour/adapters/libevent.h>
#include <tambour/tambour.h>

int main() {
  tambour::EventLoop loop;
  int expired = 0;
  tambour::Timer timer(loop, [&] { ++expired; });
  timer.start(std::chrono::milliseconds(1));
  // Needs every library that the static one does not contain.
  const tambour::http::Client client(loop);
  loop.run();
  // Needs neither libev nor libevent, and finds that this is no process of a drop-in.
  tambour::adapters::LibevLoop ev(loop);
  tambour::adapters::LibeventBase base(loop);
  if (ev.start() || base.start()) return 1;
  std::printf("expired %d\n", expired);
  return expired == 1 && client.connections() == 0 ? 0 : 1;
}
