// Downloads a file, and continues an earlier download of it.
//
//   build/examples/download https://example.org/image.iso image.iso
//
// Without arguments, it downloads from itself and ends: the server of this example closes the
// connection in the middle of the first response.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

void show(std::uint64_t bytes, std::optional<std::uint64_t> total) {
  std::printf("%llu of %s bytes\n", static_cast<unsigned long long>(bytes),
              total ? std::to_string(*total).c_str() : "an unknown number of");
}

Task<> fetch(EventLoop& loop, std::string url, std::string path, int& status) {
  http::Client client(loop);
  http::DownloadOptions options;
  options.on_progress = show;
  options.retry.delay = 100ms;
  const auto file = co_await http::download(client, url, path, std::move(options));
  if (file) {
    std::printf("%s: %llu bytes, %u requests\n", path.c_str(),
                static_cast<unsigned long long>(file->bytes), file->requests);
  } else {
    std::fprintf(stderr, "%s: %s\n", url.c_str(), file.error().message().c_str());
    status = 1;
  }
  loop.stop();
}

/// Sends half of the text; then what a Range asks for.
Task<> answer(http::Request& request, http::Response& response) {
  const std::string text = "Downloads continue where they were interrupted.\n";
  or_throw(response.headers().set("ETag", "\"1\""));
  const auto range = request.headers().get("Range");
  if (!range) {
    response.set_length(text.size());
    static_cast<void>(co_await response.write(text.substr(0, text.size() / 2)));
    co_return;  // The response is too short: the server closes the connection.
  }
  const std::size_t from = std::strtoul(std::string(range->substr(6)).c_str(), nullptr, 10);
  or_throw(response.headers().set("Content-Range", "bytes " + std::to_string(from) + "-" +
                                                       std::to_string(text.size() - 1) + "/" +
                                                       std::to_string(text.size())));
  response.send(http::Status::partial_content, text.substr(from));
}

int main(int argc, char** argv) {
  EventLoop loop;
  int status = 0;
  if (argc > 2) {
    spawn(loop, fetch(loop, argv[1], argv[2], status));
    loop.run();
    return status;
  }
  const auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), answer);
  if (!server) return 1;
  const auto path = std::filesystem::temp_directory_path() /
                    ("tambour-download-" + std::to_string(server->endpoint().port()));
  spawn(loop, fetch(loop, "http://" + server->endpoint().to_string() + "/", path, status));
  loop.run();
  std::filesystem::remove(path);
  return status;
}
