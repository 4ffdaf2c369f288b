// http::Server over HTTP/2 with clients that others have written: curl, nghttp, h2load, and the
// conformance tests of h2spec. A client that is not installed is skipped.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

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

Task<> answer(Request& request, Response& response) {
  if (request.path() == "/version")
    co_return static_cast<void>(
        response.send(request.head().version == http::Version::http_2 ? "2" : "1"));
  if (request.path() == "/large")
    co_return static_cast<void>(response.send(std::string(1'000'000, 'x')));
  if (request.path() == "/slow") static_cast<void>(co_await sleep_for(5ms));
  auto body = co_await request.body().read_all(std::size_t{16} * 1024 * 1024);
  if (!body) co_return;
  if (body->empty()) body->append("hello");
  response.send(std::move(*body));
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

  LoopGroup group_{{.threads = 1}};
  std::optional<http::ServerGroup> server_;
};

INSTANTIATE_TEST_SUITE_P(Clear, Http2Peers, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, Http2Peers, testing::Values(true));

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

}  // namespace
}  // namespace tambour::http2_peers_test
