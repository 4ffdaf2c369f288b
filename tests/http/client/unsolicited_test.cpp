// What a server sends without being asked: switched protocols, interim responses, bodies where
// there is none, responses after the last one; and time limits while bytes keep arriving.
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/client.h>
#include <tambour/net/stream_error.h>
#include <tambour/net/tcp.h>
#include <tambour/task/sleep.h>

#include "http/support/scripted_server.h"
#include "support/on_every_backend.h"

namespace tambour::unsolicited_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::ClientResponse;
using http::Method;
using http::Status;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;
using namespace std::chrono_literals;

constexpr std::size_t flood_bytes = std::size_t{4} * 1024 * 1024;

std::string switching(const std::string& fields) {
  return "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n" + fields + "\r\n";
}

ClientRequest offering(std::string url, const std::string& protocols) {
  ClientRequest request(std::move(url));
  or_throw(request.fields.add("Upgrade", protocols));
  return request;
}

class Repeated final : public http::BodySource {
 public:
  explicit Repeated(int pieces) : pieces_(pieces) {}
  Task<Result<>> read(Buffer& into) override {
    if (pieces_-- > 0) into.append(std::string(65536, 'r'));
    co_return {};
  }

 private:
  int pieces_;
};

class HttpUnsolicited : public test::OnEveryBackend {
 protected:
  Result<ClientResponse> sent(Client& client, ClientRequest request) {
    std::optional<Result<ClientResponse>> response;
    run([](Client& http_client, ClientRequest subject, auto& into) -> Task<> {
      into.emplace(co_await http_client.send(std::move(subject)));
    }(client, std::move(request), response));
    return std::move(*response);
  }
  Error error_of(Client& client, ClientRequest request) {
    auto response = sent(client, std::move(request));
    return response ? Error() : response.error();
  }
  /// The status and the body, or an error's message.
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    run([](Client& http_client, ClientRequest subject, std::string& into) -> Task<> {
      auto response = co_await http_client.send(std::move(subject));
      if (!response) {
        into = response.error().message();
        co_return;
      }
      auto body = co_await response->read_text();
      into = std::to_string(http::code_of(response->status())) + " " +
             (body ? *body : body.error().message());
    }(client, std::move(request), text));
    return text;
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpUnsolicited);

TEST_P(HttpUnsolicited, a_protocol_that_was_not_offered) {
  std::string answer;
  ScriptedServer server(loop(), [&](const Arrived& /*arrived*/) { return answer; });
  Client client(loop());
  for (const char* const fields :
       {"Upgrade: websocket\r\n", "", "Upgrade: \r\n", "Upgrade: h2c\r\n", "Upgrade: ,\r\n",
        "Content-Length: 5\r\n", "Content-Encoding: gzip\r\nUpgrade: websocket\r\n"}) {
    answer = switching(fields) + std::string(flood_bytes, 'x');
    EXPECT_EQ(error_of(client, ClientRequest(server.url())), http::ErrorCode::not_an_upgrade)
        << fields;
  }
  for (const char* const fields : {"", "Upgrade: c\r\n", "Upgrade: a, c\r\n",
                                   "Upgrade: a\r\nUpgrade: c\r\n", "Upgrade: a/1\r\n"}) {
    answer = switching(fields);
    EXPECT_EQ(error_of(client, offering(server.url(), "a, b")), http::ErrorCode::not_an_upgrade)
        << fields;
  }
  EXPECT_EQ(client.connections(), 0U);
}

TEST_P(HttpUnsolicited, what_follows_an_offered_protocol_is_not_a_body) {
  std::string connection;
  ScriptedServer server(loop(), [&](const Arrived& arrived) {
    connection = arrived.head.fields.get("Connection").value_or("none");
    Answer answer(switching("Upgrade: B\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n") +
                  std::string(flood_bytes, 'x'));
    answer.reads_the_rest = true;
    return answer;
  });
  Client client(loop());
  auto response = sent(client, offering(server.url(), "a, b"));
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(connection, "upgrade");
  EXPECT_EQ(response->status(), Status::switching_protocols);
  std::size_t received_bytes = 0;
  run([](ClientResponse& subject, std::size_t& into) -> Task<> {
    const auto body = co_await subject.read_all();
    EXPECT_TRUE(body && body->empty());
    EXPECT_FALSE(subject.is_complete());
    auto stream = subject.upgrade();
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    EXPECT_TRUE(subject.is_complete());
    while (into < flood_bytes) {
      Buffer more;
      const auto got = co_await stream->read(more);
      EXPECT_TRUE(got && *got > 0);
      if (!got || *got == 0) co_return;
      into += *got;
    }
    EXPECT_EQ(subject.upgrade().error(), system_error(EINVAL));
  }(*response, received_bytes));
  EXPECT_EQ(received_bytes, flood_bytes);
}

/// The other protocol begins after the request: its body must have been sent.
TEST_P(HttpUnsolicited, a_protocol_that_is_switched_before_the_body_of_the_request) {
  bool reads = true;
  ScriptedServer server(loop(), [](const Arrived& /*arrived*/) { return ok(""); });
  server.set_on_head([&](const http::RequestHead& /*head*/) {
    Answer answer(switching("Upgrade: a\r\n"));
    answer.reads_the_rest = reads;
    answer.closes = !reads;
    return answer;
  });
  Client client(loop());
  const auto status = [&] {
    ClientRequest request = offering(server.url(), "a");
    request.method = Method::post;
    request.source = std::make_unique<Repeated>(200);
    auto response = sent(client, std::move(request));
    return response ? std::to_string(http::code_of(response->status()))
                    : response.error().message();
  };
  EXPECT_EQ(status(), "101");
  reads = false;
  EXPECT_EQ(status(), make_error_code(http::ErrorCode::not_an_upgrade).message());
}

