// A group of loops with a server, and the loop of the test.
#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::test {

/// What a command prints. Blocks until it has ended.
inline std::string printed_by(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> bytes;
  while (const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), pipe))
    text.append(bytes.data(), got);
  ::pclose(pipe);
  return text;
}

class ObservedServer : public testing::Test {
 public:
  ObservedServer() : loops_({.threads = 2}) {}

  void serve(http::Handler handler, http::ServerOptions options = {}) {
    server_.emplace(or_throw(http::ServerGroup::listen(loops_, Endpoint::loopback_v4(0),
                                                       std::move(handler), std::move(options))));
  }
  /// The body, or "STATUS body" if the status is not 200.
  std::string get(const Endpoint& at, const std::string& path,
                  const std::string& host = "localhost") {
    return block_on(loop_, get_from(loop_, at, path, host));
  }
  static Task<std::string> get_from(EventLoop& loop, Endpoint at, std::string path,
                                    std::string host) {
    http::Client client(loop);
    http::ClientRequest request("http://" + at.to_string() + path);
    request.fields.set("Host", host);
    auto sent = co_await client.send(std::move(request));
    http::ClientResponse response = or_throw(std::move(sent), "send");
    auto read = co_await response.read_text();
    std::string body = or_throw(std::move(read), "read");
    if (response.status() == http::Status::ok) co_return body;
    co_return std::to_string(static_cast<int>(response.status())) + ' ' + body;
  }

  LoopGroup loops_;
  EventLoop loop_;
  std::optional<http::ServerGroup> server_;
};

}  // namespace tambour::test
