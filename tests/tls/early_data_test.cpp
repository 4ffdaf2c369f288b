// Early data (0-RTT) of clients and servers, and its replay, on every backend.
#include "tls/support/early_data.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/scale.h"
#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::early_data_test {
namespace {

using namespace std::chrono_literals;
using test::ask;
using test::Contexts;
using test::Outcome;
using test::Received;
using test::relay;
using test::relay_answer;
using test::with_early_data;

class TlsEarlyDataTest : public test::OnEveryBackend {
 protected:
  TcpServer listen(const tls::ServerContext& context, bool early = true) {
    ListenOptions options;
    options.tls = context;
    options.tls_early_data = early;
    options.on_rejected = [this](SocketStream&, Error error) { refused.push_back(error); };
    return TcpServer::listen(loop(), Endpoint::loopback_v4(0), options).value();
  }
  TcpServer serve(const tls::ServerContext& context) {
    TcpServer server = listen(context);
    server.serve([this](TcpStream stream) { return test::answer_early(std::move(stream), seen); });
    return server;
  }
  Outcome ask_server(const TcpServer& server, const tls::ClientContext& tls,
                     const std::string& request) {
    Outcome outcome;
    run([](Endpoint at, tls::ClientContext context, std::string text, Outcome& into) -> Task<> {
      auto stream = co_await TcpStream::connect(at);
      EXPECT_TRUE(stream);
      if (stream) into = co_await ask(*stream, context, text);
    }(server.endpoint(), tls, request, outcome));
    return outcome;
  }
  /// Like ask_server(), through a relay that records the first packets of the client.
  Outcome record(const TcpServer& server, const tls::ClientContext& tls, const std::string& request,
                 std::string& recorded) {
    Outcome outcome;
    // The session belongs to the port of the server.
    TcpServer attacker = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
    attacker.serve([&](TcpStream near) -> Task<> {
      auto far = co_await TcpStream::connect(server.endpoint());
      EXPECT_TRUE(far);
      bool answered = false;
      co_await when_all(relay(near, *far, recorded, answered), relay_answer(*far, near, answered));
    });
    for (int i = 0; i < 2; ++i) {
      recorded.clear();
      outcome = ask_server(attacker, tls, request);
    }
    EXPECT_TRUE(run_until([&] { return attacker.connections() == 0; }));
    return outcome;
  }
  /// Sends recorded packets, and waits for the first answer.
  void replay(const TcpServer& server, const std::string& recorded) {
    run([](Endpoint at, std::string bytes) -> Task<> {
      auto stream = co_await TcpStream::connect(at);
      EXPECT_TRUE(stream);
      EXPECT_TRUE(co_await stream->write(bytes));
      Buffer buffer;
      EXPECT_TRUE(co_await stream->read(buffer));
    }(server.endpoint(), recorded));
    EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
  }

