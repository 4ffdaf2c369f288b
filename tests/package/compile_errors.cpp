// Mistakes that the library explains at compile time. check_compile_errors compiles this file and
// compares the errors: each function has exactly the errors that its comments name, in the words of
// the library, and no others. Functions that compile with a warning have the text of the warning.
#include <memory>
#include <string>
#include <string_view>

#include <tambour/http/router.h>
#include <tambour/http/server.h>
#include <tambour/net/connector.h>
#include <tambour/net/server_group.h>
#include <tambour/net/tcp.h>
#include <tambour/tambour.h>

using namespace tambour;

namespace {

Task<int> number() { co_return 1; }
Task<Result<int>> read_number() { co_return 1; }

// error: a Task is awaited once, as an rvalue: co_await std::move(task)
Task<> awaits_an_lvalue() {
  Task<int> task = number();
  static_cast<void>(co_await task);
}

// error: this tests the Task and not its result: write co_await before the call
Task<> forgets_co_await() {
  if (!read_number()) co_return;
}

// error: this is a Task and not its result: write or_throw(co_await task)
Task<> forgets_co_await_in_or_throw() {
  or_throw(read_number());
  co_return;
}

// error: the parameters of this function are not those of the callback
void wrong_parameters_of_a_callback(EventLoop& loop) {
  Timer timer(loop, [](int) {});
}

// error: this callback returns a Task that nothing would run: call spawn(loop, task)
void posts_a_coroutine(EventLoop& loop) {
  loop.post([]() -> Task<> { co_return; });
}

// error: a handler has the parameters (http::Request&, http::Response&)
void wrong_parameters_of_a_handler(http::Router& router) {
  router.get("/", [](http::Request&) {});
}

// error: a handler returns Task<> or void
void wrong_result_of_a_handler(http::Router& router) {
  router.get("/", [](http::Request&, http::Response&) { return 1; });
}

// error: routes and loops copy their handlers, so what a handler captures must be copyable
void uncopyable_handler(http::Router& router, std::unique_ptr<int> database) {
  router.get("/", [kept = std::move(database)](http::Request&, http::Response&) {});
}

// error: routes and loops copy their handlers, so what a handler captures must be copyable
void uncopyable_handler_of_a_server(EventLoop& loop, std::unique_ptr<int> database) {
  static_cast<void>(http::Server::listen(
      loop, Endpoint::loopback_v4(0),
      [kept = std::move(database)](http::Request&, http::Response&) -> Task<> { co_return; }));
}

// error: a handler has one parameter, the stream by value, and returns Task<>
void wrong_parameters_of_a_stream_handler(TcpServer& server) {
  server.serve([](TcpStream&) -> Task<> { co_return; });
}

// error: a handler has one parameter, the stream by value, and returns Task<>
void wrong_result_of_a_stream_handler(TcpServerGroup& server) {
  server.serve([](TcpStream) {});
}

// error: a server copies its handler, so what the handler captures must be copyable
void uncopyable_stream_handler(TcpServer& server, std::unique_ptr<int> database) {
  server.serve([kept = std::move(database)](TcpStream) -> Task<> { co_return; });
}

// warning: a task does nothing until it is awaited or spawned
void drops_a_task() { read_number(); }

// warning by clang: temporary whose address is used as value of local variable 'host' will be
void keeps_a_view_of_a_temporary(const std::string& text) {
  const std::string_view host = http::Url::parse(text)->host();
  static_cast<void>(host);
}

}  // namespace
