// The conformance suite Autobahn (wstest), as a client of our server and as a server of our client.
// tools/bootstrap installs it if there is a Python 2.7. Sections 9 (speed), 12 and 13 (compression)
// take minutes; they run if TAMBOUR_TEST_AUTOBAHN is "all".
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/websocket/serving.h"
#include "support/temporary_folder.h"

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

class WebSocketAutobahn : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v wstest >/dev/null") != 0)
      GTEST_SKIP() << "wstest is not installed: tools/bootstrap installs it";
  }

  /// Starts wstest with a specification, which names the cases.
  Process start(const std::string& mode, const std::string& member) {
    const char* const chosen = std::getenv("TAMBOUR_TEST_AUTOBAHN");
    const bool is_all = chosen != nullptr && std::string_view(chosen) == "all";
    std::ofstream(folder_.path() + "/spec.json")
        << "{\"outdir\": \"" << folder_.path() << "/reports\", " << member
        << ", \"cases\": [\"*\"], \"exclude-cases\": ["
        << (is_all ? "" : R"("9.*", "12.*", "13.*")") << "], \"exclude-agent-cases\": {}}";
    ProcessOptions process;
    process.arguments = {"wstest", "-m", mode, "-s", folder_.path() + "/spec.json"};
    process.output = Stdio::null();
    process.error_output = Stdio::null();
    return or_throw(Process::spawn(loop_, process));
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
          << name << " " << word << " " << result;
      at = text.find('"', begin) + 1;
      if (word == "behavior") ++cases;
      if (result != "OK") others_.push_back(name + " " + word + " " + result);
    }
    EXPECT_GT(cases, 200) << text.substr(0, 1000);
    std::string all;
    for (const std::string& other : others_) all += other + "\n";
    RecordProperty("cases", cases);
    RecordProperty("others", all);
  }

  test::TemporaryFolder folder_;
  EventLoop loop_;
  std::vector<std::string> others_;
};

TEST_F(WebSocketAutobahn, server_passes) {
  auto server = or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0),
                                              http::serve_websocket(&test::echo, options())));
  const std::string url = "ws://" + server.endpoint().to_string();
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

Task<int> count_cases(http::Client& client, std::string url) {
  for (int attempt = 0; attempt < 300; ++attempt) {
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

TEST_F(WebSocketAutobahn, client_passes) {
  std::string url;
  {  // A free port.
    auto server =
        or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0), [](auto&, auto&) {}));
    url = "ws://" + server.endpoint().to_string();
  }
  Process running = start("fuzzingserver", "\"url\": \"" + url + "\"");
  spawn(loop_, [&]() -> Task<> {
    http::Client client(loop_);
    const int cases = co_await count_cases(client, url);
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
