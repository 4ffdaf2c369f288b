// The HTTP client over HTTP/2 against servers that others have written: nginx, nghttpd, h2o, and
// Go's net/http. A server that is not installed is skipped.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/nginx_server.h"
#include "support/network.h"
#include "support/temporary_folder.h"
#include "tls/support/certificates.h"

namespace tambour::http2_servers_test {
namespace {

using http::Client;
using http::ClientRequest;
using http::Method;
using namespace std::chrono_literals;

constexpr std::size_t large_bytes = 8'000'000;

std::uint16_t free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(fd.get(), generic, size), 0);
  EXPECT_EQ(::getsockname(fd.get(), generic, &size), 0);
  return ntohs(address.sin_port);
}

/// A body in two pieces, and a trailer.
class Pieces final : public http::BodySource {
 public:
  Pieces() { or_throw(trailers_.add("X-Sum", "7")); }
  Task<Result<>> read(Buffer& into) override {
    if (left_-- > 0) into.append(std::string(50'000, 'p'));
    co_return {};
  }
  const http::Fields& trailers() const noexcept override { return trailers_; }

 private:
  int left_ = 2;
  http::Fields trailers_;
};

Task<std::string> text_of(Client& client, ClientRequest request) {
  auto response = co_await client.send(std::move(request));
  if (!response) co_return "error: " + response.error().message();
  if (response->head().version != http::Version::http_2) co_return "not over HTTP/2";
  const auto text = co_await response->read_text();
  co_return text ? *text : "error in body: " + text.error().message();
}

/// Starts a server of `folder_`/files, with certificates in `folder_`.
class Servers : public testing::Test {
 protected:
  Servers() {
    std::filesystem::create_directories(folder_.path() + "/files/put");
    std::ofstream(folder_.path() + "/files/small") << "small";
    std::ofstream(folder_.path() + "/files/large") << std::string(large_bytes, 'l');
    std::ofstream(folder_.path() + "/cert.pem") << test::Contexts::localhost().certificate;
    std::ofstream(folder_.path() + "/key.pem") << test::Contexts::localhost().key;
  }

  void start_nginx(bool is_secure, const std::string& directives = "") {
    if (!test::has_program("nginx")) GTEST_SKIP() << "nginx is not installed";
    nginx_.emplace(loop_, folder_.path(), is_secure ? "ssl http2" : "http2",
                   "ssl_certificate " + folder_.path() + "/cert.pem; ssl_certificate_key " +
                       folder_.path() + "/key.pem;" + directives);
    set_url(is_secure, nginx_->port());
  }
  void start_nghttpd(bool is_secure) {
    if (!test::has_program("nghttpd")) GTEST_SKIP() << "nghttpd is not installed";
    const std::uint16_t port = free_port();
    start_program("nghttpd --echo-upload --trailer 'x-sum: 7' -d files -a 127.0.0.1 " +
                  (is_secure ? std::to_string(port) + " key.pem cert.pem"
                             : "--no-tls " + std::to_string(port)));
    set_url(is_secure, port);
  }
  void start_h2o(bool is_secure) {
    if (!test::has_program("h2o")) GTEST_SKIP() << "h2o is not installed";
    const std::uint16_t port = free_port();
    std::ofstream configuration(folder_.path() + "/h2o.conf");
    configuration << "num-threads: 1\nlisten:\n  host: 127.0.0.1\n  port: " << port << '\n';
    if (is_secure)
      configuration << "  ssl:\n    certificate-file: cert.pem\n    key-file: key.pem\n";
    // Otherwise h2o changes to a user that cannot read the folder.
    if (::geteuid() == 0) configuration << "user: root\n";
    configuration << "hosts:\n  default:\n    paths:\n      \"/\":\n        file.dir: files\n";
    configuration.close();
    start_program("h2o -c h2o.conf");
    set_url(is_secure, port);
  }
  void start_program(const std::string& command) {
    program_ = or_throw(Process::spawn(loop_, {.arguments = {"/bin/sh", "-c", "exec " + command},
                                               .environment = environment_,
                                               .working_directory = folder_.path(),
                                               .input = Stdio::null(),
                                               .output = Stdio::null(),
                                               .group = ProcessGroup::new_group,
                                               .timeout = 5min}));
  }
  void set_url(bool is_secure, std::uint16_t port) {
    url_ = (is_secure ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(port);
  }
  void TearDown() override {
    if (program_) program_->terminate(Duration::zero());
  }

  [[nodiscard]] std::unique_ptr<Client> make_client() {
    tls::ClientOptions trusting;
    trusting.authorities = test::Contexts::authority().pem();
    trusting.alpn = {"h2", "http/1.1"};
    trusting.handshake_timeout = 1min;
    http::ClientOptions options;
    options.timeout = 1min;
    options.connect.tls = or_throw(tls::ClientContext::create(std::move(trusting)));
    options.version = http::VersionChoice::http_2;
    // Until the server listens.
    options.retry = {.attempts_max = 1200, .delay = 50ms, .delay_max = 50ms};
    return std::make_unique<Client>(loop_, std::move(options));
  }
  void run(Task<> task) {
    bool has_ended = false;
    const auto note = [](Task<> inner, bool& into) -> Task<> {
      co_await std::move(inner);
      into = true;
    };
    spawn(loop_, note(std::move(task), has_ended));
    while (!has_ended) loop_.run_once();
  }
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    const auto ask = [](Client& http_client, ClientRequest of, std::string& into) -> Task<> {
      into = co_await text_of(http_client, std::move(of));
    };
    run(ask(client, std::move(request), text));
    return text;
  }

  EventLoop loop_;
  test::TemporaryFolder folder_;
  std::vector<std::string> environment_ = current_environment();
  std::optional<test::NginxServer> nginx_;
  std::optional<Process> program_;
  std::string url_;
};

/// Gets all of `texts` at the same time.
Task<> get_together(EventLoop& loop, Client& client, std::string url,
                    std::vector<std::string>& texts) {
  const auto get = [](Client& http_client, std::string from, std::string& into) -> Task<> {
    into = co_await text_of(http_client, ClientRequest(std::move(from)));
  };
  TaskScope scope(loop);
  for (std::string& text : texts) scope.spawn(get(client, url, text));
  co_await scope.join();
}

/// Destroys a response whose body is only a part of what the server sends.
Task<> cancel_download(Client& client, std::string url) {
  auto response = co_await client.get(std::move(url));
  EXPECT_TRUE(response);
  if (!response) co_return;
  Buffer part;
  const auto got = co_await response->read(part);
  EXPECT_TRUE(got && *got > 0);
}

struct Peer {
  std::string name;
  bool is_secure;
};

class Http2Servers : public Servers, public testing::WithParamInterface<Peer> {
 protected:
  void SetUp() override {
    if (GetParam().name == "nginx") start_nginx(GetParam().is_secure);
    if (GetParam().name == "nghttpd") start_nghttpd(GetParam().is_secure);
    if (GetParam().name == "h2o") start_h2o(GetParam().is_secure);
  }
};

INSTANTIATE_TEST_SUITE_P(Peers, Http2Servers,
                         testing::Values(Peer{"nginx", false}, Peer{"nginx", true},
                                         Peer{"nghttpd", false}, Peer{"nghttpd", true},
                                         Peer{"h2o", false}, Peer{"h2o", true}),
                         [](const auto& peer) {
                           return peer.param.name + (peer.param.is_secure ? "_tls" : "_clear");
                         });

TEST_P(Http2Servers, requests_uploads_and_cancellation) {
  const std::unique_ptr<Client> client = make_client();
  EXPECT_EQ(got(*client, ClientRequest(url_ + "/small")), "small");
  std::vector<std::string> texts(30);
  run(get_together(loop_, *client, url_ + "/small", texts));
  for (const std::string& text : texts) EXPECT_EQ(text, "small");
  EXPECT_EQ(got(*client, ClientRequest(url_ + "/large")), std::string(large_bytes, 'l'));
  run(cancel_download(*client, url_ + "/large"));
  EXPECT_EQ(client->http_2_stats().streams_cancelled, 1U);
  const std::string content(3'000'000, 'u');
  const std::string answer =
      got(*client, ClientRequest(Method::put, url_ + "/put/x", Buffer(content)));
  if (GetParam().name == "nginx") {
    EXPECT_EQ(answer, "");
    EXPECT_EQ(got(*client, ClientRequest(url_ + "/put/x")), content);
  } else {
    EXPECT_EQ(answer, GetParam().name == "h2o" ? "not found" : content);
  }
  EXPECT_EQ(client->http_2_stats().connections, 1U);
  EXPECT_EQ(client->http_2_stats().violations, 0U);
}

TEST_F(Servers, nghttpd_sends_trailers) {
  start_nghttpd(false);
  if (IsSkipped()) return;
  const std::unique_ptr<Client> client = make_client();
  std::string sum;
  run([](Client& http_client, std::string url, std::string& into) -> Task<> {
    auto response = co_await http_client.get(std::move(url));
    if (!response) co_return;
    const auto text = co_await response->read_text();
    EXPECT_EQ(text.value_or("error"), "small");
    into = response->trailers().get("X-Sum").value_or("none");
  }(*client, url_ + "/small", sum));
  EXPECT_EQ(sum, "7");
}

/// nginx sends GOAWAY with the last request that it allows on a connection; it has received others.
TEST_F(Servers, nginx_ends_connections_while_requests_are_open) {
  start_nginx(true, "keepalive_requests 7;");
  if (IsSkipped()) return;
  const std::unique_ptr<Client> client = make_client();
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> texts(20);
    run(get_together(loop_, *client, url_ + "/small", texts));
    for (const std::string& text : texts) EXPECT_EQ(text, "small") << round;
  }
  EXPECT_GT(client->http_2_stats().goaways, 0U);
  EXPECT_GT(client->http_2_stats().connections, 5U);
}

/// Its standard library may have to be compiled, so these tests run with TAMBOUR_TEST_GO only.
class Http2ServersOfGo : public Servers {
 protected:
  void SetUp() override {
    if (::getenv("TAMBOUR_TEST_GO") == nullptr) GTEST_SKIP() << "TAMBOUR_TEST_GO is not set";
    if (!test::has_program("go")) GTEST_SKIP() << "go is not installed";
    static const test::TemporaryFolder built;
    static const std::string program = built.path() + "/http2_server";
    static const int status = std::system(
        ("cd " + built.path() + " && export GO111MODULE=off && if [ -z \"$HOME$GOCACHE\" ]; then" +
         " export GOCACHE=" + built.path() + "/cache; fi && go build -o " + program + " " +
         TAMBOUR_TLS_PEERS "/http2_server.go")
            .c_str());
    ASSERT_EQ(status, 0);
    const std::uint16_t port = free_port();
    environment_.emplace_back("GODEBUG=http2xconnect=1");
    start_program(program + " " + std::to_string(port));
    set_url(true, port);
    client_ = make_client();
    ASSERT_EQ(got(*client_, ClientRequest(url_ + "/small")), "small");
  }

