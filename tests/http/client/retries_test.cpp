// Requests that are repeated, deadlines that include the body, and user names in URLs.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/client.h>
#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>

#include "http/support/scripted_server.h"

namespace tambour::retries_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::Method;
using test::and_close;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;
using namespace std::chrono_literals;

class HttpClientRetries : public testing::Test {
 protected:
  static ClientOptions retrying(unsigned attempts) {
    ClientOptions options;
    options.retry.attempts_max = attempts;
    options.retry.delay = 1ms;
    return options;
  }
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    spawn(loop,
          [](EventLoop& place, Client& by, ClientRequest subject, std::string& into) -> Task<> {
            auto response = co_await by.send(std::move(subject));
            if (response) {
              auto body = co_await response->read_text();
              into = std::to_string(http::code_of(response->status())) + " " +
                     (body ? *body : "error in body: " + body.error().message());
            } else {
              into = response.error().message();
            }
            place.stop();
          }(loop, client, std::move(request), text));
    loop.run();
    return text;
  }

  EventLoop loop;
  std::vector<Answer> answers;
  std::size_t requests = 0;
  std::string authorization;
  ScriptedServer server{loop, [this](const Arrived& arrived) {
                          authorization = arrived.head.fields.joined("Authorization");
                          return answers[std::min(requests++, answers.size() - 1)];
                        }};
  const std::string unavailable =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy";
};

TEST_F(HttpClientRetries, lost_connections) {
  answers = {and_close(""), and_close(""), ok("done")};
  Client client(loop, retrying(3));
  EXPECT_EQ(got(client, ClientRequest(server.url())), "200 done");
  EXPECT_EQ(requests, 3U);
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(Method::put, server.url(), Buffer("body"))), "200 done");
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(Method::post, server.url(), Buffer("body"))),
            Error(StreamError::eof).message())
      << "the server may have executed it";
  EXPECT_EQ(requests, 1U);
  requests = 0;
  Client twice(loop, retrying(2));
  EXPECT_EQ(got(twice, ClientRequest(server.url())), Error(StreamError::eof).message());
  EXPECT_EQ(requests, 2U);
  requests = 0;
  Client once(loop);
  EXPECT_EQ(got(once, ClientRequest(server.url())), Error(StreamError::eof).message());
  EXPECT_EQ(requests, 1U);
}

TEST_F(HttpClientRetries, refused_connections) {
  const std::string authority = ScriptedServer(loop, [](const Arrived&) { return ""; }).authority();
  Client client(loop, retrying(1'000));
  std::unique_ptr<TcpServer> late;
  loop.post([&] {
    spawn(loop, [](EventLoop& place, std::string at, std::unique_ptr<TcpServer>& into) -> Task<> {
      EXPECT_TRUE(co_await sleep_for(20ms));
      into = std::make_unique<TcpServer>(
          or_throw(TcpServer::listen(place, or_throw(Endpoint::parse(at)))));
      into->serve([](TcpStream stream) -> Task<> {
        Buffer request;
        static_cast<void>(co_await stream.read(request));
        static_cast<void>(co_await stream.write(std::string_view("HTTP/1.1 204 None\r\n\r\n")));
      });
    }(loop, authority, late));
  });
  // A POST, too: nothing was sent.
  EXPECT_EQ(got(client, ClientRequest(Method::post, "http://" + authority, Buffer("x"))), "204 ");
}

TEST_F(HttpClientRetries, unavailable_servers) {
  answers = {unavailable, ok("done")};
  ClientOptions options = retrying(5);
  Client not_asked(loop, options);
  EXPECT_EQ(got(not_asked, ClientRequest(server.url())), "503 busy");
  options.retry_unavailable = true;
  Client client(loop, options);
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(server.url())), "200 done");
  EXPECT_EQ(server.connections(), 2) << "one for each client";
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(Method::post, server.url(), Buffer("x"))), "503 busy");
  answers = {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", ok("done")};
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(server.url())), "503 ") << "no Retry-After";
  answers[0] = "HTTP/1.1 503 Busy\r\nRetry-After: 31\r\nContent-Length: 0\r\n\r\n";
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(server.url())), "503 ") << "too late";
  // Nanoseconds end in the year 2262.
  for (const int year : {2200, 2262, 2263, 3000, 9999}) {
    const std::chrono::sys_days day(std::chrono::year(year) / 12 / 31);
    answers[0] = "HTTP/1.1 503 Busy\r\nRetry-After: " + http::format_date(day) +
                 "\r\nContent-Length: 0\r\n\r\n";
    requests = 0;
    EXPECT_EQ(got(client, ClientRequest(server.url())), "503 ") << year;
  }
  answers[0] =
      "HTTP/1.1 429 Slow\r\nRetry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: "
      "0\r\n\r\n";
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest(server.url())), "200 done");
}

TEST_F(HttpClientRetries, invalid_requests_are_not_repeated) {
  answers = {ok("done")};
  Client client(loop, retrying(1'000'000));
  EXPECT_EQ(got(client, ClientRequest("ftp://x.test/")),
            make_error_code(http::ErrorCode::url_bad_scheme).message());
  answers = {"nonsense\r\n\r\n"};
  EXPECT_EQ(got(client, ClientRequest(server.url())),
            make_error_code(http::ErrorCode::bad_version).message());
  EXPECT_EQ(requests, 1U);
}

TEST_F(HttpClientRetries, the_total_time_includes_the_body) {
  ScriptedServer slow(loop, [](const Arrived&) {
    Answer answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    answer.reads_the_rest = true;
    return answer;
  });
  ClientOptions options;
  options.total_timeout = 50ms;
  Client client(loop, options);
  std::string text;
  // On a busy machine, the time limit may expire before the head arrives.
  for (int i = 0; i < 50 && !text.starts_with("200"); ++i)
    text = got(client, ClientRequest(slow.url()));
  EXPECT_EQ(text, "200 error in body: " + system_error(ETIMEDOUT).message());
  EXPECT_EQ(client.connections(), 0U);
  answers = {ok("done")};
  ClientRequest patient(server.url());
  patient.total_timeout = 1min;
  EXPECT_EQ(got(client, std::move(patient)), "200 done");
}

TEST_F(HttpClientRetries, users_in_urls) {
  answers = {ok("done")};
  Client client(loop);
  const std::string authority = server.authority();
  got(client, ClientRequest("http://Aladdin:open%20sesame@" + authority));
  EXPECT_EQ(authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  got(client, ClientRequest("http://user@" + authority));
  EXPECT_EQ(authorization, "Basic dXNlcjo=");
  ClientRequest request("http://user@" + authority);
  EXPECT_TRUE(request.fields.set("Authorization", "Bearer x"));
  got(client, std::move(request));
  EXPECT_EQ(authorization, "Bearer x");
  EXPECT_EQ(got(client, ClientRequest("http://a%3Ab:c@" + authority)),
            make_error_code(http::ErrorCode::bad_credentials).message());
  const std::string port = authority.substr(authority.rfind(':'));
  answers = {"HTTP/1.1 302 Found\r\nLocation: http://other:secret@localhost" + port +
                 "/\r\nContent-Length: 0\r\n\r\n",
             ok("done")};
  requests = 0;
  EXPECT_EQ(got(client, ClientRequest("http://user@" + authority)), "200 done");
  EXPECT_EQ(authorization, "") << "neither the old one, nor that of the redirect";
}

}  // namespace
}  // namespace tambour::retries_test
