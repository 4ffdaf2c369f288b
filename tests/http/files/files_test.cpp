// Static files, their cache, on every backend; and with curl as the client.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "http/support/curl.h"
#include "support/network.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/sandbox.h"
#include "support/temporary_folder.h"

namespace tambour::files_test {
namespace {

using http::FileOptions;
using http::Request;
using http::Response;
using http::Status;

/// Text without a period that a wrong offset could hide.
std::string content_of(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + " ";
  text.resize(size);
  return text;
}

void write_file(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

class HttpFiles : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    write_file(folder.path() + "/secret", "secret");
    write_file(root() + "/a.txt", "0123456789");
    write_file(root() + "/empty.html", "");
    write_file(root() + "/big.bin", content_of(300'000));
    write_file(root() + "/sub/index.html", "index");
    write_file(root() + "/.hidden/x", "hidden");
    write_file(root() + "/name with space", "space");
    write_file(root() + "/a.js", "plain");
    write_file(root() + "/a.js.gz", "gzipped");
    write_file(root() + "/a.js.br", "brotli");
  }
  void TearDown() override {
    server.reset();
    OnEveryBackend::TearDown();
  }
  [[nodiscard]] std::string root() const { return folder.path() + "/www"; }
  void serve(FileOptions options = {}) {
    http::Router router;
    router.any("/{path...}", http::serve_files(root(), std::move(options)));
    const std::string sent = root() + "/a.txt";
    router.any("/one/file", [sent](Request& request, Response& response) -> Task<> {
      return http::send_file(request, response, sent);
    });
    auto opened =
        http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(router).handler());
    ASSERT_TRUE(opened);
    server = std::make_unique<http::Server>(std::move(*opened));
  }
  test::Reply ask(const std::string& target, const std::string& fields = "",
                  const std::string& method = "GET") {
    std::optional<test::Reply> reply;
    run([](Endpoint to, std::string request, http::Method local,
           std::optional<test::Reply>& into) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      EXPECT_TRUE(co_await stream->write(std::string_view(request)));
      Buffer in;
      auto got = co_await test::read_reply(*stream, in, local);
      into = or_throw(std::move(got), request);
    }(server->endpoint(), method + " " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n",
                                             http::Method::parse(method).value(), reply));
    return std::move(reply).value();
  }

