// http::Server behind nginx, HAProxy and h2o, which reuse their connections to it: ambiguous
// requests must not make both disagree about where a request begins or ends. Otherwise a client
// could smuggle a request past the front end, or get the answer to the request of another client.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/unix.h>
#include <tambour/tambour.h>

#include "http/support/ambiguous_requests.h"
#include "http/support/front_end.h"
#include "http/support/recording_back_end.h"
#include "support/network.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::smuggling_test {
namespace {

using namespace std::chrono_literals;
using test::disagreement;
using test::FrontEnd;
using test::RecordedConnection;
using test::RecordingBackEnd;

class Smuggling : public testing::TestWithParam<FrontEnd> {
 protected:
  void SetUp() override {
    if (!test::has_program(GetParam().program)) GTEST_SKIP() << GetParam().program;
  }

  /// Sends a text and half-closes the connection. Returns everything that is received.
  Task<std::string> ask(std::string text) {
    Buffer all;
    auto stream = co_await UnixStream::connect(front_);
    if (!stream) co_return "";
    static_cast<void>(co_await stream->write(std::string_view(text)));
    static_cast<void>(co_await stream->shutdown_write());
    while (true) {
      const auto got = co_await stream->read(all);
      if (!got || *got == 0) co_return all.to_string();
    }
  }

  Task<> wait_until_it_listens() {
    while (true) {
      const auto stream = co_await UnixStream::connect(front_);
      if (stream) co_return;
      static_cast<void>(co_await sleep_for(5ms));
    }
  }

  /// A client that has sent no ambiguous request must get its own answer. The front end may have to
  /// notice first that the server has closed a connection.
  Task<> probe(std::size_t number) {
    const std::string target = "/probe/" + std::to_string(number);
    const std::string expected = RecordingBackEnd::answer_to("GET", target);
    std::string reply;
    for (int attempt = 0; attempt < 5; ++attempt) {
      reply = co_await ask("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      if (reply.ends_with(expected) || reply.find("answer to") != std::string::npos) break;
    }
    EXPECT_TRUE(reply.ends_with(expected)) << "the answer to " << target << " is:\n" << reply;
  }

  Task<> send_all(const std::vector<std::string>& requests, std::size_t step) {
    co_await wait_until_it_listens();
    for (std::size_t i = 0; i < requests.size() && !HasFailure(); i += step) {
      static_cast<void>(co_await timeout(5s, ask(requests[i])));
      co_await probe(i);
      if (i / step % 16 == 15) check_connections();
    }
    check_connections();
  }

  void check_connections() {
    constexpr std::size_t tail = 4000;
    for (const auto& [port, connection] : back_.connections()) {
      const std::string& sent = connection.sent;
      EXPECT_EQ(disagreement(connection, GetParam().mark), "")
          << "the front end has sent:\n"
          << sent.substr(sent.size() - std::min(sent.size(), tail));
    }
  }

  void run(Task<> task) {
    Process process = start(loop_, GetParam(), folder_.path());
    spawn(loop_, [](Task<> all, Process& server, EventLoop& loop) -> Task<> {
      const auto ended = co_await timeout(4min, std::move(all));
      EXPECT_TRUE(ended) << "took too long";
      server.terminate(Duration::zero());
      static_cast<void>(co_await server.wait());
      loop.stop();
    }(std::move(task), process, loop_));
    loop_.run();
    if (!HasFailure()) return;
    std::ifstream errors(folder_.path() + "/errors");
    std::stringstream text;
    text << errors.rdbuf();
    ADD_FAILURE() << GetParam().program << ": " << text.str();
  }

  test::TemporaryFolder folder_;
  EventLoop loop_;
  RecordingBackEnd back_{loop_, folder_.path() + "/back"};
  Endpoint front_ = or_throw(Endpoint::unix_name(folder_.path() + "/front"));
};

TEST_P(Smuggling, no_request_is_parsed_from_a_body) {
  const std::vector<std::string> requests = test::ambiguous_requests();
  ASSERT_GT(requests.size(), 500);
  run(send_all(requests, test::sanitized ? 20 : 1));
  std::size_t read = 0;
  std::size_t with_body = 0;
  for (const auto& [port, connection] : back_.connections()) {
    for (const test::ReadRequest& read_request : connection.read) {
      read += read_request.target.starts_with("/probe/") ? 0 : 1;
      with_body += read_request.body.empty() ? 0 : 1;
    }
  }
  // Otherwise the front end has rejected what the test is about.
  EXPECT_GT(read, test::sanitized ? 2 : 100);
  EXPECT_GT(with_body, test::sanitized ? 0 : 10);
  RecordProperty("requests", int(requests.size()));
  RecordProperty("read", int(read));
}

INSTANTIATE_TEST_SUITE_P(FrontEnds, Smuggling,
                         testing::Values(test::nginx, test::lenient_nginx, test::haproxy,
                                         test::lenient_haproxy, test::h2o),
                         [](const auto& entry) { return std::string(entry.param.name); });

constexpr std::string_view mark = "Mark: x";

RecordedConnection recorded(std::string sent, std::vector<test::ReadRequest> read) {
  RecordedConnection connection;
  connection.sent = std::move(sent);
  connection.read = std::move(read);
  return connection;
}

test::ReadRequest read_request(std::string target, std::string body) {
  return {"POST", std::move(target), std::move(body), true};
}

TEST(SmugglingCheck, finds_what_the_server_reads_differently) {
  const std::string first = "POST /1 HTTP/1.1\r\nMark: x\r\nContent-Length: 39\r\n\r\n";
  const std::string inner = "POST /2 HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
  const std::string third = "POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nMark: x\r\n\r\n";
  const std::string whole = first + inner + third + "5;a\r\nhello\r\n0\r\nX: y\r\n\r\n";
  const auto check = [&](std::vector<test::ReadRequest> read) {
    return disagreement(recorded(whole, std::move(read)), mark);
  };
  EXPECT_EQ(check({read_request("/1", inner), read_request("/3", "hello")}), "");
  EXPECT_NE(check({read_request("/1", ""), read_request("/2", "")}), "");
  EXPECT_NE(check({read_request("/1", inner.substr(1))}), "");
  EXPECT_NE(check({read_request("/1", inner + third)}), "");
  EXPECT_NE(check({read_request("/1", inner), read_request("/2", "hello")}), "");
  EXPECT_NE(check({read_request("/1", inner), read_request("/3", "")}), "");
  EXPECT_NE(check({read_request("/1", inner), read_request("/3", "hello"), read_request("/4", "")}),
            "");
  EXPECT_NE(disagreement(recorded(inner, {read_request("/2", "")}), mark), "");
}

}  // namespace
}  // namespace tambour::smuggling_test
