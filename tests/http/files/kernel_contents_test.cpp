// Files that a handler sends often, whose contents are in pages of the kernel, on every backend.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::kernel_contents_test {
namespace {

using http::FileOptions;

constexpr std::size_t file_bytes = 40'000;

/// Text in which no part equals another one at a different offset.
std::string numbers(std::size_t size, std::size_t first = 0) {
  std::string text;
  for (std::size_t i = first; text.size() < size; ++i) text += std::to_string(i) + " ";
  text.resize(size);
  return text;
}

class KernelContents : public test::OnEveryBackend {
 public:
  void SetUp() override {
    OnEveryBackend::SetUp();
    replace(numbers(file_bytes));
  }
  void TearDown() override {
    server_.reset();
    OnEveryBackend::TearDown();
  }
  void serve(FileOptions options = {}) {
    http::Router router;
    router.any("/{path...}", http::serve_files(folder_.path(), std::move(options)));
    auto opened =
        http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(router).handler());
    ASSERT_TRUE(opened);
    server_ = std::make_unique<http::Server>(std::move(*opened));
  }
  /// Another file takes the name.
  void replace(const std::string& content) const {
    std::ofstream(folder_.path() + "/new", std::ios::binary) << content;
    std::filesystem::rename(folder_.path() + "/new", folder_.path() + "/file");
  }
  [[nodiscard]] Endpoint endpoint() const { return server_->endpoint(); }
  [[nodiscard]] http::FileCacheStats stats() { return http::file_cache_stats(loop()); }

 private:
  test::TemporaryFolder folder_;
  std::unique_ptr<http::Server> server_;
};

TAMBOUR_ON_EVERY_BACKEND(KernelContents);

std::string request_of(const std::string& fields, const std::string& method = "GET") {
  return method + " /file HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

/// The response to one request.
Task<test::Reply> ask(Stream& stream, Buffer& in, const std::string& request,
                      http::Method method = http::Method::get) {
  EXPECT_TRUE(co_await stream.write(std::string_view(request)));
  auto reply = co_await test::read_reply(stream, in, method);
  co_return or_throw(std::move(reply), request);
}

/// Requests the file until the cache has answered so often that the kernel has the contents.
Task<> ask_often(KernelContents& test, Stream& stream, const std::string& content) {
  constexpr std::uint64_t often = 40;
  Buffer in;
  const std::uint64_t hits = test.stats().hits + often;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (test.stats().hits < hits && std::chrono::steady_clock::now() < deadline) {
    const test::Reply reply = co_await ask(stream, in, request_of(""));
    EXPECT_TRUE(reply.body == content);
  }
  EXPECT_GE(test.stats().hits, hits);
}

TEST_P(KernelContents, are_those_of_the_current_version) {
  serve();
  run([](KernelContents& test) -> Task<> {
    auto stream = co_await TcpStream::connect(test.endpoint());
    EXPECT_TRUE(stream);
    for (std::size_t version = 0; version < 3; ++version) {
      const std::string content = numbers(file_bytes + version, 1000 * version);
      test.replace(content);
      co_await ask_often(test, *stream, content);
      // The descriptor of the file itself is not needed.
      EXPECT_EQ(test.stats().open_files, 1U);
    }
  }(*this));
  EXPECT_EQ(stats().files, 1U);
}

TEST_P(KernelContents, are_sent_in_part) {
  serve();
  run([](KernelContents& test) -> Task<> {
    auto stream = co_await TcpStream::connect(test.endpoint());
    EXPECT_TRUE(stream);
    const std::string content = numbers(file_bytes);
    co_await ask_often(test, *stream, content);
    EXPECT_EQ(test.stats().open_files, 1U);
    Buffer in;
    const auto range =
        co_await ask(*stream, in, request_of("Range: bytes=1000-30999\r\n"), http::Method::get);
    EXPECT_EQ(range.status, http::Status::partial_content);
    EXPECT_TRUE(range.body == content.substr(1000, 30'000));
    const auto ranges =
        co_await ask(*stream, in, request_of("Range: bytes=0-19999,20001-39999\r\n"));
    EXPECT_TRUE(ranges.body.contains(content.substr(0, 20'000)));
    EXPECT_TRUE(ranges.body.contains(content.substr(20'001)));
    const auto head = co_await ask(*stream, in, request_of("", "HEAD"), http::Method::head);
    EXPECT_EQ(head.fields.get("Content-Length"), std::to_string(file_bytes));
    EXPECT_TRUE((co_await ask(*stream, in, request_of(""))).body == content);
  }(*this));
}

/// The kernel accepts parts of responses.
TEST_P(KernelContents, are_sent_to_slow_clients) {
  serve();
  run([](KernelContents& test) -> Task<> {
    auto stream = co_await TcpStream::connect(test.endpoint());
    EXPECT_TRUE(stream);
    const std::string content = numbers(file_bytes);
    co_await ask_often(test, *stream, content);
    EXPECT_EQ(test.stats().open_files, 1U);
    constexpr int count = 300;
    std::string requests;
    for (int i = 0; i < count; ++i) requests += request_of("");
    EXPECT_TRUE(co_await stream->write(std::string_view(requests)));
    Buffer in;
    for (int i = 0; i < count; ++i) {
      const auto reply = co_await test::read_reply(*stream, in);
      EXPECT_TRUE(reply && reply->body == content) << i;
      if (!reply) break;
    }
  }(*this));
}

TEST_P(KernelContents, take_no_descriptor_that_the_limit_does_not_permit) {
  serve({.open_files_max = 0});
  run([](KernelContents& test) -> Task<> {
    auto stream = co_await TcpStream::connect(test.endpoint());
    EXPECT_TRUE(stream);
    Buffer in;
    for (int i = 0; i < 100; ++i) {
      const test::Reply reply = co_await ask(*stream, in, request_of(""));
      EXPECT_TRUE(reply.body == numbers(file_bytes));
      EXPECT_EQ(test.stats().open_files, 0U);
    }
  }(*this));
}

}  // namespace
}  // namespace tambour::kernel_contents_test
