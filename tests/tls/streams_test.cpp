// TLS streams in tasks, on every backend.
#include "support/streams.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/scale.h"
#include "tls/support/certificates.h"

namespace tambour::streams_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

Task<Result<Buffer>> read_all(Stream& stream) {
  Buffer all;
  for (;;) {
    const auto got = co_await stream.read(all);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return all;
  }
}

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::minstd_rand random(1);
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

class TlsStreams : public test::OnEveryBackend {
 protected:
  TcpServer listen(const Contexts& contexts, ListenOptions options = {}) {
    options.tls = contexts.server;
    if (!options.on_rejected)
      options.on_rejected = [this](SocketStream&, Error error) { refused.push_back(error); };
    return TcpServer::listen(loop(), Endpoint::loopback_v4(0), options).value();
  }
  /// Two ends of a connection after the handshake.
  test::StreamEnds open(const Contexts& contexts) {
    test::StreamEnds ends = test::open_stream_ends(loop());
    TaskScope scope(loop());
    scope.spawn([](SocketStream& stream, tls::ServerContext context) -> Task<> {
      const auto done = co_await tls::accept(stream, context);
      EXPECT_TRUE(done) << done.error().message();
    }(ends.far, contexts.server));
    run([](SocketStream& stream, tls::ClientContext context) -> Task<> {
      const auto done = co_await tls::connect(stream, context, "localhost");
      EXPECT_TRUE(done) << done.error().message();
    }(ends.near, contexts.client));
    EXPECT_TRUE(run_until([&] { return scope.empty(); }));
    return ends;
  }
  /// Connects a client and returns the error of connect() or of the first read.
  Error connect_error(Endpoint to, const tls::ClientContext& context,
                      const std::string& host = "localhost") {
    Error error;
    run([](Endpoint at, tls::ClientContext tls, std::string name, Error& into) -> Task<> {
      auto stream = co_await TcpStream::connect(at);
      EXPECT_TRUE(stream);
      const auto done = co_await tls::connect(*stream, tls, name);
      if (!done) {
        EXPECT_FALSE(stream->is_open());
        into = done.error();
        co_return;
      }
      Buffer buffer;
      const auto got = co_await stream->read(buffer);
      if (!got) into = got.error();
    }(to, context, host, error));
    return error;
  }

  [[nodiscard]] static std::string options_name() { return "-" + GetParam().name; }

  std::vector<Error> refused;
};

TAMBOUR_ON_EVERY_BACKEND(TlsStreams);