  std::vector<Received> seen;
  std::vector<Error> refused;
};

TAMBOUR_ON_EVERY_BACKEND(TlsEarlyDataTest);

/// Reads until the end, and returns the error of the end.
Task<> visit(Endpoint at, tls::ClientContext tls, std::vector<tls::EarlyData>& early,
             std::vector<Error>& ends) {
  auto stream = or_throw(co_await TcpStream::connect(at));
  const auto done = co_await tls::connect(stream, tls, "localhost", tls::Replayable("hello"));
  EXPECT_TRUE(done) << done.error().message();
  if (!done) co_return;
  early.push_back(stream.tls()->early_data());
  Buffer buffer;
  for (;;) {
    const auto got = co_await stream.read(buffer);
    if (got && *got > 0) continue;
    ends.push_back(got ? Error() : got.error());
    co_return;
  }
}

/// OpenSSL makes the session of a connection that has failed unusable.
TEST_P(TlsEarlyDataTest, is_not_sent_with_the_session_of_a_connection_that_was_truncated) {
  for (const bool is_truncated : {false, true}) {
    const Contexts contexts(with_early_data(), {});
    TcpServer server = listen(contexts.server, false);
    server.serve([&](TcpStream stream) -> Task<> {
      const auto written = co_await stream.write("bye");
      EXPECT_TRUE(written);
      if (is_truncated) co_return stream.close();
      const auto ended = co_await stream.shutdown_write();
      EXPECT_TRUE(ended);
    });
    std::vector<tls::EarlyData> early;
    std::vector<Error> ends;
    for (int i = 0; i < 3; ++i) run(visit(server.endpoint(), contexts.client, early, ends));
    const Error end = is_truncated ? Error(tls::ErrorCode::truncated) : Error();
    const tls::EarlyData later = is_truncated ? tls::EarlyData::none : tls::EarlyData::accepted;
    EXPECT_EQ(ends, std::vector<Error>(3, end));
    EXPECT_EQ(early, (std::vector{tls::EarlyData::none, later, later}));
    EXPECT_EQ(contexts.client.stats().failed, 0U) << *contexts.last_failure;
  }
}

TEST_P(TlsEarlyDataTest, is_answered_before_the_handshake_is_complete) {
  const Contexts contexts(with_early_data(), {});
  const TcpServer server = serve(contexts.server);
  Outcome first = ask_server(server, contexts.client, "one");
  EXPECT_EQ(first.early_data, tls::EarlyData::none);
  EXPECT_EQ(first.answer, "late one");
  for (int i = 0; i < 3; ++i) {
    const Outcome next = ask_server(server, contexts.client, "two");
    EXPECT_EQ(next.error, Error()) << next.error.message();
    EXPECT_TRUE(next.resumed);
    EXPECT_EQ(next.early_data, tls::EarlyData::accepted);
    EXPECT_EQ(next.answer, "early two");
  }
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.back().early, "two");
  EXPECT_EQ(seen.back().late, "");
  EXPECT_EQ(contexts.server.stats().early_data_accepted, 3U);
  EXPECT_EQ(contexts.client.stats().early_data_accepted, 3U);
  EXPECT_EQ(contexts.server.stats().resumed, 3U);
  EXPECT_EQ(contexts.server.stats().handshakes, 4U);
}

TEST_P(TlsEarlyDataTest, failures_of_handshakes_after_it_are_reported) {
  std::string message;
  tls::ServerOptions options = with_early_data();
  options.on_failure = [&](const tls::Failure& failure) { message += failure.message + "; "; };
  const Contexts contexts(options, {});
  const TcpServer server = serve(contexts.server);
  // An attacker delivers the first packets of a client, and nothing else.
  bool is_cut = false;
  TcpServer attacker = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
  attacker.serve([&](TcpStream near) -> Task<> {
    auto far = co_await TcpStream::connect(server.endpoint());
    EXPECT_TRUE(far);
    std::string recorded;
    bool answered = false;
    if (!is_cut) {
      co_await when_all(relay(near, *far, recorded, answered), relay_answer(*far, near, answered));
      co_return;
    }
    TaskScope forwarding(loop());
    forwarding.spawn(relay(near, *far, recorded, answered));
    while (seen.size() < 2) {
      Buffer answer;
      const auto got = co_await far->read(answer);
      if (!got || *got == 0) break;
    }
  });
  EXPECT_EQ(ask_server(attacker, contexts.client, "one").error, Error());
  is_cut = true;
  EXPECT_NE(ask_server(attacker, contexts.client, "two").error, Error());
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].early, "two");
  EXPECT_EQ(contexts.server.stats().failed, 1U);
  EXPECT_NE(message.find("TLS handshake with"), std::string::npos) << message;
}

TEST_P(TlsEarlyDataTest, is_off_by_default) {
  const Contexts contexts;
  const TcpServer server = serve(contexts.server);
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = ask_server(server, contexts.client, "text");
    EXPECT_EQ(outcome.early_data, tls::EarlyData::none);
    EXPECT_EQ(outcome.answer, "late text");
  }
}

TEST_P(TlsEarlyDataTest, is_sent_only_where_the_session_permits_its_size) {
  const Contexts contexts(with_early_data(100), {});
  const TcpServer server = serve(contexts.server);
  ask_server(server, contexts.client, "one");
  const std::string fits(100, 'f');
  EXPECT_EQ(ask_server(server, contexts.client, fits).answer, "early " + fits);
  const std::string too_long(101, 't');
  const Outcome outcome = ask_server(server, contexts.client, too_long);
  EXPECT_EQ(outcome.early_data, tls::EarlyData::none);
  EXPECT_EQ(outcome.answer, "late " + too_long);
}

