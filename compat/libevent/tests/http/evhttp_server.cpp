// What an evhttp server does otherwise than libevent, on purpose: see differences.md.

#include <array>
#include <string>

#include <event2/bufferevent.h>

#include "evhttp_peer.h"

namespace {

using evhttp_tests::EvhttpServer;
using evhttp_tests::Peer;

struct Rejected {
  const char* name;
  const char* request;
};
void PrintTo(const Rejected& rejected, std::ostream* out) { *out << rejected.name; }

class EvhttpRejects : public EvhttpServer, public testing::WithParamInterface<Rejected> {};

TEST_P(EvhttpRejects, the_request_with_400_and_closes) {
  const std::string answer =
      ask(std::string(GetParam().request) + "GET /smuggled HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 413 ")) << answer;
  EXPECT_EQ(answer.find("HTTP/", 1), std::string::npos) << answer;
  EXPECT_EQ(requests, 0);
}

constexpr std::array rejected = {
    Rejected{"two_equal_lengths",
             "POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"},
    Rejected{"folded_field", "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n"},
    Rejected{"bare_line_feed", "GET / HTTP/1.1\nX: a\n\n"},
    Rejected{"bare_carriage_return", "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n"},
    Rejected{"space_before_colon", "POST / HTTP/1.1\r\nContent-Length : 3\r\n\r\nabc"},
    Rejected{"tab_in_length", "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc"},
    Rejected{"unknown_coding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"},
    Rejected{"coding_before_chunked",
             "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
    Rejected{"chunked_in_http_1_0",
             "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    Rejected{"several_hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
    Rejected{"space_in_target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
    Rejected{"control_character_in_target", "GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n"},
    Rejected{"http_1_10", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"},
    Rejected{"http_0_9", "GET /path HTTP/0.9\r\nHost: a\r\n\r\n"},
    Rejected{"size_of_chunk_overflows",
             "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"},
    Rejected{"chunk_without_line_end",
             "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na0\r\n\r\n"},
    Rejected{"bare_line_feed_after_chunk",
             "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n"},
    Rejected{
        "length_as_trailer",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n"}};
INSTANTIATE_TEST_SUITE_P(requests, EvhttpRejects, testing::ValuesIn(rejected),
                         [](const auto& entry) { return entry.param.name; });

TEST_F(EvhttpServer, reads_the_body_of_a_head_request) {
  Peer peer = connect();
  peer.send(
      "HEAD / HTTP/1.1\r\nContent-Length: 26\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"
      "GET /next HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(read_to_end(peer));
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(target, "/next");
}

TEST_F(EvhttpServer, sends_no_body_to_a_head_request) {
  EXPECT_TRUE(ask("HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n").ends_with("\r\n\r\n"));
}

TEST_F(EvhttpServer, sends_no_body_with_204) {
  handler = [](evhttp_request* request) {
    evbuffer* const body = evbuffer_new();
    evbuffer_add(body, "HTTP/1.1 200 OK\r\n\r\n", 19);
    evhttp_send_reply(request, HTTP_NOCONTENT, nullptr, body);
    EXPECT_EQ(evbuffer_get_length(body), 0U);
    evbuffer_free(body);
  };
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").ends_with("\r\n\r\n"));
}

TEST_F(EvhttpServer, closes_a_connection_of_http_1_0_after_a_body_without_length) {
  handler = [](evhttp_request* request) {
    evhttp_send_reply_start(request, HTTP_OK, "OK");
    evbuffer* const part = evbuffer_new();
    evbuffer_add(part, "part", 4);
    evhttp_send_reply_chunk(request, part);
    evbuffer_free(part);
    evhttp_send_reply_end(request);
  };
  const std::string answer = ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\npart")) << answer;
  EXPECT_EQ(answer.find("Content-Length"), std::string::npos);
  EXPECT_EQ(answer.find("keep-alive"), std::string::npos);
}

/// Issue 321: libevent closes the socket with data unread, and so resets the connection.
TEST_F(EvhttpServer, sends_413_to_a_client_that_is_still_sending) {
  constexpr std::size_t body = std::size_t{8} << 20;
  for (const bool chunked : {false, true}) {
    evhttp_set_max_body_size(http, 1000);
    Peer peer = connect();
    peer.send(chunked ? "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n"
                      : "POST / HTTP/1.1\r\nContent-Length: 8388608\r\n\r\n");
    std::string left(body, 'x');
    const bool ended = run([&] {
      const ssize_t sent = peer.send(left);
      EXPECT_TRUE(sent > 0 || errno == EAGAIN) << errno;
      if (sent > 0) left.resize(left.size() - static_cast<std::size_t>(sent));
      return left.empty();
    });
    EXPECT_TRUE(ended);
    EXPECT_TRUE(read_to_end(peer));
    EXPECT_EQ(peer.error, 0);
    EXPECT_TRUE(peer.received.starts_with("HTTP/1.1 413 ")) << peer.received;
  }
}

TEST_F(EvhttpServer, answers_a_client_that_has_half_closed_the_connection) {
  Peer peer = connect();
  peer.send("GET / HTTP/1.1\r\n\r\n");
  ::shutdown(peer.fd(), SHUT_WR);
  EXPECT_TRUE(read_to_end(peer));
  EXPECT_TRUE(peer.contains("the answer")) << peer.received;
}

TEST_F(EvhttpServer, limits_heads_without_a_setting) {
  std::string head = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 5000; ++i) head += "X: y\r\n";
  EXPECT_TRUE(ask(head + "\r\n").starts_with("HTTP/1.1 400 "));
  Peer peer = connect();
  const std::string line(std::size_t{64} << 10, 'a');
  peer.send("GET / HTTP/1.1\r\nX: ");
  run([&] {
    peer.send(line);
    return !peer.read();
  });
  EXPECT_TRUE(peer.contains("HTTP/1.1 400 ")) << peer.received;
}

TEST_F(EvhttpServer, accepts_extensions_of_chunks) {
  ask("POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1;name=\"value\"\r\na\r\n0;last\r\n\r\n");
  EXPECT_EQ(requests, 1);
}

TEST_F(EvhttpServer, callbacks_may_free_the_connection) {
  // In the callback for the end of the response.
  handler = [](evhttp_request* request) {
    evhttp_request_set_on_complete_cb(
        request,
        [](evhttp_request* complete, void* connection) {
          EXPECT_EQ(evhttp_request_get_connection(complete), connection);
          evhttp_connection_free(static_cast<evhttp_connection*>(connection));
        },
        evhttp_request_get_connection(request));
    reply(request, "the answer");
  };
  EXPECT_NE(ask("GET / HTTP/1.1\r\n\r\n").find("the answer"), std::string::npos);
  // In the callback for the end of the connection.
  handler = [](evhttp_request* request) {
    evhttp_connection_set_closecb(
        evhttp_request_get_connection(request),
        [](evhttp_connection* connection, void*) { evhttp_connection_free(connection); }, nullptr);
    reply(request, "the answer");
  };
  ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(requests, 2);
}

TEST_F(EvhttpServer, a_request_of_the_user_survives_its_connection) {
  evhttp_request* owned = nullptr;
  handler = [&](evhttp_request* request) {
    owned = request;
    evhttp_request_own(request);
    evhttp_connection_free(evhttp_request_get_connection(request));
  };
  EXPECT_EQ(ask("GET / HTTP/1.1\r\n\r\n"), "");
  ASSERT_NE(owned, nullptr);
  EXPECT_EQ(evhttp_request_get_connection(owned), nullptr);
  evhttp_request_free(owned);
}

TEST_F(EvhttpServer, an_encoded_null_byte_does_not_end_a_path) {
  bool invoked = false;
  evhttp_set_cb(
      http, "/path",
      [](evhttp_request* request, void* flag) {
        *static_cast<bool*>(flag) = true;
        reply(request, "path");
      },
      &invoked);
  ask("GET /path%00more HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(invoked);
  EXPECT_EQ(requests, 1);
}

}  // namespace
