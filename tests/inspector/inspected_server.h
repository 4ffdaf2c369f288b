// A server with an inspector.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "inspector/observed_server.h"
#include "inspector/problems.h"
#include "support/temporary_folder.h"

namespace tambour::test {

/// A server with two routes, and an inspector of it after listen().
class InspectedServer : public ObservedServer {
 public:
  InspectedServer() : collector_(registry_), requests_(registry_) {
    http::Router router;
    router.get("/hello", [](http::Request&, http::Response& response) { response.send("hello"); });
    router.post("/wait", [this](http::Request& request, http::Response& response) {
      return wait(request, response);
    });
    http::ServerOptions options;
    options.header_timeout = {};
    options.idle_timeout = {};
    options.on_response = [this](const http::Request& request, const http::Response& response) {
      requests_.record(request, response);
    };
    serve(std::move(router).handler(), std::move(options));
  }
  ~InspectedServer() override {
    ends_ = true;
    server_.reset();
  }
  /// Until the test has ended.
  Task<> wait(http::Request& request, http::Response& response) {
    static_cast<void>(co_await request.body().read_all());
    ++waiting_;
    while (!ends_) static_cast<void>(co_await sleep_for(std::chrono::milliseconds(1)));
    response.send("hello");
  }
  void listen(inspector::InspectorOptions options = {}) {
    // A busy machine may keep a loop from answering within the second of the default.
    if (options.patience == inspector::InspectorOptions().patience)
      options.patience = std::chrono::minutes(1);
    options.collector = &collector_;
    inspector_.emplace(loops_, std::move(options));
    debug_.emplace(or_throw(inspector_->listen(loop_, Endpoint::loopback_v4(0))));
  }
  std::string page(const std::string& path) {
    std::string body = get(debug_->endpoint(), path);
    if (after_page_) after_page_();
    return body;
  }
  /// Prints an expression of Python of the JSON `a` that a path answers.
  std::string python(const std::string& path, const std::string& expression) {
    const TemporaryFolder folder;
    const std::string file = folder.path() + "/answer";
    std::FILE* const to = std::fopen(file.c_str(), "w");
    std::fputs(page(path).c_str(), to);
    std::fclose(to);
    std::string printed =
        printed_by("/usr/bin/python3 -c 'import json, sys\na = json.load(open(\"" + file +
                   "\"))\nprint(" + expression + ")'");
    if (!printed.empty()) printed.pop_back();
    return printed;
  }
  std::vector<TcpStream> connect(int count) {
    std::vector<TcpStream> streams;
    for (int i = 0; i < count; ++i)
      streams.push_back(
          or_throw(block_on(loop_, TcpStream::connect(server_->endpoint())), "connect"));
    return streams;
  }

  /// Once. They exist longer than the collector.
  Problems& have_problems() {
    return problems_.emplace(loop_, loops_, server_->endpoint(), collector_);
  }

  std::atomic<int> waiting_ = 0;
  std::atomic<bool> ends_ = false;
  std::optional<Problems> problems_;
  metrics::Registry registry_;
  inspector::Collector collector_;
  http::Metrics requests_;
  std::optional<inspector::Inspector> inspector_;
  std::optional<http::Server> debug_;
  std::function<void()> after_page_;
};

}  // namespace tambour::test