TEST_P(TlsStreams, echo_with_one_argument_more) {
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ClientOptions options;
    options.version_max = version;
    const Contexts contexts({}, options);
    TcpServer server = listen(contexts);
    server.serve(test::echo<TcpStream>);
    const std::uint16_t port = server.endpoint().port();
    run([](std::uint16_t to, tls::ClientContext tls, tls::Version expected) -> Task<> {
      auto stream = co_await connect("127.0.0.1", to, tls);
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      EXPECT_EQ(stream->tls()->version(), expected);
      EXPECT_TRUE(stream->tls()->cipher().starts_with("TLS_"));
      EXPECT_FALSE(stream->tls()->is_resumed());
      EXPECT_EQ(stream->tls()->peer_certificate()->subject, "CN=localhost");
      co_await test::expect_echo(*stream, "hello");
      co_await test::expect_echo(*stream, std::string(100'000, 'x'));
    }(port, contexts.client, version));
    EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
  }
}

TEST_P(TlsStreams, large_messages_arrive_unchanged_in_both_directions) {
  test::StreamEnds ends = open(Contexts());
  const std::string sent = random_bytes(test::scaled(4'000'000));
  const auto send = [](SocketStream& stream, const std::string& text) -> Task<> {
    Buffer first(text.substr(0, text.size() / 2));
    EXPECT_TRUE(co_await stream.write(first));
    EXPECT_TRUE(co_await stream.write(std::string_view(text).substr(text.size() / 2)));
    EXPECT_TRUE(co_await stream.shutdown_write());
  };
  TaskScope scope(loop());
  scope.spawn(send(ends.near, sent));
  scope.spawn(send(ends.far, sent));
  Buffer back;
  const auto receive = [](SocketStream& stream, const std::string& text) -> Task<> {
    auto all = co_await read_all(stream);
    EXPECT_TRUE(all);
    if (all) {
      EXPECT_TRUE(*all == text);
    }
  };
  scope.spawn(receive(ends.near, sent));
  run(receive(ends.far, sent));
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
}

TEST_P(TlsStreams, buffers_of_many_small_pieces_arrive_unchanged) {
  test::StreamEnds ends = open(Contexts());
  const std::string text = random_bytes(300'000);
  TaskScope scope(loop());
  scope.spawn([](SocketStream& stream, const std::string& all) -> Task<> {
    Buffer pieces;
    const auto owner = std::make_shared<int>(0);
    std::minstd_rand random(2);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t size = std::min<std::size_t>(random() % 5000 + 1, all.size() - at);
      pieces.append_shared(std::as_bytes(std::span(all).subspan(at, size)), owner);
      at += size;
    }
    EXPECT_TRUE(co_await stream.write(pieces));
    EXPECT_TRUE(pieces.empty());
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(ends.near, text));
  run([](SocketStream& stream, const std::string& all) -> Task<> {
    std::string got;
    std::array<std::byte, 7001> place;
    for (;;) {
      const auto some = co_await stream.read(place);
      EXPECT_TRUE(some);
      if (!some || *some == 0) break;
      got.append(reinterpret_cast<const char*>(place.data()), *some);
    }
    EXPECT_TRUE(got == all);
  }(ends.far, text));
}

TEST_P(TlsStreams, single_bytes_are_read_although_the_socket_is_not_readable) {
  test::StreamEnds ends = open(Contexts());
  run([](SocketStream& near, SocketStream& far) -> Task<> {
    EXPECT_TRUE(co_await near.write("hello"));
    std::string got;
    std::array<std::byte, 1> place;
    while (got.size() < 5) {
      const auto some = co_await far.read(place);
      EXPECT_EQ(some, 1U);
      if (!some) co_return;
      got += char(place[0]);
    }
    EXPECT_EQ(got, "hello");
  }(ends.near, ends.far));
}

TEST_P(TlsStreams, lines_are_read_from_one_record) {
  test::StreamEnds ends = open(Contexts());
  run([](SocketStream& near, SocketStream& far) -> Task<> {
    EXPECT_TRUE(co_await near.write("one\ntwo\nthree\n" + std::string(50'000, 'x') + "\nlast\n"));
    Buffer buffer;
    for (const std::string& expected :
         {std::string("one"), std::string("two"), std::string("three"), std::string(50'000, 'x'),
          std::string("last")}) {
      auto line = co_await read_line(far, buffer);
      EXPECT_TRUE(line && *line == expected);
    }
  }(ends.near, ends.far));
}

TEST_P(TlsStreams, each_direction_is_shut_down_independently) {
  test::StreamEnds ends = open(Contexts());
  TaskScope scope(loop());
  scope.spawn([](SocketStream& stream) -> Task<> {
    auto question = co_await read_all(stream);
    EXPECT_TRUE(question && *question == "question");
    EXPECT_TRUE(co_await stream.write("answer"));
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(ends.far));
  run([](SocketStream& stream) -> Task<> {
    EXPECT_TRUE(co_await stream.write("question"));
    EXPECT_TRUE(co_await stream.shutdown_write());
    EXPECT_EQ((co_await stream.write("more")).error(), system_error(EPIPE));
    auto answer = co_await read_all(stream);
    EXPECT_TRUE(answer && *answer == "answer");
  }(ends.near));
}

TEST_P(TlsStreams, an_end_without_close_notify_is_truncation) {
  test::StreamEnds ends = open(Contexts());
  run([](SocketStream& near, SocketStream& far) -> Task<> {
    // The client must not be the one that closes: it has not read the tickets of the server, so the
    // kernel would reset the connection.
    EXPECT_TRUE(co_await far.write("part"));
    far.close();
    Buffer buffer;
    EXPECT_EQ(co_await near.read(buffer), 4U);
    EXPECT_EQ((co_await near.read(buffer)).error(), tls::ErrorCode::truncated);
    EXPECT_EQ((co_await near.read(buffer)).error(), tls::ErrorCode::truncated);
  }(ends.near, ends.far));
}

TEST_P(TlsStreams, close_answers_the_peers_close_notify) {
  test::StreamEnds ends = open(Contexts());
  run([](SocketStream& near, SocketStream& far) -> Task<> {
    EXPECT_TRUE(co_await near.shutdown_write());
    Buffer buffer;
    EXPECT_EQ(co_await far.read(buffer), 0U);
    far.close();
    EXPECT_EQ(co_await near.read(buffer), 0U);
  }(ends.near, ends.far));
}

TEST_P(TlsStreams, a_cancelled_write_leaves_whole_records) {
  test::StreamEnds ends = open(Contexts());
  std::size_t received = 0;
  {
    TaskScope scope(loop());
    scope.spawn([](SocketStream& stream) -> Task<> {
      static_cast<void>(co_await stream.write(std::string(10'000'000, 'a')));
    }(ends.near));
    run_iterations();
    EXPECT_EQ(scope.size(), 1U);
  }
  TaskScope scope(loop());
  scope.spawn([](SocketStream& stream) -> Task<> {
    EXPECT_TRUE(co_await stream.write("b"));
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(ends.near));
  run([](SocketStream& stream, std::size_t& count) -> Task<> {
    auto all = co_await read_all(stream);
    EXPECT_TRUE(all) << all.error().message();
    if (!all) co_return;
    count = all->size();
    EXPECT_EQ(all->find("b"), count - 1);
  }(ends.far, received));
  EXPECT_GT(received, 1U);
}

TEST_P(TlsStreams, changed_bytes_are_an_error) {
  test::StreamEnds ends = open(Contexts());
  const std::string garbage = "\x17\x03\x03" + std::string(1, '\0') + "\x20" + std::string(32, 'x');
  ASSERT_EQ(::send(ends.near.fd(), garbage.data(), garbage.size(), 0), ssize_t(37));
  run([](SocketStream& far) -> Task<> {
    Buffer buffer;
    EXPECT_EQ((co_await far.read(buffer)).error(), tls::ErrorCode::protocol);
    EXPECT_FALSE(far.tls()->failure().empty());
    EXPECT_EQ((co_await far.write("x")).error(), tls::ErrorCode::protocol);
  }(ends.far));
}

TEST_P(TlsStreams, plaintext_before_tls_is_refused) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  const Contexts contexts;
  run([](SocketStream& stream, tls::ServerContext tls) -> Task<> {
    const Buffer plaintext("RCPT TO:<victim>\r\n");
    EXPECT_EQ((co_await tls::accept(stream, plaintext, tls)).error(),
              tls::ErrorCode::unread_plaintext);
    EXPECT_FALSE(stream.is_open());
  }(ends.near, contexts.server));
}

TEST_P(TlsStreams, a_stream_can_begin_tls_later) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  const Contexts contexts;
  TaskScope scope(loop());
  scope.spawn([](SocketStream& stream, tls::ServerContext tls) -> Task<> {
    Buffer buffer;
    auto line = co_await read_line(stream, buffer);
    EXPECT_TRUE(line && *line == "STARTTLS");
    EXPECT_TRUE(co_await stream.write("OK\n"));
    EXPECT_TRUE(co_await tls::accept(stream, buffer, tls));
    line = co_await read_line(stream, buffer);
    EXPECT_TRUE(line && *line == "secret");
    EXPECT_TRUE(co_await stream.write("done\n"));
  }(ends.far, contexts.server));
  run([](SocketStream& stream, tls::ClientContext tls) -> Task<> {
    Buffer buffer;
    EXPECT_TRUE(co_await stream.write("STARTTLS\n"));
    auto line = co_await read_line(stream, buffer);
    EXPECT_TRUE(line && *line == "OK");
    EXPECT_TRUE(co_await tls::connect(stream, buffer, tls, "localhost"));
    EXPECT_TRUE(co_await stream.write("secret\n"));
    line = co_await read_line(stream, buffer);
    EXPECT_TRUE(line && *line == "done");
  }(ends.near, contexts.client));
}

TEST_P(TlsStreams, the_proxy_header_precedes_tls) {
  const Contexts contexts;
  ListenOptions options;
  options.proxy_protocol = ProxyProtocol::required;
  TcpServer server = listen(contexts, options);
  std::vector<std::string> sources;
  server.serve([&](TcpStream stream) -> Task<> {
    sources.push_back(stream.peer_endpoint()->to_string());
    co_await test::echo(std::move(stream));
  });
  run([](Endpoint to, tls::ClientContext tls) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write("PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n"));
    EXPECT_TRUE(co_await tls::connect(*stream, tls, "localhost"));
    co_await test::expect_echo(*stream, "hello");
  }(server.endpoint(), contexts.client));
  EXPECT_EQ(sources, std::vector<std::string>{"192.0.2.1:1234"});
}

TEST_P(TlsStreams, unix_servers_serve_tls) {
  const Contexts contexts;
  ListenOptions options;
  options.tls = contexts.server;
  const auto at =
      Endpoint::parse("unix:@tambour-tls-" + std::to_string(::getpid()) + options_name()).value();
  auto server = UnixServer::listen(loop(), at, options).value();
  server.serve(test::echo<UnixStream>);
  run([](Endpoint to, tls::ClientContext tls) -> Task<> {
    auto stream = co_await UnixStream::connect(to);
    EXPECT_TRUE(co_await tls::connect(*stream, tls, "localhost"));
    co_await test::expect_echo(*stream, "hello");
    EXPECT_EQ((co_await stream->send({}, {})).error(), system_error(EOPNOTSUPP));
  }(at, contexts.client));
}

TEST_P(TlsStreams, graceful_shutdown_ends_handshakes_and_handlers) {
  const Contexts contexts;
  TcpServer server = listen(contexts);
  server.serve(test::echo<TcpStream>);
  std::vector<TcpStream> idle;
  run(test::connect_all(server.endpoint(), 3, idle));
  EXPECT_TRUE(run_until([&] { return server.connections() == 3; }));
  run([](TcpServer& local) -> Task<> { co_await local.shut_down(10ms); }(server));
  EXPECT_EQ(server.connections(), 0U);
  EXPECT_EQ(refused, std::vector<Error>(3, system_error(ECANCELED)));
}

TEST_P(TlsStreams, a_handshake_has_a_time_limit) {
  tls::ServerOptions options;
  options.handshake_timeout = 20ms;
  const Contexts contexts(options, {});
  TcpServer server = listen(contexts);
  server.serve(test::echo<TcpStream>);
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    Buffer buffer;
    EXPECT_EQ(co_await stream->read(buffer), 0U);
  }(server.endpoint()));
  EXPECT_EQ(refused, std::vector<Error>{system_error(ETIMEDOUT)});
}

TEST_P(TlsStreams, the_oldest_of_too_many_handshakes_is_closed) {
  ListenOptions options;
  options.tls_handshakes_max = 3;
  const Contexts contexts;
  TcpServer server = listen(contexts, options);
  server.serve(test::echo<TcpStream>);
  std::vector<TcpStream> idle;
  run(test::connect_all(server.endpoint(), 10, idle));
  EXPECT_TRUE(run_until([&] { return refused.size() == 7; }));
  EXPECT_EQ(refused, std::vector<Error>(7, tls::ErrorCode::too_many_handshakes));
  EXPECT_EQ(contexts.server.stats().displaced, 7U);
  EXPECT_EQ(contexts.server.stats().failed, 0U);
  EXPECT_EQ(server.connections(), 3U);
  const std::uint16_t port = server.endpoint().port();
  run([](std::uint16_t to, tls::ClientContext tls) -> Task<> {
    auto stream = co_await connect("127.0.0.1", to, tls);
    EXPECT_TRUE(stream);
    if (stream) co_await test::expect_echo(*stream, "hello");
  }(port, contexts.client));
}

TEST_P(TlsStreams, a_peer_that_does_not_speak_tls_is_refused) {
  const Contexts contexts;
  TcpServer server = listen(contexts);
  server.serve(test::echo<TcpStream>);
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write("GET / HTTP/1.1\r\n\r\n"));
    Buffer buffer;
    static_cast<void>(co_await stream->read(buffer));
  }(server.endpoint()));
  EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::not_tls});
}

