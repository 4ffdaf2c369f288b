// http::Client with ConnectOptions::https_records, in a simulation: RFC 9460.
#include <arpa/inet.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/resolver_fixture.h"
#include "tls/support/certificates.h"

namespace tambour::https_records_test {
namespace {

using http::Client;
using http::ClientOptions;
using test::a_record;
using test::dns_name;

class HttpsRecords : public test::ResolverTest {
 protected:
  /// The name has the address of `plain`, on which no server speaks TLS; the records lead to `web`.
  HttpsRecords()
      : plain(simulation.add_host("plain")),
        web(simulation.add_host("web")),
        plain_loop(plain.loop_options()),
        web_loop(web.loop_options()) {
    const auto handler = [](http::Request& request, http::Response& response) {
      const bool is_secure = request.connection().tls() != nullptr;
      response.send((is_secure ? "tls " : "plain ") + std::string(request.head().authority));
    };
    http::ServerOptions options;
    servers.push_back(
        or_throw(http::Server::listen(plain_loop, test::endpoint_of(plain, 80), handler, options)));
    options.listen.tls = contexts.server;
    servers.push_back(
        or_throw(http::Server::listen(web_loop, test::endpoint_of(web, 8443), handler, options)));
    dns::A data;
    ::inet_pton(AF_INET, plain.ip().c_str(), data.address.data());
    both([&](test::NameServer& server) { server.add(a_record("www.example.net", data.address)); });
    tls::ClientOptions trusting;
    trusting.insecure_skip_verify = true;
    trusting.alpn = {"http/1.1"};
    client_context = tls::ClientContext::create(std::move(trusting)).value();
  }
  ~HttpsRecords() override { servers.clear(); }

  /// A record with port 8443 and the address of `web` as a hint, for a host without addresses.
  void add_record(const std::string& name, const std::vector<std::string>& alpn) {
    std::string protocols;
    for (const std::string& text : alpn) protocols += static_cast<char>(text.size()) + text;
    std::string hint(4, '\0');
    EXPECT_EQ(::inet_pton(AF_INET, web.ip().c_str(), hint.data()), 1);
    std::vector<dns::SvcParam> params{{dns::SvcParam::alpn, protocols},
                                      {dns::SvcParam::port, {'\x20', '\xfb'}},
                                      {dns::SvcParam::ipv4hint, hint}};
    add(name, dns::Svcb{1, dns_name("elsewhere.example.net"), std::move(params)});
  }
  void add(const std::string& name, const dns::Svcb& record) {
    both([&](test::NameServer& server) {
      server.add({.name = dns_name(name), .type = dns::Type::https, .ttl = 60, .data = record});
    });
  }

  std::string got(const std::string& url, bool follows = true) {
    ClientOptions options;
    options.connect.tls = client_context;
    options.connect.https_records = follows;
    options.connect.resolver = &the_resolver();
    options.connect.family = AddressFamily::v4;
    Client client(*loop, options);
    return run([](Client& by, std::string to) -> Task<std::string> {
      auto response = co_await by.get(std::move(to));
      if (!response) co_return "error";
      const auto text = co_await response->read_text();
      co_return text.value_or("error in body");
    }(client, url));
  }

  sim::Host& plain;
  sim::Host& web;
  EventLoop plain_loop;
  EventLoop web_loop;
  test::Contexts contexts;
  tls::ClientContext client_context;
  std::vector<http::Server> servers;
};

TEST_F(HttpsRecords, lead_to_another_host_and_port) {
  add_record("www.example.net", {"http/1.1"});
  EXPECT_EQ(got("https://www.example.net/"), "tls www.example.net") << "by hint, port and alpn";
  EXPECT_EQ(got("https://www.example.net/", false), "error") << "followed without being asked";
  EXPECT_EQ(got("http://www.example.net/"), "plain www.example.net") << "not for http";
}

TEST_F(HttpsRecords, aliases) {
  add("www.example.net", dns::Svcb{0, dns_name("alias.example.net"), {}});
  add_record("alias.example.net", {"http/1.1"});
  EXPECT_EQ(got("https://www.example.net/"), "tls www.example.net");
}

}  // namespace
}  // namespace tambour::https_records_test