/// RFC 8446, section 4.2.10. OpenSSL would fail the handshake.
TEST_P(TlsEarlyDataTest, is_not_sent_if_the_protocol_of_the_session_is_not_offered) {
  tls::ServerOptions options = with_early_data();
  options.alpn = {"h2", "http/1.1"};
  tls::ClientOptions client;
  client.alpn = {"h2", "http/1.1"};
  const Contexts contexts(std::move(options), std::move(client));
  const TcpServer server = serve(contexts.server);
  ask_server(server, contexts.client, "one");
  EXPECT_EQ(ask_server(server, contexts.client, "two").early_data, tls::EarlyData::accepted);
  const tls::ClientContext other = contexts.client.with_alpn({"http/1.1", "h"}).value();
  const Outcome outcome = ask_server(server, other, "three");
  EXPECT_FALSE(outcome.error) << outcome.error.message();
  EXPECT_EQ(outcome.early_data, tls::EarlyData::none);
  EXPECT_EQ(outcome.answer, "late three");
}

TEST_P(TlsEarlyDataTest, replay_reaches_no_handler) {
  const Contexts contexts(with_early_data(), {});
  const TcpServer server = serve(contexts.server);
  std::string recorded;
  const Outcome outcome = record(server, contexts.client, "pay", recorded);
  EXPECT_EQ(outcome.early_data, tls::EarlyData::accepted);
  EXPECT_EQ(outcome.answer, "early pay");
  ASSERT_EQ(seen.size(), 2U);
  replay(server, recorded);
  // Generations of a context share what they remember.
  EXPECT_TRUE(contexts.server.reload());
  replay(server, recorded);
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(refused.size(), 2U);
}

TEST_P(TlsEarlyDataTest, replay_to_another_server_with_the_same_keys_reaches_no_handler) {
  const Contexts contexts(with_early_data(), {});
  const tls::ServerOptions options = [&] {
    tls::ServerOptions same = with_early_data();
    same.identities = {Contexts::localhost().identity()};
    return same;
  }();
  const auto other = or_throw(tls::ServerContext::create(options));
  const TcpServer server = serve(contexts.server);
  const TcpServer second = serve(other);
  std::string recorded;
  EXPECT_EQ(record(server, contexts.client, "pay", recorded).answer, "early pay");
  replay(second, recorded);
  EXPECT_EQ(seen.size(), 2U);
}

