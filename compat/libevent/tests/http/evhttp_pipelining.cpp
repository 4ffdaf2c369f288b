// What an evhttp server reads ahead of the request that it answers: at most 64 KiB and one
// transfer, however many requests it handles, and however often it writes.

#include <algorithm>
#include <string>

#include <event2/bufferevent.h>

#include "evhttp_peer.h"

namespace {

using evhttp_tests::EvhttpServer;
using evhttp_tests::Peer;

constexpr std::size_t transfer = std::size_t{64} << 10;
constexpr std::size_t read_ahead_max = (std::size_t{64} << 10) + transfer;

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string result;
  while (result.size() < bytes) result += text;
  return result;
}

class EvhttpPipelining : public EvhttpServer {
 protected:
  /// Sends the text repeatedly, without gaps. Whenever the server reads, there is more to read:
  /// the handler sends, too.
  void send_as_if_concurrently(const std::function<bool()>& condition) {
    handler = [this](evhttp_request* request) {
      connection = evhttp_request_get_connection(request);
      pump();
      reply(request, "the answer");
    };
    EXPECT_TRUE(run([&] {
      pump();
      return condition() || input_max > 100 * read_ahead_max;
    }));
    EXPECT_LT(input_max, read_ahead_max);
  }
  void send_until_the_server_waits() {
    int rounds_without_progress = 0;
    int requests_before = -1;
    send_as_if_concurrently([&] {
      rounds_without_progress = requests != requests_before ? 0 : rounds_without_progress + 1;
      requests_before = requests;
      return rounds_without_progress == 50;
    });
    EXPECT_GT(requests, 1000);
  }
  void pump() {
    ssize_t sent = 0;
    while ((sent = peer.send(std::string_view(text).substr(sent_of_text))) > 0)
      sent_of_text = (sent_of_text + static_cast<std::size_t>(sent)) % text.size();
    if (connection == nullptr) return;
    evbuffer* const input = bufferevent_get_input(evhttp_connection_get_bufferevent(connection));
    input_max = std::max(input_max, evbuffer_get_length(input));
  }

  Peer peer = connect();
  std::string text;
  std::size_t sent_of_text = 0;
  evhttp_connection* connection = nullptr;
  evhttp_request* pending = nullptr;
  std::size_t input_max = 0;
};

TEST_F(EvhttpPipelining, is_bounded_for_a_peer_that_never_reads) {
  text = repeated("GET / HTTP/1.1\r\n\r\n", transfer);
  send_until_the_server_waits();
}

TEST_F(EvhttpPipelining, is_bounded_for_requests_with_bodies) {
  text = repeated(
      "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
      "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
      transfer);
  send_until_the_server_waits();
}

TEST_F(EvhttpPipelining, is_bounded_for_a_peer_that_reads) {
  text = repeated("GET / HTTP/1.1\r\n\r\n", transfer);
  send_as_if_concurrently([this] {
    peer.read();
    return requests > 15000;
  });
}

TEST_F(EvhttpPipelining, is_bounded_while_parts_of_a_response_are_written) {
  handler = [this](evhttp_request* request) {
    connection = evhttp_request_get_connection(request);
    evhttp_send_reply_start(request, HTTP_OK, "OK");
    pending = request;
  };
  peer.send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run([this] { return pending != nullptr; }));
  text.assign(transfer, 'G');
  evbuffer* const part = evbuffer_new();
  int parts = 0;
  EXPECT_TRUE(run([&] {
    evbuffer_add(part, "part", 4);
    evhttp_send_reply_chunk(pending, part);
    pump();
    return ++parts == 200;
  }));
  evbuffer_free(part);
  EXPECT_GE(input_max, transfer);
  EXPECT_LT(input_max, read_ahead_max);
  evhttp_send_reply_end(pending);
}

/// The limit must not stop a message that is longer than it.
TEST_F(EvhttpPipelining, long_messages_behind_many_others_are_read) {
  const std::string body(std::size_t{300} << 10, 'x');
  const std::string field(std::size_t{200} << 10, 'y');
  const std::string some = repeated("GET / HTTP/1.1\r\n\r\n", transfer);
  const std::string texts[] = {
      some,
      "POST / HTTP/1.1\r\nContent-Length: 307200\r\n\r\n" + body,
      "GET / HTTP/1.1\r\nX: " + field + "\r\n\r\n",
      some,
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4b000\r\n" + body + "\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + field.substr(0, 50000) +
          "\r\n\r\n",
      some,
      "GET /last HTTP/1.1\r\nConnection: close\r\n\r\n"};
  std::string all;
  for (const std::string& part : texts) all += part;
  const int requests_per_text = static_cast<int>(some.size() / sizeof "GET / HTTP/1.1\r\n\r");
  std::size_t body_bytes = 0;
  handler = [&](evhttp_request* request) {
    body_bytes += evbuffer_get_length(evhttp_request_get_input_buffer(request));
    reply(request, "the answer");
  };
  std::size_t sent_bytes = 0;
  EXPECT_TRUE(run([&] {
    const ssize_t sent = peer.send(std::string_view(all).substr(sent_bytes));
    if (sent > 0) sent_bytes += static_cast<std::size_t>(sent);
    return !peer.read();
  }));
  EXPECT_EQ(sent_bytes, all.size());
  EXPECT_EQ(requests, 3 * requests_per_text + 5);
  EXPECT_EQ(body_bytes, 2 * body.size());
  EXPECT_EQ(target, "/last");
}

}  // namespace
