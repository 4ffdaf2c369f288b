// curl as an oracle: for each of more than a hundred requests, http::Server must answer curl as
// nginx does, and http::Client must get from nginx what curl gets.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/http_requests.h"
#include "http/support/nginx_server.h"
#include "support/network.h"
#include "support/temporary_folder.h"

namespace tambour::curl_test {
namespace {

using namespace std::chrono_literals;
using http::ClientRequest;
using http::ClientResponse;
using http::Request;
using http::Response;
using http::Status;
using test::HttpRequest;

/// The fields that are compared.
constexpr std::array compared = {"content-length", "content-range", "content-type", "last-modified",
                                 "location"};

/// A server's own text has another length, and an upload another time.
bool is_compared(const HttpRequest& request, std::string_view field) {
  if (request.has_own_text) return field == "location";
  if (request.is_coded && field == "content-length") return false;
  return field != "last-modified" || !request.target.starts_with("/put/");
}

void write_file(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
  const timespec time{.tv_sec = 1577836800, .tv_nsec = 0};  // test::modified_text
  const timespec times[] = {time, time};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

void make_files(const std::string& folder) {
  std::string big;
  while (big.size() < 300'000) big += std::to_string(big.size()) + " ";
  big.resize(300'000);
  write_file(folder + "/a.txt", "0123456789");
  write_file(folder + "/empty.html", "");
  write_file(folder + "/big.bin", big);
  write_file(folder + "/text.txt", big.substr(0, 5000));
  write_file(folder + "/sub/index.html", "index");
  write_file(folder + "/name with space", "space");
  std::filesystem::create_directory(folder + "/put");
}

void add_cookies(http::Router& router) {
  router.get("/cookies", [](Request& request, Response& response) {
    static_cast<void>(response.headers().set("Content-Type", "text/plain"));
    std::string all;
    for (const http::Field field : request.headers())
      if (field.name == "Cookie") all.append(all.empty() ? "" : "; ").append(field.value);
    response.send("cookies: " + all);
  });
  const auto set = [&router](const std::string& path, std::vector<std::string> cookies) {
    router.get(path, [cookies](Request&, Response& response) {
      for (const std::string& cooky : cookies)
        static_cast<void>(response.headers().add("Set-Cookie", cooky));
      static_cast<void>(response.headers().set("Location", "/cookies"));
      response.send(Status::found);
    });
  };
  set("/cookie-set", {"a=b; Path=/", "c=d"});
  set("/cookie-path", {"a=b; Path=/cookies", "c=d; Path=/other"});
  set("/cookie-expired", {"a=b; Path=/", "a=b; Path=/; Max-Age=0"});
  set("/cookie-replaced", {"a=b; Path=/", "a=c; Path=/; HttpOnly"});
  set("/cookie-domain", {"a=b; Path=/; Domain=example.org"});
}

/// What nginx is configured to do, on http::Server.
http::Handler web_service(const std::string& folder) {
  http::Router router;
  const auto redirect = [&](const std::string& from, int status, const std::string& to) {
    router.any(from, [status, to](Request&, Response& response) {
      static_cast<void>(response.headers().set("Location", to));
      response.send(Status(status));
    });
  };
  for (const int status : {301, 302, 303, 307, 308})
    redirect("/" + std::to_string(status), status, "/a.txt");
  for (const int status : {307, 308})
    redirect("/" + std::to_string(status) + "-put", status, "/put/redirected");
  redirect("/chain", 302, "/301");
  redirect("/loop", 302, "/loop");
  router.get("/204", [](Request&, Response& response) { response.send(Status::no_content); });
  add_cookies(router);
  http::CompressOptions compressed;
  compressed.codings = {http::Coding::gzip};
  router.use(or_throw(http::compress(compressed)));
  router.get("/{path...}", http::serve_files(folder));
  router.put("/put/{name}", [folder](Request& request, Response& response) -> Task<> {
    auto body = co_await request.body().read_all(std::size_t{4} * 1024 * 1024);
    if (!body) co_return;
    const std::string path = folder + "/put/" + std::string(request.parameter("name"));
    const bool exists = std::filesystem::exists(path);
    std::ofstream(path, std::ios::binary) << body->to_string();
    if (!exists) static_cast<void>(response.headers().set("Location", request.path()));
    response.send(exists ? Status::no_content : Status::created);
  });
  router.get("/put/{name}", [folder](Request& request, Response& response) {
    return http::send_file(request, response,
                           folder + "/put/" + std::string(request.parameter("name")));
  });
  router.delete_("/put/{name}", [folder](Request& request, Response& response) {
    const std::string path = folder + "/put/" + std::string(request.parameter("name"));
    response.send(std::filesystem::remove(path) ? Status::no_content : Status::not_found);
  });
  return std::move(router).handler();
}

std::string replaced(std::string text, std::string_view subject, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(subject, at)) != std::string::npos; at += with.size())
    text.replace(at, subject.size(), with);
  return text;
}

/// Each server chooses the boundary of a multipart body, and thereby its length.
std::string without_boundary(std::string text) {
  constexpr std::string_view name = "boundary=";
  const std::size_t at = text.rfind(name);
  if (at == std::string::npos) return text;
  const std::size_t begin = at + name.size();
  text = replaced(text, text.substr(begin, text.find_first_of(" ]\n", begin) - begin), "BOUNDARY");
  const std::size_t length = text.rfind("content-length=");
  return text.erase(length, text.find(' ', length) - length);
}

/// curl sends later cookies first, and its own field last; RFC 6265bis, section 5.8.3, demands that
/// earlier cookies are first.
std::string with_sorted_cookies(std::string text) {
  constexpr std::string_view begin = "cookies: ";
  if (!text.starts_with(begin)) return text;
  const std::size_t end = text.find('\n');
  std::set<std::string> cookies;
  for (std::size_t at = begin.size(); at < end;) {
    const std::size_t next = std::min(text.find("; ", at), end);
    cookies.insert(text.substr(at, next - at));
    at = next + 2;
  }
  std::string sorted(begin);
  for (const std::string& cooky : cookies) sorted += cooky + "; ";
  return sorted + text.substr(end);
}

/// One of the servers.
struct Origin {
  std::uint16_t port = 0;
  std::string tag{};

  [[nodiscard]] std::string url(const std::string& target) const {
    return "http://127.0.0.1:" + std::to_string(port) + target;
  }
  [[nodiscard]] std::string field(const std::string& text) const {
    return replaced(text, "ETAG", tag);
  }
};

/// A body without a known length.
class Source final : public http::BodySource {
 public:
  explicit Source(std::string_view text) : text_(text) {}
  Task<Result<>> read(Buffer& into) override {
    into.append(std::move(text_));
    text_.clear();
    co_return {};
  }

 private:
  Buffer text_;
};

class CurlOracle : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"curl", "nginx"})
      if (!test::has_program(program)) GTEST_SKIP() << program << " is not installed";
    for (const char* name : {"/own", "/nginx"}) make_files(folder_.path() + name + "/files");
    http::ServerOptions options;
    options.limits.body_bytes_max = std::uint64_t{4} * 1024 * 1024;
    server_.emplace(or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0),
                                                  web_service(folder_.path() + "/own/files"),
                                                  std::move(options))));
    nginx_.emplace(loop_, folder_.path() + "/nginx");
    own_.port = server_->endpoint().port();
    other_.port = nginx_->port();
  }

  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    spawn(loop_, [](Task<T> inner, std::optional<T>& into, EventLoop& loop) -> Task<> {
      into.emplace(co_await std::move(inner));
      loop.stop();
    }(std::move(task), result, loop_));
    loop_.run();
    return std::move(result).value();
  }

  /// Runs curl. Returns its output, and its exit status unless that is zero.
  Task<std::string> run_curl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"curl", "-q", "-s", "--path-as-is", "-g"});
    auto process = or_throw(Process::spawn(loop_, {.arguments = std::move(arguments),
                                                   .working_directory = folder_.path(),
                                                   .input = Stdio::null(),
                                                   .output = Stdio::pipe(),
                                                   .timeout = 1min}));
    Buffer output;
    while (true) {
      const auto got = co_await process.output().read(output);
      if (!got || *got == 0) break;
    }
    const auto ended = co_await process.wait();
    const int code = ended ? ended->code : -1;
    co_return code == 0 ? output.to_string() : "failed with " + std::to_string(code);
  }

  Task<std::string> ask_with_curl(HttpRequest request, Origin origin) {
    std::vector<std::string> arguments;
    const auto add = [&](std::initializer_list<std::string> more) {
      arguments.insert(arguments.end(), more);
    };
    std::string format = "\n[%{http_code}";
    for (const char* name : compared) {
      if (!is_compared(request, name)) continue;
      format.append(" ").append(name).append("=%header{").append(name).append("}");
    }
    if (request.is_coded) format += " coding=%header{content-encoding}";
    if (request.stores_cookies) add({"-b", ""});
    if (!request.more.empty()) format += " connections=%{num_connects}";
    add({"-w", format + "]"});
    const bool is_head = request.method == "HEAD";
    const bool has_body = request.method == "PUT" || !request.body.empty();
    if (has_body) write_file(folder_.path() + "/body", request.body);
    if (is_head) add({"-I"});
    if (has_body && request.method == "PUT") add({"-T", "body"});
    if (has_body && request.method == "POST") add({"--data-binary", "@body"});
    if (!is_head && !has_body && request.method != "GET") add({"-X", request.method});
    if (request.is_chunked) add({"-H", "Transfer-Encoding: chunked"});
    if (request.follows) add({"-L", "--max-redirs", "5"});
    for (const std::string& field : request.fields) add({"-H", origin.field(field)});
    for (const std::string& text : request.curl) add({text});
    request.more.insert(request.more.begin(), request.target);
    for (const std::string& target : request.more) {
      if (is_head || request.has_own_text) add({"-o", "/dev/null"});
      add({origin.url(target)});
    }
    std::string output = co_await run_curl(std::move(arguments));
    co_return with_sorted_cookies(without_boundary(std::move(output)));
  }

  Task<std::string> ask_with_client(http::Client& client, HttpRequest request, Origin origin) {
    ClientRequest sent(http::Method::parse(request.method).value(), origin.url(request.target),
                       Buffer(request.body));
    for (const std::string& entry : request.fields) {
      const std::string field = origin.field(entry);
      const std::size_t colon = field.find(": ");
      sent.expect_continue = sent.expect_continue || field == "Expect: 100-continue";
      static_cast<void>(sent.fields.add(field.substr(0, colon), field.substr(colon + 2)));
    }
    if (request.is_chunked) sent.source = std::make_unique<Source>(request.body);
    if (sent.expect_continue) sent.fields.remove("Expect");
    const std::string coding = request.is_coded ? " coding=" : "";
    auto response = co_await client.send(std::move(sent));
    if (!response) co_return "failed: " + response.error().message();
    auto body = co_await response->read_text();
    if (!body) co_return "failed: " + body.error().message();
    std::string text = request.has_own_text ? "" : *body;
    text += "\n[" + std::to_string(http::code_of(response->status()));
    for (const char* name : compared) {
      if (!is_compared(request, name)) continue;
      text.append(" ").append(name).append("=");
      text.append(response->headers().get(name).value_or(""));
    }
    // The client has decoded the body.
    co_return with_sorted_cookies(without_boundary(text + coding + "]"));
  }

  /// The entity tag of a.txt.
  std::string tag_of(const Origin& origin) {
    const std::string output =
        run(run_curl({"-o", "/dev/null", "-I", "-w", "%header{etag}", origin.url("/a.txt")}));
    EXPECT_TRUE(output.starts_with('"')) << output;
    return output;
  }

  static std::string description(const HttpRequest& request) {
    std::string text = request.method + " " + request.target;
    for (const std::string& field : request.fields) text += ", " + field;
    for (const std::string& entry : request.curl) text += ", curl " + entry;
    return text;
  }

  test::TemporaryFolder folder_;
  EventLoop loop_;
  std::optional<http::Server> server_;
  std::optional<test::NginxServer> nginx_;
  Origin own_;
  Origin other_;
};

