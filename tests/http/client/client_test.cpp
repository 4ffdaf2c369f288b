// The HTTP client against servers whose answers are chosen by the test.
#include <tambour/http/client.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/stream_error.h>
#include <tambour/task/combinators.h>

#include "http/support/scripted_server.h"
#include "support/on_every_backend.h"

namespace tambour::client_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::ClientResponse;
using http::Method;
using http::Status;
using test::and_close;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;
using namespace std::chrono_literals;

/// Returns the body, or the error's message.
Task<std::string> text_of(Task<Result<ClientResponse>> request) {
  auto response = co_await std::move(request);
  if (!response) co_return "error: " + response.error().message();
  auto text = co_await response->read_text();
  if (!text) co_return "error in body: " + text.error().message();
  co_return std::move(*text);
}

class Pieces final : public http::BodySource {
 public:
  explicit Pieces(std::vector<std::string> pieces, Error error = {})
      : pieces_(std::move(pieces)), error_(error) {}

  Task<Result<>> read(Buffer& into) override {
    if (next_ < pieces_.size()) {
      into.append(pieces_[next_++]);
    } else if (error_) {
      co_return std::unexpected(error_);
    }
    co_return {};
  }

 private:
  std::vector<std::string> pieces_;
  std::size_t next_ = 0;
  Error error_;
};

/// Produces bytes as long as they are requested.
class Endless final : public http::BodySource {
 public:
  explicit Endless(std::size_t& produced) : produced_(produced) {}
  Task<Result<>> read(Buffer& into) override {
    into.append(std::string(65536, 'e'));
    produced_ += 65536;
    co_return {};
  }

 private:
  std::size_t& produced_;
};

ClientRequest streamed(Method method, std::string url, std::unique_ptr<http::BodySource> source,
                       std::optional<std::uint64_t> bytes = {}) {
  ClientRequest request(method, std::move(url));
  request.source = std::move(source);
  request.source_bytes = bytes;
  return request;
}
ClientRequest expecting(ClientRequest request) {
  request.expect_continue = true;
  return request;
}
ClientRequest limited(std::string url, Duration timeout) {
  ClientRequest request(std::move(url));
  request.timeout = timeout;
  return request;
}

class HttpClient : public test::OnEveryBackend {
 protected:
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    run([](Client& by, ClientRequest subject, std::string& into) -> Task<> {
      into = co_await text_of(by.send(std::move(subject)));
    }(client, std::move(request), text));
    return text;
  }
  std::string body_at(Client& client, std::string url) {
    return got(client, ClientRequest(std::move(url)));
  }
  Result<ClientResponse> sent(Client& client, ClientRequest request) {
    std::optional<Result<ClientResponse>> response;
    run([](Client& by, ClientRequest subject, auto& into) -> Task<> {
      into.emplace(co_await by.send(std::move(subject)));
    }(client, std::move(request), response));
    return std::move(*response);
  }
  Error error_of(Client& client, ClientRequest request) {
    auto response = sent(client, std::move(request));
    return response ? Error() : response.error();
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpClient);

