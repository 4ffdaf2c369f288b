// What a server of WebSockets answers to each frame, byte by byte, and to requests that are not
// opening handshakes.
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/server/http2_client.h"
#include "http/websocket/serving.h"

namespace tambour::frames_test {
namespace {

using namespace std::string_literals;
using namespace std::chrono_literals;
using test::client_frame;
using test::close_payload;

class WebSocketFrames : public test::WebSocketServing {
 public:
  void serve_echo(http::WebSocketOptions options = {}) {
    serve(http::serve_websocket(&test::echo, std::move(options)));
  }
};

const std::string closing = client_frame(0x88, close_payload(1000));
const std::string closed = "\x88\x02\x03\xe8";

TEST_F(WebSocketFrames, messages_come_back) {
  serve_echo();
  EXPECT_EQ(frames_after(client_frame(0x81, "hello") + client_frame(0x82, "\0\xff"s) +
                         client_frame(0x81, "") + closing),
            "\x81\x05hello\x82\x02\0\xff\x81\0"s + closed);
}

TEST_F(WebSocketFrames, fragments_form_one_message) {
  serve_echo();
  EXPECT_EQ(frames_after(client_frame(0x01, "he") + client_frame(0x89, "ping") +
                         client_frame(0x00, "") + client_frame(0x80, "llo") + closing),
            "\x8a\x04pingx"s.substr(0, 6) + "\x81\x05hello" + closed);
}

TEST_F(WebSocketFrames, the_last_of_several_pings_is_answered) {
  serve_echo();
  const std::string answer = frames_after(client_frame(0x89, "1") + client_frame(0x89, "2") +
                                          client_frame(0x8a, "unasked") + closing);
  EXPECT_TRUE(answer.ends_with("\x8a\x01"s + "2" + closed)) << answer;
}

TEST_F(WebSocketFrames, close_frames_are_answered_with_their_code) {
  serve_echo();
  EXPECT_EQ(frames_after(client_frame(0x88, "")), "\x88\0"s);
  EXPECT_EQ(frames_after(client_frame(0x88, close_payload(3456, "bye"))), "\x88\x02\x0d\x80");
  EXPECT_EQ(frames_after(closing + client_frame(0x81, "ignored")), closed);
}

TEST_F(WebSocketFrames, broken_rules_close_with_their_code) {
  http::WebSocketOptions options;
  options.message_bytes_max = 10;
  options.fragments_max = 3;
  serve_echo(std::move(options));
  const auto code_after = [this](const std::string& sent) {
    const std::string frames = frames_after(sent);
    if (frames.size() < 4 || frames.substr(0, 2) != "\x88\x02") return 0;
    return (static_cast<unsigned char>(frames[2]) << 8) + static_cast<unsigned char>(frames[3]);
  };
  EXPECT_EQ(code_after("\x81\x02hi"), 1002);             // Not masked.
  EXPECT_EQ(code_after(client_frame(0xC1, "a")), 1002);  // RSV1 without an extension.
  EXPECT_EQ(code_after(client_frame(0x83, "a")), 1002);  // A reserved opcode.
  EXPECT_EQ(code_after(client_frame(0x80, "a")), 1002);  // No message to continue.
  EXPECT_EQ(code_after(client_frame(0x88, "x")), 1002);  // Half a code.
  EXPECT_EQ(code_after(client_frame(0x88, close_payload(1006))), 1002);
  EXPECT_EQ(code_after(client_frame(0x81, "\xff")), 1007);
  EXPECT_EQ(code_after(client_frame(0x88, close_payload(1000, "\xc0\x80"))), 1007);
  EXPECT_EQ(code_after(client_frame(0x82, "12345678901")), 1009);
  EXPECT_EQ(code_after(client_frame(0x02, "123456") + client_frame(0x80, "12345")), 1009);
  EXPECT_EQ(code_after(client_frame(0x02, "") + client_frame(0, "") + client_frame(0, "") +
                       client_frame(0, "")),
            1009);
}

TEST_F(WebSocketFrames, control_frames_without_end_close_with_1008) {
  http::WebSocketOptions options;
  options.control_frames_max = 5;
  serve_echo(std::move(options));
  std::string pings;
  for (int i = 0; i < 6; ++i) pings += client_frame(0x89, "");
  EXPECT_TRUE(frames_after(pings).ends_with("\x88\x02\x03\xf0"));
}

TEST_F(WebSocketFrames, a_client_that_keeps_sending_after_an_error_gets_the_close_frame) {
  serve_echo();
  std::string sent = client_frame(0x83, "a");
  for (int i = 0; i < 1000; ++i) sent += client_frame(0x82, std::string(1000, 'x'));
  EXPECT_EQ(frames_after(std::move(sent)), "\x88\x02\x03\xea");
}

TEST_F(WebSocketFrames, other_requests_are_rejected) {
  serve_echo();
  const auto status_of = [this](const std::string& request) {
    return ask(request + "Connection: close\r\n\r\n").substr(9, 3);
  };
  const auto without_end = [](std::string text) { return text.substr(0, text.size() - 2); };
  std::string handshake = WebSocketServing::handshake();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string request = handshake;
    request.replace(request.find(from), from.size(), to);
    return request;
  };
  const auto only_status = [this](const std::string& request) { return ask(request).substr(9, 3); };
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n"), "426");
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\n"), "405");
  EXPECT_EQ(only_status(changed("Version: 13", "Version: 8") +
                        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "426");
  EXPECT_EQ(only_status(changed("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=") +
                        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "400");
  EXPECT_EQ(without_end(handshake).size() + 2, handshake.size());
}

TEST_F(WebSocketFrames, origins_of_other_sites_are_rejected) {
  http::WebSocketOptions options;
  options.origins = {"https://friend.example"};
  serve_echo(std::move(options));
  const std::string end = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(ask(handshake("Origin: https://evil.example\r\n") + end).substr(9, 3), "403");
  EXPECT_EQ(ask(handshake("Origin: null\r\n") + end).substr(9, 3), "403");
  EXPECT_EQ(ask(handshake("Origin: https://friend.example\r\n") + closing).substr(9, 3), "101");
  EXPECT_EQ(ask(handshake("Origin: http://server.example.com\r\n") + closing).substr(9, 3), "101");
  EXPECT_EQ(ask(handshake() + closing).substr(9, 3), "101");
  server_.reset();
  http::WebSocketOptions open;
  open.accepts_any_origin = true;
  serve_echo(std::move(open));
  EXPECT_EQ(ask(handshake("Origin: https://evil.example\r\n") + closing).substr(9, 3), "101");
}

TEST_F(WebSocketFrames, the_first_common_subprotocol_is_chosen) {
  http::WebSocketOptions options;
  options.subprotocols = {"v1.chat", "v2.chat"};
  serve_echo(std::move(options));
  const std::string answer =
      ask(handshake("Sec-WebSocket-Protocol: v3.chat, v2.chat, v1.chat\r\n") + closing);
  EXPECT_NE(answer.find("Sec-WebSocket-Protocol: v2.chat\r\n"), std::string::npos) << answer;
  const std::string none = ask(handshake("Sec-WebSocket-Protocol: v3.chat\r\n") + closing);
  EXPECT_EQ(none.find("Sec-WebSocket-Protocol"), std::string::npos) << none;
}

TEST_F(WebSocketFrames, arrive_in_any_pieces) {
  serve_echo();
  const std::string sent = client_frame(0x01, "ab") + client_frame(0x89, "p") +
                           client_frame(0x80, std::string(200, 'c')) + closing;
  const std::string expected = "\x8a\x01p\x81\x7e\0\xca"s + "ab" + std::string(200, 'c') + closed;
  for (std::size_t cut = 0; cut <= sent.size(); ++cut) {
    const std::string all = ask_in_pieces({handshake() + sent.substr(0, cut), sent.substr(cut)});
    EXPECT_EQ(all.substr(all.find("\r\n\r\n") + 4), expected) << cut;
  }
}

/// WebSockets over HTTP/2: RFC 8441.
class WebSocketsOverHttp2 : public test::WebSocketServing {
 public:
  void serve_echo(http::ServerOptions options = {}) {
    http::WebSocketOptions sockets;
    sockets.subprotocols = {"v1.chat"};
    http::Router router;
    router.get("/chat", http::serve_websocket(&test::echo, sockets));
    serve(std::move(router).handler(), std::move(options));
  }
  using Fields = std::initializer_list<test::Http2Client::FieldText>;
  static void open_websocket(test::Http2Client& client, std::uint32_t id, Fields fields) {
    client.request(id, http::Method::connect, "/chat", false, fields, "websocket");
  }
};

TEST_F(WebSocketsOverHttp2, are_echoed_on_several_streams) {
  serve_echo();
  const std::string answers = run([](WebSocketsOverHttp2& test) -> Task<std::string> {
    test::Http2Client client(co_await test.open());
    open_websocket(client, 1, {{"sec-websocket-version", "13"}});
    open_websocket(client, 3,
                   {{"sec-websocket-version", "13"}, {"sec-websocket-protocol", "v2, v1.chat"}});
    client.data(1, client_frame(0x81, "one"), false);
    client.data(3, client_frame(0x81, "three"), false);
    std::string lines = co_await client.exchange();
    client.data(1, client_frame(0x88, close_payload(1000)), true);
    lines += co_await client.exchange();
    client.data(3, client_frame(0x81, "more"), false);
    co_return lines + co_await client.exchange();
  }(*this));
  const std::string close = std::string("\x88\x02") + close_payload(1000);
  EXPECT_EQ(answers,
            "HEADERS 1 200\nHEADERS 3 200 sec-websocket-protocol=v1.chat\n"
            "DATA 1 \x81\x03one\nDATA 3 \x81\x05three\nDATA 1 " +
                close + "\nDATA 1  end\nDATA 3 \x81\x04more\n");
}

TEST_F(WebSocketsOverHttp2, clients_share_a_connection) {
  serve_echo();
  run([](WebSocketsOverHttp2& test) -> Task<> {
    http::ClientOptions over_http_2;
    over_http_2.version = http::VersionChoice::http_2;
    http::Client client(test.loop_, over_http_2);
    http::WebSocketOptions options;
    options.subprotocols = {"v1.chat"};
    http::WebSocket first = co_await test.connect(client, options);
    http::WebSocket second = co_await test.connect(client, options);
    EXPECT_EQ(client.connections(), 1);
    EXPECT_EQ(test.server_->connections(), 1);
    for (const std::size_t size : {0UL, 1UL, 126UL, 65'535UL, 65'536UL, 1'000'000UL}) {
      for (http::WebSocket* const socket : {&first, &second}) {
        EXPECT_EQ(socket->subprotocol(), "v1.chat");
        const std::string text(size, 'x');
        const Result<> sent = co_await socket->send_text(text);
        EXPECT_TRUE(sent) << size;
        const Result<http::WebSocketMessage> message = co_await socket->receive();
        EXPECT_TRUE(message && message->to_string() == text) << size;
      }
    }
    const Result<> first_closed = co_await first.close(http::CloseCode::going_away);
    EXPECT_TRUE(first_closed);
    EXPECT_EQ(first.close_code(), http::CloseCode::going_away);
    second.abort();
    // The connection can still be used.
    http::WebSocket third = co_await test.connect(client, options);
    EXPECT_EQ(client.connections(), 1);
  }(*this));
}

TEST_F(WebSocketsOverHttp2, need_no_task_for_what_the_windows_allow) {
  serve_echo();
  run([](WebSocketsOverHttp2& test) -> Task<> {
    http::ClientOptions over_http_2;
    over_http_2.version = http::VersionChoice::http_2;
    http::Client client(test.loop_, over_http_2);
    http::WebSocket socket = co_await test.connect(client);
    const std::string text(30'000, 'x');
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(socket.try_send(http::WebSocketMessage(text)));
      EXPECT_EQ(socket.unsent_bytes(), 0);
      const Result<http::WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message && message->to_string() == text);
    }
    // The rest of more is sent by a task, in order.
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(socket.try_send(http::WebSocketMessage(text)));
    }
    EXPECT_GT(socket.unsent_bytes(), 0);
    for (int i = 0; i < 10; ++i) {
      const Result<http::WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message && message->to_string() == text);
    }
    const Result<> ended = co_await socket.close();
    EXPECT_TRUE(ended);
  }(*this));
}