TEST_F(CurlOracle, gets_the_same_from_the_server_as_from_nginx) {
  own_.tag = tag_of(own_);
  other_.tag = tag_of(other_);
  std::vector<HttpRequest> requests = test::http_requests();
  if (!is_available(http::Coding::gzip))
    std::erase_if(requests, [](const auto& entry) { return entry.is_coded; });
  EXPECT_GE(requests.size(), 60);
  for (const HttpRequest& request : requests) {
    const std::string own_text = run(ask_with_curl(request, own_));
    EXPECT_EQ(own_text, run(ask_with_curl(request, other_))) << description(request);
    EXPECT_EQ(own_text.find("failed with") == 0, request.target == "/loop")
        << own_text << description(request);
  }
}

TEST_F(CurlOracle, gets_the_same_through_a_proxy) {
  test::NginxServer behind(loop_, folder_.path() + "/own");
  http::ReverseProxyOptions options;
  options.upstreams = {{"http://127.0.0.1:" + std::to_string(behind.port())}};
  options.via = "";  // nginx compresses nothing for proxies.
  auto proxy = or_throw(http::ReverseProxy::create(loop_, std::move(options)));
  const auto front =
      or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0), proxy.handler()));
  Origin through{.port = front.endpoint().port()};
  through.tag = tag_of(through);
  other_.tag = tag_of(other_);
  for (const HttpRequest& request : test::http_requests())
    EXPECT_EQ(run(ask_with_curl(request, through)), run(ask_with_curl(request, other_)))
        << description(request);
  EXPECT_EQ(proxy.stats().failures, 0U);
}