TEST_P(HttpClient, requests_share_a_connection) {
  ScriptedServer server(loop(), [](const Arrived& arrived) {
    return ok(std::string(arrived.head.method.name()) + " " + arrived.head.target + " " +
              arrived.head.authority);
  });
  Client client(loop());
  EXPECT_EQ(body_at(client, server.url("/a?b=c#d")), "GET /a?b=c " + server.authority());
  EXPECT_EQ(got(client, ClientRequest(Method::delete_, server.url(""))),
            "DELETE / " + server.authority());
  EXPECT_EQ(body_at(client, server.url("/a")), "GET /a " + server.authority());
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(client.connections(), 1);
  EXPECT_EQ(client.idle_connections(), 1);
  client.close_idle_connections();
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, each_framing_of_a_body_is_read_to_its_end) {
  ScriptedServer server(loop(), [](const Arrived& arrived) -> Answer {
    if (arrived.head.target == "/chunked")
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n "
             "world\r\n"
             "0\r\nChecksum: abc\r\n\r\n";
    if (arrived.head.target == "/close")
      return and_close("HTTP/1.1 200 OK\r\n\r\n" + std::string(300'000, 'c'));
    if (arrived.head.target == "/none") return "HTTP/1.1 204 No Content\r\n\r\n";
    if (arrived.head.method == Method::head)
      return "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    return ok(std::string(3'000'000, 'l'));
  });
  Client client(loop());
  EXPECT_EQ(body_at(client, server.url("/length")), std::string(3'000'000, 'l'));
  EXPECT_EQ(body_at(client, server.url("/chunked")), "hello world");
  EXPECT_EQ(body_at(client, server.url("/none")), "");
  EXPECT_EQ(got(client, ClientRequest(Method::head, server.url())), "");
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(body_at(client, server.url("/close")), std::string(300'000, 'c'));
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, trailers_are_known_at_the_end_of_the_body) {
  ScriptedServer server(loop(), [](const Arrived&) -> Answer {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nSum: 1\r\n\r\n";
  });
  Client client(loop());
  auto response = sent(client, ClientRequest(server.url()));
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->trailers().empty());
  EXPECT_FALSE(response->is_complete());
  run([](ClientResponse& subject) -> Task<> {
    EXPECT_EQ(co_await subject.read_text(), "a");
  }(*response));
  EXPECT_TRUE(response->is_complete());
  EXPECT_EQ(response->trailers().get("sum"), "1");
  EXPECT_FALSE(response->headers().contains("Sum"));
}

TEST_P(HttpClient, bodies_of_requests_are_sent) {
  ScriptedServer server(loop(), [](const Arrived& arrived) {
    const bool chunked = arrived.head.fields.contains("Transfer-Encoding");
    const auto length = arrived.head.fields.get("Content-Length").value_or("none");
    return ok(std::string(chunked ? "chunked " : "length ") + std::string(length) + " " +
              std::to_string(std::hash<std::string>()(arrived.body)));
  });
  Client client(loop());
  const auto expected = [](const std::string& framing, const std::string& body) {
    return framing + " " + std::to_string(std::hash<std::string>()(body));
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{1'000'000}}) {
    const std::string body(size, 'b');
    EXPECT_EQ(got(client, ClientRequest(Method::post, server.url(), Buffer(body))),
              expected("length " + std::to_string(size), body));
  }
  EXPECT_EQ(got(client, streamed(Method::put, server.url(),
                                 std::make_unique<Pieces>(std::vector<std::string>{"a", "bc"}))),
            expected("chunked none", "abc"));
  EXPECT_EQ(got(client, streamed(Method::put, server.url(),
                                 std::make_unique<Pieces>(std::vector<std::string>{"a", "bc"}), 3)),
            expected("length 3", "abc"));
  EXPECT_EQ(body_at(client, server.url()), expected("length none", ""));
  EXPECT_EQ(server.connections(), 1);
}

TEST_P(HttpClient, a_source_that_fails_closes_the_connection) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok(""); });
  Client client(loop());
  const auto with = [&](std::unique_ptr<Pieces> source, std::optional<std::uint64_t> bytes) {
    return error_of(client, streamed(Method::post, server.url(), std::move(source), bytes));
  };
  const std::vector<std::string> pieces{"12345"};
  EXPECT_EQ(with(std::make_unique<Pieces>(pieces, system_error(EIO)), {}), system_error(EIO));
  EXPECT_EQ(with(std::make_unique<Pieces>(pieces), 4), system_error(EMSGSIZE));
  EXPECT_EQ(with(std::make_unique<Pieces>(pieces), 6), StreamError::truncated);
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, a_connection_that_the_server_has_closed_is_not_used_again) {
  ScriptedServer server(loop(), [](const Arrived& arrived) {
    return and_close(ok(std::to_string(arrived.connection)));
  });
  Client client(loop());
  EXPECT_EQ(body_at(client, server.url()), "0");
  ASSERT_TRUE(run_until([&] { return client.connections() == 0; }));
  EXPECT_EQ(got(client, ClientRequest(Method::post, server.url())), "1");
}

TEST_P(HttpClient, an_idempotent_request_is_repeated_if_a_kept_connection_was_closed) {
  std::vector<std::string> arrivals;
  ScriptedServer server(loop(), [&](const Arrived& arrived) -> Answer {
    arrivals.push_back(std::to_string(arrived.connection) +
                       std::string(arrived.head.method.name()));
    // Closed without an answer to the second request.
    if (arrived.request == 1) return and_close("");
    return ok(std::to_string(arrived.connection));
  });
  Client client(loop());
  EXPECT_EQ(body_at(client, server.url()), "0");
  EXPECT_EQ(body_at(client, server.url()), "1");
  EXPECT_EQ(error_of(client, ClientRequest(Method::post, server.url())), StreamError::eof);
  EXPECT_EQ(arrivals, (std::vector<std::string>{"0GET", "0GET", "1GET", "1POST"}));
  // Its body cannot be produced again.
  EXPECT_EQ(body_at(client, server.url()), "2");
  EXPECT_EQ(error_of(client, streamed(Method::put, server.url(),
                                      std::make_unique<Pieces>(std::vector<std::string>{"a"}))),
            StreamError::eof);
  EXPECT_EQ(server.connections(), 3);
}

