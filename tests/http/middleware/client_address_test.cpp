// The address of the client behind proxies, and request ids of trusted peers.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::client_address_test {
namespace {

using http::ForwardingField;
using http::Request;
using http::Response;

constexpr const char* peer = "10.0.0.2";  ///< Of the simulated client.

std::vector<IpNetwork> networks(const std::vector<std::string>& texts) {
  std::vector<IpNetwork> all;
  for (const std::string& text : texts) all.push_back(or_throw(IpNetwork::parse(text)));
  return all;
}

class HttpClientAddress : public test::Serving {
 public:
  void serve_with(http::Middleware middleware) {
    server_.reset();
    http::Router router;
    router.use(std::move(middleware));
    router.get("/", [](Request& request, Response& response) {
      response.send(or_throw(request.client_address()).to_string());
    });
    serve(std::move(router).handler());
  }
  void trust(const std::vector<std::string>& trusted, ForwardingField field) {
    serve_with(or_throw(http::client_address({.trusted = networks(trusted), .field = field})));
  }
  std::string answer(const std::string& fields) {
    const std::string text =
        ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
    return text.substr(text.find("\r\n\r\n") + 4);
  }
  std::string forwarded_for(const std::string& value) {
    return answer("X-Forwarded-For: " + value + "\r\n");
  }
  std::string forwarded(const std::string& value) { return answer("Forwarded: " + value + "\r\n"); }
};

TEST_F(HttpClientAddress, is_the_rightmost_one_that_is_not_trusted) {
  trust({"10.0.0.2", "192.0.2.0/24"}, ForwardingField::x_forwarded_for);
  EXPECT_EQ(answer(""), peer);
  EXPECT_EQ(forwarded_for("203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(forwarded_for("6.6.6.6, 203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(forwarded_for("6.6.6.6, 203.0.113.7,192.0.2.1 , 192.0.2.2"), "203.0.113.7");
  EXPECT_EQ(answer("X-Forwarded-For: 6.6.6.6\r\nX-Other: b\r\nx-forwarded-for: 203.0.113.7\r\n"),
            "203.0.113.7");
  // All are proxies: the first one is the client.
  EXPECT_EQ(forwarded_for("192.0.2.9, 192.0.2.1"), "192.0.2.9");
  // What is no address ends the search.
  EXPECT_EQ(forwarded_for("6.6.6.6, unknown, 192.0.2.1"), "192.0.2.1");
  for (const char* other : {"", ",", "unknown", "1.2.3", "fe80::1%lo", "1.2.3.4:x:y", "[::1"})
    EXPECT_EQ(forwarded_for("6.6.6.6, " + std::string(other)), peer) << other;
  EXPECT_EQ(forwarded_for("203.0.113.7:4711"), "203.0.113.7");
  EXPECT_EQ(forwarded_for("[2001:db8::7]:4711"), "2001:db8::7");
  EXPECT_EQ(forwarded_for("2001:db8::7"), "2001:db8::7");
  EXPECT_EQ(forwarded_for("::ffff:203.0.113.7"), "203.0.113.7");
  // The other field may come from the client.
  EXPECT_EQ(forwarded("for=6.6.6.6"), peer);
}

TEST_F(HttpClientAddress, is_that_of_the_peer_if_it_is_not_trusted) {
  trust({"10.0.0.3"}, ForwardingField::x_forwarded_for);
  EXPECT_EQ(forwarded_for("203.0.113.7"), peer);
}

TEST_F(HttpClientAddress, is_read_from_forwarded) {
  trust({"10.0.0.2", "192.0.2.0/24"}, ForwardingField::forwarded);
  EXPECT_EQ(forwarded("for=203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(forwarded("For=\"[2001:db8:cafe::17]:4711\""), "2001:db8:cafe::17");
  EXPECT_EQ(forwarded("for=6.6.6.6;proto=http, for=203.0.113.7;by=\"a,b;for=1.1.1.1\""),
            "203.0.113.7");
  EXPECT_EQ(forwarded("proto=https;for=203.0.113.7 , by=192.0.2.2; FOR=192.0.2.1"), "203.0.113.7");
  EXPECT_EQ(forwarded("for=203.0.113.7:80"), "203.0.113.7");
  EXPECT_EQ(forwarded("for=\"203.0.113.\\7\""), "203.0.113.7");
  for (const char* other : {"for=_hidden", "for=unknown", "by=1.1.1.1", "for=6.6.6.6, proto=http"})
    EXPECT_EQ(forwarded(other), peer) << other;
  // A quote that the client has left open must not hide what the proxy has appended.
  for (const char* other :
       {"for=\"6.6.6.6, for=203.0.113.7", "for=6.6.6.6 x, for=203.0.113.7", "for, for=203.0.113.7",
        "for=\"a\"b, for=203.0.113.7", "=, for=203.0.113.7"})
    EXPECT_EQ(forwarded(other), peer) << other;
  EXPECT_EQ(forwarded_for("6.6.6.6"), peer);
}

TEST_F(HttpClientAddress, needs_trusted_peers) {
  EXPECT_EQ(http::client_address({}).error(), system_error(EINVAL));
}

class HttpRequestId : public HttpClientAddress {
 public:
  /// The field of the response; `fields` are those of the request.
  std::string id_for(const std::string& fields) {
    const std::string text =
        ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
    const std::size_t at = text.find("X-Request-Id: ") + 14;
    const std::string id = text.substr(at, text.find("\r\n", at) - at);
    EXPECT_EQ(text.substr(text.find("\r\n\r\n") + 4), id + "=" + id);
    return id;
  }
  void serve_ids(const http::RequestIdOptions& options) {
    server_.reset();
    http::Router router;
    router.use(or_throw(http::request_id(options)));
    router.get("/", [](Request& request, Response& response) {
      response.send(std::string(http::request_id_of(request)) + "=" +
                    std::string(request.headers().get("X-Request-Id").value_or("none")));
    });
    serve(std::move(router).handler());
  }
};

TEST_F(HttpRequestId, is_new_for_each_request) {
  serve_ids({});
  std::set<std::string> ids;
  for (int i = 0; i < 50; ++i) {
    const std::string id = id_for("X-Request-Id: forged\r\n");
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 50U);
}

TEST_F(HttpRequestId, is_that_of_a_trusted_peer) {
  serve_ids({.trusted = networks({"10.0.0.0/24"})});
  EXPECT_EQ(id_for("X-Request-Id: abc-1.2_3:4+/=@\r\n"), "abc-1.2_3:4+/=@");
  const std::string longest(128, 'x');
  EXPECT_EQ(id_for("X-Request-Id: " + longest + "\r\n"), longest);
  for (const std::string& other : {longest + "x", std::string("a b"), std::string("a\"b"),
                                   std::string(), std::string("a\xC3\xA4")})
    EXPECT_EQ(id_for("X-Request-Id: " + other + "\r\n").size(), 32U) << other;
  EXPECT_EQ(id_for("X-Request-Id: a\r\nX-Request-Id: b\r\n").size(), 32U);
}

TEST_F(HttpRequestId, needs_the_name_of_a_field) {
  EXPECT_EQ(http::request_id({.field = "a b"}).error(), http::ErrorCode::bad_field_name);
}

}  // namespace
}  // namespace tambour::client_address_test
