// The HTTP client and proxies: what they are asked for, and what origins get.
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/scripted_server.h"
#include "http/support/tunnel_proxy.h"
#include "support/network.h"
#include "support/temporary_folder.h"

namespace tambour::proxies_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::Url;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;
using test::TunnelProxy;
using namespace std::chrono_literals;

std::string form_of(const http::RequestHead& head) {
  std::string text = head.form == http::TargetForm::absolute ? head.scheme + "://" : "";
  text += head.authority + head.target;
  for (const char* const name : {"Proxy-Authorization", "Authorization"}) {
    if (const auto value = head.fields.get(name)) text += " " + std::string(*value);
  }
  return text;
}

class HttpClientProxies : public testing::Test {
 protected:
  static ClientOptions through(std::string by) {
    ClientOptions options;
    options.connect.proxy = std::move(by);
    return options;
  }
  /// The body, or the error's message.
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    spawn(loop,
          [](EventLoop& place, Client& http_client, ClientRequest subject,
             std::string& into) -> Task<> {
            auto response = co_await http_client.send(std::move(subject));
            if (response) {
              auto body = co_await response->read_text();
              into = std::to_string(http::code_of(response->status())) + " " +
                     (body ? *body : body.error().message());
            } else {
              into = response.error().message();
            }
            place.stop();
          }(loop, client, std::move(request), text));
    loop.run();
    return text;
  }
  std::string got(Client& client, std::string url) {
    return got(client, ClientRequest(std::move(url)));
  }
  std::string got_through(std::string by, std::string url) {
    Client client(loop, through(std::move(by)));
    return got(client, std::move(url));
  }
  static std::string message(auto error) { return make_error_code(error).message(); }

  EventLoop loop;
  ScriptedServer origin{loop, [](const Arrived& arrived) { return ok(form_of(arrived.head)); }};
  TunnelProxy proxy{loop};
};

TEST_F(HttpClientProxies, a_forwarding_proxy_gets_absolute_targets) {
  ScriptedServer forwarder(loop, [](const Arrived& arrived) {
    return ok(std::to_string(arrived.connection) + " " + form_of(arrived.head));
  });
  Client client(loop, through("http://us%65r:p%40ss@" + forwarder.authority()));
  EXPECT_EQ(got(client, "http://origin.test/a?b"),
            "200 0 http://origin.test/a?b Basic dXNlcjpwQHNz");
  EXPECT_EQ(got(client, "http://origin.test"), "200 0 http://origin.test/ Basic dXNlcjpwQHNz");
  EXPECT_EQ(got(client, "http://other.test:81/"), "200 1 http://other.test:81/ Basic dXNlcjpwQHNz")
      << "another origin has another connection";
}

TEST_F(HttpClientProxies, credentials_of_a_proxy_are_not_sent_to_origins) {
  std::string direct_url;
  ScriptedServer forwarder(loop, [&](const Arrived&) -> Answer {
    return "HTTP/1.1 302 Found\r\nLocation: " + direct_url + "\r\nContent-Length: 0\r\n\r\n";
  });
  direct_url = origin.url("/direct");
  ClientOptions options;
  options.connect.proxy = [&](const ProxyTarget& target) {
    return target.host == "origin.test" ? "http://me:secret@" + forwarder.authority() : "";
  };
  Client client(loop, std::move(options));
  EXPECT_EQ(got(client, "http://origin.test/"), "200 " + origin.authority() + "/direct");
  ClientRequest request(origin.url("/own"));
  EXPECT_TRUE(request.fields.set("Proxy-Authorization", "Basic own"));
  EXPECT_EQ(got(client, std::move(request)), "200 " + origin.authority() + "/own");
}

