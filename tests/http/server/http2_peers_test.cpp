// http::Server over HTTP/2 with clients that others have written: curl, nghttp, h2load, Go's
// net/http, Python's httpx and h2, Chromium, and the conformance tests of h2spec and httpwg. A
// client that is not installed is skipped. Chromium and Firefox open WebSockets too, also over
// HTTP/1.1.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "base/seccomp.h"
#include "http/support/curl.h"
#include "support/temporary_folder.h"
#include "tls/support/certificates.h"

namespace tambour::http2_peers_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::Contexts;
using test::curl;

/// How many requests for "/wait" the client has cancelled.
std::atomic<int> cancelled = 0;

/// Requests everything of the page, one request of which it cancels, and shows what was wrong.
constexpr std::string_view page = R"(<!DOCTYPE html><body>failed<script>(async () => {
  const text = async (...a) => (await fetch(...a)).text();
  const bodies = await Promise.all([...Array(20).keys()].map(i => text('/slow?' + i)));
  const upload = 'x'.repeat(300000);
  const echo = await text('/', {method: 'POST', body: upload});
  const before = await text('/cancelled');
  const controller = new AbortController();
  const waiting = fetch('/wait', {signal: controller.signal}).catch(error => error.name);
  await text('/version');
  controller.abort();
  const error = await waiting;
  while (await text('/cancelled') === before) {}
  document.body.textContent = [performance.getEntriesByType('navigation')[0].nextHopProtocol,
    bodies.join('') === 'hello'.repeat(20), echo === upload, error].join(' ');
})();</script>)";

/// Exchanges messages over a WebSocket, and sends the outcome to the server.
constexpr std::string_view socket_page = R"(<!DOCTYPE html><script>(async () => {
  const report = text => fetch('/result', {method: 'POST', body: text});
  const url = location.origin.replace('http', 'ws') + '/socket';
  const socket = new WebSocket(url, ['v2', 'v1.chat']);
  socket.binaryType = 'arraybuffer';
  socket.onclose = event => report('closed ' + event.code);
  const next = () => new Promise(resolve => { socket.onmessage = event => resolve(event.data); });
  const first = await next();
  let same = true;
  for (const size of [0, 1, 125, 126, 65535, 65536, 300000]) {
    const text = '\u00fc'.repeat(size / 2) + 'x'.repeat(size % 2);
    socket.send(text);
    same = same && await next() === text;
    socket.send(new Uint8Array(size).fill(7));
    const bytes = new Uint8Array(await next());
    same = same && bytes.length === size && bytes.every(byte => byte === 7);
  }
  socket.close(4001, 'done');
  const end = await new Promise(resolve => { socket.onclose = resolve; });
  report([first, socket.protocol, socket.extensions, same, end.code, end.wasClean].join(' '));
})();</script>)";

/// What a page has sent to "/result". The server runs on another thread.
class PageResult {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};
PageResult page_result;

/// First tells the protocol of the request, which only HTTP/2 has.
Task<> echo(http::WebSocket& socket, Request& request) {
  const Result<> told = co_await socket.send_text("protocol=" + request.head().protocol);
  while (told) {
    Result<http::WebSocketMessage> message = co_await socket.receive();
    if (!message) co_return;
    const Result<> sent = co_await socket.send(std::move(*message));
    if (!sent) co_return;
  }
}

http::Handler echo_handler() {
  http::WebSocketOptions options;
  options.subprotocols = {"v1.chat"};
  options.compression.emplace();
  return http::serve_websocket(&echo, std::move(options));
}

Task<> sleep_until_cancelled() { static_cast<void>(co_await sleep_for(24h)); }

