// A reverse proxy: passes requests to another server, and its responses back. Bodies are never in
// memory at once, and a slow end slows down the other one.
//
//   build/examples/http_proxy 127.0.0.1:8080 http://127.0.0.1:8000
//
// Without arguments, it serves a client of its own, from an origin of its own, and ends.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

/// Copies the fields that are not about one connection: RFC 9110, section 7.6.1. Those that frame
/// the message are set by the library.
void copy_fields(const http::Fields& from, http::Fields& to) {
  to = from;
  for (const http::Field field : from) {
    if (from.has_token("Connection", field.name)) to.remove(field.name);
  }
  for (const char* name : {"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate",
                           "Proxy-Authorization", "TE", "Trailer", "Upgrade"})
    to.remove(name);
}

Task<> pass_on(http::Request& request, http::Response& response, http::Client& client,
               const std::string& origin) {
  http::ClientRequest forwarded(request.method(), origin + request.head().target);
  copy_fields(request.headers(), forwarded.fields);
  if (const auto peer = request.connection().peer_endpoint())
    static_cast<void>(forwarded.fields.set("X-Forwarded-For", peer->address()));
  forwarded.forward(request.body());
  auto answer = co_await client.send(std::move(forwarded));
  if (!answer) {
    response.send(http::Status::bad_gateway, answer.error().message() + "\n");
    co_return;
  }
  response.set_status(answer->status());
  copy_fields(answer->headers(), response.headers());
  // If the body is cut, the connection to the client is reset.
  static_cast<void>(co_await response.forward(answer->body()));
}

Task<> demonstrate(http::Server& proxy, EventLoop& loop, bool& passed) {
  http::Client client(loop);
  const std::string url = "http://" + proxy.endpoint().to_string() + "/";
  auto response = or_throw(co_await client.post(url, "text/plain", Buffer("hello")), "POST");
  passed = or_throw(co_await response.read_text()) == "hello";
  loop.stop();
}

int main(int argc, char** argv) try {
  EventLoop loop;
  auto origin_server =
      or_throw(http::Server::listen(loop, Endpoint::loopback_v4(0),
                                    [](http::Request& request, http::Response& response) -> Task<> {
                                      static_cast<void>(co_await response.forward(request.body()));
                                    }));
  const std::string origin = argc > 2 ? argv[2] : "http://" + origin_server.endpoint().to_string();
  http::ClientOptions options;
  options.decompress = false;  // Bodies pass as they are.
  options.redirects_max = 0;
  http::Client client(loop, options);
  const auto at = or_throw(Endpoint::parse(argc > 2 ? argv[1] : "127.0.0.1:0"));
  auto proxy = or_throw(
      http::Server::listen(loop, at, [&](http::Request& request, http::Response& response) {
        return pass_on(request, response, client, origin);
      }));
  bool passed = argc > 2;
  if (argc <= 2) spawn(loop, demonstrate(proxy, loop, passed));
  loop.run();
  return passed ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