TEST_F(HttpClientProxies, socks) {
  const std::string url = origin.url("/x");
  EXPECT_EQ(got_through("socks5://" + proxy.authority(), url), "200 " + origin.authority() + "/x");
  EXPECT_EQ(proxy.log, "SOCKS " + origin.authority() + " \n");
  proxy.log.clear();
  proxy.host = "127.0.0.1";
  proxy.requires_password = true;
  const std::string port = origin.authority().substr(origin.authority().rfind(':'));
  EXPECT_EQ(got_through("socks5h://me:s%65cret@" + proxy.authority(), "http://name.test" + port),
            "200 name.test" + port + "/");
  EXPECT_EQ(proxy.log, "SOCKS name.test" + port + " me:secret\n") << "the proxy resolves names";
  EXPECT_EQ(got_through("socks5://" + proxy.authority(), "http://[::1]" + port + "/"),
            message(ProxyError::authentication_required));
  EXPECT_EQ(got_through("socks5://me:wrong@" + proxy.authority(), "http://[::1]" + port + "/"),
            message(ProxyError::authentication_required));
  EXPECT_EQ(got_through("socks5://me:secret@" + proxy.authority(), "http://[::1]" + port + "/"),
            "200 [::1]" + port + "/");
  EXPECT_TRUE(proxy.log.ends_with("SOCKS ::1" + port + " me:secret\n")) << proxy.log;
}

TEST_F(HttpClientProxies, socks_replies) {
  const auto first = static_cast<int>(ProxyError::socks_failure);
  for (std::uint8_t reply = 1; reply <= 8; ++reply) {
    proxy.reply = reply;
    EXPECT_EQ(got_through("socks5://" + proxy.authority(), origin.url()),
              message(static_cast<ProxyError>(first + reply - 1)));
  }
  proxy.reply = 99;
  EXPECT_EQ(got_through("socks5://" + proxy.authority(), origin.url()),
            message(ProxyError::socks_failure));
  EXPECT_EQ(got_through("socks5://" + origin.authority(), origin.url()),
            message(ProxyError::bad_answer))
      << "it is no SOCKS proxy";
}

TEST_F(HttpClientProxies, no_time_limit_for_connecting) {
  ClientOptions options = through("socks5://" + proxy.authority());
  options.connect.timeout = Duration::zero();
  Client client(loop, options);
  EXPECT_EQ(got(client, origin.url()), got_through("socks5://" + proxy.authority(), origin.url()));
}

TEST_F(HttpClientProxies, answers_to_connect) {
  const std::string url = "https://origin.test/";
  const std::string via = "http://me:secret@" + proxy.authority();
  proxy.http_answer = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(got_through(via, url), message(ProxyError::authentication_required));
  EXPECT_EQ(proxy.log, "CONNECT origin.test:443 Basic bWU6c2VjcmV0\n");
  proxy.http_answer = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(got_through(via, url), message(ProxyError::refused));
  proxy.http_answer = "HTTP/1.1 200 OK\r\n\r\nis no server of TLS";
  EXPECT_FALSE(got_through(via, url).starts_with("200"));
  proxy.http_answer = "HTTP/1.1 200";
  EXPECT_EQ(got_through(via, url), message(ProxyError::bad_answer));
  proxy.http_answer = "nonsense\r\n\r\n";
  EXPECT_EQ(got_through(via, url), message(http::ErrorCode::bad_version));
  EXPECT_EQ(proxy.connections(), 0U);
}

TEST_F(HttpClientProxies, a_server_that_speaks_first) {
  proxy.http_answer = "HTTP/1.1 200 OK\r\n\r\n220 mail.test\r\n";
  std::string line;
  spawn(loop, [](ConnectOptions options, EventLoop& of, std::string& greeting) -> Task<> {
    auto stream = co_await connect("mail.test", 25, std::move(options));
    if (stream) {
      Buffer in;
      const auto first = co_await timeout(1min, read_line(*stream, in));
      if (first) greeting = first->to_string();
    }
    of.stop();
  }(through("http://" + proxy.authority()).connect, loop, line));
  loop.run();
  EXPECT_EQ(line, "220 mail.test");
}

TEST_F(HttpClientProxies, urls_of_proxies) {
  for (const char* const bad :
       {"proxy.test:80", "https://", "http://", "http://proxy.test/path", "http://proxy.test?query",
        "ftp://proxy.test", "http://proxy.test:0", "socks4://proxy.test",
        "socks5://:password@proxy.test", "http://a%3ab:c@proxy.test", "http://a%0a:c@proxy.test"})
    EXPECT_EQ(got_through(bad, origin.url()), message(ProxyError::bad_url)) << bad;
}