/// Responses that have more than a body. Returns false for other paths.
Task<bool> answer_specially(Request& request, Response& response) {
  const std::string_view path = request.path();
  if (path == "/early") {
    http::Fields links;
    links.add("Link", "</style.css>; rel=preload");
    static_cast<void>(co_await response.send_interim(http::Status::early_hints, std::move(links)));
    response.send("late");
  } else if (path == "/wait") {
    co_await request.while_connected(sleep_until_cancelled());
    ++cancelled;
  } else if (path == "/cancelled") {
    response.send(std::to_string(cancelled));
  } else if (path == "/page" || path == "/sockets") {
    response.headers().set("Content-Type", "text/html");
    response.send(path == "/page" ? page : socket_page);
  } else if (path == "/result") {
    const auto text = co_await request.body().read_all();
    page_result.set(text ? text->to_string() : text.error().message());
    response.send("");
  } else if (path == "/socket") {
    static const http::Handler handler = echo_handler();
    co_await handler.run(request, response);
  } else if (path == "/fields") {
    for (const auto& field : request.headers())
      if (field.name.starts_with("x-")) response.headers().add(field.name, field.value);
    response.send("");
  } else {
    co_return false;
  }
  co_return true;
}

Task<> answer(Request& request, Response& response) {
  const bool is_answered = co_await answer_specially(request, response);
  if (is_answered) co_return;
  if (request.path() == "/version")
    co_return static_cast<void>(
        response.send(request.head().version == http::Version::http_2 ? "2" : "1"));
  if (request.path() == "/large")
    co_return static_cast<void>(response.send(std::string(1'000'000, 'x')));
  if (request.path() == "/slow") static_cast<void>(co_await sleep_for(5ms));
  auto body = co_await request.body().read_all(std::size_t{16} * 1024 * 1024);
  if (!body) co_return;
  if (body->empty()) co_return static_cast<void>(response.send("hello"));
  const auto written = co_await response.write(std::move(*body));
  if (written) static_cast<void>(response.end(request.body().trailers()));
}

/// Passes bytes on until the end of the stream.
Task<> pass_on(Stream& from, Stream& to) {
  Buffer bytes;
  for (;;) {
    const auto got = co_await from.read(bytes);
    if (got && *got == 0) break;
    if (got) {
      const auto written = co_await to.write(bytes);
      if (written) continue;
    }
    from.close();
    to.close();
    co_return;
  }
  static_cast<void>(co_await to.shutdown_write());
}

/// Connects a client without TLS to a server with TLS.
Task<> encrypt(TcpStream client, std::uint16_t port, tls::ClientContext context) {
  ConnectOptions options(std::move(context));
  auto connected = co_await connect("localhost", port, std::move(options));
  EXPECT_TRUE(connected) << connected.error().message();
  if (!connected) co_return;
  ConnectedStream server = std::move(*connected);
  co_await when_all(pass_on(client, server), pass_on(server, client));
}

class Http2Peers : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    http::ServerOptions options;
    if (GetParam()) {
      tls::ServerOptions tls;
      tls.alpn = {"h2", "http/1.1"};
      tls.identities = {Contexts::localhost().identity()};
      options.listen.tls = or_throw(tls::ServerContext::create(std::move(tls)));
    }
    server_.emplace(or_throw(
        http::ServerGroup::listen(group_, Endpoint::loopback_v4(0), answer, std::move(options))));
  }

  static bool is_installed(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
  }
  [[nodiscard]] std::string port() const { return std::to_string(server_->endpoint().port()); }
  [[nodiscard]] std::string url(const std::string& path) const {
    return (GetParam() ? "https://localhost:" : "http://localhost:") + port() + path;
  }
  /// Arguments that make curl speak HTTP/2.
  [[nodiscard]] static std::string http_2() {
    return GetParam() ? "--insecure --http2 " : "--http2-prior-knowledge ";
  }
  /// What a program prints.
  static std::string output_of(const std::string& command) {
    std::string text;
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    std::array<char, 4096> bytes;
    while (const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), pipe))
      text.append(bytes.data(), got);
    ::pclose(pipe);
    return text;
  }

  const std::string folder_ = std::filesystem::path(__FILE__).parent_path();
  LoopGroup group_{{.threads = 1}};
  std::optional<http::ServerGroup> server_;
};

/// Browsers, and Go before 1.24, have HTTP/2 only over TLS.
class Http2TlsPeers : public Http2Peers {};

INSTANTIATE_TEST_SUITE_P(Clear, Http2Peers, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, Http2Peers, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Tls, Http2TlsPeers, testing::Values(true));

