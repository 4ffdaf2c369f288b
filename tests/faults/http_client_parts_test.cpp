// Each allocation of event sources, Digest, HSTS, forms with files and downloads fails once, and
// each with the two after it.
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"
#include "support/temporary_folder.h"

namespace tambour::http_client_parts_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::Request;
using http::Response;
using namespace std::chrono_literals;

/// What a scenario has received. It begins with the URL of a server, and uses a folder.
using Scenario = std::function<Task<>(EventLoop&, std::string, std::string, std::string&)>;

class HttpClientPartsMemory : public testing::Test {
 protected:
  static Task<> answer(Request& request, Response& response) {
    if (request.path() == "/events") {
      or_throw(response.headers().set("Content-Type", "text/event-stream"));
      response.send("id: 1\ndata: a\n\nevent: other\ndata: b\ndata: c\n\n");
    } else if (request.path() == "/digest") {
      const bool is_authorized = request.headers().contains("Authorization");
      if (is_authorized) {
        response.send("welcome");
      } else {
        or_throw(response.headers().set("WWW-Authenticate",
                                        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""));
        response.send(http::Status::unauthorized);
      }
    } else if (request.path() == "/form") {
      const auto body = co_await request.body().read_all();
      if (body) response.send("form");
    } else {
      or_throw(response.headers().set("ETag", "\"1\""));
      response.send("contents");
    }
  }

  std::string exchange(const Scenario& scenario) {
    std::string received;
    try {
      bool failed = false;
      http::ServerOptions options;
      options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
      auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), answer, options);
      if (!server) return "no memory";
      TaskScope client(loop);
      client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
      client.spawn(
          scenario(loop, "http://" + server->endpoint().to_string(), folder.path(), received));
      bool late = false;
      Timer limit(loop, [&late] { late = true; });
      limit.start(1min);
      while (!late && (!client.empty() || server->connections() > 0)) loop.run_once();
      EXPECT_FALSE(late);
      if (failed) return "no memory";
    } catch (const std::bad_alloc&) {
      return "no memory";
    }
    return received;
  }

  /// `end` is what only a scenario that has succeeded has received.
  void expect_after_failures(const Scenario& scenario, const std::string& expected,
                             const std::string& end) {
    ASSERT_EQ(exchange(scenario), expected);
    ASSERT_EQ(exchange(scenario), expected);
    test::refuse_each_allocation([&] { return exchange(scenario); },
                                 [&](const std::string& received) {
                                   EXPECT_TRUE(!received.ends_with(end) || received == expected)
                                       << received;
                                 });
    EXPECT_EQ(exchange(scenario), expected);
  }

  EventLoop loop;
  test::TemporaryFolder folder;
};

Task<> receive_events(EventLoop& loop, std::string url, std::string, std::string& into) {
  Client client(loop);
  http::EventSourceOptions options;
  options.retry.delay = 1ms;
  options.retry.attempts_max = 2;
  http::EventSource source(client, url + "/events", options);
  for (int i = 0; i < 3; ++i) {
    const auto event = co_await source.next();
    if (!event || !*event) co_return;
    into += (*event)->data + ' ';
  }
}

TEST_F(HttpClientPartsMemory, event_sources) {
  expect_after_failures(receive_events, "a b\nc a ", "c a ");
}

Task<> authenticate(EventLoop& loop, std::string url, std::string, std::string& into) {
  ClientOptions options;
  options.authentication = http::Authentication::digest;
  options.hsts = std::make_shared<http::HstsStore>();
  const WallTime now = std::chrono::system_clock::now();
  or_throw(options.hsts->load("a.test \"20990101 00:00:00\"\n.b.test \"unlimited\"\n", now));
  Client client(loop, options);
  const std::string with_user = "http://user:secret@" + url.substr(url.rfind('/') + 1) + "/digest";
  auto response = co_await client.get(with_user);
  if (!response) co_return;
  const auto text = co_await response->read_text();
  if (!text) co_return;
  into = *text + ' ' + std::to_string(options.hsts->to_text(now).size());
}

TEST_F(HttpClientPartsMemory, digest_and_hsts) {
  expect_after_failures(authenticate, "welcome 55", "welcome 55");
}

Task<> transfer(EventLoop& loop, std::string url, std::string folder, std::string& into) {
  Client client(loop);
  http::MultipartForm form;
  form.add("title", "text");
  form.add_file("file", folder + "/upload");
  ClientRequest request(http::Method::post, url + "/form");
  const auto attached = co_await form.attach_to(request);
  if (!attached) co_return;
  auto response = co_await client.send(std::move(request));
  if (!response) co_return;
  const auto text = co_await response->read_text();
  if (!text) co_return;
  into += *text + ' ';
  http::DownloadOptions options;
  options.retry.delay = 1ms;
  options.sync = false;
  const auto file =
      co_await http::download(client, url + "/file", folder + "/copy", std::move(options));
  if (file) into += std::to_string(file->bytes);
}

TEST_F(HttpClientPartsMemory, forms_and_downloads) {
  std::ofstream(folder.path() + "/upload") << "upload";
  expect_after_failures(transfer, "form 8", "form 8");
}

}  // namespace
}  // namespace tambour::http_client_parts_test