  std::unique_ptr<Client> client_;
};

TEST_F(Http2ServersOfGo, requests_uploads_and_trailers) {
  std::vector<std::string> texts(30);
  run(get_together(loop_, *client_, url_ + "/small", texts));
  for (const std::string& text : texts) EXPECT_EQ(text, "small");
  EXPECT_EQ(got(*client_, ClientRequest(url_ + "/large")), std::string(large_bytes, 'l'));
  std::string sum;
  run([](Client& http_client, std::string url, std::string& into) -> Task<> {
    ClientRequest request(Method::post, std::move(url));
    request.source = std::make_unique<Pieces>();
    request.expect_continue = true;
    or_throw(request.fields.set("Trailer", "X-Sum"));  // Go ignores others.
    auto response = co_await http_client.send(std::move(request));
    if (!response) co_return static_cast<void>(into = response.error().message());
    const auto text = co_await response->read_text();
    EXPECT_EQ(text.value_or("error").size(), 100'000U);
    into = response->trailers().get("X-Sum").value_or("none");
  }(*client_, url_ + "/echo", sum));
  EXPECT_EQ(sum, "7");
  EXPECT_EQ(client_->http_2_stats().connections, 1U);
}

TEST_F(Http2ServersOfGo, interim_responses) {
  std::vector<std::string> links;
  ClientRequest request(url_ + "/hints");
  request.on_interim = [&links](const http::ResponseHead& head) {
    links.push_back(head.fields.joined("Link"));
  };
  EXPECT_EQ(got(*client_, std::move(request)), "hints");
  EXPECT_EQ(links, std::vector<std::string>{"</style.css>"});
}

TEST_F(Http2ServersOfGo, either_side_cancels_a_stream) {
  run([](Client& http_client, std::string url) -> Task<> {
    const auto response = co_await http_client.get(std::move(url));
    EXPECT_TRUE(response);
  }(*client_, url_ + "/wait"));
  EXPECT_EQ(got(*client_, ClientRequest(url_ + "/cancelled")), "1");
  EXPECT_EQ(got(*client_, ClientRequest(url_ + "/abort")),
            "error in body: " + make_error_code(http::ErrorCode::stream_reset).message());
  EXPECT_EQ(client_->http_2_stats().streams_reset, 1U);
  EXPECT_EQ(client_->http_2_stats().connections, 1U);
}

TEST_F(Http2ServersOfGo, a_request_is_completed_while_the_server_shuts_down) {
  EXPECT_EQ(got(*client_, ClientRequest(url_ + "/shutdown")), "last");
  // On a busy machine, GOAWAY may arrive after the response.
  run([](const Client& http_client) -> Task<> {
    for (int i = 0; i < 6'000 && http_client.http_2_stats().goaways == 0; ++i)
      static_cast<void>(co_await sleep_for(10ms));
  }(*client_));
  EXPECT_EQ(client_->http_2_stats().goaways, 1U);
}

TEST_F(Http2ServersOfGo, extended_connect) {
  std::string text;
  run([](Client& http_client, std::string url, std::string& into) -> Task<> {
    auto opened = co_await http_client.extended_connect(ClientRequest(std::move(url)), "echo");
    if (!opened) co_return static_cast<void>(into = opened.error().message());
    const auto sent = co_await opened->stream.write(std::string_view("hello"));
    EXPECT_TRUE(sent);
    const auto ended = co_await opened->stream.shutdown_write();
    EXPECT_TRUE(ended);
    Buffer bytes;
    for (;;) {
      const auto got = co_await opened->stream.read(bytes);
      if (!got || *got == 0) break;
    }
    into = bytes.to_string();
  }(*client_, url_ + "/tunnel", text));
  if (text == make_error_code(http::ErrorCode::no_extended_connect).message())
    GTEST_SKIP() << "this version of Go does not offer it";
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(client_->http_2_stats().connections, 1U);
}

}  // namespace
}  // namespace tambour::http2_servers_test
