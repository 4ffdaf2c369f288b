// Downloads: what continues and what begins again, with a scripted server, in a simulation, and
// with nginx.
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/download/content_range.h"
#include "http/support/nginx_server.h"
#include "http/support/scripted_server.h"
#include "http/support/serving.h"
#include "support/network.h"
#include "support/temporary_folder.h"

namespace tambour::download_test {
namespace {

using http::Client;
using http::DownloadOptions;
using http::DownloadResult;
using http::detail::download::parse_content_range;
using http::detail::download::validator_of;
using test::and_close;
using test::Answer;
using test::Arrived;
using test::ScriptedServer;
using namespace std::chrono_literals;

std::string text_of(std::string_view value) {
  const auto range = parse_content_range(value);
  if (!range) return "none";
  return std::to_string(range->first) + "-" + std::to_string(range->last) + "/" +
         (range->total ? std::to_string(*range->total) : "*");
}

TEST(ContentRange, values) {
  EXPECT_EQ(text_of("bytes 0-499/1234"), "0-499/1234");
  EXPECT_EQ(text_of("Bytes  42-42/43 "), "42-42/43");
  EXPECT_EQ(text_of("bytes 0-499/*"), "0-499/*");
  for (const char* const wrong :
       {"", "bytes", "bytes */1234", "bytes 5-4/10", "bytes 0-10/10", "bytes -5/10", "bytes 0-/10",
        "bytes 0-1", "items 0-1/2", "bytes 0-99999999999999999999/*", "bytes 1/2-3", "bytes 0-1/x"})
    EXPECT_EQ(text_of(wrong), "none") << wrong;
}

TEST(ContentRange, strong_validators) {
  const auto validator = [](std::vector<std::pair<const char*, const char*>> list) {
    http::Fields fields;
    for (const auto& [name, value] : list) or_throw(fields.add(name, value));
    return validator_of(fields);
  };
  const char* const old = "Sun, 06 Nov 1994 08:49:37 GMT";
  const char* const later = "Sun, 06 Nov 1994 08:50:37 GMT";
  EXPECT_EQ(validator({{"ETag", "\"a\""}, {"Last-Modified", old}}), "\"a\"");
  EXPECT_EQ(validator({{"ETag", "W/\"a\""}, {"Last-Modified", old}, {"Date", later}}), "");
  EXPECT_EQ(validator({{"Last-Modified", old}, {"Date", later}}), old);
  EXPECT_EQ(validator({{"Last-Modified", old}, {"Date", old}}), "");
  EXPECT_EQ(validator({{"Last-Modified", old}}), "");
  EXPECT_EQ(validator({{"ETag", "a"}}), "");
}

class Downloads : public testing::Test {
 protected:
  DownloadResult download(DownloadOptions options = fast(), std::string path = "") {
    if (path.empty()) path = target();
    std::optional<DownloadResult> result;
    Client client(loop);
    spawn(loop, [&]() -> Task<> {
      result.emplace(co_await http::download(client, server.url(), path, std::move(options)));
      loop.stop();
    });
    loop.run();
    return std::move(*result);
  }
  static DownloadOptions fast() {
    DownloadOptions options;
    options.retry.delay = 1ms;
    options.sync = false;
    return options;
  }
  /// What is expected to fail at the end of the answers.
  static DownloadOptions once() {
    DownloadOptions options = fast();
    options.retry.attempts_max = 1;
    return options;
  }
  std::string target() const { return folder.path() + "/file"; }
  std::string contents(const std::string& suffix = "") const {
    std::ifstream file(target() + suffix, std::ios::binary);
    if (!file) return "missing";
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string error_of(const DownloadResult& result) {
    return result ? "none" : result.error().message();
  }

  /// The whole text, of which only `sent` bytes arrive before the connection ends.
  static Answer whole(std::string_view text, std::size_t sent, std::string_view fields) {
    std::string answer = test::ok(text, fields);
    answer.resize(answer.size() - text.size() + sent);
    return sent < text.size() ? and_close(answer) : Answer(answer);
  }
  static Answer part(std::string_view text, std::size_t from, std::size_t sent,
                     std::string_view fields, std::string_view range = "") {
    const std::string_view rest = text.substr(from);
    std::string answer = "HTTP/1.1 206 Partial Content\r\nContent-Range: ";
    answer += range.empty()
                  ? "bytes " + std::to_string(from) + "-" + std::to_string(text.size() - 1) + "/" +
                        std::to_string(text.size())
                  : std::string(range);
    answer.append("\r\n").append(fields).append("Content-Length: ");
    answer += std::to_string(rest.size()) + "\r\n\r\n" + std::string(rest.substr(0, sent));
    return sent < rest.size() ? and_close(answer) : Answer(answer);
  }

  EventLoop loop;
  test::TemporaryFolder folder;
  std::vector<Answer> answers;
  std::vector<std::string> requests;  ///< "Range|If-Range".
  ScriptedServer server{
      loop, [this](const Arrived& arrived) {
        const http::Fields& fields = arrived.head.fields;
        EXPECT_EQ(fields.joined("Accept-Encoding"), "identity");
        requests.push_back(fields.joined("Range") + "|" + fields.joined("If-Range"));
        return answers[std::min(requests.size(), answers.size()) - 1];
      }};
  const std::string text = "0123456789abcdefghij";
  const std::string tag = "ETag: \"v1\"\r\n";
};

TEST_F(Downloads, in_one_piece) {
  answers = {whole(text, 20, tag)};
  std::vector<std::uint64_t> progress;
  DownloadOptions options;
  options.on_progress = [&](std::uint64_t bytes, std::optional<std::uint64_t> total) {
    progress.push_back(bytes);
    EXPECT_EQ(total, 20U);
  };
  const auto result = download(std::move(options));
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->bytes, 20U);
  EXPECT_EQ(result->requests, 1U);
  EXPECT_EQ(result->headers.joined("ETag"), "\"v1\"");
  EXPECT_EQ(contents(), text);
  EXPECT_EQ(contents(".part"), "missing");
  EXPECT_EQ(contents(".part.info"), "missing");
  EXPECT_EQ(progress.back(), 20U);
}

TEST_F(Downloads, lost_connections) {
  answers = {whole(text, 7, tag), part(text, 7, 3, tag), part(text, 10, 10, tag)};
  const auto result = download();
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(contents(), text);
  EXPECT_EQ(requests, (std::vector<std::string>{"|", "bytes=7-|\"v1\"", "bytes=10-|\"v1\""}));
  EXPECT_EQ(result->resumed_bytes, 0U);
}

TEST_F(Downloads, a_file_that_has_changed_begins_again) {
  answers = {whole(text, 7, tag), whole("another text", 12, "ETag: \"v2\"\r\n")};
  ASSERT_TRUE(download());
  EXPECT_EQ(contents(), "another text");
  requests.clear();
  // A server that ignores If-Range, and one that has become shorter.
  answers = {whole(text, 7, tag), part("another text that is longer", 7, 20, "ETag: \"v2\"\r\n"),
             whole("new", 3, "ETag: \"v3\"\r\n")};
  ASSERT_TRUE(download());
  EXPECT_EQ(contents(), "new");
  EXPECT_EQ(requests.at(2), "|");
  requests.clear();
  answers = {whole(text, 7, tag),
             Answer("HTTP/1.1 416 No\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n"),
             whole("new", 3, tag)};
  ASSERT_TRUE(download());
  EXPECT_EQ(contents(), "new");
}

TEST_F(Downloads, wrong_ranges_begin_again) {
  for (const char* const range : {"bytes 6-19/20", "bytes 7-19/21", "bytes */20", "nonsense"}) {
    requests.clear();
    answers = {whole(text, 7, tag), part(text, 7, 13, tag, range), whole(text, 20, tag)};
    ASSERT_TRUE(download()) << range;
    EXPECT_EQ(contents(), text) << range;
    EXPECT_EQ(requests.size(), 3U) << range;
    EXPECT_EQ(requests.at(2), "|") << range;
  }
}

TEST_F(Downloads, without_a_validator_each_attempt_begins_again) {
  answers = {whole(text, 7, "ETag: W/\"v1\"\r\n"), whole(text, 20, "")};
  ASSERT_TRUE(download());
  EXPECT_EQ(requests, (std::vector<std::string>{"|", "|"}));
  requests.clear();
  answers = {whole(text, 7, "")};
  DownloadOptions options = fast();
  options.retry.attempts_max = 3;
  EXPECT_EQ(error_of(download(std::move(options))), Error(StreamError::truncated).message());
  EXPECT_EQ(requests.size(), 3U);
  EXPECT_EQ(contents(".part"), "missing");
  EXPECT_EQ(contents(), text) << "the file of the first download";
}

TEST_F(Downloads, beginning_again_is_no_progress) {
  // A server that ignores ranges, and always fails after the same bytes.
  answers = {whole(text, 7, tag)};
  DownloadOptions options = fast();
  options.retry.attempts_max = 3;
  EXPECT_EQ(error_of(download(std::move(options))), Error(StreamError::truncated).message());
  EXPECT_EQ(requests.size(), 4U) << "the first one made progress";
  EXPECT_EQ(requests.back(), "bytes=7-|\"v1\"");
}

TEST_F(Downloads, later_calls_continue) {
  answers = {whole(text, 7, tag)};
  EXPECT_EQ(error_of(download(once())), Error(StreamError::truncated).message());
  EXPECT_EQ(contents(".part"), text.substr(0, 7));
  requests.clear();
  answers = {part(text, 7, 13, tag)};
  const auto result = download(once());
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->resumed_bytes, 7U);
  EXPECT_EQ(requests.at(0), "bytes=7-|\"v1\"");
  EXPECT_EQ(contents(), text);
}

TEST_F(Downloads, a_whole_partial_file) {
  answers = {whole(text, 7, tag)};
  EXPECT_FALSE(download(once()));
  std::ofstream(target() + ".part", std::ios::binary) << text << "more";
  requests.clear();
  answers = {part(text, 19, 1, tag)};
  ASSERT_TRUE(download(once()));
  EXPECT_EQ(requests.at(0), "bytes=19-|\"v1\"");
  EXPECT_EQ(contents(), text);
}

TEST_F(Downloads, partial_files_of_other_urls) {
  for (const char* const info : {"tambour download 1\nhttp://other/\n\"v1\"\n20\n", "", "nonsense",
                                 "tambour download 1\n"}) {
    std::ofstream(target() + ".part") << "junk";
    std::ofstream(target() + ".part.info") << info;
    requests.clear();
    answers = {whole(text, 20, tag)};
    ASSERT_TRUE(download(once())) << info;
    EXPECT_EQ(requests.at(0), "|") << info;
    EXPECT_EQ(contents(), text);
  }
}

TEST_F(Downloads, statuses) {
  const Answer busy("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
  answers = {busy, whole(text, 7, tag), busy, busy, part(text, 7, 13, tag)};
  DownloadOptions options = fast();
  options.retry.attempts_max = 3;
  ASSERT_TRUE(download(std::move(options)));
  EXPECT_EQ(contents(), text);
  requests.clear();
  answers = {Answer("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")};
  const auto missing = download();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), http::ErrorCode::unexpected_status);
  EXPECT_EQ(missing.error().status(), http::Status::not_found);
  EXPECT_EQ(requests.size(), 1U);
}

