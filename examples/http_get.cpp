// Fetches URLs at the same time, prints their bodies in the order of the arguments, and shows how a
// large body is streamed to a file.
//
//   build/examples/http_get https://example.org/ https://example.com/
//   build/examples/http_get -o FILE https://example.org/large
//
// Requests to a server that speaks HTTP/2 share a connection. Without arguments, it fetches from a
// server of its own, over HTTP/2.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;

/// The whole body, up to 1 MiB.
Task<std::string> fetch(http::Client& client, std::string url) {
  auto response = co_await client.get(url);
  if (!response) co_return url + ": " + response.error().message() + "\n";
  auto text = co_await response->read_text(1024 * 1024);
  if (!text) co_return url + ": " + text.error().message() + "\n";
  const int status = http::code_of(response->status());
  if (status != 200) co_return url + ": status " + std::to_string(status) + "\n";
  co_return std::move(*text);
}

/// A body of any size: memory is used for one piece at a time.
Task<> download(http::Client& client, std::string url, std::FILE* file) {
  auto response = or_throw(co_await client.get(url), url);
  for (;;) {
    Buffer piece;
    if (or_throw(co_await response.read(piece), url) == 0) break;
    for (; !piece.empty(); piece.consume(piece.front().size())) {
      if (std::fwrite(piece.front().data(), piece.front().size(), 1, file) != 1)
        throw std::runtime_error("cannot write the file");
    }
  }
}

Task<> fetch_all(EventLoop& loop, http::ClientOptions options, std::vector<std::string> urls,
                 std::vector<std::string>& bodies) {
  http::Client client(loop, std::move(options));
  std::vector<Task<std::string>> tasks;
  for (const std::string& url : urls) tasks.push_back(fetch(client, url));
  bodies = co_await when_all(std::move(tasks));
  const http::Http2ClientStats& stats = client.http_2_stats();
  if (stats.streams > 0)
    std::fprintf(stderr, "%llu requests over %llu connections of HTTP/2\n",
                 static_cast<unsigned long long>(stats.streams),
                 static_cast<unsigned long long>(stats.connections));
}

Task<> save(EventLoop& loop, std::string path, std::string url) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot create " + path);
  http::Client client(loop);
  co_await download(client, url, file);
  if (std::fclose(file) != 0) throw std::runtime_error("cannot write " + path);
}

/// Returns whether the client got what the server sent.
bool run_alone() {
  EventLoop loop;
  auto server = or_throw(http::Server::listen(
      loop, Endpoint::loopback_v4(0), [](http::Request& request, http::Response& response) {
        response.send("this is " + std::string(request.path()) + "\n");
      }));
  const std::string origin = "http://" + server.endpoint().to_string();
  std::vector<std::string> urls;
  urls.push_back(origin + "/one");
  urls.push_back(origin + "/two");
  std::vector<std::string> bodies;
  spawn(loop,
        [](EventLoop& event_loop, std::vector<std::string> from, std::vector<std::string>& into,
           http::Server& at) -> Task<> {
          http::ClientOptions options;
          options.version = http::VersionChoice::http_2;  // TLS would negotiate it.
          co_await fetch_all(event_loop, std::move(options), std::move(from), into);
          co_await at.shut_down(std::chrono::seconds(1));
        }(loop, urls, bodies, server));
  loop.run();
  for (const std::string& body : bodies) std::fputs(body.c_str(), stdout);
  return bodies.size() == 2 && bodies[0] == "this is /one\n" && bodies[1] == "this is /two\n";
}

int main(int argc, char** argv) try {
  if (argc == 1) return run_alone() ? 0 : 1;
  EventLoop loop;
  std::vector<std::string> bodies;
  if (argc == 4 && std::string_view(argv[1]) == "-o") {
    spawn(loop, save(loop, argv[2], argv[3]));
  } else {
    spawn(loop, fetch_all(loop, {}, {argv + 1, argv + argc}, bodies));
  }
  loop.run();
  for (const std::string& body : bodies) std::fputs(body.c_str(), stdout);
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
