// The HTTP client and its cookies, compared with curl.
#include <algorithm>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/client.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>

#include "http/support/curl.h"
#include "http/support/scripted_server.h"
#include "support/network.h"

namespace tambour::cookies_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::CookieJar;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;

std::string redirect(std::string_view to, std::string_view fields = "") {
  return "HTTP/1.1 302 Found\r\nLocation: " + std::string(to) + "\r\n" + std::string(fields) +
         "Content-Length: 0\r\n\r\n";
}

/// Of cookies with paths of the same length, curl sends the newest first, and not the oldest as the
/// RFC says.
std::string with_sorted_cookies(const std::string& log) {
  std::istringstream lines(log);
  std::string sorted;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.rfind('/') + 1;
    std::istringstream words(line.substr(begin));
    std::vector<std::string> parts{std::istream_iterator<std::string>(words), {}};
    for (std::string& part : parts) std::erase(part, ';');
    std::ranges::sort(parts);
    sorted += line.substr(0, begin);
    for (const std::string& part : parts) sorted += part + " ";
    sorted += "\n";
  }
  return sorted;
}

/// Two servers, and the cookies that they have received.
class HttpClientCookies : public testing::Test {
 protected:
  Answer answer(const Arrived& arrived, const std::string& other) {
    const std::string path(arrived.head.path());
    const std::string cookies = arrived.head.fields.joined("Cookie");
    log += path + " " + cookies + "\n";
    if (path == "/set") return ok("", "Set-Cookie: a=1\r\nSet-Cookie: b=2; Path=/sub\r\n");
    if (path == "/login") return redirect("/home", "Set-Cookie: i=7; HttpOnly\r\n");
    if (path == "/logout") return ok("", "Set-Cookie: i=; Max-Age=0\r\n");
    if (path == "/away") return redirect("http://" + other + "/target");
    return ok(cookies);
  }
  /// Fetches each path of the first server in turn.
  void get(Client& client, const std::vector<std::string>& paths, std::string own_text = "") {
    spawn(loop,
          [](HttpClientCookies& test, Client& http_client, std::vector<std::string> texts,
             std::string cookie) -> Task<> {
            for (const std::string& path : texts) {
              ClientRequest request(test.first.url(path));
              if (!cookie.empty()) static_cast<void>(request.fields.set("Cookie", cookie));
              auto response = co_await http_client.send(std::move(request));
              EXPECT_TRUE(response) << response.error().message();
              if (response) static_cast<void>(co_await response->read_text());
            }
            test.loop.stop();
          }(*this, client, paths, std::move(own_text)));
    loop.run();
  }

  EventLoop loop;
  std::string log;
  /// Other hosts than each other: "127.0.0.1" and "localhost".
  std::string second_authority;
  ScriptedServer first{
      loop, [this](const Arrived& arrived) { return answer(arrived, second_authority); }};
  ScriptedServer second{loop, [this](const Arrived& arrived) {
                          log += "second ";
                          return answer(arrived, "");
                        }};

  void SetUp() override {
    const std::string authority = second.authority();
    second_authority = "localhost" + authority.substr(authority.rfind(':'));
  }
};

TEST_F(HttpClientCookies, are_sent_to_the_server_that_has_set_them) {
  ClientOptions options;
  options.cookies = std::make_shared<CookieJar>();
  Client client(loop, options);
  get(client, {"/", "/set", "/", "/sub/x", "/login", "/logout", "/", "/away"});
  EXPECT_EQ(log,
            "/ \n/set \n/ a=1\n/sub/x b=2; a=1\n/login a=1\n/home a=1; i=7\n/logout a=1; i=7\n"
            "/ a=1\n/away a=1\nsecond /target \n");
  EXPECT_EQ(options.cookies->size(), 2U);
}

TEST_F(HttpClientCookies, of_the_program_are_sent_first_and_not_to_others) {
  ClientOptions options;
  options.cookies = std::make_shared<CookieJar>();
  Client client(loop, options);
  get(client, {"/set", "/login", "/away"}, "own=9");
  EXPECT_EQ(log,
            "/set own=9\n/login own=9; a=1\n/home own=9; a=1; i=7\n/away own=9; a=1; i=7\n"
            "second /target \n");
}

TEST_F(HttpClientCookies, without_a_jar) {
  Client client(loop);
  get(client, {"/set", "/"});
  EXPECT_EQ(log, "/set \n/ \n");
}

TEST_F(HttpClientCookies, agree_with_curl) {
  if (!test::has_program("curl")) GTEST_SKIP() << "curl is not installed";
  const std::vector<std::string> paths = {"/set",   "/",      "/sub",  "/sub/x",  "/subx",
                                          "/login", "/sub/y", "/away", "/logout", "/"};
  ClientOptions options;
  options.cookies = std::make_shared<CookieJar>();
  Client client(loop, options);
  get(client, paths);
  const std::string own_text = std::exchange(log, "");
  std::string arguments = "-L -b ''";
  for (const std::string& path : paths) arguments += " " + first.url(path);
  std::thread curl([&] {
    test::curl(arguments);
    loop.post([this] { loop.stop(); });
  });
  loop.run();
  curl.join();
  EXPECT_EQ(with_sorted_cookies(own_text), with_sorted_cookies(log));
}

}  // namespace
}  // namespace tambour::cookies_test