TEST_P(HttpClient, a_request_on_a_new_connection_is_not_repeated) {
  ScriptedServer server(loop(), [](const Arrived&) { return and_close(""); });
  Client client(loop());
  EXPECT_EQ(error_of(client, ClientRequest(server.url())), StreamError::eof);
  EXPECT_EQ(server.connections(), 1);
}

TEST_P(HttpClient, bytes_without_a_request_close_the_connection) {
  ScriptedServer server(loop(), [](const Arrived& arrived) {
    return ok(std::to_string(arrived.connection)) + "HTTP/1.1 200 OK\r\n\r\n";
  });
  Client client(loop());
  EXPECT_EQ(body_at(client, server.url()), "0");
  EXPECT_EQ(body_at(client, server.url()), "1");
}

TEST_P(HttpClient, requests_beyond_the_limit_of_connections_wait_in_order) {
  std::vector<std::string> order;
  ScriptedServer server(loop(), [&](const Arrived& arrived) {
    order.push_back(arrived.head.target);
    return ok(arrived.head.target);
  });
  Client client(loop(), {.connections_per_origin_max = 1, .waiting_per_origin_max = 3});
  run([](Client& by, ScriptedServer& at) -> Task<> {
    auto all = co_await when_all(text_of(by.get(at.url("/1"))), text_of(by.get(at.url("/2"))),
                                 text_of(by.get(at.url("/3"))), text_of(by.get(at.url("/4"))),
                                 by.get(at.url("/5")));
    EXPECT_EQ(std::get<0>(all), "/1");
    EXPECT_EQ(std::get<3>(all), "/4");
    EXPECT_EQ(std::get<4>(all).error(), system_error(EAGAIN));
  }(client, server));
  EXPECT_EQ(order, (std::vector<std::string>{"/1", "/2", "/3", "/4"}));
  EXPECT_EQ(server.most_open(), 1);
}

TEST_P(HttpClient, many_requests_use_as_many_connections_as_allowed) {
  ScriptedServer server(loop(), [](const Arrived& arrived) { return ok(arrived.head.target); });
  Client client(loop(), {.connections_per_origin_max = 4});
  run([](Client& by, ScriptedServer& at) -> Task<> {
    std::vector<Task<std::string>> requests;
    for (int i = 0; i < 100; ++i)
      requests.push_back(text_of(by.get(at.url("/" + std::to_string(i)))));
    const auto all = co_await when_all(std::move(requests));
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(all[static_cast<std::size_t>(i)], "/" + std::to_string(i));
  }(client, server));
  EXPECT_EQ(server.connections(), 4);
  EXPECT_EQ(client.idle_connections(), 4);
}

TEST_P(HttpClient, a_request_that_ends_while_it_waits_gives_its_place_to_the_next) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("x"); });
  Client client(loop(), {.connections_per_origin_max = 1});
  auto holding = sent(client, ClientRequest(server.url()));
  ASSERT_TRUE(holding);
  EXPECT_EQ(error_of(client, limited(server.url(), 5ms)), system_error(ETIMEDOUT));
  // Destroyed without having been read: its connection is closed, and another can be opened.
  holding = std::unexpected(Error());
  EXPECT_EQ(body_at(client, server.url()), "x");
  EXPECT_EQ(server.connections(), 2);
}

TEST_P(HttpClient, the_time_limits_of_the_head_and_of_the_body) {
  ScriptedServer server(loop(), [](const Arrived& arrived) -> Answer {
    if (arrived.head.target == "/head") return "HTTP/1.1 200 OK\r\n";
    return "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345";
  });
  Client client(loop(), {.timeout = 20ms, .read_timeout = 20ms});
  EXPECT_EQ(error_of(client, ClientRequest(server.url("/head"))), system_error(ETIMEDOUT));
  // Connecting may take longer than the limit of the head on a busy machine.
  Client patient(loop(), {.read_timeout = 20ms});
  auto response = sent(patient, ClientRequest(server.url("/body")));
  ASSERT_TRUE(response);
  run([](ClientResponse& subject) -> Task<> {
    Buffer body;
    EXPECT_EQ(co_await subject.read(body), 5U);
    EXPECT_EQ((co_await subject.read(body)).error(), system_error(ETIMEDOUT));
    EXPECT_EQ((co_await subject.read(body)).error(), system_error(ETIMEDOUT));
  }(*response));
  EXPECT_EQ(patient.connections(), 0);
}

