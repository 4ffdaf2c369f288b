// Interim responses and trailers, over HTTP/1.1 and HTTP/2: a page whose style sheet the browser
// may load while the server still works (103 Early Hints), and a trailer that tells how long it
// worked.
//
//   build/examples/http_early_hints 127.0.0.1:8080
//   nghttp -v http://127.0.0.1:8080                        (HTTP/2)
//   curl -i http://127.0.0.1:8080                          (HTTP/1.1)
//
// Without an address, it serves a client of its own and ends.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

Task<> send_page(http::Request&, http::Response& response) {
  http::Fields links;
  links.add("Link", "</style.css>; rel=preload; as=style");
  const auto hinted = co_await response.send_interim(http::Status::early_hints, std::move(links));
  if (!hinted) co_return;

  const auto began = std::chrono::steady_clock::now();
  const auto slept = co_await sleep_for(20ms);  // Such as a query.
  if (!slept) co_return;
  response.headers().set("Content-Type", "text/html; charset=utf-8");
  const auto written =
      co_await response.write("<!DOCTYPE html><link rel=stylesheet href=/style.css><p>The page\n");
  if (!written) co_return;

  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - began;
  http::Fields trailers;
  trailers.add("Server-Timing", "query;dur=" + std::to_string(time.count()));
  response.end(trailers);
}

void send_style(http::Request&, http::Response& response) {
  response.headers().set("Content-Type", "text/css");
  response.send("p { font-family: sans-serif }\n");
}

Task<> demonstrate(http::Server& server, EventLoop& loop, bool& is_complete) {
  http::Client client(loop);
  http::ClientRequest request(http::Method::get, "http://" + server.endpoint().to_string());
  std::string hint;
  request.on_interim = [&hint](const http::ResponseHead& head) {
    hint = head.fields.get("Link").value_or("");
  };
  auto response = or_throw(co_await client.send(std::move(request)), "GET");
  const std::string page = or_throw(co_await response.read_text());
  const std::string timing(response.trailers().get("Server-Timing").value_or(""));
  std::printf("%s\n%s%s\n", hint.c_str(), page.c_str(), timing.c_str());
  is_complete = !hint.empty() && !page.empty() && timing.starts_with("query;dur=");
  co_await server.shut_down(1s);
  loop.stop();
}

int main(int argc, char** argv) try {
  EventLoop loop;
  http::Router router;
  router.get("/", &send_page).get("/style.css", &send_style);
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler()));
  bool is_complete = argc > 1;
  if (argc <= 1) spawn(loop, demonstrate(server, loop, is_complete));
  loop.run();
  return is_complete ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
