// What an evhttp client does otherwise than libevent, on purpose: see differences.md.

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "evhttp_peer.h"

namespace {

using evhttp_tests::loopback;
using evhttp_tests::Peer;
using evhttp_tests::port_of;
using evhttp_tests::run_until;
using namespace std::string_literals;

struct Response {
  int status = -1;  ///< -1: no response.
  std::string body;
  std::vector<std::string> fields;  ///< Names.
  std::string values;               ///< All of them, one after the other.
};

class EvhttpClient : public testing::Test {
 protected:
  EvhttpClient() {
    const sockaddr_in at = loopback(0);
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(listener, 16), 0);
    connection = evhttp_connection_base_new(base, nullptr, "127.0.0.1",
                                            static_cast<unsigned short>(port_of(listener)));
  }
  ~EvhttpClient() override {
    if (connection != nullptr) evhttp_connection_free(connection);
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
    ::close(listener);
  }

  bool run(const std::function<bool()>& condition) { return run_until(base, condition); }
  Peer accept() {
    int fd = -1;
    EXPECT_TRUE(run([&] {
      fd = ::accept(listener, nullptr, nullptr);
      return fd >= 0;
    }));
    return Peer(fd);
  }
  bool read_until(Peer& peer, std::string_view text) {
    return run([&] { return peer.contains(text) || !peer.read(); }) && peer.contains(text);
  }
  bool has_ended(Peer& peer) {
    return run([&] { return !peer.read(); });
  }

  evhttp_request* make(const char* target) {
    evhttp_request* const request = evhttp_request_new(
        [](evhttp_request* done, void* self) {
          auto& client = *static_cast<EvhttpClient*>(self);
          Response& response = client.responses.emplace_back();
          if (done == nullptr) return;
          response.status = evhttp_request_get_response_code(done);
          evbuffer* const body = evhttp_request_get_input_buffer(done);
          response.body.resize(evbuffer_get_length(body));
          evbuffer_remove(body, response.body.data(), response.body.size());
          evkeyval* field = nullptr;
          TAILQ_FOREACH(field, evhttp_request_get_input_headers(done), next) {
            response.fields.emplace_back(field->key);
            response.values += field->value;
          }
        },
        this);
    target_ = target;
    return request;
  }
  int send(evhttp_request* request, evhttp_cmd_type type = EVHTTP_REQ_GET) {
    return evhttp_make_request(connection, request, type, target_);
  }
  bool wait(std::size_t count) {
    return run([&] { return responses.size() >= count; });
  }

  event_base* base = event_base_new();
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  evhttp_connection* connection = nullptr;
  std::vector<Response> responses;

 private:
  const char* target_ = nullptr;
};

constexpr std::string_view ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(EvhttpClient, does_not_take_bytes_after_a_response_for_the_next_one) {
  send(make("/first"));
  send(make("/second"));
  Peer first = accept();
  EXPECT_TRUE(read_until(first, "\r\n\r\n"));
  first.send(std::string(ok) + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
  Peer second = accept();
  EXPECT_TRUE(read_until(second, "GET /second "));
  second.send(ok);
  ASSERT_TRUE(wait(2));
  EXPECT_EQ(responses[1].body, "ok");
  EXPECT_TRUE(has_ended(first));
}

TEST_F(EvhttpClient, skips_interim_responses) {
  send(make("/"));
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
  peer.send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
            std::string(ok));
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(responses[0].status, 200);
  EXPECT_EQ(responses[0].fields, std::vector<std::string>{"Content-Length"});
}

TEST_F(EvhttpClient, fails_after_too_many_interim_responses) {
  send(make("/"));
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
  for (int i = 0; i < 40; ++i) peer.send("HTTP/1.1 102 Processing\r\n\r\n");
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(responses[0].status, -1);
}

TEST_F(EvhttpClient, closes_the_connection_if_the_server_did_not_wait_for_the_body) {
  evhttp_request* const request = make("/");
  evhttp_add_header(evhttp_request_get_output_headers(request), "Expect", "100-continue");
  evbuffer_add(evhttp_request_get_output_buffer(request), "the body", 8);
  send(request, EVHTTP_REQ_POST);
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
  peer.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(responses[0].status, 417);
  EXPECT_TRUE(has_ended(peer));
  EXPECT_FALSE(peer.contains("the body"));
}