TEST_P(HttpClient, zero_disables_the_time_limits) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("x"); });
  ClientOptions options;
  options.timeout = options.read_timeout = options.idle_timeout = Duration::zero();
  options.total_timeout = Duration::zero();
  Client client(loop(), std::move(options));
  EXPECT_EQ(body_at(client, server.url()), "x");
  EXPECT_EQ(body_at(client, server.url()), "x");
  EXPECT_EQ(server.connections(), 1);
}

TEST_P(HttpClient, idle_connections_are_closed_after_their_time_limit) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("x"); });
  Client client(loop(), {.idle_timeout = 10ms});
  EXPECT_EQ(body_at(client, server.url()), "x");
  EXPECT_TRUE(run_until([&] { return client.connections() == 0 && server.open() == 0; }));
}

TEST_P(HttpClient, the_oldest_idle_connection_is_closed_first) {
  ScriptedServer one(loop(), [](const Arrived& a) { return ok(std::to_string(a.connection)); });
  ScriptedServer other(loop(), [](const Arrived& a) { return ok(std::to_string(a.connection)); });
  Client client(loop(), {.idle_connections_max = 1});
  EXPECT_EQ(body_at(client, one.url()), "0");
  EXPECT_EQ(body_at(client, other.url()), "0");
  EXPECT_EQ(client.idle_connections(), 1);
  EXPECT_EQ(body_at(client, other.url()), "0");
  EXPECT_EQ(body_at(client, one.url()), "1");
}

TEST_P(HttpClient, interim_responses_are_skipped_up_to_a_limit) {
  ScriptedServer server(loop(), [](const Arrived& arrived) {
    std::string text;
    const int count = std::stoi(arrived.head.target.substr(1));
    for (int i = 0; i < count; ++i) text += "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    return text + ok("final");
  });
  Client client(loop());
  EXPECT_EQ(body_at(client, server.url("/3")), "final");
  EXPECT_EQ(error_of(client, ClientRequest(server.url("/33"))),
            http::ErrorCode::too_many_interim_responses);
}

TEST_P(HttpClient, the_body_is_sent_after_100_continue) {
  ScriptedServer server(loop(), [](const Arrived& arrived) { return ok(arrived.body); });
  server.set_on_head([](const http::RequestHead& head) -> Answer {
    EXPECT_EQ(head.fields.get("Expect"), "100-continue");
    return "HTTP/1.1 100 Continue\r\n\r\n";
  });
  Client client(loop());
  EXPECT_EQ(got(client, expecting(ClientRequest(Method::post, server.url(), Buffer("body")))),
            "body");
}

TEST_P(HttpClient, a_body_that_the_server_refuses_is_not_sent) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("unexpected"); });
  server.set_on_head([](const http::RequestHead&) {
    Answer answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
    answer.reads_the_rest = true;
    return answer;
  });
  Client client(loop());
  std::size_t produced = 0;
  EXPECT_EQ(got(client, expecting(streamed(Method::post, server.url(),
                                           std::make_unique<Endless>(produced)))),
            "big");
  EXPECT_EQ(produced, 0U);
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, a_response_ends_an_upload_that_is_still_being_sent) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("unexpected"); });
  server.set_on_head([](const http::RequestHead&) {
    Answer answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
    answer.reads_the_rest = true;
    return answer;
  });
  Client client(loop());
  std::size_t produced = 0;
  EXPECT_EQ(got(client, streamed(Method::post, server.url(), std::make_unique<Endless>(produced))),
            "big");
  EXPECT_TRUE(run_until([&] { return server.open() == 0; }));
}

TEST_P(HttpClient, an_upload_waits_for_a_slow_server) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("x"); });
  int stalled = 0;
  Client client(loop(), {.timeout = 100ms});
  std::size_t produced = 0;
  // The server never reads: what the client produces is limited by the buffers of the sockets.
  auto listener = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(listener);
  listener->serve([&stalled](TcpStream stream) {
    return []([[maybe_unused]] TcpStream kept, int& count) -> Task<> {
      ++count;
      static_cast<void>(co_await sleep_for(1h));
    }(std::move(stream), stalled);
  });
  const std::string url = "http://" + listener->endpoint().to_string() + "/";
  // On a busy machine, the time limit may expire before the connection is accepted.
  int attempts = 0;
  do {
    produced = 0;
    EXPECT_EQ(error_of(client, streamed(Method::post, url, std::make_unique<Endless>(produced))),
              system_error(ETIMEDOUT));
    EXPECT_LT(produced, std::size_t{64} * 1024 * 1024);
  } while (++attempts < 50 && stalled == 0);
  EXPECT_GT(stalled, 0);
  EXPECT_LE(stalled, attempts);
}