TEST_F(HttpClientProxies, a_proxy_that_does_not_answer) {
  ScriptedServer silent(loop, [](const Arrived&) { return Answer(""); });
  ClientOptions options = through("socks5://" + silent.authority());
  Client client(loop, std::move(options));
  EXPECT_EQ(got(client, origin.url()), message(ProxyError::bad_answer));
  TcpServer deaf = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  options = through("socks5://" + deaf.endpoint().to_string());
  options.connect.timeout = 50ms;
  Client waiting(loop, std::move(options));
  EXPECT_EQ(got(waiting, origin.url()), system_error(ETIMEDOUT).message());
  EXPECT_EQ(waiting.connections(), 0U);
}

// The choice.

std::string chosen(const ProxySettings& settings, std::string_view url) {
  const Url parsed = or_throw(Url::parse(url));
  ProxyTarget target;
  target.scheme = parsed.scheme();
  std::ranges::transform(target.scheme, target.scheme.begin(), ::tolower);
  target.host = parsed.host();
  target.port = parsed.port_or_default();
  return ProxyChoice(settings)(target);
}

TEST(ProxySettings, schemes) {
  const ProxySettings settings{.http = "a", .https = "b"};
  EXPECT_EQ(chosen(settings, "http://x.test/"), "a");
  EXPECT_EQ(chosen(settings, "HTTPS://x.test/"), "b");
  EXPECT_EQ(chosen({.http = "a", .all = "c"}, "https://x.test/"), "c");
  EXPECT_EQ(chosen({}, "http://x.test/"), "");
  // Other protocols.
  EXPECT_EQ(ProxyChoice(settings)(ProxyTarget{.host = "x.test", .port = 443}), "");
  EXPECT_EQ(ProxyChoice(ProxySettings{.http = "a", .all = "c"})(ProxyTarget{.host = "x.test"}),
            "c");
  EXPECT_FALSE(ProxyChoice(ProxySettings()));
  EXPECT_FALSE(ProxyChoice(""));
}

TEST(ProxySettings, exceptions) {
  const auto is_excepted = [](std::string list, std::string_view url) {
    return chosen({.all = "proxy", .except = std::move(list)}, url).empty();
  };
  for (const auto& [list, url] : std::vector<std::pair<std::string, std::string>>{
           {"*", "http://x.test/"},
           {"x.test", "http://x.test/"},
           {"a, X.TEST ,b", "http://sub.x.Test:8080/"},
           {".x.test", "http://x.test/"},
           {"x.test:8080", "http://x.test:8080/"},
           {"x.test:443", "https://x.test/"},
           {"127.0.0.1", "http://127.0.0.1/"},
           {"::1", "http://[::1]:80/"},
           {"[::1]", "http://[::1]/"},
           {"[::1]:81", "http://[::1]:81/"},
           {"10.0.0.0/8", "http://10.200.3.4/"},
           {"192.168.1.128/25", "http://192.168.1.129/"},
           {"fd00::/8", "http://[fd12::1]/"},
           {"0.0.0.0/0", "http://1.2.3.4/"},
           {"0:0:0:0:0:0:0:1", "http://[::1]/"},
           {"[0::0:1]:80", "http://[::1]/"},
           {"FD00::A", "http://[fd00:0:0::a]/"},
           {"[fd00::]/8", "http://[fd12::1]/"},
           {"::ffff:10.0.0.1", "http://10.0.0.1/"},
           {"10.0.0.1", "http://[::ffff:a00:1]/"},
           {"*.x.test", "http://a.x.test/"},
           {"x.test.", "http://x.test/"},
           {"x.test", "http://a.x.test./"},
           {"a.test b.test\tx.test", "http://x.test/"},
           {" , ,a.test ,  x.test:80 ", "http://x.test/"}})
    EXPECT_TRUE(is_excepted(list, url)) << list << " " << url;
  for (const auto& [list, url] : std::vector<std::pair<std::string, std::string>>{
           {"", "http://x.test/"},
           {"x.test", "http://badx.test/"},
           {"x.test", "http://test/"},
           {"x.test:8080", "http://x.test/"},
           {"[::1]:81", "http://[::1]/"},
           {"10.0.0.0/8", "http://11.0.0.1/"},
           {"192.168.1.128/25", "http://192.168.1.127/"},
           {"10.0.0.0/33", "http://10.0.0.0/"},
           {"10.0.0.0/", "http://10.0.0.0/"},
           {"10.0.0.0/8", "http://x.test/"},
           {"10.0.0.0/8", "http://10.0.0.1%2eevil.test/"},
           {"10.0.0.1", "http://10.0.0.1%41.evil.test/"},
           {"::/0", "http://1.2.3.4/"},
           {".", "http://x.test/"},
           {"*.x.test", "http://x.test/"},
           {"*.x.test", "http://badx.test/"},
           {"0.0.1", "http://10.0.0.1/"},
           {".0.0.1", "http://10.0.0.1/"},
           {"1", "http://[::1]/"},
           {"x.test", "http://10.0.0.1/"},
           {"[::1]:8x", "http://[::1]/"},
           {"x.test:080x", "http://x.test/"}})
    EXPECT_FALSE(is_excepted(list, url)) << list << " " << url;
}