TEST_F(Downloads, limits_and_files) {
  answers = {whole(text, 20, tag)};
  DownloadOptions options = fast();
  options.bytes_max = 19;
  EXPECT_EQ(error_of(download(std::move(options))),
            make_error_code(http::ErrorCode::body_too_large).message());
  EXPECT_EQ(requests.size(), 1U);
  answers = {Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" + text +
                    "\r\n0\r\n\r\n")};
  options = fast();
  options.bytes_max = 19;
  EXPECT_EQ(error_of(download(std::move(options))),
            make_error_code(http::ErrorCode::body_too_large).message());
  ASSERT_TRUE(download());
  EXPECT_EQ(contents(), text) << "without a length";
  EXPECT_EQ(error_of(download(fast(), folder.path() + "/missing/file")),
            system_error(ENOENT).message());
}

TEST_F(Downloads, cancellation) {
  Answer half = whole(text, 7, tag);
  half.closes = false;
  half.reads_the_rest = true;
  answers = {half};
  Client client(loop);
  bool is_half = false;
  DownloadOptions options = fast();
  options.on_progress = [&](std::uint64_t bytes, std::optional<std::uint64_t> /*total*/) {
    is_half = bytes == 7;
  };
  std::string error;
  TaskScope scope(loop);
  scope.spawn([&]() -> Task<> {
    const auto result = co_await http::download(client, server.url(), target(), std::move(options));
    error = result ? "none" : result.error().message();
  });
  while (!is_half && !scope.empty()) loop.run_once();
  scope.request_stop();
  while (!scope.empty()) loop.run_once();
  EXPECT_EQ(error, system_error(ECANCELED).message());
  EXPECT_EQ(client.connections(), 0U);
  requests.clear();
  answers = {part(text, 7, 13, tag)};
  ASSERT_TRUE(download(once()));
  EXPECT_EQ(requests.at(0), "bytes=7-|\"v1\"");
  EXPECT_EQ(contents(), text);
}