TEST_P(Http2Peers, curl_chooses_http_2) {
  if (!is_installed("curl")) GTEST_SKIP() << "curl is not installed";
  EXPECT_EQ(curl(http_2() + url("/version")), "2");
  EXPECT_EQ(curl("--insecure --http1.1 " + url("/version")), "1");
  EXPECT_EQ(curl(http_2() + "-I -o /dev/null -w '%{http_code}' " + url("/large")), "200");
}

TEST_P(Http2Peers, curl_uploads_and_downloads) {
  if (!is_installed("curl")) GTEST_SKIP() << "curl is not installed";
  const test::TemporaryFolder folder;
  std::string content;
  while (content.size() < 3'000'000) content += std::to_string(content.size()) + " ";
  std::ofstream(folder.path() + "/sent", std::ios::binary) << content;
  EXPECT_EQ(curl(http_2() + "--data-binary @" + folder.path() + "/sent " + url("/")), content);
  EXPECT_EQ(curl(http_2() + "-o /dev/null -w '%{size_download}' " + url("/large")), "1000000");
}

TEST_P(Http2Peers, h2load_gets_every_response) {
  if (!is_installed("h2load")) GTEST_SKIP() << "h2load is not installed";
  for (const std::string path : {"/", "/slow", "/large"}) {
    const std::string printed = output_of("h2load -n 300 -c 3 -m 50 " + url(path));
    EXPECT_NE(printed.find("300 succeeded, 0 failed, 0 errored"), std::string::npos) << printed;
  }
}

TEST_P(Http2Peers, nghttp_gets_a_page) {
  if (!is_installed("nghttp")) GTEST_SKIP() << "nghttp is not installed";
  EXPECT_EQ(output_of("nghttp --no-verify-peer " + url("/")), "hello");
}

