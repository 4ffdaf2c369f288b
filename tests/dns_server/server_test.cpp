// dns::Server in a simulation, asked by a resolver and with packets of any form.
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/name_server.h"

namespace tambour::server_test {
namespace {

using namespace std::chrono_literals;
using test::a_record;
using test::dns_name;

/// Answers A with one address, TXT with many strings, AXFR with many records.
void answer(const dns::Request& request, dns::Message& response) {
  const dns::Question& question = request.question();
  response.authoritative = true;
  if (question.type == dns::Type::a) {
    response.answers.push_back(a_record(question.name.to_string(), {192, 0, 2, 1}));
  } else if (question.type == dns::Type::txt) {
    const dns::Txt text{std::vector<std::string>(40, std::string(200, 'x'))};
    response.answers.push_back(
        {.name = question.name, .type = dns::Type::txt, .ttl = 60, .data = text});
  } else if (question.type == dns::Type::axfr) {
    for (int i = 0; i < 10'000; ++i)
      response.answers.push_back(a_record("host" + std::to_string(i) + ".test", {10, 0, 0, 1}));
  } else {
    response.rcode = dns::Rcode::no_such_name;
  }
}

Task<> answer_later(const dns::Request& request, dns::Message& response) {
  // The later question is answered first.
  const bool is_first = request.question().name.label() == "first";
  const Duration delay = is_first ? 300ms : 100ms;
  static_cast<void>(co_await sleep_for(delay));
  answer(request, response);
}

class DnsServing : public testing::Test {
 protected:
  DnsServing()
      : client(simulation.add_host("client")),
        host(simulation.add_host("server")),
        loop(client.loop_options()),
        server_loop(host.loop_options()) {}

  template <class Handler>
  void serve(Handler handler, const dns::ServerOptions& options = {}) {
    server = dns::Server::listen(server_loop, test::endpoint_of(host), handler, options).value();
    resolver.emplace(loop, dns::ResolverOptions{.servers = {server->endpoint()}});
  }
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    spawn(loop, [](Task<T> inner, std::optional<T>& into, sim::Simulation& in) -> Task<> {
      into.emplace(co_await std::move(inner));
      in.stop();
    }(std::move(task), result, simulation));
    simulation.run(1h);
    return std::move(result).value();
  }

  /// Sends a datagram, and returns the answer, or an empty text after `limit`.
  Task<std::string> exchange(std::string packet, Duration limit = 1s) {
    auto socket = UdpSocket::bind(loop, Endpoint::any_v4(0)).value();
    static_cast<void>(socket.try_send_to(std::as_bytes(std::span(packet)), server->endpoint()));
    DatagramBatch batch(1, 4096);
    const auto got = co_await timeout(limit, socket.receive(batch));
    co_return got ? std::string(batch.front().text()) : std::string();
  }
  Task<std::string> exchange_over_tcp(std::string bytes, std::size_t messages) {
    auto stream = co_await TcpStream::connect(server->endpoint());
    static_cast<void>(co_await stream->write(std::string_view(bytes)));
    std::string all;
    std::array<std::byte, 65536> in;
    std::size_t count = 0;
    std::size_t at = 0;
    while (count < messages) {
      const auto got = co_await timeout(5s, stream->read(in));
      if (!got || *got == 0) break;
      all.append(reinterpret_cast<const char*>(in.data()), *got);
      while (all.size() >= at + 2) {
        const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(all[at + i]); };
        const std::size_t size = 2U + byte(0) * 256U + byte(1);
        if (all.size() < at + size) break;
        at += size;
        ++count;
      }
    }
    co_return all;
  }
  Result<dns::Message> ask(const dns::Message& question) {
    const std::string bytes = run(exchange(question.write().value()));
    return parse(bytes);
  }
  static Result<dns::Message> parse(std::string_view bytes) {
    return dns::Message::parse(std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
  /// The messages of a stream.
  static std::vector<dns::Message> messages_in(std::string_view bytes) {
    std::vector<dns::Message> found;
    while (bytes.size() > 2) {
      const std::size_t size =
          static_cast<std::uint8_t>(bytes[0]) * 256U + static_cast<std::uint8_t>(bytes[1]);
      found.push_back(parse(bytes.substr(2, size)).value());
      bytes.remove_prefix(2 + size);
    }
    return found;
  }
  static std::string framed(const dns::Message& message) {
    const std::string bytes = message.write().value();
    return std::string(1, static_cast<char>(bytes.size() >> 8U)) + static_cast<char>(bytes.size()) +
           bytes;
  }

  sim::Simulation simulation;
  sim::Host& client;
  sim::Host& host;
  EventLoop loop;
  EventLoop server_loop;
  std::optional<dns::Server> server;
  std::optional<dns::Resolver> resolver;
};

TEST_F(DnsServing, truncates_large_udp_responses_and_answers_over_tcp) {
  serve(answer);
  EXPECT_EQ(run(resolver->resolve("www.test", 80, AddressFamily::v4))->at(0).address(),
            "192.0.2.1");
  const auto text = run(resolver->query("www.test", dns::Type::txt));
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(text->answers_of<dns::Txt>().at(0)->strings.size(), 40U);
  EXPECT_EQ(run(resolver->query("www.test", dns::Type::mx)).error(), dns::ErrorCode::no_such_name);
  EXPECT_EQ(server->stats().udp_queries, 3U);
  EXPECT_EQ(server->stats().tcp_queries, 1U);
  EXPECT_EQ(server->stats().truncated, 1U);
}

TEST_F(DnsServing, limits_datagrams_to_what_the_client_accepts) {
  serve([](const dns::Request& request, dns::Message& response) {
    for (std::uint8_t i = 0; i < 200; ++i)
      response.answers.push_back(a_record(request.question().name.to_string(), {10, 0, 0, i}));
  });
  dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, 7);
  for (const auto& [accepted, limit] : {std::pair(0, 512), {100, 512}, {900, 900}, {4096, 1232}}) {
    question.edns.reset();
    if (accepted != 0) question.edns = dns::Edns{.udp_bytes = static_cast<std::uint16_t>(accepted)};
    const std::string bytes = run(exchange(question.write().value()));
    EXPECT_LE(bytes.size(), std::size_t(limit));
    EXPECT_GT(bytes.size() + 30, std::size_t(limit));
    const auto response = parse(bytes);
    ASSERT_TRUE(response);
    EXPECT_TRUE(response->truncated);
    EXPECT_EQ(response->id, 7);
    EXPECT_EQ(response->edns.has_value(), accepted != 0);
  }
}

TEST_F(DnsServing, rejects_messages_without_exactly_one_question) {
  serve(answer);
  dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, 1);
  question.questions.push_back(question.questions[0]);
  EXPECT_EQ(ask(question)->rcode, dns::Rcode::format_error);
  question.questions.clear();
  EXPECT_EQ(ask(question)->rcode, dns::Rcode::format_error);
  question = dns::Message::query(dns_name("www.test"), dns::Type::a, 1);
  question.opcode = dns::Opcode::notify;
  EXPECT_EQ(ask(question)->rcode, dns::Rcode::not_implemented);
  question.opcode = dns::Opcode::query;
  question.edns->version = 1;
  EXPECT_EQ(ask(question)->rcode, dns::Rcode::bad_version);
  // What is a response, or too short to be anything, gets no answer.
  question.is_response = true;
  EXPECT_EQ(run(exchange(question.write().value())), "");
  EXPECT_EQ(run(exchange("")), "");
  EXPECT_EQ(run(exchange("short")), "");
  const auto refused = parse(run(exchange(std::string("\0\5\1\0\0\1\0\0\0\0\0\0\300\f", 14))));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->rcode, dns::Rcode::format_error);
  EXPECT_EQ(refused->id, 5);
}