// Proxies of the system.

/// Starts a program with a configuration, and waits until it listens.
struct RealProxy {
  RealProxy(EventLoop& loop, const std::string& command, const std::string& configuration,
            std::uint16_t port)
      : endpoint(or_throw(Endpoint::parse("127.0.0.1:" + std::to_string(port)))), process([&] {
          std::ofstream(folder.path() + "/configuration") << configuration;
          return or_throw(Process::spawn(
              loop, {.arguments = {"/bin/sh", "-c",
                                   "PATH=$PATH:/usr/sbin; exec " + command + " > output 2>&1"},
                     .working_directory = folder.path(),
                     .input = Stdio::null(),
                     .group = ProcessGroup::new_group,
                     .timeout = 100s}));
        }()) {}

  Task<bool> wait() {
    for (int i = 0; i < 3000 && process.is_running(); ++i) {
      auto stream = co_await TcpStream::connect(endpoint);
      if (stream) co_return true;
      if (!co_await sleep_for(20ms)) co_return false;
    }
    co_return false;
  }

  test::TemporaryFolder folder;
  Endpoint endpoint;
  Process process;
};

class HttpRealProxies : public HttpClientProxies {
 protected:
  std::uint16_t free_port() {
    return or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0))).endpoint().port();
  }
  bool starts(RealProxy& real) {
    bool is_ready = false;
    spawn(loop, [](EventLoop& place, RealProxy& real_proxy, bool& into) -> Task<> {
      into = co_await real_proxy.wait();
      place.stop();
    }(loop, real, is_ready));
    loop.run();
    return is_ready;
  }
};

TEST_F(HttpRealProxies, tinyproxy) {
  if (!test::has_program("tinyproxy")) GTEST_SKIP() << "tinyproxy is not installed";
  const std::uint16_t port = free_port();
  RealProxy real(loop, "tinyproxy -d -c configuration",
                 "Port " + std::to_string(port) +
                     "\nListen 127.0.0.1\nTimeout 60\nMaxClients 10\nBasicAuth me secret\n",
                 port);
  ASSERT_TRUE(starts(real));
  Client client(loop, through("http://me:secret@" + real.endpoint.to_string()));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(got(client, origin.url("/" + std::to_string(i))),
              "200 " + origin.authority() + "/" + std::to_string(i));
  EXPECT_TRUE(got_through("http://me:wrong@" + real.endpoint.to_string(), origin.url())
                  .starts_with("401 "));
  EXPECT_EQ(got_through("http://me:secret@" + real.endpoint.to_string(), "https://127.0.0.1:1/"),
            message(ProxyError::refused));
  real.process.terminate();
}

TEST_F(HttpRealProxies, dante) {
  if (!test::has_program("danted")) GTEST_SKIP() << "dante-server is not installed";
  const std::uint16_t port = free_port();
  RealProxy real(loop, "danted -f configuration",
                 "logoutput: stderr\ninternal: 127.0.0.1 port = " + std::to_string(port) +
                     "\nexternal: lo\nclientmethod: none\nsocksmethod: none\n"
                     "client pass { from: 0/0 to: 0/0 }\nsocks pass { from: 0/0 to: 0/0 }\n",
                 port);
  if (!starts(real)) GTEST_SKIP() << "dante does not start here";
  Client client(loop, through("socks5://" + real.endpoint.to_string()));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(got(client, origin.url("/" + std::to_string(i))),
              "200 " + origin.authority() + "/" + std::to_string(i));
  EXPECT_EQ(got(client, "http://127.0.0.1:1/"), message(ProxyError::socks_connection_refused));
  real.process.terminate();
}

}  // namespace
}  // namespace tambour::proxies_test
