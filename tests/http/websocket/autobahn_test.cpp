// The conformance suite Autobahn (wstest), as a client of our server and as a server of our client.
// tools/bootstrap installs it if there is a Python 2.7. Sections 9 (speed), 12 and 13 (compression)
// take minutes; they run if TAMBOUR_TEST_AUTOBAHN is "all", and a value like "9.*" chooses cases.
// With any value, for example "short", the cases run over TLS and HTTP/2 too, which wstest does not
// speak: a bridge passes the frames on, without reading them.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/websocket/serving.h"
#include "http_message/ws/handshake.h"
#include "support/temporary_folder.h"
#include "tls/support/certificates.h"

namespace tambour::autobahn_test {
namespace {

using namespace std::chrono_literals;
using http::WebSocket;
using http::WebSocketMessage;

http::WebSocketOptions options() {
  http::WebSocketOptions options;
  options.compression.emplace();
  options.message_bytes_max = std::uint64_t{32} * 1024 * 1024;
  options.frame_bytes_max = options.message_bytes_max;
  options.fragments_max = 1'000'000;  // Section 9.3 divides 4 MiB into pieces of 64 bytes.
  options.accepts_any_origin = true;
  return options;
}

/// What carries the WebSockets of the library.
enum class Carrier : std::uint8_t { clear, tls, http_2 };

const char* chosen() { return std::getenv("TAMBOUR_TEST_AUTOBAHN"); }
bool tests_all() { return chosen() != nullptr && std::string_view(chosen()) == "all"; }
/// Empty: all, or those of the sections that do not take minutes.
std::string chosen_cases() {
  const std::string_view text = chosen() != nullptr ? chosen() : "";
  return std::string(!text.empty() && text[0] >= '0' && text[0] <= '9' ? text : "");
}

/// Passes bytes on until the end of the stream.
Task<> pass_on(ByteStream& from, ByteStream& to) {
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

/// Copies fields of the opening handshake, whose names follow "Sec-WebSocket-".
void copy_fields(const http::Fields& from, http::Fields& to,
                 std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const std::string whole = "Sec-WebSocket-" + std::string(name);
    const std::string value = from.joined(whole);
    if (!value.empty()) or_throw(to.set(whole, value));
  }
}

/// A server that passes the bytes of WebSockets on to another one.
class Bridge {
 public:
  Bridge(EventLoop& loop, std::string target, bool is_target_http_2, http::ClientOptions client,
         http::ServerOptions server = {})
      : target_(std::move(target)),
        is_target_http_2_(is_target_http_2),
        client_(loop, std::move(client)),
        server_(or_throw(http::Server::listen(
            loop, Endpoint::loopback_v4(0),
            [this](http::Request& request, http::Response& response) {
              return serve(request, response);
            },
            std::move(server)))) {}

  [[nodiscard]] Endpoint endpoint() const { return server_.endpoint(); }

 private:
  Task<Result<http::UpgradedResponse>> open(const http::Request& request) {
    http::ClientRequest to(target_ + request.head().target);
    copy_fields(request.headers(), to.fields, {"Version", "Extensions", "Protocol"});
    if (is_target_http_2_) co_return co_await client_.extended_connect(std::move(to), "websocket");
    or_throw(to.fields.set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="));
    co_return co_await client_.upgrade(std::move(to), "websocket");
  }

  Task<> serve(http::Request& request, http::Response& response) {
    Result<http::UpgradedResponse> opened = co_await open(request);
    if (!opened || !opened->stream.is_open())
      co_return static_cast<void>(response.send_error(http::Status::bad_gateway));
    copy_fields(opened->response.headers(), response.headers(), {"Extensions", "Protocol"});
    if (request.head().protocol.empty()) {
      const std::string key = request.headers().joined("Sec-WebSocket-Key");
      or_throw(response.headers().set("Upgrade", "websocket"));
      or_throw(response.headers().set("Sec-WebSocket-Accept", http::detail::ws::accept_for(key)));
    }
    Result<ByteStream> stream = co_await response.upgrade();
    if (!stream) co_return;
    ByteStream& upstream = opened->stream;
    co_await when_all(pass_on(*stream, upstream), pass_on(upstream, *stream));
  }

  std::string target_;
  bool is_target_http_2_;
  http::Client client_;
  http::Server server_;
};

class WebSocketAutobahn : public testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override {
    if (GetParam() != Carrier::clear && chosen() == nullptr)
      GTEST_SKIP() << "TAMBOUR_TEST_AUTOBAHN is not set";
    if (std::system("command -v wstest >/dev/null") != 0)
      GTEST_SKIP() << "wstest is not installed: tools/bootstrap installs it";
  }