TEST_F(WebSocketsOverHttp2, are_refused_as_over_http_1) {
  serve_echo();
  const std::string answers = run([](WebSocketsOverHttp2& test) -> Task<std::string> {
    test::Http2Client client(co_await test.open());
    open_websocket(client, 1, {{"sec-websocket-version", "12"}});
    open_websocket(client, 3,
                   {{"sec-websocket-version", "13"}, {"origin", "https://other.example"}});
    client.request(5, http::Method::connect, "/chat", false, {}, "other");
    client.request(7, http::Method::connect, "/nothing", false, {}, "websocket");
    client.get(9, "/chat", {{"sec-websocket-version", "13"}});
    co_return co_await client.exchange();
  }(*this));
  EXPECT_NE(answers.find("HEADERS 1 426"), std::string::npos) << answers;
  EXPECT_NE(answers.find("HEADERS 3 403"), std::string::npos) << answers;
  EXPECT_NE(answers.find("HEADERS 5 426"), std::string::npos) << answers;
  EXPECT_NE(answers.find("HEADERS 7 404"), std::string::npos) << answers;
  EXPECT_NE(answers.find("HEADERS 9 400"), std::string::npos) << answers;
}

TEST_F(WebSocketsOverHttp2, end_with_the_stream_and_with_the_server) {
  std::vector<Error> ends;
  serve(http::serve_websocket([&ends](http::WebSocket& socket, http::Request&) -> Task<> {
    const Result<http::WebSocketMessage> message = co_await socket.receive();
    EXPECT_FALSE(message);
    if (!message) ends.push_back(message.error());
  }));
  const std::string answers = run([](WebSocketsOverHttp2& test) -> Task<std::string> {
    test::Http2Client client(co_await test.open());
    for (const std::uint32_t id : {1U, 3U, 5U})
      open_websocket(client, id, {{"sec-websocket-version", "13"}});
    static_cast<void>(co_await client.exchange());
    client.reset(1, test::Http2Client::ErrorCode::cancel);
    client.data(3, "", true);
    static_cast<void>(co_await client.exchange());
    spawn(test.server_loop_, test.server_->shut_down(10s));
    std::string lines = co_await client.exchange();
    client.data(5, client_frame(0x88, close_payload(1001)), true);
    co_return lines + co_await client.exchange();
  }(*this));
  const std::string close = std::string("\x88\x02") + close_payload(1001);
  EXPECT_NE(answers.find("DATA 5 " + close + "\n"), std::string::npos) << answers;
  EXPECT_TRUE(answers.ends_with("closed\n")) << answers;
  ASSERT_EQ(ends.size(), 3);
  EXPECT_EQ(ends[0], system_error(ECONNRESET));
  EXPECT_EQ(ends[1], StreamError::truncated);
  EXPECT_EQ(ends[2], StreamError::eof);
}

}  // namespace
}  // namespace tambour::frames_test
