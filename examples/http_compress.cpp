// A web service whose pages are compressed and that knows its visitors by a cookie; and a client
// that visits it three times.
#include <cstdio>
#include <memory>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::literals;

/// Counts the visits in a cookie, which is no secret, and which the client may change.
void greet(http::Request& request, http::Response& response) {
  const auto before = http::cookie_named(request.headers(), "visits");
  const std::string visits = before ? std::string(*before) + "i" : "i";
  http::SetCookie cookie("visits", visits);
  cookie.max_age = 24h;
  cookie.secure = false;  // This example has no TLS.
  // A client can send anything: what is no value of a cookie is not sent back.
  if (!http::add_cookie(response.headers(), cookie))
    return response.set_status(http::Status::bad_request);
  std::string page = "Visit " + visits + "\n";
  for (int line = 0; line < 200; ++line) page += "A line that is repeated on every page.\n";
  or_throw(response.headers().set("Content-Type", "text/plain"));
  or_throw(response.send(page));
}

Task<> visit(http::Server& server, http::Client& client, bool& is_right) {
  const std::string url = "http://" + server.endpoint().to_string() + "/";
  for (const std::string expected : {"Visit i\n", "Visit ii\n", "Visit iii\n"}) {
    auto response = or_throw(co_await client.get(url));
    const std::string page = or_throw(co_await response.read_text());
    std::fputs(page.substr(0, page.find('\n') + 1).c_str(), stdout);
    is_right = page.starts_with(expected);
    if (!is_right) break;
  }
  co_await server.shut_down(1s);
}

int main() {
  EventLoop loop;
  http::Router router;
  std::size_t bytes = 0;
  router.use(http::compress()).get("/", greet);
  http::ServerOptions options;
  options.on_response = [&](const http::Request&, const http::Response& response) {
    bytes += response.body_bytes();
  };
  auto server = or_throw(
      http::Server::listen(loop, Endpoint::loopback_v4(0), std::move(router).handler(), options));
  http::ClientOptions chosen;
  chosen.cookies = std::make_shared<http::CookieJar>();
  http::Client client(loop, chosen);
  bool is_right = false;
  spawn(loop, visit(server, client, is_right));
  loop.run();
  std::printf("%zu bytes were sent for three pages of 8 KiB\n", bytes);
  return is_right && bytes < 8000 ? 0 : 1;
}
