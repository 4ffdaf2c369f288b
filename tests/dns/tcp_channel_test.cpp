// Queries over TCP, and over the streams of a dns::Transport: servers whose connections end, fail,
// or carry responses that cannot be used.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/resolver_fixture.h"

namespace tambour::tcp_channel_test {
namespace {

using namespace std::chrono_literals;
using Answer = Result<dns::Message>;

class QueriesOverTcp : public test::ResolverTest {
 protected:
  QueriesOverTcp() { configure("options use-vc\n"); }

  /// Only the first server is queried.
  dns::Resolver& with_one_server(std::shared_ptr<dns::Transport> transport = {}) {
    return make({.servers = {test::endpoint_of(*hosts[0])},
                 .settings = {"use-vc"},
                 .transport = std::move(transport)});
  }
  void start(const std::string& name, std::optional<Answer>& into) {
    spawn(*loop,
          [](dns::Resolver& from, std::string asked, std::optional<Answer>& result) -> Task<> {
            result = co_await from.query(asked, dns::Type::a);
          }(the_resolver(), name, into));
  }
  /// The server refuses EDNS, and does not answer the query without it, which is sent then. Its
  /// connection is closed.
  void start_without_edns(std::optional<Answer>& into) {
    servers[0]->set_change([](const dns::Message& question, dns::Message& response, bool) {
      response.rcode = dns::Rcode::format_error;
      response.edns.reset();
      response.answers.clear();
      return question.edns.has_value();
    });
    start("www.example.org", into);
    simulation.run_for(100ms);
    ASSERT_EQ(servers[0]->tcp_questions, 2U);
    servers[0]->stop();
    servers[0]->questions.clear();
    servers[0]->set_change(nullptr);
    servers[0]->start();
    simulation.run_for(1s);
    ASSERT_TRUE(into);
  }
};

TEST_F(QueriesOverTcp, are_sent_once_on_the_next_connection_after_a_query_without_edns) {
  with_one_server();
  std::optional<Answer> answer;
  start_without_edns(answer);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ(servers[0]->questions.size(), 1U);
  EXPECT_FALSE(servers[0]->questions.at(0).edns);
}

/// The first connection is made, and the handshakes of all others fail.
class OneConnection final : public dns::Transport {
 public:
  Task<Result<SocketStream>> connect(Endpoint server) override {
    auto stream = co_await TcpStream::connect(server);
    if (!stream) co_return std::unexpected(stream.error());
    if (connections_++ != 0)
      co_return std::unexpected(make_error_code(tls::ErrorCode::certificate_wrong_host));
    co_return SocketStream(std::move(*stream));
  }
  std::uint16_t port() const noexcept override { return 53; }