TEST_P(HttpClient, malformed_responses_fail_and_close_the_connection) {
  ScriptedServer server(loop(), [](const Arrived& arrived) -> Answer {
    if (arrived.head.target == "/status") return "HTTP/1.1 2000 OK\r\n\r\n";
    if (arrived.head.target == "/lengths")
      return "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
    if (arrived.head.target == "/chunk")
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n";
    return and_close("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  });
  Client client(loop());
  EXPECT_EQ(error_of(client, ClientRequest(server.url("/status"))),
            http::ErrorCode::bad_status_line);
  EXPECT_EQ(error_of(client, ClientRequest(server.url("/lengths"))),
            http::ErrorCode::several_content_lengths);
  EXPECT_EQ(body_at(client, server.url("/chunk")),
            "error in body: " + make_error_code(http::ErrorCode::bad_chunk_size).message());
  EXPECT_EQ(body_at(client, server.url("/short")),
            "error in body: " + make_error_code(StreamError::truncated).message());
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, the_size_of_a_whole_body_is_limited) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok("12345"); });
  Client client(loop());
  run([](Client& by, ScriptedServer& at) -> Task<> {
    auto exact = co_await by.get(at.url());
    EXPECT_EQ(co_await exact->read_text(5), "12345");
    auto larger = co_await by.get(at.url());
    EXPECT_EQ((co_await larger->read_text(3)).error(), http::ErrorCode::body_too_large);
  }(client, server));
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, invalid_requests_fail_before_anything_is_sent) {
  Client client(loop());
  EXPECT_EQ(error_of(client, ClientRequest("/path")), http::ErrorCode::url_not_absolute);
  EXPECT_EQ(error_of(client, ClientRequest("ftp://example.org/")), http::ErrorCode::url_bad_scheme);
  EXPECT_EQ(error_of(client, ClientRequest("http:///path")), http::ErrorCode::url_bad_host);
  EXPECT_EQ(error_of(client, ClientRequest("http://example.org:0/")),
            http::ErrorCode::url_bad_port);
  EXPECT_EQ(error_of(client, ClientRequest("http://a b/")), http::ErrorCode::url_bad_host);
  run([](Client& by) -> Task<> {
    auto response = co_await by.post("http://127.0.0.1:1/", "text/plain\r\nEvil: 1", Buffer("x"));
    EXPECT_EQ(response.error(), http::ErrorCode::bad_field_value);
  }(client));
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, a_refused_connection_is_reported) {
  std::string url;
  {
    ScriptedServer server(loop(), [](const Arrived&) { return ok(""); });
    url = server.url();
  }
  Client client(loop());
  EXPECT_EQ(error_of(client, ClientRequest(url)), system_error(ECONNREFUSED));
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, an_upgraded_connection_carries_other_bytes) {
  ScriptedServer server(loop(), [](const Arrived&) {
    Answer answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\nhello");
    answer.reads_the_rest = true;
    return answer;
  });
  Client client(loop());
  ClientRequest request(server.url());
  or_throw(request.fields.add("Upgrade", "echo"));
  auto response = sent(client, std::move(request));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status(), Status::switching_protocols);
  auto stream = response->upgrade();
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->is_open());
  run([](ByteStream& byte_stream) -> Task<> {
    Buffer bytes;
    while (bytes.size() < 5) {
      if (!co_await byte_stream.read(bytes)) break;
    }
    EXPECT_EQ(bytes, "hello");
  }(*stream));
  EXPECT_EQ(response->upgrade().error(), system_error(EINVAL));
  EXPECT_EQ(client.connections(), 0);
}

TEST_P(HttpClient, a_response_outlives_its_client) {
  ScriptedServer server(loop(), [](const Arrived&) { return ok(std::string(500'000, 'o')); });
  std::optional<Client> client(loop());
  auto response = sent(*client, ClientRequest(server.url()));
  ASSERT_TRUE(response);
  client.reset();
  run([](ClientResponse& subject) -> Task<> {
    EXPECT_EQ((co_await subject.read_text())->size(), 500'000U);
  }(*response));
  EXPECT_TRUE(run_until([&] { return server.open() == 0; }));
}

}  // namespace
}  // namespace tambour::client_test