TEST_P(Http2Peers, nghttp_sends_and_receives_trailers) {
  if (!is_installed("nghttp")) GTEST_SKIP() << "nghttp is not installed";
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/sent";
  std::ofstream(file) << std::string(200'000, 'x');
  EXPECT_EQ(output_of("nghttp --no-verify-peer -d " + file + ' ' + url("/")),
            std::string(200'000, 'x'));
  const std::string printed =
      output_of("nghttp --no-verify-peer -v --trailer 'x-sum: 4' -d " + file + ' ' + url("/"));
  const std::size_t sent = printed.find("x-sum: 4");
  EXPECT_NE(printed.find("x-sum: 4", sent + 1), std::string::npos) << printed.substr(0, 2000);
}

TEST_P(Http2Peers, curl_receives_interim_responses) {
  if (!is_installed("curl")) GTEST_SKIP() << "curl is not installed";
  const std::string printed = curl(http_2() + "-i " + url("/early"));
  EXPECT_TRUE(printed.starts_with("HTTP/2 103")) << printed;
  EXPECT_NE(printed.find("link: </style.css>; rel=preload"), std::string::npos) << printed;
  EXPECT_TRUE(printed.ends_with("late")) << printed;
}

TEST_P(Http2Peers, python_exchanges_what_http_2_has) {
  if (std::system("/usr/bin/python3 -c 'import h2, httpx' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-h2 or python3-httpx is not installed";
  EXPECT_EQ(output_of("/usr/bin/python3 -W ignore -B " + folder_ + "/http2_peer.py " + port() +
                      (GetParam() ? " tls" : " clear")),
            "ok\n");
}

TEST_P(Http2TlsPeers, go_exchanges_what_http_2_has) {
  if (!is_installed("go")) GTEST_SKIP() << "go is not installed";
  const test::TemporaryFolder built;
  // Debian's Go contains a compiled standard library; another one may have to compile it.
  EXPECT_EQ(output_of("go=$(ls /usr/bin/go 2>/dev/null || command -v go) && "
                      "if [ -z \"$HOME$GOCACHE\" ]; then export GOCACHE=" +
                      built.path() + "/cache; fi && GO111MODULE=off $go build -o " + built.path() +
                      "/peer " + folder_ + "/http2_peer.go && " + built.path() + "/peer " + port()),
            "ok\n");
}

TEST_P(Http2TlsPeers, chromium_loads_a_page) {
  if (!is_installed("chromium")) GTEST_SKIP() << "chromium is not installed";
  const test::TemporaryFolder profile;
  const std::string printed = output_of(
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --dump-dom"
      " --ignore-certificate-errors --virtual-time-budget=100000 --user-data-dir=" +
      profile.path() + ' ' + url("/page"));
  EXPECT_NE(printed.find("<body>h2 true true AbortError</body>"), std::string::npos) << printed;
}

Process start_browser(EventLoop& loop, std::vector<std::string> arguments) {
  ProcessOptions options;
  options.arguments = std::move(arguments);
  options.output = Stdio::null();
  options.error_output = Stdio::null();
  options.group = ProcessGroup::new_group;
  options.kill_group_at_exit = true;
  return or_throw(Process::spawn(loop, options));
}

/// Ends the browser when the page has sent its result.
Task<> wait_for_result(Process& browser) {
  for (int i = 0; i < 2000 && page_result.text().empty(); ++i)
    static_cast<void>(co_await sleep_for(50ms));
  browser.terminate(5s);
  static_cast<void>(co_await browser.wait());
}

/// Loads a page in Chromium until the page has sent its result.
Task<> browse_with_chromium(EventLoop& loop, std::string url, std::string profile) {
  Process browser = start_browser(
      loop,
      {"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors",
       "--remote-debugging-port=0",  // Otherwise it ends when the page is loaded.
       "--user-data-dir=" + std::move(profile), std::move(url)});
  co_await wait_for_result(browser);
}

/// Sends a command of WebDriver BiDi (https://w3c.github.io/webdriver-bidi/). Returns the answer.
Task<std::string> command(http::WebSocket& driver, std::string text) {
  const Result<> sent = co_await driver.send_text(text);
  const Result<http::WebSocketMessage> answer = co_await driver.receive();
  EXPECT_TRUE(sent);
  co_return answer ? answer->to_string() : answer.error().message();
}

/// The WebSocket with which Firefox is controlled: its port is in a file of the profile.
Task<Result<http::WebSocket>> open_driver(http::Client& client, std::string profile) {
  constexpr std::string_view name = "\"ws_port\":";
  for (int i = 0; i < 2000; ++i) {
    static_cast<void>(co_await sleep_for(50ms));
    std::ifstream file(profile + "/WebDriverBiDiServer.json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.find(name);
    if (at == std::string::npos || text.find('}') == std::string::npos) continue;
    const int port = std::stoi(text.substr(at + name.size()));
    co_return co_await http::connect_websocket(
        client, "ws://127.0.0.1:" + std::to_string(port) + "/session");
  }
  co_return std::unexpected(system_error(ETIMEDOUT));
}

/// The same with Firefox, which accepts the certificate only if a driver says so.
Task<> browse_with_firefox(EventLoop& loop, std::string url, std::string profile) {
  Process browser = start_browser(loop, {"firefox-esr", "--headless", "--no-remote", "--profile",
                                         profile, "--remote-debugging-port=0"});
  http::Client client(loop);
  Result<http::WebSocket> opened = co_await open_driver(client, std::move(profile));
  EXPECT_TRUE(opened) << opened.error().message();
  if (opened) {
    http::WebSocket driver = std::move(*opened);
    std::string answer =
        co_await command(driver, R"({"id":1,"method":"session.new","params":{"capabilities":)"
                                 R"({"alwaysMatch":{"acceptInsecureCerts":true}}}})");
    EXPECT_NE(answer.find("\"success\""), std::string::npos) << answer;
    answer = co_await command(
        driver, R"({"id":2,"method":"browsingContext.create","params":{"type":"tab"}})");
    constexpr std::string_view name = "\"context\":\"";
    const std::size_t at = answer.find(name);
    EXPECT_NE(at, std::string::npos) << answer;
    if (at != std::string::npos) {
      const std::size_t begin = at + name.size();
      const std::string context = answer.substr(begin, answer.find('"', begin) - begin);
      answer = co_await command(
          driver, R"({"id":3,"method":"browsingContext.navigate","params":{"context":")" + context +
                      R"(","url":")" + url + "\"}}");
      EXPECT_NE(answer.find("\"success\""), std::string::npos) << answer;
      co_return co_await wait_for_result(browser);
    }
  }
  browser.terminate(5s);
  static_cast<void>(co_await browser.wait());
}

/// Over HTTP/2 with TLS, by extended CONNECT (RFC 8441), and over HTTP/1.1 in clear. The page sends
/// its result, because virtual time, with which --dump-dom waits, does not wait for a WebSocket.
void open_websocket(auto browse, const std::string& url, bool is_http_2) {
  page_result.set("");
  const test::TemporaryFolder profile;
  EventLoop loop;
  spawn(loop, browse(loop, url, profile.path()));
  loop.run();
  const std::string result = page_result.text();
  const std::string protocol = is_http_2 ? "protocol=websocket" : "protocol=";
  EXPECT_TRUE(result.starts_with(protocol + " v1.chat permessage-deflate")) << result;
  EXPECT_TRUE(result.ends_with(" true 4001 true")) << result;
}

TEST_P(Http2Peers, chromium_opens_a_websocket) {
  if (std::getenv("TAMBOUR_TEST_BROWSER") == nullptr)
    GTEST_SKIP() << "TAMBOUR_TEST_BROWSER is not set";
  if (!is_installed("chromium")) GTEST_SKIP() << "chromium is not installed";
  open_websocket(&browse_with_chromium, url("/sockets"), GetParam());
}

/// Firefox is controlled over a WebSocket too, whose server it is.
TEST_P(Http2Peers, firefox_opens_a_websocket) {
  if (std::getenv("TAMBOUR_TEST_BROWSER") == nullptr)
    GTEST_SKIP() << "TAMBOUR_TEST_BROWSER is not set";
  if (!is_installed("firefox-esr")) GTEST_SKIP() << "firefox-esr is not installed";
  open_websocket(&browse_with_firefox, url("/sockets"), GetParam());
}

/// In clear, the port speaks HTTP/1 too: a connection that begins with neither is answered with 400
/// of HTTP/1, which h2spec does not take for an end of the connection.
TEST_P(Http2Peers, h2spec_finds_no_violation) {
  if (!is_installed("h2spec")) GTEST_SKIP() << "h2spec is not installed: see tools/bootstrap";
  const std::string printed =
      output_of("h2spec -h localhost -p " + port() + " -o 5" + (GetParam() ? " -t -k" : ""));
  const std::string result = GetParam() ? "145 tests, 145 passed, 0 skipped, 0 failed"
                                        : "145 tests, 144 passed, 0 skipped, 1 failed";
  EXPECT_NE(printed.find(result), std::string::npos) << printed;
  const bool has_failed_preface =
      printed.find("\xC3\x97 2: Sends invalid connection preface") != std::string::npos;
  EXPECT_NE(has_failed_preface, GetParam()) << printed;
}

/// httpwg does not speak TLS: a proxy encrypts what it sends.
TEST_P(Http2Peers, httpwg_finds_no_violation) {
  if (!is_installed("httpwg")) GTEST_SKIP() << "httpwg is not installed: see tools/bootstrap";
  if (tambour::detail::base::seccomp_filter_is_installed()) GTEST_SKIP() << "httpwg needs io_uring";
  LoopGroup group({.threads = 1});
  tls::ClientOptions options;
  options.alpn = {"h2"};
  const Contexts contexts(tls::ServerOptions(), std::move(options));
  auto proxy = or_throw(TcpServerGroup::listen(group, Endpoint::loopback_v4(0)));
  proxy.serve([port = server_->endpoint().port(), context = contexts.client](TcpStream client) {
    return encrypt(std::move(client), port, context);
  });
  const std::uint16_t port = GetParam() ? proxy.endpoint().port() : server_->endpoint().port();
  // The counts are coloured.
  const std::string printed = output_of(
      "httpwg --connect-timeout 20000 --frame-timeout 20000 -a 127.0.0.1:" + std::to_string(port) +
      " 2>&1 | sed 's/\\x1b\\[[0-9;]*m//g'");
  EXPECT_NE(printed.find("Passed 107/107 tests"), std::string::npos) << printed;
}

}  // namespace
}  // namespace tambour::http2_peers_test
