// Malformed input on live servers: the peer is closed with a clear error, and the next peer is
// served normally.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/codec.h>
#include <tambour/net/proxy_protocol.h>
#include <tambour/net/tcp.h>

#include "support/process.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::bad_input_test {
namespace {

using namespace std::string_literals;

class BadInput : public test::OnEveryBackend {
 protected:
  /// Sends the question, shuts down the write side and returns everything that is answered.
  std::string ask(const Endpoint& to, const std::string& question) {
    std::string answer;
    run([](Endpoint server, const std::string& text, std::string& into) -> Task<> {
      auto stream = co_await test::connect_to(server);
      EXPECT_TRUE(stream);
      if (!stream) co_return;
      // The server may have closed the connection before it received everything.
      static_cast<void>(co_await stream->write(text));
      static_cast<void>(co_await stream->shutdown_write());
      Buffer all;
      while (const auto got = co_await stream->read(all)) {
        if (*got == 0) break;
      }
      into = all.to_string();
    }(to, question, answer));
    return answer;
  }
  /// Echoes each line and records how each stream ended.
  TcpServer serve_lines(const ListenOptions& options = {}) {
    auto server = test::listen(loop(), Endpoint::loopback_v4(0), options).value();
    server.serve([this](TcpStream stream) -> Task<> {
      Buffer in;
      for (;;) {
        auto line = co_await read_line(stream, in, {.bytes_max = 10});
        if (!line) {
          errors.push_back(line.error());
          co_return;
        }
        Buffer out;
        EXPECT_TRUE(append_line(out, line->coalesce()));
        if (!co_await stream.write(out)) co_return;
      }
    });
    return server;
  }
  /// Returns the last error with which a stream of the servers ended, and clears the list.
  Error last_error() {
    EXPECT_TRUE(run_until([this] { return !errors.empty(); }));
    const Error last = errors.back();
    errors.clear();
    return last;
  }

  std::vector<Error> errors;
};

TAMBOUR_ON_EVERY_TRANSPORT(BadInput);

/// Without streams, or with headers that precede TLS.
class BadInputOfSockets : public BadInput {};

TAMBOUR_ON_EVERY_BACKEND(BadInputOfSockets);

TEST_P(BadInputOfSockets, invalid_addresses_are_rejected_before_any_system_call) {
  const std::size_t before = test::open_descriptors();
  for (const std::string text :
       {"", ":", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:0x50", "127.0.0.256:80", "1.2.3:80", "[::1]", "[::1]:65536", "[::1:80",
        "::1]:80", "[127.0.0.1]:80", "[::1%no-such-interface]:80", "[]:80",
        "unix:", "127.0.0.1:80\n"}) {
    const auto at = Endpoint::parse(text);
    EXPECT_FALSE(at) << text;
    if (!at) {
      EXPECT_EQ(at.error().category(), std::generic_category()) << text;
    }
  }
  EXPECT_EQ(Endpoint::parse("127.0.0.1:65536").error(), system_error(ERANGE));
  EXPECT_EQ(Endpoint::parse("unix:" + std::string(108, 'x')).error(), system_error(ENAMETOOLONG));
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_P(BadInput, a_line_that_is_too_long_closes_only_its_connection) {
  TcpServer server = serve_lines();
  for (const std::string& bad :
       {"0123456789a\n"s, "0123456789a"s, "0123456789\ra\n"s, std::string(1'000'000, 'x')}) {
    ask(server.endpoint(), bad);
    EXPECT_EQ(last_error(), system_error(EMSGSIZE));
    EXPECT_EQ(ask(server.endpoint(), "0123456789\r\n"), "0123456789\n");
    EXPECT_EQ(last_error(), StreamError::eof);
  }
  EXPECT_EQ(ask(server.endpoint(), "one\ntwo"), "one\n");
  EXPECT_EQ(last_error(), StreamError::truncated);
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
}

TEST_P(BadInput, a_length_prefix_above_the_limit_closes_only_its_connection) {
  const LengthOptions options{.length_bytes = 8, .bytes_max = 100};
  auto server = test::listen(loop()).value();
  server.serve([&](TcpStream stream) -> Task<> {
    Buffer in, out;
    auto message = co_await read_message(stream, in, options);
    if (!message) {
      errors.push_back(message.error());
      co_return;
    }
    EXPECT_TRUE(append_message(out, std::move(*message), options));
    EXPECT_TRUE(co_await stream.write(out));
  });
  const std::string good = "\0\0\0\0\0\0\0\5hello"s;
  for (const std::string& bad :
       {"\0\0\0\0\0\0\0\x65"s, "\x7f\xff\xff\xff\xff\xff\xff\xff"s,
        "\xff\xff\xff\xff\xff\xff\xff\xff"s, "\xff\xff\xff\xff\xff\xff\xff\xf8 and some"s}) {
    EXPECT_EQ(ask(server.endpoint(), bad), "");
    EXPECT_EQ(last_error(), system_error(EMSGSIZE));
    EXPECT_EQ(ask(server.endpoint(), good), good);
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(ask(server.endpoint(), good.substr(0, size)), "");
    EXPECT_EQ(last_error(), size == 0 ? StreamError::eof : StreamError::truncated);
  }
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
}

TEST_P(BadInputOfSockets, truncated_or_invalid_proxy_headers_are_rejected) {
  std::vector<Error> refused;
  TcpServer server =
      serve_lines({.proxy_protocol = ProxyProtocol::required,
                   .on_rejected = [&](Stream&, Error error) { refused.push_back(error); }});
  const Endpoint one = Endpoint::parse("192.0.2.1:1").value();
  Buffer binary, text;
  ASSERT_TRUE(append_proxy_header(binary, {.source = one,
                                           .destination = one,
                                           .fields = {{.type = ProxyField::alpn, .value = "h2"}},
                                           .has_checksum = true}));
  ASSERT_TRUE(append_proxy_header(text, {.version = 1, .source = one, .destination = one}));
  const std::size_t before = test::open_descriptors();
  for (const std::string& header : {binary.to_string(), text.to_string()}) {
    for (std::size_t size = 0; size < header.size(); ++size) {
      EXPECT_EQ(ask(server.endpoint(), header.substr(0, size)), "");
      EXPECT_TRUE(run_until([&] { return !refused.empty(); }));
      const StreamError expected = size == 0 ? StreamError::eof : StreamError::truncated;
      EXPECT_EQ(refused, std::vector<Error>{expected}) << size;
      refused.clear();
    }
    std::string wrong = header;
    wrong[wrong.size() - 3] = '\xFE';
    EXPECT_EQ(ask(server.endpoint(), wrong + "hello\n"), "");
    EXPECT_TRUE(run_until([&] { return !refused.empty(); }));
    EXPECT_TRUE(refused == std::vector<Error>{system_error(EBADMSG)} ||
                refused == std::vector<Error>{system_error(EPROTO)});
    refused.clear();
    EXPECT_EQ(ask(server.endpoint(), header + "hello\n"), "hello\n");
  }
  EXPECT_EQ(ask(server.endpoint(), "GET / HTTP/1.1\r\n\r\n"), "");
  EXPECT_TRUE(run_until([&] { return !refused.empty(); }));
  EXPECT_EQ(refused, std::vector<Error>{system_error(EPROTO)});
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
  EXPECT_EQ(test::open_descriptors(), before);
}

}  // namespace
}  // namespace tambour::bad_input_test