TEST_P(TlsStreams, a_certificate_for_another_host_is_refused) {
  const Contexts contexts;
  TcpServer server = listen(contexts);
  server.serve(test::echo<TcpStream>);
  EXPECT_EQ(connect_error(server.endpoint(), contexts.client, "example.org"),
            tls::ErrorCode::certificate_wrong_host);
  EXPECT_NE(contexts.last_failure->find("CN=localhost"), std::string::npos);
  EXPECT_NE(contexts.last_failure->find("not valid for example.org, but for localhost"),
            std::string::npos)
      << *contexts.last_failure;
  EXPECT_EQ(connect_error(server.endpoint(), contexts.client, "127.0.0.2"),
            tls::ErrorCode::certificate_wrong_host);
  EXPECT_TRUE(run_until([&] { return refused.size() == 2; }));
  EXPECT_EQ(refused, std::vector<Error>(2, tls::ErrorCode::peer_refused_certificate));
}

TEST_P(TlsStreams, untrusted_certificates_are_refused_with_the_reason) {
  const test::Authority other("Other CA");
  const struct {
    test::Certified certified;
    tls::ErrorCode expected;
  } cases[] = {
      {test::self_signed({.names = {"DNS:localhost"}}), tls::ErrorCode::certificate_self_signed},
      {other.issue({.names = {"DNS:localhost"}}), tls::ErrorCode::certificate_unknown_issuer},
      {Contexts::authority().issue({.names = {"DNS:localhost"}, .purpose = "clientAuth"}),
       tls::ErrorCode::certificate_wrong_purpose},
  };
  for (const auto& test_case : cases) {
    tls::ServerOptions options;
    options.identities = {test_case.certified.identity()};
    const Contexts contexts(options, {});
    TcpServer server = listen(contexts);
    server.serve(test::echo<TcpStream>);
    EXPECT_EQ(connect_error(server.endpoint(), contexts.client), test_case.expected);
    EXPECT_NE(contexts.last_failure->find("CN=server"), std::string::npos)
        << *contexts.last_failure;
  }
}