TEST_F(DnsServing, sends_zone_transfers_as_several_messages) {
  serve(answer);
  const dns::Message question = dns::Message::query(dns_name("test"), dns::Type::axfr, 9);
  EXPECT_TRUE(ask(question)->truncated) << "there are no transfers over UDP";
  const auto messages = messages_in(run(exchange_over_tcp(framed(question), SIZE_MAX)));
  EXPECT_GT(messages.size(), 3U);
  std::size_t records = 0;
  for (const dns::Message& message : messages) {
    EXPECT_EQ(message.id, 9);
    EXPECT_FALSE(message.truncated);
    records += message.answers.size();
  }
  EXPECT_EQ(records, 10'000U);
}

TEST_F(DnsServing, answers_pipelined_queries_in_the_order_in_which_tasks_end) {
  serve(answer_later);
  std::string both = framed(dns::Message::query(dns_name("first.test"), dns::Type::a, 1));
  both += framed(dns::Message::query(dns_name("second.test"), dns::Type::a, 2));
  const auto messages = messages_in(run(exchange_over_tcp(both, 2)));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].id, 2);
  EXPECT_EQ(messages[1].id, 1);
  EXPECT_EQ(run(resolver->resolve("www.test", 80, AddressFamily::v4))->size(), 1U);
}