  test::TemporaryFolder folder;
  std::unique_ptr<http::Server> server;
};

TAMBOUR_ON_EVERY_BACKEND(HttpFiles);

TEST_P(HttpFiles, files_are_sent_with_their_types) {
  serve({.cache_control = "max-age=60", .media_types = {{"bin", "application/x-big"}}});
  const test::Reply text = ask("/a.txt");
  EXPECT_EQ(text.status, Status::ok);
  EXPECT_EQ(text.body, "0123456789");
  EXPECT_EQ(text.fields.get("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(text.fields.get("Content-Length"), "10");
  EXPECT_EQ(text.fields.get("Accept-Ranges"), "bytes");
  EXPECT_EQ(text.fields.get("Cache-Control"), "max-age=60");
  EXPECT_TRUE(text.fields.contains("ETag"));
  EXPECT_TRUE(text.fields.contains("Last-Modified"));
  EXPECT_FALSE(text.fields.contains("Vary"));
  const test::Reply big = ask("/big.bin");
  EXPECT_EQ(big.body, content_of(300'000));
  EXPECT_EQ(big.fields.get("Content-Type"), "application/x-big");
  EXPECT_EQ(ask("/empty.html").fields.get("Content-Length"), "0");
  EXPECT_EQ(ask("/name%20with%20space").body, "space");
  EXPECT_EQ(ask("/one/file").body, "0123456789");
  const test::Reply head = ask("/big.bin", "", "HEAD");
  EXPECT_EQ(head.fields.get("Content-Length"), "300000");
  EXPECT_EQ(head.body, "");
  const test::Reply posted = ask("/a.txt", "Content-Length: 0\r\n", "POST");
  EXPECT_EQ(posted.status, Status::method_not_allowed);
  EXPECT_EQ(posted.fields.get("Allow"), "GET, HEAD");
}

/// RFC 9110, section 8.8.2.1.
TEST_P(HttpFiles, no_file_was_modified_in_the_future) {
  serve();
  const timespec future{.tv_sec = 4102444800, .tv_nsec = 0};  // 2100.
  const timespec times[] = {future, future};
  ASSERT_EQ(::utimensat(AT_FDCWD, (root() + "/a.txt").c_str(), times, 0), 0);
  const test::Reply reply = ask("/a.txt");
  const auto modified = http::parse_date(reply.fields.get("Last-Modified").value_or(""));
  const auto date = http::parse_date(reply.fields.get("Date").value_or(""));
  ASSERT_TRUE(modified && date);
  EXPECT_LE(*modified, *date);
}

TEST_P(HttpFiles, no_path_leaves_the_directory) {
  serve();
  for (const char* target : {"/../secret",
                             "/%2e%2e/secret",
                             "/%2e%2e%2fsecret",
                             "/..%2Fsecret",
                             "/sub/../../secret",
                             "/sub/%2E./../secret",
                             "/./a.txt",
                             "/sub//index.html",
                             "//a.txt",
                             "/%2Fetc/passwd",
                             "/a.txt%00",
                             "/a.txt%00.html",
                             "/a.txt/",
                             "/a.txt/b",
                             "/.hidden/x",
                             "/sub/..",
                             "/missing",
                             "/sub/missing",
                             "/..",
                             "/."})
    EXPECT_EQ(ask(target).status, Status::not_found) << target;
  EXPECT_EQ(ask("/" + std::string(5000, 'a')).status, Status::not_found);
}

TEST_P(HttpFiles, directories_have_an_index) {
  serve();
  EXPECT_EQ(ask("/sub/").body, "index");
  EXPECT_EQ(ask("/sub/").fields.get("Content-Type"), "text/html; charset=utf-8");
  const test::Reply redirect = ask("/sub?a=b");
  EXPECT_EQ(redirect.status, Status::moved_permanently);
  EXPECT_EQ(redirect.fields.get("Location"), "/sub/?a=b");
  EXPECT_EQ(ask("/").status, Status::not_found);
}

TEST_P(HttpFiles, options_show_hidden_files_and_no_index) {
  serve({.index = "", .hidden = true});
  EXPECT_EQ(ask("/.hidden/x").body, "hidden");
  EXPECT_EQ(ask("/sub/").status, Status::not_found);
}

TEST_P(HttpFiles, devices_and_unreadable_files_are_refused) {
  serve();
  ASSERT_EQ(::mkfifo((root() + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(ask("/fifo").status, Status::not_found);
  write_file(root() + "/private", "x");
  std::filesystem::permissions(root() + "/private", std::filesystem::perms::none);
  // The superuser may read it.
  if (::geteuid() != 0) {
    EXPECT_EQ(ask("/private").status, Status::forbidden);
  }
}

TEST_P(HttpFiles, ranges_are_sent) {
  serve();
  const auto range = [this](const std::string& value) {
    return ask("/a.txt", "Range: " + value + "\r\n");
  };
  const test::Reply one = range("bytes=2-4");
  EXPECT_EQ(one.status, Status::partial_content);
  EXPECT_EQ(one.body, "234");
  EXPECT_EQ(one.fields.get("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(range("bytes=-3").body, "789");
  EXPECT_EQ(range("bytes=x").body, "0123456789");
  const test::Reply none = range("bytes=10-");
  EXPECT_EQ(none.status, Status::range_not_satisfiable);
  EXPECT_EQ(none.fields.get("Content-Range"), "bytes */10");
  const test::Reply two = range("bytes=1-2,8-");
  EXPECT_EQ(two.status, Status::partial_content);
  const std::string type(two.fields.get("Content-Type").value());
  ASSERT_TRUE(type.starts_with("multipart/byteranges; boundary=")) << type;
  const std::string line = "\r\n--" + type.substr(type.find('=') + 1);
  const std::string fields = "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes ";
  EXPECT_EQ(two.body, line + fields + "1-2/10\r\n\r\n12" + line + fields + "8-9/10\r\n\r\n89" +
                          line + "--\r\n");
  EXPECT_FALSE(two.fields.contains("Content-Range"));
  // Of a file that is read in several pieces.
  EXPECT_EQ(ask("/big.bin", "Range: bytes=70000-299998\r\n").body,
            content_of(300'000).substr(70'000, 229'999));
  for (const std::string value : {"bytes=0-", "bytes=0-99", "bytes=-5", "bytes=0-0,-1"}) {
    const test::Reply empty = ask("/empty.html", "Range: " + value + "\r\n");
    EXPECT_EQ(empty.status, Status::ok) << value;
    EXPECT_EQ(empty.fields.get("Content-Length"), "0");
    EXPECT_FALSE(empty.fields.contains("Content-Range"));
  }
  // Not for HEAD.
  EXPECT_EQ(ask("/a.txt", "Range: bytes=2-4\r\n", "HEAD").status, Status::ok);
}

TEST_P(HttpFiles, conditions_are_checked) {
  serve();
  const test::Reply first = ask("/a.txt");
  const std::string tag(first.fields.get("ETag").value());
  const std::string date(first.fields.get("Last-Modified").value());
  const test::Reply same = ask("/a.txt", "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(same.status, Status::not_modified);
  EXPECT_EQ(same.fields.get("ETag"), tag);
  EXPECT_FALSE(same.fields.contains("Content-Type"));
  EXPECT_EQ(ask("/a.txt", "If-Modified-Since: " + date + "\r\n").status, Status::not_modified);
  EXPECT_EQ(ask("/a.txt", "If-Match: \"x\"\r\n").status, Status::precondition_failed);
  EXPECT_EQ(ask("/a.txt", "Range: bytes=0-0\r\nIf-Range: " + tag + "\r\n").body, "0");
  EXPECT_EQ(ask("/a.txt", "Range: bytes=0-0\r\nIf-Range: \"x\"\r\n").body, "0123456789");
  EXPECT_EQ(ask("/a.txt", "Range: bytes=0-0\r\nIf-None-Match: " + tag + "\r\n").status,
            Status::not_modified);
  // Another file under the same name has another tag, also with the same size and time.
  const auto time = std::filesystem::last_write_time(root() + "/a.txt");
  write_file(root() + "/new", "9876543210");
  std::filesystem::last_write_time(root() + "/new", time);
  std::filesystem::rename(root() + "/new", root() + "/a.txt");
  EXPECT_EQ(ask("/a.txt", "If-None-Match: " + tag + "\r\n").body, "9876543210");
}

TEST_P(HttpFiles, precompressed_files_are_sent_to_clients_that_accept_them) {
  serve({.precompressed = true});
  const auto accept = [this](const std::string& value) {
    return ask("/a.js", "Accept-Encoding: " + value + "\r\n");
  };
  const test::Reply brotli = accept("gzip, deflate, br");
  EXPECT_EQ(brotli.body, "brotli");
  EXPECT_EQ(brotli.fields.get("Content-Encoding"), "br");
  EXPECT_EQ(brotli.fields.get("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(brotli.fields.get("Vary"), "Accept-Encoding");
  EXPECT_EQ(accept("GZIP;q=0.5").body, "gzipped");
  EXPECT_EQ(accept("br;q=0, gzip; q=0.001").body, "gzipped");
  EXPECT_EQ(accept("br; q=0.000, zstd").body, "plain");
  EXPECT_EQ(accept("identity").body, "plain");
  EXPECT_EQ(ask("/a.js").body, "plain");
  EXPECT_EQ(ask("/a.js").fields.get("Vary"), "Accept-Encoding");
  EXPECT_FALSE(ask("/a.js").fields.contains("Content-Encoding"));
  EXPECT_NE(ask("/a.js").fields.get("ETag"), brotli.fields.get("ETag"));
  EXPECT_EQ(ask("/a.txt", "Accept-Encoding: br\r\n").body, "0123456789");
}

class HttpFileCache : public HttpFiles {
 protected:
  [[nodiscard]] http::FileCacheStats stats() { return http::file_cache_stats(loop()); }
  /// Requests a file until it is in the cache: its last change must be longer ago than the
  /// resolution of the times.
  [[nodiscard]] bool keep(const std::string& target) {
    const std::uint64_t hits = stats().hits;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (stats().hits == hits && std::chrono::steady_clock::now() < deadline)
      EXPECT_EQ(ask(target).status, Status::ok);
    return stats().hits > hits;
  }
  /// Another file takes the name, as after a deployment.
  void replace(const std::string& name, const std::string& content) const {
    write_file(root() + "/new", content);
    std::filesystem::rename(root() + "/new", root() + "/" + name);
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpFileCache);

TEST_P(HttpFileCache, a_file_that_has_changed_is_sent_at_once) {
  serve();
  for (const char* const name : {"a.txt", "big.bin"}) {
    const std::string target = std::string("/") + name;
    ASSERT_TRUE(keep(target));
    const std::string tag(ask(target).fields.get("ETag").value());
    replace(name, content_of(200'000));
    const test::Reply replaced = ask(target);
    EXPECT_TRUE(replaced.body == content_of(200'000));
    EXPECT_NE(replaced.fields.get("ETag"), tag);
    ASSERT_TRUE(keep(target));
    std::ofstream(root() + target, std::ios::app) << "more";
    EXPECT_TRUE(ask(target).body == content_of(200'000) + "more");
    ASSERT_TRUE(keep(target));
    std::filesystem::resize_file(root() + target, 3);
    EXPECT_EQ(ask(target).body, content_of(3));
    ASSERT_TRUE(keep(target));
    std::filesystem::remove(root() + target);
    EXPECT_EQ(ask(target).status, Status::not_found);
    write_file(root() + target, "again");
    EXPECT_EQ(ask(target).body, "again");
    std::filesystem::remove(root() + target);
    std::filesystem::create_directory(root() + target);
    EXPECT_EQ(ask(target).status, Status::moved_permanently);
  }
}

TEST_P(HttpFileCache, a_link_to_another_file_is_followed_at_once) {
  serve();
  std::filesystem::create_symlink("a.txt", root() + "/link");
  ASSERT_TRUE(keep("/link"));
  std::filesystem::remove(root() + "/link");
  std::filesystem::create_symlink("sub/index.html", root() + "/link");
  EXPECT_EQ(ask("/link").body, "index");
}

TEST_P(HttpFileCache, all_responses_are_the_same_with_a_file_of_the_cache) {
  const FileOptions with_cache{.precompressed = true, .cache_control = "max-age=60"};
  FileOptions without_cache = with_cache;
  without_cache.memory_bytes_max = 0;
  for (const std::string name : {"/a.txt", "/big.bin", "/a.js", "/sub/", "/empty.html"}) {
    serve(without_cache);
    const std::string tag(ask(name).fields.get("ETag").value());
    const std::vector<std::pair<std::string, std::string>> requests{
        {"GET", ""},
        {"HEAD", ""},
        {"GET", "Range: bytes=1-2\r\n"},
        {"GET", "Range: bytes=99999999-\r\n"},
        {"GET", "If-None-Match: " + tag + "\r\n"},
        {"GET", "If-Match: \"x\"\r\n"},
        {"GET", "Accept-Encoding: gzip\r\n"}};
    std::vector<test::Reply> expected;
    for (const auto& [method, fields] : requests) expected.push_back(ask(name, fields, method));
    server.reset();
    serve(with_cache);
    ASSERT_TRUE(keep(name));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const test::Reply reply = ask(name, requests[i].second, requests[i].first);
      EXPECT_EQ(reply.status, expected[i].status) << name << i;
      EXPECT_TRUE(reply.body == expected[i].body) << name << i;
      for (const char* const field :
           {"ETag", "Last-Modified", "Content-Type", "Content-Length", "Content-Range",
            "Content-Encoding", "Vary", "Cache-Control", "Accept-Ranges", "X-Content-Type-Options"})
        EXPECT_EQ(reply.fields.get(field), expected[i].fields.get(field)) << name << i << field;
    }
    server.reset();
  }
}

TEST_P(HttpFileCache, a_name_is_not_looked_up_again_before_the_end_of_the_interval) {
  serve({.check_interval = std::chrono::hours(1)});
  ASSERT_TRUE(keep("/sub/index.html"));
  const std::uint64_t checks = stats().checks;
  std::filesystem::rename(root() + "/sub", root() + "/former");
  write_file(root() + "/sub/index.html", "other");
  EXPECT_EQ(ask("/sub/index.html").body, "index");
  EXPECT_EQ(stats().checks, checks);
}

/// Its head would describe the former version.
TEST_P(HttpFileCache, a_large_file_that_is_written_is_looked_up_before_the_end_of_the_interval) {
  serve({.check_interval = std::chrono::hours(1)});
  ASSERT_TRUE(keep("/big.bin"));
  std::filesystem::resize_file(root() + "/big.bin", 100'000);
  EXPECT_TRUE(ask("/big.bin").body == content_of(100'000));
}

TEST_P(HttpFileCache, limits_hold) {
  constexpr std::size_t files = 6;
  for (std::size_t i = 0; i < files; ++i) {
    write_file(root() + "/small" + std::to_string(i), content_of(20'000));
    write_file(root() + "/large" + std::to_string(i), content_of(70'000));
  }
  serve({.open_files_max = 2, .memory_bytes_max = 50'000});
  for (std::size_t i = 0; i < files; ++i) {
    for (const char* const name : {"/small", "/large"}) {
      ASSERT_TRUE(keep(name + std::to_string(i)));
      EXPECT_LE(stats().open_files, 2U);
      EXPECT_LE(stats().memory_bytes, 50'000U);
    }
  }
  EXPECT_GT(stats().evictions, files);
  EXPECT_GT(stats().files, 0U);
  // Another handler has a cache of its own.
  server.reset();
  serve({.memory_bytes_max = 0});
  const std::size_t kept = stats().files;
  EXPECT_EQ(ask("/a.txt").body, "0123456789");
  EXPECT_EQ(ask("/a.txt").body, "0123456789");
  EXPECT_LE(stats().files, kept);
}

TEST_P(HttpFileCache, handlers_that_exist_no_more_have_no_cache) {
  auto handler = [this](Request& request, Response& response) -> Task<> {
    request.set_parameter("path", "a.txt");
    const http::Handler files = http::serve_files(root());
    co_await files.run(request, response);
  };
  auto opened = http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(handler));
  ASSERT_TRUE(opened);
  server = std::make_unique<http::Server>(std::move(*opened));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (stats().files == 0 && std::chrono::steady_clock::now() < deadline)
    EXPECT_EQ(ask("/").body, "0123456789");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask("/").body, "0123456789");
    EXPECT_EQ(stats().files, 1U);
  }
}

TEST_P(HttpFiles, a_file_that_is_truncated_resets_the_connection) {
  serve();
  std::ofstream(root() + "/large", std::ios::binary).close();
  std::filesystem::resize_file(root() + "/large", 50'000'000);
  Error error;
  run([](Endpoint to, std::string path, Error& into) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    EXPECT_TRUE(co_await stream->write("GET /large HTTP/1.1\r\nHost: a\r\n\r\n"));
    Buffer in;
    static_cast<void>(co_await stream->read(in, 1000));
    std::filesystem::resize_file(path, 1000);
    const auto reply = co_await test::read_reply(*stream, in);
    EXPECT_FALSE(reply);
    if (!reply) into = reply.error();
  }(server->endpoint(), root() + "/large", error));
  EXPECT_EQ(error, system_error(ECONNRESET));
}

/// The client must not take the part for the whole although the handler ignores the error.
TEST_P(HttpFiles, a_part_of_a_file_resets_the_connection) {
  for (const bool has_length : {true, false}) {
    auto handler = [path = root() + "/a.txt", has_length](Request&, Response& response) -> Task<> {
      auto file = co_await File::open(path, FileMode::read);
      if (has_length) response.set_length(100);
      const auto sent = co_await response.write_file(*file, 0, 100);
      EXPECT_FALSE(sent);
    };
    auto opened = http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(handler));
    ASSERT_TRUE(opened);
    server = std::make_unique<http::Server>(std::move(*opened));
    Error error;
    run([](Endpoint to, Error& into) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      EXPECT_TRUE(co_await stream->write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
      Buffer in;
      const auto reply = co_await test::read_reply(*stream, in);
      EXPECT_FALSE(reply);
      if (!reply) into = reply.error();
    }(server->endpoint(), error));
    EXPECT_EQ(error, system_error(ECONNRESET)) << has_length;
    server.reset();
  }
}

TEST(HttpFilesInSimulation, are_looked_up_after_the_interval_and_closed_when_idle) {
  using namespace std::chrono_literals;
  sim::Options options;
  options.trace = false;
  sim::Simulation simulation(1, options);
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  http::Router router;
  router.get("/{path...}", http::serve_files("/www", {.check_interval = 1min}));
  auto server = http::Server::listen(loop, Endpoint::parse(host.ip() + ":80").value(),
                                     std::move(router).handler());
  ASSERT_TRUE(server);
  bool has_ended = false;
  spawn(loop, [](EventLoop& of, Endpoint to, bool& ended) -> Task<> {
    EXPECT_TRUE(co_await fs::create_directories("/www"));
    EXPECT_TRUE(co_await fs::replace_file("/www/a", "one"));
    static_cast<void>(co_await sleep_for(5s));
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    Buffer in;
    std::string body;
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(co_await stream->write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n"));
      const auto reply = co_await test::read_reply(*stream, in);
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      body = reply->body;
      if (i < 2) {
        EXPECT_EQ(body, "one");
      }
      if (i == 1) {
        EXPECT_TRUE(co_await fs::replace_file("/www/a", "two"));
      }
      static_cast<void>(co_await sleep_for(5s));
    }
    EXPECT_EQ(body, "two");
    EXPECT_GE(http::file_cache_stats(of).hits, 10U);
    EXPECT_EQ(http::file_cache_stats(of).open_files, 1U);
    static_cast<void>(co_await sleep_for(20s));
    EXPECT_EQ(http::file_cache_stats(of).files, 0U);
    EXPECT_EQ(http::file_cache_stats(of).open_files, 0U);
    EXPECT_EQ(http::file_cache_stats(of).memory_bytes, 0U);
    ended = true;
  }(loop, server->endpoint(), has_ended));
  simulation.run_for(10min);
  EXPECT_TRUE(has_ended);
}

/// A filter may kill the process for openat2(2).
TEST(HttpFilesUnderFilter, are_opened_by_threads) {
  constexpr int no_filters = 77;
  const test::TemporaryFolder folder;
  write_file(folder.path() + "/a", "text");
  const int status = test::in_child([&] {
    if (!test::kill_for_new_calls()) return no_filters;
    EventLoop loop({.backend = BackendKind::epoll});
    http::Router router;
    router.get("/{path...}", http::serve_files(folder.path()));
    auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), std::move(router).handler());
    if (!server) return 2;
    std::string bodies;
    spawn(loop, [](EventLoop& of, Endpoint to, std::string& into) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      Buffer in;
      for (int i = 0; stream && i < 2; ++i) {
        const auto sent = co_await stream->write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        if (!sent) break;
        const auto reply = co_await test::read_reply(*stream, in);
        if (reply) into += reply->body;
      }
      of.stop();
    }(loop, server->endpoint(), bodies));
    loop.run();
    return bodies == "texttext" ? 0 : 1;
  });
  if (status == no_filters) GTEST_SKIP() << "no seccomp filter can be installed here";
  EXPECT_EQ(status, 0);
}

TEST_P(HttpFiles, curl_agrees) {
  if (!test::has_program("curl")) GTEST_SKIP() << "curl is not installed";
  serve();
  const std::string url = "http://" + server->endpoint().to_string();
  const std::string part = folder.path() + "/part";
  write_file(part, content_of(300'000).substr(0, 100'000));
  std::vector<std::string> printed;
  std::thread client([&] {
    const std::string status = " -o /dev/null -w '%{http_code} %{size_download}'";
    printed.push_back(test::curl(url + "/a.txt"));
    printed.push_back(test::curl("-r 2-4 " + url + "/a.txt"));
    printed.push_back(test::curl("-r 20- " + url + "/a.txt" + status));
    printed.push_back(test::curl("-C - -o " + part + " -w '%{http_code}' " + url + "/big.bin"));
    printed.push_back(test::curl("-z '1 Jan 2035 00:00:00 GMT' " + url + "/a.txt" + status));
    printed.push_back(test::curl("-L " + url + "/sub"));
    printed.push_back(test::curl(url + "/../secret" + status));
    printed.push_back(test::curl("-I " + url + "/big.bin" + " -w '%{http_code}' -o /dev/null"));
    printed.push_back(test::curl("-0 " + url + "/a.txt"));
    printed.push_back(test::curl(url + "/a.txt " + url + "/sub/ -w '%{num_connects}'"));
    loop().post([&] { loop().stop(); });
  });
  loop().run();
  client.join();
  EXPECT_EQ(printed,
            (std::vector<std::string>{"0123456789", "234", "416 26", "206", "304 0", "index",
                                      "404 14", "200", "0123456789", "01234567891index0"}));
  std::ifstream whole(part, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(whole), {}), content_of(300'000));
}

}  // namespace
}  // namespace tambour::files_test
