// Clients, a reverse proxy and its upstreams in a simulation, each on a host of its own.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "http/support/serving.h"

namespace tambour::test {

inline Endpoint endpoint_of(const sim::Host& host, std::uint16_t port) {
  const sockaddr_in address = host.endpoint(port);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
}

/// A server behind the proxy.
struct Origin {
  Origin(sim::Simulation& simulation, const std::string& name)
      : host(simulation.add_host(name)), loop(host.loop_options()) {}

  void serve(http::Handler handler, http::ServerOptions options = {}) {
    if (!options.listen.on_error) options.listen.on_error = [](const std::exception_ptr&) {};
    server.emplace(or_throw(
        http::Server::listen(loop, endpoint_of(host, 80), std::move(handler), std::move(options))));
  }
  [[nodiscard]] std::string url() const { return "http://" + endpoint_of(host, 80).to_string(); }

  sim::Host& host;
  EventLoop loop;
  std::optional<http::Server> server;
  int requests = 0;
};

/// client_host_ asks the proxy on host_, which asks the origins.
class Proxied : public Serving {
 public:
  Proxied() = default;
  ~Proxied() override { server_.reset(); }

  Origin& add_origin() {
    origins_.push_back(
        std::make_unique<Origin>(simulation_, "origin" + std::to_string(origins_.size())));
    return *origins_.back();
  }
  Origin& add_origin(http::Handler handler) {
    Origin& added = add_origin();
    added.serve(std::move(handler));
    return added;
  }
  /// An origin that counts requests and answers with its number.
  Origin& add_counting_origin() {
    Origin& added = add_origin();
    const std::string number = std::to_string(origins_.size() - 1);
    added.serve([&added, number](http::Request& request, http::Response& response) -> Task<> {
      ++added.requests;
      const auto body = co_await request.body().read_all();
      response.send(body ? number : "cut");
    });
    return added;
  }

  /// Serves with all origins as upstreams, unless there are some in the options.
  void serve_proxy(http::ReverseProxyOptions options = {}, http::ServerOptions server = {}) {
    if (options.upstreams.empty()) {
      for (const auto& added : origins_) options.upstreams.push_back({added->url()});
    }
    proxy_.emplace(or_throw(http::ReverseProxy::create(server_loop_, std::move(options))));
    serve(proxy_->handler(), std::move(server));
  }

  /// Sends the head and the body on a new connection, and reads the response.
  Task<Reply> request(std::string text, http::Method method = http::Method::get) {
    TcpStream stream = co_await open();
    static_cast<void>(co_await stream.write(text));
    Buffer in;
    auto got = co_await read_reply(stream, in, method);
    if (!got) co_return Reply{.status = http::Status{0}, .body = got.error().message()};
    co_return std::move(*got);
  }
  Reply get(const std::string& target = "/", const std::string& fields = "") {
    return run(request("GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"));
  }
  Reply post(const std::string& body, const std::string& fields = "") {
    return run(request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n" + fields + "\r\n" + body,
                       http::Method::post));
  }
  void wait(Duration time) {
    run([](Duration delay) -> Task<> { static_cast<void>(co_await sleep_for(delay)); }(time));
  }

  std::vector<std::unique_ptr<Origin>> origins_;
  std::optional<http::ReverseProxy> proxy_;
};

/// Answers with the head of the request.
inline void echo_head(http::Request& request, http::Response& response) {
  std::string text(request.method().name());
  text.append(" ").append(request.head().target).append("\nHost: ");
  text.append(request.head().authority).append("\n");
  for (const http::Field field : request.headers()) {
    if (field.name != "Host") text.append(field.name).append(": ").append(field.value).append("\n");
  }
  response.send(text);
}

}  // namespace tambour::test
