// A program that needs the libraries of all components but the simulator.
#include <tambour/http/client.h>

#include <tambour/loop/event_loop.h>

int main() {
  tambour::EventLoop loop;
  const tambour::http::Client client(loop);
  return client.connections() == 0 ? 0 : 1;
}
