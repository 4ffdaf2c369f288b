// An HTTP server.
#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

void hello(http::Request& request, http::Response& response) {
  response.send("Hello, " + std::string(request.parameter("name")) + "!\n");
}

int main(int argc, char** argv) {
  EventLoop loop;
  http::Router router;
  router.get("/hello/{name}", hello);

  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:8080"));
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler()));
  std::fprintf(stderr, "http://%s/hello/you\n", server.endpoint().to_string().c_str());
  or_throw(run_until_signal(loop, std::chrono::seconds(10), server));
}