TEST_P(TlsStreams, clients_are_verified) {
  tls::ServerOptions server_options;
  server_options.authorities = Contexts::authority().pem();
  server_options.client_certificate = tls::PeerCertificate::required;
  tls::ClientOptions client_options;
  client_options.identities = {
      Contexts::authority()
          .issue({.common_name = "alice", .names = {"URI:spiffe://test/alice"}})
          .identity()};
  const Contexts contexts(server_options, client_options);
  std::vector<std::string> subjects;
  TcpServer server = listen(contexts);
  server.serve([&](TcpStream stream) -> Task<> {
    const auto certificate = stream.tls()->peer_certificate();
    subjects.push_back(certificate->subject + " " + certificate->uris.at(0));
    EXPECT_TRUE(co_await stream.shutdown_write());
    Buffer buffer;
    EXPECT_EQ(co_await stream.read(buffer), 0U);
  });
  EXPECT_EQ(connect_error(server.endpoint(), contexts.client), Error());
  EXPECT_EQ(subjects, std::vector<std::string>{"CN=alice spiffe://test/alice"});
  const Contexts without;
  EXPECT_EQ(connect_error(server.endpoint(), without.client),
            tls::ErrorCode::peer_requires_certificate);
  EXPECT_TRUE(run_until([&] { return refused.size() == 1; }));
  EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::certificate_missing});
  const test::Authority other("Other CA");
  client_options.identities = {other.issue({.common_name = "mallory"}).identity()};
  const Contexts foreign({}, client_options);
  EXPECT_EQ(connect_error(server.endpoint(), foreign.client),
            tls::ErrorCode::peer_refused_certificate);
  EXPECT_TRUE(run_until([&] { return refused.size() == 2; }));
  EXPECT_EQ(refused.back(), tls::ErrorCode::certificate_unknown_issuer);
}

