// A reverse proxy with two servers behind it: http::ReverseProxy as the handler of a route.
//
//   build/examples/reverse_proxy 127.0.0.1:8080 http://127.0.0.1:8001 http://127.0.0.1:8002
//
// Without arguments, it serves a client of its own, from servers of its own, and ends.
#include <cstdio>
#include <string>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;

http::Server name_server(EventLoop& loop, const char* name) {
  return or_throw(http::Server::listen(
      loop, Endpoint::loopback_v4(0),
      [name](http::Request&, http::Response& response) { response.send(name); }));
}

Task<> demonstrate(EventLoop& loop, std::string url, bool& passed) {
  http::Client client(loop);
  std::string answers;
  for (int i = 0; i < 4; ++i) {
    auto response = or_throw(co_await client.get(url), "GET");
    answers += or_throw(co_await response.read_text());
  }
  passed = answers == "abab";
  loop.stop();
}

int main(int argc, char** argv) try {
  EventLoop loop;
  std::vector<http::Server> servers;
  for (const char* name : {"a", "b"}) servers.push_back(name_server(loop, name));
  http::ReverseProxyOptions options;
  for (int i = 2; i < argc; ++i) options.upstreams.push_back({argv[i]});
  if (argc <= 2)
    for (const http::Server& server : servers)
      options.upstreams.push_back({"http://" + server.endpoint().to_string()});
  options.health_check.path = "/health";
  auto proxy = or_throw(http::ReverseProxy::create(loop, std::move(options)));
  http::Router router;
  router.any("/{path...}", proxy.handler());
  const auto at = or_throw(Endpoint::parse(argc > 2 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler()));
  bool passed = argc > 2;
  if (argc <= 2) spawn(loop, demonstrate(loop, "http://" + server.endpoint().to_string(), passed));
  loop.run();
  return passed ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