  /// For the library's end, or the side of the bridge that it sees.
  [[nodiscard]] http::ServerOptions server_options() const {
    http::ServerOptions options;
    if (GetParam() == Carrier::tls) options.listen.tls = contexts_.server;
    return options;
  }
  [[nodiscard]] http::ClientOptions client_options() const {
    http::ClientOptions options;
    if (GetParam() == Carrier::tls) options.connect.tls = contexts_.client;
    if (GetParam() == Carrier::http_2) options.version = http::VersionChoice::http_2;
    return options;
  }
  [[nodiscard]] static std::string url_of(const Endpoint& endpoint, std::string_view scheme) {
    return std::string(scheme) + (GetParam() == Carrier::tls ? "s://" : "://") +
           endpoint.to_string();
  }

  /// Starts wstest with a specification, which names the cases.
  Process start(const std::string& mode, const std::string& member) {
    std::ofstream(folder_.path() + "/spec.json")
        << "{\"outdir\": \"" << folder_.path() << "/reports\", " << member << ", \"cases\": [\""
        << (chosen_cases().empty() ? "*" : chosen_cases()) << "\"], \"exclude-cases\": ["
        << (tests_all() || !chosen_cases().empty() ? "" : R"("9.*", "12.*", "13.*")")
        << "], \"exclude-agent-cases\": {}}";
    ProcessOptions process;
    // Without "-u 0", a server of pages listens on the port 8080, which two tests cannot share.
    process.arguments = {"wstest", "-m", mode, "-u", "0", "-s", folder_.path() + "/spec.json"};
    process.output = Stdio::null();
    process.error_output = Stdio::null();
    return or_throw(Process::spawn(loop_, process));
  }
  /// What the report of a case says about its result, for example that a time limit has expired.
  [[nodiscard]] std::string reason_of(std::string name) const {
    std::replace(name.begin(), name.end(), '.', '_');
    std::ifstream file(folder_.path() + "/reports/tambour_case_" + name + ".json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.find("\"result\": \"");
    return at == std::string::npos ? "no report" : text.substr(at, text.find('\n', at) - at);
  }
  /// The report has a line `"behavior": "OK",` and one `"behaviorClose"` for each case.
  void check_report() {
    std::ifstream file(folder_.path() + "/reports/index.json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string name;
    int cases = 0;
    for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos;) {
      const std::size_t end = text.find('"', at + 1);
      if (end == std::string::npos) break;
      const std::string word = text.substr(at + 1, end - at - 1);
      at = end + 1;
      if (!word.empty() && word[0] >= '0' && word[0] <= '9') name = word;
      if (word != "behavior" && word != "behaviorClose") continue;
      const std::size_t begin = text.find('"', at) + 1;
      const std::string result = text.substr(begin, text.find('"', begin) - begin);
      EXPECT_TRUE(result == "OK" || result == "INFORMATIONAL" || result == "NON-STRICT")
          << name << " " << word << " " << result << " " << reason_of(name);
      at = text.find('"', begin) + 1;
      if (word == "behavior") ++cases;
      if (result != "OK") others_.push_back(name + " " + word + " " + result);
    }
    EXPECT_GT(cases, chosen_cases().empty() ? 200 : 0) << text.substr(0, 1000);
    std::string all;
    for (const std::string& other : others_) all += other + "\n";
    RecordProperty("cases", cases);
    RecordProperty("others", all);
  }