TEST_P(TlsStreams, application_protocols_are_negotiated) {
  tls::ServerOptions server_options;
  server_options.alpn = {"h2", "http/1.1"};
  tls::ClientOptions client_options;
  client_options.alpn = {"http/1.1", "h2"};
  const Contexts contexts(server_options, client_options);
  TcpServer server = listen(contexts);
  server.serve([](TcpStream stream) -> Task<> {
    EXPECT_EQ(stream.tls()->alpn(), "h2");
    EXPECT_EQ(stream.tls()->server_name(), "localhost");
    EXPECT_TRUE(co_await stream.shutdown_write());
    Buffer buffer;
    static_cast<void>(co_await stream.read(buffer));
  });
  EXPECT_EQ(connect_error(server.endpoint(), contexts.client), Error());
  client_options.alpn = {"smtp"};
  const Contexts others({}, client_options);
  EXPECT_EQ(connect_error(server.endpoint(), others.client), tls::ErrorCode::no_common_alpn);
  EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::no_common_alpn});
}

TEST_P(TlsStreams, versions_without_overlap_are_refused) {
  tls::ServerOptions server_options;
  server_options.version_min = tls::Version::tls13;
  tls::ClientOptions client_options;
  client_options.version_max = tls::Version::tls12;
  const Contexts contexts(server_options, client_options);
  TcpServer server = listen(contexts);
  server.serve(test::echo<TcpStream>);
  EXPECT_EQ(connect_error(server.endpoint(), contexts.client), tls::ErrorCode::no_common_version);
  EXPECT_EQ(refused, std::vector<Error>{tls::ErrorCode::no_common_version});
}