TEST_F(EvhttpClient, reads_a_body_without_length_until_the_end_of_the_connection) {
  send(make("/"));
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
  peer.send("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nbody");
  ::shutdown(peer.fd(), SHUT_WR);
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(responses[0].body, "body");
}

TEST_F(EvhttpClient, announces_the_length_of_every_body) {
  evhttp_request* const request = make("/");
  evbuffer_add(evhttp_request_get_output_buffer(request), "the body", 8);
  send(request, EVHTTP_REQ_PATCH);
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "the body"));
  EXPECT_TRUE(peer.contains("\r\nContent-Length: 8\r\n")) << peer.received;
  peer.send(ok);
  EXPECT_TRUE(wait(1));
}

TEST_F(EvhttpClient, rejects_targets_with_line_ends) {
  EXPECT_EQ(send(make("/ HTTP/1.1\r\nHost: b\r\n\r\nGET /")), -1);
  EXPECT_EQ(send(make("/\n")), -1);
}

TEST_F(EvhttpClient, connects_again_after_it_has_given_up) {
  const int port = port_of(listener);
  ::close(listener);
  const timeval brief{0, 1000};
  evhttp_connection_set_retries(connection, 1);
  evhttp_connection_set_initial_retry_tv(connection, &brief);
  send(make("/first"));
  ASSERT_TRUE(wait(1));
  listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const sockaddr_in at = loopback(port);
  const int enabled = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(listener, 16), 0);
  send(make("/second"));
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "GET /second "));
  peer.send(ok);
  ASSERT_TRUE(wait(2));
  EXPECT_EQ(responses[1].status, 200);
}

TEST_F(EvhttpClient, limits_heads_without_a_setting) {
  send(make("/"));
  Peer peer = accept();
  EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
  peer.send("HTTP/1.1 200 OK\r\nX: ");
  const std::string text(65536, 'a');
  EXPECT_TRUE(run([&] {
    peer.send(text);
    return !responses.empty();
  }));
  EXPECT_EQ(responses[0].status, -1);
}

TEST_F(EvhttpClient, rejects_responses_with_an_ambiguous_end) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& head :
       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"s,
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok"s,
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok"s,
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok"s,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"s,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"s,
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
        "HTTP/1.10 200 OK\r\nContent-Length: 2\r\n\r\nok"s,
        "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok"s,
        "HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 2\r\n\r\nok"s, chunked + "2\nok\r\n0\r\n\r\n",
        chunked + "2\r\nok0\r\n\r\n", chunked + " 2\r\nok\r\n0\r\n\r\n",
        chunked + "2 x\r\nok\r\n0\r\n\r\n"}) {
    responses.clear();
    send(make("/"));
    Peer peer = accept();
    EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
    peer.send(head);
    ASSERT_TRUE(wait(1));
    EXPECT_EQ(responses[0].status, -1) << head;
    EXPECT_TRUE(has_ended(peer));
  }
}

/// The walk has those that libevent reads in the same way. The connection can be used again.
TEST_F(EvhttpClient, accepts_odd_responses_with_a_certain_end) {
  struct Accepted {
    std::string text;
    std::string values;
  };
  const std::string length = "Content-Length: 2\r\n\r\nok";
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const Accepted all[] = {
      {"HTTP/1.1 \t 200 OK\r\n" + length, "2"},
      {"HTTP/1.1 200 a\x01z\r\n" + length, "2"},
      {"HTTP/1.1 200 OK\r\nX : a\r\n" + length, "a2"},
      {"HTTP/1.1 200 OK\r\n: a\r\n" + length, "2"},
      {"HTTP/1.1 200 OK\r\nX: a\x01z\r\n" + length, "a z2"},
      {"HTTP/1.1 200 OK\r\nX:\r\n a\r\n \r\n" + length, "a2"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "2, 2"},
      {chunked + "2\t\r\nok\r\n0;x=\r\n\r\n", "chunked"},
      {chunked + "2\r\nok\r\n0\r\nX: " + std::string(20000, 'x') + "\r\n\r\n", "chunked"}};
  send(make("/"));
  Peer peer = accept();
  for (const Accepted& accepted : all) {
    EXPECT_TRUE(read_until(peer, "\r\n\r\n"));
    peer.received.clear();
    responses.clear();
    peer.send(accepted.text);
    ASSERT_TRUE(wait(1));
    EXPECT_EQ(responses[0].status, 200) << accepted.text;
    EXPECT_EQ(responses[0].body, "ok") << accepted.text;
    EXPECT_EQ(responses[0].values, accepted.values) << accepted.text;
    send(make("/"));
  }
}

