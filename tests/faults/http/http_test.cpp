// Each allocation of an HTTP exchange fails once, and each with the two after it.
#include <chrono>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"
#include "support/temporary_folder.h"

namespace tambour::http_test {
namespace {

using http::Request;
using http::Response;

Task<> answer(Request& request, Response& response) {
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  response.headers().set("Content-Type", "text/plain");
  if (request.path() == "/whole") {
    response.send(std::move(*body));
    co_return;
  }
  const auto written = co_await response.write(std::move(*body));
  if (written) response.end();
}

Task<> wait_a_little() { static_cast<void>(co_await sleep_for(std::chrono::microseconds(1))); }

Task<> answer_form(Request& request, Response& response) {
  const auto form = co_await http::read_form(request);
  if (!form) co_return;
  const http::FormField* const field = form->find("a");
  response.send(http::safe_file_name(field->file_name.value_or("")) + "=" + field->value);
}

Task<> answer_events(http::EventStream& events) {
  const auto sent = co_await events.send({.data = "one\ntwo"});
  if (sent) co_await events.request().while_connected(wait_a_little());
}

Task<> talk(Endpoint to, std::string& received) {
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  const auto written = co_await stream->write(
      "POST /whole HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
      "GET /files/a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2,4-\r\n\r\n"
      "POST /form HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\nContent-Length: 82\r\n"
      "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
      "--b\r\nContent-Disposition: form-data; name=a; filename=\"x/y "
      "z\"\r\n\r\ncontents\r\n--b--\r\n"
      "GET /events HTTP/1.1\r\nHost: a\r\nReferer: http://b\r\n\r\n"
      "GET /files/../b HTTP/1.1\r\nHost: a\r\n\r\n"
      "POST /parts HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n0\r\nX: y\r\n\r\n");
  if (!written) co_return;
  Buffer in;
  while ((co_await stream->read(in)).value_or(0) > 0) {
  }
  received = in.to_string();
}

Task<> pass_on(Request& request, Response& response, const http::Handler& next) {
  co_await next.run(request, response);
}

http::Handler handler_for(const std::string& folder) {
  http::Router router;
  router.use(pass_on).use(or_throw(http::cors({.origins = {"https://a"}})));
  router.post("/{name}", answer).get("/files/{path...}", http::serve_files(folder));
  router.post("/form", answer_form).get("/events", http::serve_events(answer_events));
  return std::move(router).handler();
}

/// Returns what the client has received, or "no memory" if an end has reported that.
std::string exchange(EventLoop& loop, const std::string& folder) {
  std::string received;
  try {
    bool failed = false;
    http::ServerOptions options;
    options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    std::string log;
    options.on_response = http::access_log(
        [&log](const http::AccessRecord& record) { log += http::format_combined(record); });
    auto server =
        http::Server::listen(loop, Endpoint::loopback_v4(0), handler_for(folder), options);
    if (!server) return "no memory";
    TaskScope client(loop);
    client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    client.spawn(talk(server->endpoint(), received));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(std::chrono::minutes(1));
    while (!late && (!client.empty() || server->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
    if (failed) return "no memory";
  } catch (const std::bad_alloc&) {
    return "no memory";
  }
  return received;
}

TEST(HttpMemory, allocations_may_fail_at_any_point) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/a.txt") << "0123456789";
  EventLoop loop;
  const std::string expected = exchange(loop, folder.path());
  ASSERT_NE(expected.find("hello"), std::string::npos) << expected;
  ASSERT_NE(expected.find("\r\n\r\n456789\r\n--"), std::string::npos) << expected;
  ASSERT_NE(expected.find("y z=contents"), std::string::npos) << expected;
  ASSERT_NE(expected.find("data: one\ndata: two\n\n"), std::string::npos) << expected;
  ASSERT_NE(expected.find("Access-Control-Allow-Origin: https://a"), std::string::npos) << expected;
  ASSERT_NE(expected.find("404 Not Found"), std::string::npos) << expected;
  ASSERT_NE(expected.find("5\r\nhello\r\n0\r\n\r\n"), std::string::npos) << expected;
  test::refuse_each_allocation([&] { return exchange(loop, folder.path()); },
                               [&](const std::string& received) {
                                 // A failure that neither end has reported must not have changed
                                 // the responses; a stream that has no memory to wait is closed.
                                 if (received.size() != expected.size()) return;
                                 EXPECT_EQ(received.substr(received.size() - 20),
                                           expected.substr(expected.size() - 20));
                               });
  EXPECT_EQ(exchange(loop, folder.path()).size(), expected.size());
}

/// Returns false if `text` has anything else than whole responses with bodies of x, or a part of
/// one at the end.
bool is_sequence_of_responses(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) return text.starts_with("HTTP/1.1 ");
    const std::string_view head = text.substr(0, end);
    if (!head.starts_with("HTTP/1.1 200 OK\r\n")) return false;
    text.remove_prefix(end + 4);
    const bool is_chunked = head.contains("chunked");
    const std::string body =
        is_chunked ? "3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n" : std::string(1000, 'x');
    const bool is_empty = head.contains("Content-Length: 0");
    const std::string_view present = text.substr(0, is_empty ? 0 : body.size());
    if (!body.starts_with(present)) return false;
    text.remove_prefix(present.size());
  }
  return true;
}

/// A head without its body would be followed by the next response, as if that were the body.
TEST(HttpMemory, a_body_that_cannot_be_appended_ends_the_connection) {
  EventLoop loop;
  for (const bool is_chunked : {false, true}) {
    bool refused = true;
    for (unsigned nth = 1; refused; ++nth) {
      SCOPED_TRACE(testing::Message() << "allocation " << nth << (is_chunked ? ", chunked" : ""));
      refused = false;
      std::vector<Buffer> taken;
      auto server = or_throw(http::Server::listen(
          loop, Endpoint::loopback_v4(0), [&](Request&, Response& response) -> Task<> {
            // Otherwise blocks of the pool would serve instead of allocations.
            for (int i = 0; i < 100; ++i) taken.emplace_back(std::string(3000, 'y'));
            Buffer body(std::string(1000, 'x'));
            test::refuse_memory(nth, 1000);
            try {
              if (is_chunked) {
                static_cast<void>(co_await response.write(std::move(body)));
              } else {
                response.send(std::move(body));
              }
            } catch (const std::bad_alloc&) {
              refused = true;
            }
            test::grant_memory();
          }));
      std::string received;
      TaskScope client(loop);
      client.spawn([](Endpoint to, std::string& into) -> Task<> {
        TcpStream stream = or_throw(co_await TcpStream::connect(to));
        std::string requests;
        for (int i = 0; i < 9; ++i) requests += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        requests += "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        EXPECT_TRUE(co_await stream.write(std::string_view(requests)));
        Buffer in;
        while ((co_await stream.read(in)).value_or(0) > 0) {
        }
        into = in.to_string();
      }(server.endpoint(), received));
      while (!client.empty()) loop.run_once();
      EXPECT_TRUE(is_sequence_of_responses(received)) << received;
    }
  }
}

}  // namespace
}  // namespace tambour::http_test