  test::TemporaryFolder folder_;
  EventLoop loop_;
  test::Contexts contexts_;
  std::vector<std::string> others_;
};

std::string name_of(const testing::TestParamInfo<Carrier>& entry) {
  constexpr std::array names = {"clear", "tls", "http_2"};
  return names[static_cast<std::size_t>(entry.param)];
}

INSTANTIATE_TEST_SUITE_P(All, WebSocketAutobahn,
                         testing::Values(Carrier::clear, Carrier::tls, Carrier::http_2), name_of);

TEST_P(WebSocketAutobahn, server_passes) {
  auto server = or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0),
                                              http::serve_websocket(&test::echo, options()),
                                              server_options()));
  std::optional<Bridge> bridge;
  if (GetParam() != Carrier::clear)
    bridge.emplace(loop_, url_of(server.endpoint(), "http"), GetParam() == Carrier::http_2,
                   client_options());
  const Endpoint endpoint = bridge ? bridge->endpoint() : server.endpoint();
  const std::string url = "ws://" + endpoint.to_string();
  Process running =
      start("fuzzingclient", R"("servers": [{"agent": "Tambour", "url": ")" + url + R"("}])");
  spawn(loop_, [&]() -> Task<> {
    static_cast<void>(co_await running.wait());
    loop_.stop();
  });
  loop_.run();
  check_report();
}

/// Sends messages back until the connection ends.
Task<> answer(WebSocket socket) {
  for (;;) {
    Result<WebSocketMessage> message = co_await socket.receive();
    if (!message) break;
    const Result<> sent = co_await socket.send(std::move(*message));
    if (!sent) break;
  }
  if (socket.is_open()) static_cast<void>(co_await socket.close());
}

/// Tries until wstest listens, or has ended.
Task<int> count_cases(http::Client& client, std::string url, Process& running) {
  while (running.is_running()) {
    Result<WebSocket> opened = co_await http::connect_websocket(client, url + "/getCaseCount");
    if (opened) {
      WebSocket socket = std::move(*opened);
      const Result<WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message);
      if (message) co_return std::stoi(message->to_string());
    }
    static_cast<void>(co_await sleep_for(100ms));
  }
  co_return 0;
}

TEST_P(WebSocketAutobahn, client_passes) {
  std::string url;
  {  // A free port.
    auto server =
        or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0), [](auto&, auto&) {}));
    url = "ws://" + server.endpoint().to_string();
  }
  Process running = start("fuzzingserver", "\"url\": \"" + url + "\"");
  std::optional<Bridge> bridge;
  if (GetParam() != Carrier::clear) {
    bridge.emplace(loop_, "http" + url.substr(2), false, http::ClientOptions(), server_options());
    url = url_of(bridge->endpoint(), "ws");
  }
  spawn(loop_, [&]() -> Task<> {
    http::Client client(loop_, client_options());
    const int cases = co_await count_cases(client, url, running);
    for (int i = 1; i <= cases; ++i) {
      const std::string path = "/runCase?agent=Tambour&case=" + std::to_string(i);
      Result<WebSocket> opened = co_await http::connect_websocket(client, url + path, options());
      EXPECT_TRUE(opened);
      if (opened) co_await answer(std::move(*opened));
    }
    Result<WebSocket> opened =
        co_await http::connect_websocket(client, url + "/updateReports?agent=Tambour");
    EXPECT_TRUE(opened);
    if (opened) co_await answer(std::move(*opened));
    static_cast<void>(running.send_signal(SIGTERM));
    static_cast<void>(co_await running.wait());
    loop_.stop();
  });
  loop_.run();
  check_report();
}

}  // namespace
}  // namespace tambour::autobahn_test