/// A range of unknown length may end before the file does.
TEST_F(Downloads, ranges_without_a_total) {
  const auto chunked = [&](std::size_t sent) {
    return and_close("HTTP/1.1 200 OK\r\n" + tag + "Transfer-Encoding: chunked\r\n\r\n14\r\n" +
                     text.substr(0, sent));
  };
  answers = {chunked(7), part(text.substr(0, 12), 7, 5, tag, "bytes 7-11/*"), whole(text, 20, tag)};
  const auto result = download();
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(contents(), text);
  EXPECT_EQ(requests, (std::vector<std::string>{"|", "bytes=7-|\"v1\"", "|"}));
  requests.clear();
  // With the total of an earlier response, the range is used.
  answers = {whole(text, 7, tag), part(text, 7, 13, tag, "bytes 7-19/*")};
  ASSERT_TRUE(download());
  EXPECT_EQ(requests.size(), 2U);
}

TEST_F(Downloads, passwords_are_not_stored) {
  answers = {whole(text, 7, tag)};
  const std::string url = server.url();
  const auto with = [&](const std::string& userinfo) {
    std::optional<DownloadResult> result;
    Client client(loop);
    spawn(loop, [&]() -> Task<> {
      const std::string to = url.substr(0, 7) + userinfo + url.substr(7) + "?a@b";
      result.emplace(co_await http::download(client, to, target(), once()));
      loop.stop();
    });
    loop.run();
    return std::move(*result);
  };
  EXPECT_FALSE(with("user:secret@"));
  EXPECT_EQ(contents(".part.info").find("secret"), std::string::npos) << contents(".part.info");
  EXPECT_NE(contents(".part.info").find("?a@b"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(target() + ".part.info").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  answers = {part(text, 7, 13, tag)};
  EXPECT_TRUE(with("user:changed@")) << "the same file";
}

TEST_F(Downloads, one_at_a_time_has_a_path) {
  answers = {whole(text, 20, tag)};
  Client client(loop);
  std::vector<std::string> errors;
  spawn(loop, [&]() -> Task<> {
    auto first = spawn(loop, http::download(client, server.url(), target(), fast()));
    const auto second = co_await http::download(client, server.url(), target(), fast());
    errors.push_back(error_of(second));
    const auto done = co_await first.join();
    errors.emplace_back(done ? "none" : "failed");
    const auto third = co_await http::download(client, server.url(), target(), fast());
    errors.push_back(error_of(third));
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(errors, (std::vector<std::string>{system_error(EBUSY).message(), "none", "none"}));
}

TEST_F(Downloads, a_stop_removes_what_cannot_be_continued) {
  Answer half = whole(text, 7, "");
  half.closes = false;
  half.reads_the_rest = true;
  answers = {half};
  Client client(loop);
  spawn(loop, [&]() -> Task<> {
    auto downloading = http::download(client, server.url(), target(), fast());
    const auto result = co_await timeout(200ms, std::move(downloading));
    EXPECT_FALSE(result);
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(contents(".part"), "missing");
}

/// In a simulated network and on a simulated disk.
class SimulatedDownloads : public test::Serving {};

TEST_F(SimulatedDownloads, partitions) {
  const std::string text(100'000, 'x');
  serve([&text](http::Request& request, http::Response& response) -> Task<> {
    or_throw(response.headers().set("ETag", "\"v1\""));
    std::size_t from = 0;
    if (const auto range = request.headers().get("Range")) {
      from = std::stoul(std::string(range->substr(6)));
      response.set_status(http::Status::partial_content);
      or_throw(response.headers().set("Content-Range", "bytes " + std::to_string(from) + "-" +
                                                           std::to_string(text.size() - 1) + "/" +
                                                           std::to_string(text.size())));
    }
    for (; from < text.size(); from += 10'000) {
      const auto sent = co_await response.write(text.substr(from, 10'000));
      if (!sent) co_return;
      if (!co_await sleep_for(1s)) co_return;
    }
  });
  for (const Duration at : {3s, 60s}) {
    simulation_.after(at, [this] { simulation_.partition(host_, client_host_); });
    simulation_.after(at + 40s, [this] { simulation_.heal(host_, client_host_); });
  }
  Client client(loop_);
  const std::string url = "http://" + server_->endpoint().to_string() + "/";
  DownloadOptions options;
  const auto result = run(
      [](Client& http_client, std::string from, DownloadOptions chosen) -> Task<DownloadResult> {
        co_return co_await http::download(http_client, from, "/file", std::move(chosen));
      }(client, url, std::move(options)));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->bytes, text.size());
  EXPECT_GT(result->requests, 1U);
  EXPECT_LT(result->requests, 10U);
}

TEST(DownloadsFromNginx, files_and_parts) {
  if (!test::has_program("nginx")) GTEST_SKIP() << "nginx is not installed";
  EventLoop loop;
  test::TemporaryFolder folder;
  const test::NginxServer nginx(loop, folder.path());
  std::filesystem::create_directories(folder.path() + "/files");
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += static_cast<char>(i * 7 % 251);
  std::ofstream(folder.path() + "/files/data.bin", std::ios::binary) << text;
  const std::string target = folder.path() + "/copy";
  const std::string url = "http://127.0.0.1:" + std::to_string(nginx.port()) + "/data.bin";
  Client client(loop);
  std::vector<std::string> outcomes;
  spawn(loop, [&]() -> Task<> {
    // The first call ends after some bytes.
    DownloadOptions limited;
    limited.bytes_max = std::numeric_limits<std::uint64_t>::max();
    limited.on_progress = [](std::uint64_t bytes, std::optional<std::uint64_t>) {
      if (bytes > 0) throw std::runtime_error("stop");
    };
    try {
      static_cast<void>(co_await http::download(client, url, target, std::move(limited)));
    } catch (const std::runtime_error&) {
      outcomes.emplace_back("stopped");
    }
    DownloadOptions options;
    const auto result = co_await http::download(client, url, target, std::move(options));
    outcomes.push_back(!result                     ? result.error().message()
                       : result->resumed_bytes > 0 ? "resumed"
                                                   : "whole");
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"stopped", "resumed"}));
  std::ifstream file(target, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

}  // namespace
}  // namespace tambour::download_test