/// Where a callback frees the connection or cancels the request.
enum class Where { head, chunk, response, close, error };

struct Case {
  Where where;
  bool frees;    ///< The connection; otherwise, the request is cancelled.
  bool queued;   ///< Another request waits.
  bool chunked;  ///< The response.
};

class EvhttpClientCallbacks
    : public EvhttpClient,
      public testing::WithParamInterface<std::tuple<Where, bool, bool, bool>> {
 public:
  void act() {
    ++acted;
    if (parameters.frees && connection != nullptr) {
      evhttp_connection* const freed = std::exchange(connection, nullptr);
      evhttp_connection_free(freed);
    } else if (!parameters.frees && request != nullptr) {
      evhttp_cancel_request(std::exchange(request, nullptr));
    }
  }
  static EvhttpClientCallbacks& of(void* self) {
    return *static_cast<EvhttpClientCallbacks*>(self);
  }
  void set_callbacks(Where where) {
    if (where == Where::head)
      evhttp_request_set_header_cb(request, [](evhttp_request* /*request*/, void* self) {
        of(self).act();
        return 0;
      });
    if (where == Where::chunk)
      evhttp_request_set_chunked_cb(
          request, [](evhttp_request* /*request*/, void* self) { of(self).act(); });
    if (where == Where::error)
      evhttp_request_set_error_cb(request, [](evhttp_request_error /*error*/, void* self) {
        of(self).request = nullptr;
        of(self).act();
      });
    if (where == Where::close)
      evhttp_connection_set_closecb(
          connection,
          [](evhttp_connection* closed, void* self) {
            // Once is enough.
            evhttp_connection_set_closecb(closed, nullptr, nullptr);
            of(self).act();
          },
          this);
  }

  Case parameters = std::make_from_tuple<Case>(GetParam());
  evhttp_request* request = nullptr;
  int acted = 0;
};

TEST_P(EvhttpClientCallbacks, may_free_the_connection_and_cancel_the_request) {
  request = evhttp_request_new(
      [](evhttp_request* /*done*/, void* self) {
        // It is freed when this callback has returned.
        of(self).request = nullptr;
        if (of(self).parameters.where == Where::response) of(self).act();
      },
      this);
  set_callbacks(parameters.where);
  evhttp_make_request(connection, request, EVHTTP_REQ_GET, "/");
  if (parameters.queued) send(make("/queued"));
  Peer peer = accept();
  ASSERT_TRUE(read_until(peer, "\r\n\r\n"));
  if (parameters.where == Where::error) {
    peer.send("nonsense\r\n\r\n");
  } else if (parameters.chunked) {
    peer.send(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        "1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
  } else {
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na");
  }
  EXPECT_TRUE(run([&] { return acted != 0; }));
  if (!parameters.queued || parameters.frees) return;
  // The other request is not affected.
  Peer second = accept();
  EXPECT_TRUE(read_until(second, "GET /queued "));
  second.send(ok);
  EXPECT_TRUE(wait(1));
}
INSTANTIATE_TEST_SUITE_P(callbacks, EvhttpClientCallbacks,
                         testing::Combine(testing::Values(Where::head, Where::chunk,
                                                          Where::response, Where::close,
                                                          Where::error),
                                          testing::Bool(), testing::Bool(), testing::Bool()));

}  // namespace