 private:
  int connections_ = 0;
};

TEST_F(QueriesOverTcp, end_once_if_the_next_handshake_fails_after_a_query_without_edns) {
  with_one_server(std::make_shared<OneConnection>());
  std::optional<Answer> answer;
  start_without_edns(answer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error(), dns::ErrorCode::insecure_server);
  EXPECT_EQ(resolver->stats().in_flight, 0U);
}

TEST_F(QueriesOverTcp, fail_over_if_the_response_cannot_be_used) {
  servers[0]->set_change([](const dns::Message&, dns::Message& response, bool) {
    response.truncated = true;
    return true;
  });
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_LT(simulation.now() - begin, 100ms);
  EXPECT_EQ(servers[0]->tcp_questions, 1U);
  EXPECT_EQ(servers[1]->tcp_questions, 1U);
  with_one_server();
  EXPECT_EQ(run(resolver->query("www.example.org", dns::Type::a)).error(),
            dns::ErrorCode::bad_response);
  EXPECT_EQ(servers[0]->tcp_questions, 2U) << "repeated at the speed of the network";
}

TEST_F(QueriesOverTcp, ignore_responses_to_other_questions) {
  bool is_first = true;
  servers[0]->set_change([&](const dns::Message&, dns::Message& response, bool) {
    if (std::exchange(is_first, false))
      response.questions[0].name = test::dns_name("other.example.org");
    return true;
  });
  with_one_server();
  EXPECT_TRUE(run(resolver->query("www.example.org", dns::Type::a)));
  // After some seconds of silence, the query was sent again.
  EXPECT_EQ(servers[0]->tcp_connections, 2U);
}

/// The packets of the first attempt to connect are lost, and the kernel would repeat them later and
/// later.
class SlowStart final : public dns::Transport {
 public:
  Task<Result<SocketStream>> connect(Endpoint server) override {
    if (++connections == 1) static_cast<void>(co_await sleep_for(1h));
    auto stream = co_await TcpStream::connect(server);
    if (!stream) co_return std::unexpected(stream.error());
    co_return SocketStream(std::move(*stream));
  }
  std::uint16_t port() const noexcept override { return 53; }
  int connections = 0;
};

TEST_F(QueriesOverTcp, try_to_connect_again_while_there_are_others) {
  const auto transport = std::make_shared<SlowStart>();
  with_one_server(transport);
  // Some query is always waiting.
  constexpr int queries = 80;
  std::vector<std::optional<Answer>> answers(queries);
  TaskScope scope(*loop);
  for (int i = 0; i < queries; ++i) {
    scope.spawn([&, i]() -> Task<> {
      static_cast<void>(co_await sleep_for(i * 100ms));
      start("n" + std::to_string(i) + ".example.org", answers[static_cast<std::size_t>(i)]);
    });
  }
  simulation.run_for(20s);
  EXPECT_EQ(transport->connections, 2);
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error(), dns::ErrorCode::no_such_name);
  }
}

/// Fails without waiting for anything.
class Unusable final : public dns::Transport {
 public:
  Task<Result<SocketStream>> connect(Endpoint) override {
    co_return std::unexpected(make_error_code(tls::ErrorCode::certificate_wrong_host));
  }
  std::uint16_t port() const noexcept override { return 53; }
};

/// A kept connection may have ended meanwhile, whether it has ever answered or not.
TEST_F(QueriesOverTcp, are_sent_again_if_a_kept_connection_without_an_answer_has_ended) {
  make({.servers = {test::endpoint_of(*hosts[0])},
        .settings = {"use-vc", "attempts:1", "timeout:1"}});
  servers[0]->set_change([](const dns::Message&, dns::Message&, bool) { return false; });
  // Failures are remembered for some seconds.
  EXPECT_EQ(run(resolver->query("other.example.org", dns::Type::a)).error(),
            dns::ErrorCode::timeout);
  EXPECT_EQ(servers[0]->tcp_connections, 1U);
  servers[0]->stop();
  servers[0]->set_change(nullptr);
  servers[0]->start();
  simulation.run_for(100ms);
  const auto answer = run(resolver->query("www.example.org", dns::Type::a));
  EXPECT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(servers[0]->tcp_connections, 2U);
}

TEST_F(QueriesOverTcp, may_fail_at_once) {
  make({.transport = std::make_shared<Unusable>(), .queries_max = 1});
  constexpr int queries = 20'000;
  std::vector<std::optional<Answer>> answers(queries);
  for (int i = 0; i < queries; ++i)
    start("n" + std::to_string(i) + ".example.org", answers[static_cast<std::size_t>(i)]);
  simulation.run_for(10s);
  const auto has_failed = [](const auto& entry) {
    return entry && entry->error() == dns::ErrorCode::insecure_server;
  };
  EXPECT_EQ(std::ranges::count_if(answers, has_failed), queries);
  // Dead servers are probed, too.
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(run(resolver->query("p" + std::to_string(i) + ".example.org", dns::Type::a)));
    pass(100ms);
  }
}

}  // namespace
}  // namespace tambour::tcp_channel_test