/// The client waits until it has sent the body, but no longer than its time limits.
TEST_P(HttpUnsolicited, a_protocol_switch_without_reading_the_request_body_times_out) {
  auto server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  server.serve([](TcpStream stream) -> Task<> {
    Buffer head;
    EXPECT_TRUE(co_await stream.read(head));
    EXPECT_TRUE(co_await stream.write(switching("Upgrade: a\r\n")));
    static_cast<void>(co_await sleep_for(std::chrono::hours(1)));
  });
  Client client(loop(), {.total_timeout = std::chrono::seconds(1)});
  ClientRequest request = offering("http://" + server.endpoint().to_string() + "/", "a");
  request.method = Method::post;
  request.body = Buffer(std::string(std::size_t{50} << 20U, 'x'));
  EXPECT_EQ(error_of(client, std::move(request)), system_error(ETIMEDOUT));
  EXPECT_EQ(client.connections(), 0U);
}

TEST_P(HttpUnsolicited, bodies_where_there_is_none_do_not_answer_the_next_request) {
  std::string first;
  ScriptedServer server(
      loop(), [](const Arrived& arrived) { return ok(std::to_string(arrived.connection)); });
  server.set_on_head([&](const http::RequestHead& /*head*/) {
    return Answer(std::exchange(first, std::string()));
  });
  const std::string evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
  for (const auto& [method, answer] : std::vector<std::pair<Method, std::string>>{
           {Method::get, "HTTP/1.1 204 No Content\r\nContent-Length: 49\r\n\r\n" + evil},
           {Method::get, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n" + evil},
           {Method::get, "HTTP/1.1 304 Not Modified\r\nContent-Length: 49\r\n\r\n" + evil},
           {Method::head, ok(evil)},
           {Method::head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n"},
           {Method::get, ok("") + "HTTP/1.1 100 Continue\r\n\r\n"},
           {Method::get, ok("") + evil}}) {
    Client client(loop());
    first = answer;
    const int before = server.connections();
    EXPECT_EQ(got(client, ClientRequest(method, server.url())).substr(3), " ") << answer;
    EXPECT_EQ(got(client, ClientRequest(server.url())), "200 " + std::to_string(before + 1))
        << answer;
  }
}

TEST_P(HttpUnsolicited, interim_responses_are_limited) {
  std::string interim;
  ScriptedServer server(loop(), [&](const Arrived& /*arrived*/) { return interim + ok("hello"); });
  Client client(loop());
  for (const char* const head : {"100 Continue", "102 Processing", "103 Early Hints", "199"}) {
    interim.clear();
    for (int i = 0; i < 32; ++i) interim += "HTTP/1.1 " + std::string(head) + "\r\nA: b\r\n\r\n";
    EXPECT_EQ(got(client, ClientRequest(server.url())), "200 hello") << head;
    interim += "HTTP/1.1 " + std::string(head) + "\r\n\r\n";
    EXPECT_EQ(error_of(client, ClientRequest(server.url())),
              http::ErrorCode::too_many_interim_responses);
  }
}

TEST_P(HttpUnsolicited, connect_is_not_sent) {
  ScriptedServer server(loop(), [](const Arrived& /*arrived*/) { return ok("tunnel"); });
  Client client(loop());
  for (const char* const body : {"", "body"}) {
    ClientRequest request(Method::connect, server.url(), Buffer(body));
    EXPECT_EQ(error_of(client, std::move(request)), http::ErrorCode::bad_target);
  }
  EXPECT_EQ(server.connections(), 0);
}

/// The bytes are always there, so that no read has to wait.
TEST_P(HttpUnsolicited, the_total_time_limit_ends_a_body_that_never_ends) {
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  server.serve([](TcpStream stream) -> Task<> {
    std::string text = "HTTP/1.1 200 OK\r\n\r\n";
    for (bool is_open = true; is_open;) {
      text.append(65536, 'x');
      const auto written = co_await stream.write(text);
      is_open = written.has_value();
      text.clear();
    }
  });
  Client client(loop(), {.total_timeout = 200ms});
  Error error;
  run([](Client& http_client, std::string url, Error& into) -> Task<> {
    auto response = co_await http_client.get(url);
    // On a busy machine, the time limit may expire before the head arrives.
    for (int i = 0; i < 50 && !response; ++i) response = co_await http_client.get(url);
    EXPECT_TRUE(response);
    if (!response) co_return;
    for (;;) {
      Buffer bytes;
      const auto got = co_await response->read(bytes);
      if (!got) into = got.error();
      if (!got || *got == 0) co_return;
    }
  }(client, "http://" + server.endpoint().to_string() + "/", error));
  EXPECT_EQ(error, system_error(ETIMEDOUT)) << error.message();
}

/// Extensions of chunks are not bytes of the body.
TEST_P(HttpUnsolicited, the_read_time_limit_ends_framing_without_a_body) {
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  server.serve([](TcpStream stream) -> Task<> {
    std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=";
    for (bool is_open = true; is_open;) {
      const auto written = co_await stream.write(text);
      const auto slept = co_await sleep_for(5ms);
      is_open = written && slept;
      text = "x";
    }
  });
  ClientOptions options{.read_timeout = 50ms};
  options.limits.http_1.chunk_extension_bytes_max = SIZE_MAX;
  Client client(loop(), options);
  Error error;
  run([](Client& http_client, std::string url, Error& into) -> Task<> {
    auto response = co_await http_client.get(std::move(url));
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto body = co_await response->read_all();
    if (!body) into = body.error();
  }(client, "http://" + server.endpoint().to_string() + "/", error));
  EXPECT_EQ(error, system_error(ETIMEDOUT)) << error.message();
}

}  // namespace
}  // namespace tambour::unsolicited_test