TEST_F(CurlOracle, gets_the_same_from_nginx_as_the_client) {
  other_.tag = tag_of(other_);
  const auto cookies = std::make_shared<http::CookieJar>();
  const auto options_with = [&](unsigned redirects_max) {
    http::ClientOptions options;
    options.cookies = cookies;
    options.redirects_max = redirects_max;
    return options;
  };
  http::Client following(loop_, options_with(5));
  http::Client plain(loop_, options_with(0));
  std::vector<HttpRequest> requests = test::http_requests();
  std::erase_if(requests,
                [](const auto& entry) { return !entry.curl.empty() || !entry.more.empty(); });
  EXPECT_GE(requests.size(), 60);
  std::vector<std::string> got;
  got.reserve(requests.size());
  for (const HttpRequest& request : requests) {
    cookies->clear();
    got.push_back(run(ask_with_client(request.follows ? following : plain, request, other_)));
  }
  // curl must not find what the client has uploaded.
  const std::string uploads = folder_.path() + "/nginx/files/put";
  std::filesystem::remove_all(uploads);
  std::filesystem::create_directory(uploads);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string expected = run(ask_with_curl(requests[i], other_));
    if (expected.starts_with("failed")) {
      EXPECT_TRUE(got[i].starts_with("failed")) << got[i] << description(requests[i]);
    } else {
      EXPECT_EQ(got[i], expected) << description(requests[i]);
    }
  }
}

}  // namespace
}  // namespace tambour::curl_test