/// Resumes a session on a server that rejects early data, and sends the request again.
TEST_P(TlsEarlyDataTest, rejection_is_not_an_error) {
  const Contexts contexts(with_early_data(), {});
  const TcpServer server = serve(contexts.server);
  ask_server(server, contexts.client, "one");
  tls::ServerOptions off;
  off.identities = {Contexts::localhost().identity()};
  off.ticket_secret = std::string(32, 's');
  EXPECT_TRUE(contexts.server.reload(off));
  const std::string request(16'384, 'r');
  const Outcome outcome = ask_server(server, contexts.client, request);
  EXPECT_EQ(outcome.error, Error()) << outcome.error.message();
  EXPECT_TRUE(outcome.resumed);
  EXPECT_EQ(outcome.early_data, tls::EarlyData::rejected);
  EXPECT_EQ(outcome.answer, "late " + request);
  EXPECT_EQ(contexts.client.stats().early_data_rejected, 1U);
}

TEST_P(TlsEarlyDataTest, handler_can_wait_for_the_handshake) {
  const Contexts contexts(with_early_data(), {});
  TcpServer server = listen(contexts.server);
  server.serve([](TcpStream stream) -> Task<> {
    Buffer request;
    EXPECT_TRUE(co_await tls::read_early(stream, request));
    const bool was_early = !request.empty();
    EXPECT_NE(stream.tls()->is_handshake_complete(), was_early);
    EXPECT_TRUE(co_await tls::complete_handshake(stream));
    EXPECT_TRUE(stream.tls()->is_handshake_complete());
    EXPECT_EQ(co_await tls::read_early(stream, request), 0U);
    while (request.size() < 3) EXPECT_TRUE(co_await stream.read(request));
    const std::string verb = was_early ? "waited for " : "read ";
    static_cast<void>(co_await stream.write(verb + request.to_string()));
    static_cast<void>(co_await stream.shutdown_write());
  });
  EXPECT_EQ(ask_server(server, contexts.client, "one").answer, "read one");
  EXPECT_EQ(ask_server(server, contexts.client, "two").answer, "waited for two");
}

TEST_P(TlsEarlyDataTest, other_handlers_read_nothing_that_can_be_a_replay) {
  for (const bool early : {false, true}) {
    const Contexts contexts(with_early_data(), {});
    TcpServer server = listen(contexts.server, early);
    int calls = 0;
    server.serve([&](TcpStream stream) -> Task<> {
      Buffer all;
      for (;;) {
        const auto got = co_await stream.read(all);
        EXPECT_EQ(got.has_value(), stream.tls()->is_handshake_complete());
        if (!got) co_return;
        if (*got == 0) break;
      }
      ++calls;
      static_cast<void>(co_await stream.write(all));
      static_cast<void>(co_await stream.shutdown_write());
    });
    std::string recorded;
    const Outcome outcome = record(server, contexts.client, "hello", recorded);
    EXPECT_EQ(outcome.early_data, tls::EarlyData::accepted);
    EXPECT_EQ(outcome.answer, "hello");
    EXPECT_EQ(calls, 2);
    replay(server, recorded);
    EXPECT_EQ(calls, 2);
  }
}

TEST_P(TlsEarlyDataTest, connections_with_callbacks_start_after_the_handshake) {
  const Contexts contexts(with_early_data(), {});
  TcpServer server = listen(contexts.server);
  server.serve(
      {.on_connection = [](Connection& c) { EXPECT_TRUE(c.tls()->is_handshake_complete()); },
       .on_message = [](Connection& connection,
                        Buffer& message) { connection.send(message.take(message.size())); },
       .on_close = {}});
  ask_server(server, contexts.client, "one");
  const Outcome outcome = ask_server(server, contexts.client, "two");
  EXPECT_EQ(outcome.early_data, tls::EarlyData::accepted);
  EXPECT_EQ(outcome.answer, "two");
}

/// Forwards `cut` bytes first, and then the rest.
Task<> cut_at(SocketStream& from, SocketStream& to, std::size_t cut) {
  for (;;) {
    Buffer buffer;
    const auto got = co_await from.read(buffer);
    if (!got || *got == 0) break;
    if (cut > 0 && cut < buffer.size()) {
      Buffer part = buffer.take(cut);
      static_cast<void>(co_await to.write(part));
      for (int i = 0; i < 3; ++i) static_cast<void>(co_await sleep_for(Duration::zero()));
    }
    cut -= std::min(cut, *got);
    if (!co_await to.write(buffer)) break;
  }
  static_cast<void>(co_await to.shutdown_write());
}

TEST_P(TlsEarlyDataTest, arrives_unchanged_if_packets_are_cut) {
  const Contexts contexts(with_early_data(), {});
  TcpServer server = listen(contexts.server);
  const std::string request(700, 'q');
  const std::string answer(100'000, 'a');
  server.serve([&](TcpStream stream) -> Task<> {
    Buffer all;
    const auto got = co_await tls::read_early(stream, all);
    EXPECT_TRUE(got) << got.error().message();
    if (!got) co_return;
    // A long answer, most of it before the handshake is complete.
    EXPECT_TRUE(co_await stream.write(answer));
    for (;;) {
      const auto more = co_await stream.read(all);
      EXPECT_TRUE(more) << more.error().message();
      if (!more || *more == 0) break;
    }
    EXPECT_TRUE(all == request);
    static_cast<void>(co_await stream.shutdown_write());
  });
  std::size_t cut = 0;
  TcpServer cutter = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
  cutter.serve([&](TcpStream near) -> Task<> {
    auto far = co_await TcpStream::connect(server.endpoint());
    EXPECT_TRUE(far);
    co_await when_all(cut_at(near, *far, cut), cut_at(*far, near, cut));
  });
  std::size_t accepted = 0;
  std::size_t count = 0;
  for (; cut < 1600; cut += test::sanitized ? 97 : 13) {
    const Outcome outcome = ask_server(cutter, contexts.client, request);
    ASSERT_EQ(outcome.error, Error()) << outcome.error.message() << " " << cut;
    EXPECT_TRUE(outcome.answer == answer);
    ++count;
    if (outcome.early_data == tls::EarlyData::accepted) ++accepted;
  }
  EXPECT_EQ(accepted, count - 1);
}

}  // namespace
}  // namespace tambour::early_data_test