/// So that a connection does not starve the others.
TEST_F(DnsServing, handles_a_limited_number_of_pipelined_queries_in_an_iteration) {
  std::uint64_t iteration = 0;
  int handled = 0;
  int handled_max = 0;
  serve([&](const dns::Request& request, dns::Message& response) {
    if (std::exchange(iteration, server_loop.stats().iterations) != server_loop.stats().iterations)
      handled = 0;
    handled_max = std::max(handled_max, ++handled);
    answer(request, response);
  });
  std::string queries;
  for (int i = 0; i < 500; ++i)
    queries += framed(dns::Message::query(dns_name("www.test"), dns::Type::a, std::uint16_t(i)));
  const auto messages = messages_in(run(exchange_over_tcp(queries, 500)));
  EXPECT_EQ(messages.size(), 500U);
  EXPECT_EQ(messages.back().id, 499);
  EXPECT_LE(handled_max, 64);
}

TEST_F(DnsServing, limits_the_tasks_of_handlers) {
  serve(answer_later, {.tasks_max = 5});
  TaskScope scope(loop);
  int answered = 0;
  for (std::uint16_t i = 0; i < 20; ++i) {
    scope.spawn([&, i]() -> Task<> {
      const dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, i);
      const std::string bytes = co_await exchange(question.write().value());
      if (!bytes.empty()) ++answered;
    });
  }
  simulation.run_for(10s);
  EXPECT_EQ(answered, 5);
  EXPECT_EQ(server->stats().overloaded, 15U);
}

/// Counts the handlers that run at the same time.
struct Concurrency {
  int running = 0;
  int largest = 0;
  Task<> answer(const dns::Request& request, dns::Message& response) {
    largest = std::max(largest, ++running);
    static_cast<void>(co_await sleep_for(100ms));
    --running;
    server_test::answer(request, response);
  }
};

TEST_F(DnsServing, limits_the_tasks_of_all_connections_together) {
  Concurrency handlers;
  serve([&](const dns::Request& request,
            dns::Message& response) { return handlers.answer(request, response); },
        {.tasks_max = 5});
  std::string queries;
  for (std::uint16_t i = 0; i < 10; ++i)
    queries += framed(dns::Message::query(dns_name("www.test"), dns::Type::a, i));
  TaskScope scope(loop);
  std::size_t answered = 0;
  for (int i = 0; i < 4; ++i) {
    scope.spawn([&]() -> Task<> {
      answered += messages_in(co_await exchange_over_tcp(queries, 10)).size();
    });
  }
  simulation.run_for(10s);
  EXPECT_EQ(answered, 40U);
  EXPECT_EQ(handlers.largest, 5);
}

TEST_F(DnsServing, limits_the_tasks_of_a_connection) {
  Concurrency handlers;
  serve([&](const dns::Request& request,
            dns::Message& response) { return handlers.answer(request, response); },
        {.tcp_tasks_max = 3});
  std::string queries;
  for (std::uint16_t i = 0; i < 10; ++i)
    queries += framed(dns::Message::query(dns_name("www.test"), dns::Type::a, i));
  EXPECT_EQ(messages_in(run(exchange_over_tcp(queries, 10))).size(), 10U);
  EXPECT_EQ(handlers.largest, 3);
}

TEST_F(DnsServing, answers_exceptions_of_handlers_with_server_failure) {
  int reported = 0;
  const dns::ServerOptions options{.on_error = [&](std::exception_ptr) { ++reported; }};
  const dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, 1);
  const auto expect_failures = [&] {
    EXPECT_EQ(ask(question)->rcode, dns::Rcode::server_failure);
    const std::string both = framed(question) + framed(question);
    const auto messages = messages_in(run(exchange_over_tcp(both, 2)));
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(messages[1].rcode, dns::Rcode::server_failure);
  };
  serve([](const dns::Request&, dns::Message&) { throw std::runtime_error("broken"); }, options);
  expect_failures();
  EXPECT_EQ(reported, 3);
  server.reset();
  serve(
      [](const dns::Request&, dns::Message&) -> Task<> {
        static_cast<void>(co_await sleep_for(1ms));
        throw std::runtime_error("broken");
      },
      options);
  expect_failures();
  EXPECT_EQ(reported, 6);
}

TEST_F(DnsServing, without_on_error_counts_exceptions_and_writes_them_to_standard_error) {
  serve([](const dns::Request&, dns::Message&) -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    throw std::runtime_error("broken");
  });
  const dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ask(question)->rcode, dns::Rcode::server_failure);
  const auto messages = messages_in(run(exchange_over_tcp(framed(question), 1)));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].rcode, dns::Rcode::server_failure);
  EXPECT_EQ(server->stats().handler_exceptions, 2U);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("broken"), std::string::npos);
}