TEST_P(TlsStreams, sessions_are_resumed_even_after_a_reload) {
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ClientOptions options;
    options.version_max = version;
    const Contexts contexts({}, options);
    TcpServer server = listen(contexts);
    server.serve(test::echo<TcpStream>);
    const auto once = [&](bool resumed, int line = __builtin_LINE()) {
      SCOPED_TRACE(line);
      const std::uint16_t port = server.endpoint().port();
      run([](std::uint16_t to, tls::ClientContext tls, bool expected) -> Task<> {
        auto stream = co_await connect("127.0.0.1", to, tls);
        EXPECT_TRUE(stream);
        if (!stream) co_return;
        EXPECT_EQ(stream->tls()->is_resumed(), expected) << int(stream->tls()->version());
        EXPECT_EQ(stream->tls()->peer_certificate()->subject, "CN=localhost");
        co_await test::expect_echo(*stream, "hello");
      }(port, contexts.client, resumed));
    };
    once(false);
    once(true);
    once(true);
    EXPECT_TRUE(contexts.server.reload());
    once(true);
    EXPECT_TRUE(contexts.client.reload());
    once(false);
  }
}

TEST_P(TlsStreams, an_idle_stream_keeps_its_bytes_when_it_moves) {
  test::StreamEnds ends = open(Contexts());
  run([](SocketStream& near, SocketStream& far) -> Task<> {
    EXPECT_TRUE(co_await near.write("hello"));
    std::array<std::byte, 2> place;
    EXPECT_EQ(co_await far.read(place), 2U);
    SocketStream moved = std::move(far);
    Stream base = std::move(moved);
    Buffer rest;
    EXPECT_EQ(co_await base.read(rest), 3U);
    EXPECT_EQ(rest, "llo");
  }(ends.near, ends.far));
}

TEST_P(TlsStreams, send_file_is_not_supported) {
  test::StreamEnds ends = open(Contexts());
  run([](SocketStream& stream) -> Task<> {
    const File file = or_throw(co_await File::open("/proc/self/exe"), "open");
    std::uint64_t size = 10;
    EXPECT_EQ((co_await stream.send_file(file, 0, size)).error(), system_error(EOPNOTSUPP));
    EXPECT_EQ(size, 10U);
  }(ends.near));
}

TEST_P(TlsStreams, writes_of_a_waiting_peer_do_not_spin) {
  test::StreamEnds ends = open(Contexts());
  TaskScope scope(loop());
  scope.spawn([](SocketStream& stream) -> Task<> {
    static_cast<void>(co_await stream.write(std::string(10'000'000, 'a')));
  }(ends.near));
  run_iterations();
  EXPECT_TRUE(sleeps_through(20ms));
}

}  // namespace
}  // namespace tambour::streams_test
