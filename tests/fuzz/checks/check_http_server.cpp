// Bytes of a connection to an HTTP server: each request gets one response, or the connection ends.
#include <netinet/in.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "fuzz/bytes_checks.h"
#include "http_message/h1/parser.h"

namespace tambour::fuzz {
namespace {

using namespace std::chrono_literals;
using http::Method;
using http::Request;
using http::Response;

/// The second character of the path decides what the handler does: 'r' reads the body and sends it
/// back, 'w' writes in pieces, 'l' waits first, 't' throws.
Task<> answer(Request& request, Response& response) {
  const std::string_view path = request.path();
  const char choice = path.size() > 1 ? path[1] : 's';
  if (choice == 'l') static_cast<void>(co_await sleep_for(1ms));
  if (choice == 't') throw std::runtime_error("t");
  if (choice == 'r') {
    auto body = co_await request.body().read_all();
    if (body && !http::has_no_body(response.status())) response.send(std::move(*body));
  } else if (choice == 'w') {
    const Result<> first = co_await response.write("one");
    if (!first) co_return;
    static_cast<void>(co_await response.write("two"));
  } else {
    response.send("sent");
  }
}

/// The methods of the requests that get a response, as the parser reads them from the whole text.
std::vector<Method> expected_responses(std::string_view text) {
  std::vector<Method> methods;
  http::detail::h1::RequestParser parser;
  Buffer input(text);
  Buffer body;
  while (true) {
    const auto has_head = parser.parse_head(input);
    if (!has_head) return methods.push_back(Method::get), methods;
    if (!*has_head) {
      const bool is_quiet = parser.end_input(input).error() == StreamError::eof;
      if (!is_quiet) methods.push_back(Method::get);
      return methods;
    }
    const http::RequestHead& head = parser.head();
    methods.push_back(head.method);
    const std::string_view path = head.path();
    const char choice = path.size() > 1 ? path[1] : 's';
    const bool is_old = head.version == http::Version::http_1_0;
    // A request without a body has nothing to ask for.
    const auto expectation = head.fields.get("Expect");
    const bool expects = !is_old && !parser.is_complete() && expectation;
    const bool is_known = expects && http::equal_ignoring_case(*expectation, "100-continue");
    bool ends = !parser.is_persistent() || head.method == Method::connect || choice == 't' ||
                (is_old && choice == 'w') || (expects && !is_known);
    // A body that has not arrived may never be sent.
    ends = ends || (expects && input.empty());
    if (ends) return methods;
    while (!parser.is_complete()) {
      const auto read = parser.read_body(input, body, SIZE_MAX);
      if (!read || (*read == 0 && !parser.is_complete())) return methods;
    }
    parser.restart();
  }
}

/// Reads a response to each of the methods.
void check_responses(std::string_view text, const std::vector<Method>& methods) {
  Buffer input(text);
  Buffer body;
  for (const Method& method : methods) {
    http::detail::h1::ResponseParser parser;
    while (true) {
      const auto has_head = parser.parse_head(input, method);
      expect(has_head && *has_head, "a response is missing or malformed");
      if (!http::is_interim(parser.head().status)) break;
      parser.restart();
    }
    const bool is_tunnel = parser.framing().kind == http::detail::h1::BodyKind::tunnel;
    while (!parser.is_complete() && !is_tunnel) {
      const auto read = parser.read_body(input, body, SIZE_MAX);
      expect(read.has_value(), "the body of a response is malformed");
      if (*read > 0 || parser.is_complete()) continue;
      expect(parser.end_input(input).has_value(), "the body of a response is incomplete");
    }
  }
  expect(input.empty(), "there are bytes after the last response");
}

Task<> talk(Endpoint to, std::string text, Buffer& received, bool& is_ended) {
  auto stream = or_throw(co_await TcpStream::connect(to));
  static_cast<void>(co_await stream.write(std::string_view(text)));
  static_cast<void>(co_await stream.shutdown_write());
  Result<std::size_t> got = std::size_t{1};
  while (got && *got > 0) got = co_await stream.read(received);
  is_ended = got.has_value();
}

}  // namespace

void check_http_server(Bytes bytes) {
  const std::string text(text_of(bytes));
  sim::Options calm;
  calm.trace = false;
  sim::Simulation simulation(1, calm);
  sim::Host& host = simulation.add_host("server");
  sim::Host& client = simulation.add_host("client");
  EventLoop server_loop(host.loop_options());
  EventLoop loop(client.loop_options());
  const sockaddr_in address = host.endpoint(80);
  const Endpoint at =
      or_throw(Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address));
  http::ServerOptions options;
  options.http_2.is_enabled = false;  // The model knows HTTP/1 only.
  options.listen.on_error = [](const std::exception_ptr&) {};
  auto server = or_throw(http::Server::listen(server_loop, at, answer, options));
  Buffer received;
  bool is_ended = false;
  spawn(loop, talk(at, text, received, is_ended));
  simulation.run_for(1h);
  expect(is_ended, "the connection did not end, or was reset");
  expect(server.connections() == 0, "a connection is left");
  check_responses(received.to_string(), expected_responses(text));
}

}  // namespace tambour::fuzz