TEST_F(DnsServing, exceptions_of_on_error_leave_run) {
  serve([](const dns::Request&, dns::Message&) { throw std::runtime_error("broken"); },
        {.on_error = [](const std::exception_ptr& thrown) { std::rethrow_exception(thrown); }});
  const dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, 1);
  EXPECT_THROW(run(exchange(question.write().value())), std::runtime_error);
  EXPECT_EQ(server->stats().handler_exceptions, 1U);
}

TEST_F(DnsServing, shuts_down_after_the_queries_that_it_has_received) {
  serve(answer_later);
  TaskScope scope(loop);
  std::vector<dns::Message> answers;
  std::string datagram;
  std::optional<std::string> idle;
  const dns::Message question = dns::Message::query(dns_name("first.test"), dns::Type::a, 1);
  scope.spawn([&]() -> Task<> {
    answers = messages_in(co_await exchange_over_tcp(framed(question), SIZE_MAX));
  });
  scope.spawn([&]() -> Task<> { datagram = co_await exchange(question.write().value()); });
  scope.spawn([&]() -> Task<> { idle = co_await exchange_over_tcp("", 1); });
  simulation.run_for(50ms);
  bool has_ended = false;
  spawn(server_loop, [](dns::Server& subject, bool& into) -> Task<> {
    co_await subject.shut_down(1s);
    into = true;
  }(*server, has_ended));
  simulation.run_for(50ms);
  EXPECT_TRUE(idle) << "an idle connection was not closed";
  EXPECT_FALSE(has_ended);
  simulation.run_for(500ms);
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_NE(datagram, "");
  EXPECT_EQ(run(exchange(question.write().value())), "") << "datagrams are still answered";
}

TEST_F(DnsServing, shuts_down_after_queries_that_wait_for_others) {
  serve(answer_later, {.tasks_max = 4, .tcp_tasks_max = 2});
  TaskScope scope(loop);
  std::vector<dns::Message> answers;
  int queries = 0;
  std::string pipelined;
  for (; queries < 12; ++queries)
    pipelined +=
        framed(dns::Message::query(dns_name("first.test"), dns::Type::a, std::uint16_t(queries)));
  for (int i = 0; i < 3; ++i) {
    scope.spawn([&]() -> Task<> {
      for (dns::Message& message : messages_in(co_await exchange_over_tcp(pipelined, SIZE_MAX)))
        answers.push_back(std::move(message));
    });
  }
  simulation.run_for(50ms);
  bool has_ended = false;
  spawn(server_loop, [](dns::Server& subject, bool& into) -> Task<> {
    co_await subject.shut_down(1min);
    into = true;
  }(*server, has_ended));
  simulation.run_for(30s);
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(answers.size(), 3U * 12U);
}

TEST_F(DnsServing, stops_handlers_when_the_grace_of_a_shutdown_is_over) {
  serve([](const dns::Request&, dns::Message&) -> Task<> {
    static_cast<void>(co_await sleep_for(1h));
  });
  TaskScope scope(loop);
  const dns::Message question = dns::Message::query(dns_name("first.test"), dns::Type::a, 1);
  scope.spawn([&]() -> Task<> { co_await exchange_over_tcp(framed(question), 1); });
  scope.spawn([&]() -> Task<> { co_await exchange(question.write().value()); });
  simulation.run_for(50ms);
  bool has_ended = false;
  spawn(server_loop, [](dns::Server& subject, bool& into) -> Task<> {
    co_await subject.shut_down(1s);
    into = true;
  }(*server, has_ended));
  simulation.run_for(900ms);
  EXPECT_FALSE(has_ended);
  simulation.run_for(200ms);
  EXPECT_TRUE(has_ended);
}

TEST_F(DnsServing, limits_the_rate_of_responses_to_a_network) {
  serve(answer, {.responses_per_second = 10});
  int answered = 0;
  int truncated = 0;
  for (std::uint16_t i = 0; i < 30; ++i) {
    const dns::Message question = dns::Message::query(dns_name("www.test"), dns::Type::a, i);
    const std::string bytes = run(exchange(question.write().value(), 5ms));
    const auto response = parse(bytes);
    if (!response) continue;
    ++(response->truncated ? truncated : answered);
  }
  EXPECT_EQ(answered, 10);
  EXPECT_EQ(truncated, 10);
  EXPECT_EQ(server->stats().rate_limited, 20U);
  run(exchange(""));  // A second passes.
  EXPECT_FALSE(ask(dns::Message::query(dns_name("www.test"), dns::Type::a, 1))->truncated);
}

