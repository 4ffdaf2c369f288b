// A program outside the tree that imports the module `tambour`. Its headers of the standard library
// come before the import: clang 19 cannot merge those that follow it.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <string>

import tambour;

namespace {
using namespace std::chrono_literals;

tambour::Task<int> two_sleeps() {
  co_await tambour::sleep_for(1ms);
  co_await tambour::when_all(tambour::sleep_for(1ms), tambour::sleep_for(2ms));
  co_return 2;
}

void hello(tambour::http::Request& request, tambour::http::Response& response) {
  response.send("Hello, " + std::string(request.parameter("name")) + "!\n");
}
}  // namespace

int main() {
  const int slept = tambour::block_on(two_sleeps());
  tambour::EventLoop loop;
  int invoked = 0;
  tambour::Timer timer(loop, [&] { ++invoked; });
  timer.start(1ms);
  loop.run();
  tambour::http::Router router;
  router.get("/hello/{name}", hello);
  const auto any_port = tambour::or_throw(tambour::Endpoint::parse("127.0.0.1:0"));
  auto server =
      tambour::or_throw(tambour::http::Server::listen(loop, any_port, std::move(router).handler()));
  const bool has_port = server.endpoint() != any_port;
  // An operator that lookup finds in the module.
  const tambour::Events both = tambour::Events::read | tambour::Events::write;
  std::printf("imported: %d sleeps\n", slept);
  return slept == 2 && invoked == 1 && has_port && both != tambour::Events::read ? 0 : 1;
}