TEST_F(DnsServing, closes_idle_connections) {
  serve(answer, {.tcp_idle_timeout = 3s});
  const TimePoint begin = simulation.now();
  EXPECT_EQ(run(exchange_over_tcp(std::string("\0", 1), 1)), "");
  EXPECT_GE(simulation.now() - begin, 3s);
  EXPECT_LT(simulation.now() - begin, 4s);
}

TEST_F(DnsServing, keeps_idle_connections_if_the_limit_is_zero) {
  serve(answer, {.tcp_idle_timeout = 0s});
  const std::string query = framed(dns::Message::query(dns_name("www.test"), dns::Type::a, 1));
  const std::size_t received = run([](Endpoint at, std::string_view bytes) -> Task<std::size_t> {
    auto stream = co_await TcpStream::connect(at);
    static_cast<void>(co_await sleep_for(10min));
    static_cast<void>(co_await stream->write(bytes));
    std::array<std::byte, 512> in;
    const auto got = co_await stream->read(in);
    co_return got.value_or(0);
  }(server->endpoint(), query));
  EXPECT_GT(received, 0U);
}

TEST_F(DnsServing, closes_connections_that_send_a_query_byte_by_byte) {
  serve(answer, {.tcp_idle_timeout = 3s});
  const TimePoint begin = simulation.now();
  run([](Endpoint at) -> Task<int> {
    auto stream = co_await TcpStream::connect(at);
    std::array<std::byte, 16> in;
    for (;;) {
      static_cast<void>(co_await stream->write(std::string_view("\1", 1)));
      const auto got = co_await timeout(1s, stream->read(in));
      if (got || got.error() != system_error(ETIMEDOUT)) co_return 0;
    }
  }(server->endpoint()));
  EXPECT_GE(simulation.now() - begin, 3s);
  EXPECT_LT(simulation.now() - begin, 4s);
}

TEST(DnsServerOnLoopback, replies_from_the_address_that_was_queried) {
  EventLoop loop;
  const auto server = dns::Server::listen(loop, Endpoint::any_v4(0), answer).value();
  const Endpoint second = Endpoint::parse("127.0.0.2", server.endpoint().port()).value();
  auto socket = UdpSocket::bind(loop, Endpoint::any_v4(0)).value();
  ASSERT_TRUE(socket.connect(second));  // Then it receives only from this address.
  const std::string query =
      dns::Message::query(dns_name("www.test"), dns::Type::a, 1).write().value();
  ASSERT_TRUE(socket.try_send(std::as_bytes(std::span(query))));
  DatagramBatch batch(1, 4096);
  bool received = false;
  spawn(loop, [](UdpSocket& udp_socket, DatagramBatch& into, bool& done) -> Task<> {
    const auto got = co_await timeout(1min, udp_socket.receive(into));
    done = got.has_value();
    udp_socket.loop().stop();
  }(socket, batch, received));
  loop.run();
  EXPECT_TRUE(received);
}

TEST_F(DnsServing, survives_malformed_packets) {
  serve(answer);
  std::mt19937_64 random(1);
  const std::string valid =
      dns::Message::query(dns_name("www.test"), dns::Type::a, 1).write().value();
  TaskScope scope(loop);
  scope.spawn([&]() -> Task<> {
    auto socket = UdpSocket::bind(loop, Endpoint::any_v4(0)).value();
    for (int i = 0; i < 5000; ++i) {
      std::string packet = valid;
      for (int j = 0; j < 3; ++j) packet[random() % packet.size()] = static_cast<char>(random());
      if (i % 3 == 0) packet.resize(random() % packet.size());
      static_cast<void>(socket.try_send_to(std::as_bytes(std::span(packet)), server->endpoint()));
      static_cast<void>(co_await sleep_for(100us));
    }
  });
  simulation.run_for(2s);
  EXPECT_GT(server->stats().malformed, 1000U);
  EXPECT_EQ(run(resolver->resolve("www.test", 80, AddressFamily::v4))->size(), 1U);
}

TEST_F(DnsServing, listen_reports_address_errors) {
  serve(answer);
  EXPECT_EQ(dns::Server::listen(server_loop, test::endpoint_of(host), answer).error(),
            system_error(EADDRINUSE));
  EXPECT_EQ(dns::Server::listen(server_loop, Endpoint::unix_name("/x").value(), answer).error(),
            system_error(EAFNOSUPPORT));
  auto other = dns::Server::listen(server_loop, Endpoint::any_v4(0), answer);
  ASSERT_TRUE(other);
  EXPECT_NE(other->endpoint().port(), 0);
}

}  // namespace
}  // namespace tambour::server_test
