// In a response with a file, sendfile(2), the calls that open the file, or allocations fail.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"
#include "faults/faults.h"
#include "http/support/client.h"
#include "support/temporary_folder.h"

namespace tambour::http_files_test {
namespace {

using test::Call;

constexpr std::size_t file_bytes = 3'000'000;

/// The size of the body, or the error.
Task<> download(EventLoop& loop, Endpoint to, Result<std::size_t>& received) {
  auto stream = co_await TcpStream::connect(to);
  EXPECT_TRUE(stream);
  EXPECT_TRUE(co_await stream->write("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  Buffer in;
  const auto reply = co_await test::read_reply(*stream, in);
  received = reply ? Result<std::size_t>(reply->body.size()) : std::unexpected(reply.error());
  if (reply && reply->body != std::string(file_bytes, 'x')) received = std::size_t{1};
  loop.stop();
}

struct Case {
  int error;
  bool ends;  ///< The connection, rather than the failure being overcome.
};

TEST(HttpFileFaults, of_sendfile_are_overcome_or_end_the_connection) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << std::string(file_bytes, 'x');
  http::Router router;
  router.get("/{path...}", http::serve_files(folder.path()));
  const http::Handler handler = std::move(router).handler();
  for (const Case test_case :
       {Case{EINTR, false}, Case{EAGAIN, false}, Case{EINVAL, false}, Case{ENOSYS, false},
        Case{EPIPE, true}, Case{EIO, true}, Case{ENOMEM, true}}) {
    for (unsigned nth = 1; nth <= 3; ++nth) {
      SCOPED_TRACE(testing::Message() << "call " << nth << ", error " << test_case.error);
      EventLoop loop;
      auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), handler);
      ASSERT_TRUE(server);
      Result<std::size_t> received = 0;
      spawn(loop, download(loop, server->endpoint(), received));
      test::Faults faults;
      faults.fail(Call::sendfile, nth, test_case.error);
      loop.run();
      // Whether the file system tells what is in its cache decides whether the call is used.
      if (!faults.hit()) {
        EXPECT_EQ(received, file_bytes);
      } else if (test_case.ends) {
        EXPECT_FALSE(received);
      } else {
        EXPECT_EQ(received, file_bytes);
      }
    }
  }
}

constexpr std::size_t small_bytes = 3'000;
constexpr std::size_t large_bytes = 70'000;

void write_files(const std::string& folder) {
  std::ofstream(folder + "/small") << std::string(small_bytes, 's');
  std::ofstream(folder + "/large") << std::string(large_bytes, 'l');
}

/// The bodies of two requests for each file on one connection, the second of which may be answered
/// from the cache; shorter after an error.
Task<> request_twice(Endpoint to, std::string& bodies) {
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  Buffer in;
  for (const char* const name : {"small", "small", "large", "large"}) {
    const std::string request = std::string("GET /") + name + " HTTP/1.1\r\nHost: a\r\n\r\n";
    const auto written = co_await stream->write(std::string_view(request));
    if (!written) co_return;
    const auto reply = co_await test::read_reply(*stream, in);
    if (!reply || reply->status != http::Status::ok) co_return;
    bodies += reply->body;
  }
}

const std::string& expected_bodies() {
  static const std::string text =
      std::string(2 * small_bytes, 's') + std::string(2 * large_bytes, 'l');
  return text;
}

/// Returns the bodies, or "no memory" if an end has reported that.
std::string exchange(EventLoop& loop, const http::Handler& handler) {
  std::string bodies;
  bool failed = false;
  try {
    http::ServerOptions options;
    options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), handler, options);
    if (!server) return "no memory";
    TaskScope client(loop);
    client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    client.spawn(request_twice(server->endpoint(), bodies));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(std::chrono::minutes(1));
    while (!late && (!client.empty() || server->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  if (failed) return "no memory";
  return bodies;  // Not copied.
}

http::Handler handler_of(const std::string& folder) {
  http::Router router;
  router.get("/{path...}", http::serve_files(folder));
  return std::move(router).handler();
}

/// Until the last change of the files is longer ago than the resolution of their times.
bool fill_cache(EventLoop& loop, const http::Handler& handler) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (http::file_cache_stats(loop).files < 2 && std::chrono::steady_clock::now() < deadline)
    EXPECT_TRUE(exchange(loop, handler) == expected_bodies());
  return http::file_cache_stats(loop).files == 2;
}

TEST(HttpFileFaults, of_opening_at_once_are_overcome) {
  const test::TemporaryFolder folder;
  write_files(folder.path());
  const http::Handler handler = handler_of(folder.path());
  for (const bool is_cached : {false, true}) {
    for (const Call call : {Call::file_open, Call::file_status, Call::file_seek}) {
      for (const int error : {EAGAIN, EINTR, EINVAL, ENOSYS, EPERM, EMFILE, EIO}) {
        for (unsigned nth = 1; nth <= 3; ++nth) {
          SCOPED_TRACE(testing::Message() << "call " << nth << ", error " << error);
          EventLoop loop;
          if (is_cached) {
            ASSERT_TRUE(fill_cache(loop, handler));
          }
          test::Faults faults;
          faults.fail(call, nth, error);
          EXPECT_TRUE(exchange(loop, handler) == expected_bodies());
        }
      }
    }
  }
}

/// The cache gives its descriptors to others.
TEST(HttpFileFaults, of_descriptors_close_the_files_of_the_cache) {
  const test::TemporaryFolder folder;
  write_files(folder.path());
  std::ofstream(folder.path() + "/other") << "other";
  const http::Handler handler = handler_of(folder.path());
  EventLoop loop;
  ASSERT_TRUE(fill_cache(loop, handler));
  ASSERT_EQ(http::file_cache_stats(loop).open_files, 1U);
  auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), handler);
  ASSERT_TRUE(server);
  test::Faults faults;
  faults.fail(Call::file_open, 1, EMFILE);
  std::string body;
  spawn(loop, [](EventLoop& of, Endpoint to, std::string& into) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    EXPECT_TRUE(co_await stream->write("GET /other HTTP/1.1\r\nHost: a\r\n\r\n"));
    Buffer in;
    const auto reply = co_await test::read_reply(*stream, in);
    if (reply) into = reply->body;
    of.stop();
  }(loop, server->endpoint(), body));
  loop.run();
  EXPECT_EQ(body, "other");
  EXPECT_EQ(http::file_cache_stats(loop).open_files, 0U);
}

/// Requests one file several times on one connection, and counts the bodies that are the file.
std::size_t request_often(EventLoop& loop, const http::Handler& handler, int times) {
  auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), handler);
  EXPECT_TRUE(server);
  std::size_t same = 0;
  spawn(loop, [](EventLoop& of, Endpoint to, int count, std::size_t& counted) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    Buffer in;
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(co_await stream->write("GET /file HTTP/1.1\r\nHost: a\r\n\r\n"));
      const auto reply = co_await test::read_reply(*stream, in);
      if (!reply || reply->body != std::string(40'000, 'o')) break;
      ++counted;
    }
    of.stop();
  }(loop, server->endpoint(), times, same));
  loop.run();
  return same;
}

/// Writes the file that request_often() requests. Without checks, no other call opens a file.
http::Handler handler_of_unchecked_file(const std::string& folder) {
  std::ofstream(folder + "/file") << std::string(40'000, 'o');
  http::Router router;
  router.get("/{path...}", http::serve_files(folder, {.check_interval = std::chrono::hours(1)}));
  return std::move(router).handler();
}

/// Requests the file until the loop keeps it.
void request_until_kept(EventLoop& loop, const http::Handler& handler) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (http::file_cache_stats(loop).files == 0 && std::chrono::steady_clock::now() < deadline)
    EXPECT_EQ(request_often(loop, handler, 1), 1U);
}

/// The contents are sent from the heap, or from memory by send(2).
TEST(HttpFileFaults, of_contents_in_the_kernel_change_no_body) {
  const test::TemporaryFolder folder;
  const http::Handler handler = handler_of_unchecked_file(folder.path());
  struct Failure {
    Call call;
    int error;
  };
  for (const Failure failure :
       {Failure{Call::file_open, EMFILE}, Failure{Call::file_open, EPERM},
        Failure{Call::file_open, EINVAL}, Failure{Call::file_allocate, ENOSPC},
        Failure{Call::mmap, ENOMEM}, Failure{Call::sendfile, EPERM},
        Failure{Call::sendfile, EAGAIN}, Failure{Call::sendfile, EINVAL},
        Failure{Call::sendfile, EOPNOTSUPP}}) {
    SCOPED_TRACE(testing::Message() << "call " << int(failure.call) << ", error " << failure.error);
    EventLoop loop;
    request_until_kept(loop, handler);
    test::Faults faults;
    faults.fail(failure.call, 1, failure.error);
    EXPECT_EQ(request_often(loop, handler, 40), 40U);
    EXPECT_TRUE(faults.hit());
  }
}

TEST(HttpFileFaults, no_call_asks_for_the_mode_of_an_accepted_socket) {
  const test::TemporaryFolder folder;
  const http::Handler handler = handler_of_unchecked_file(folder.path());
  EventLoop loop;
  request_until_kept(loop, handler);
  EXPECT_EQ(request_often(loop, handler, 40), 40U);
  const test::Faults counts;
  EXPECT_EQ(request_often(loop, handler, 10), 10U);
  EXPECT_GE(counts.count(Call::sendfile), 10U);
  EXPECT_EQ(counts.count(Call::fcntl), 0U);
}

/// Sends more of a file than the socket accepts, to a peer that receives nothing.
TEST(SendFileFaults, no_call_follows_one_that_has_filled_the_socket) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << std::string(file_bytes, 'x');
  EventLoop loop;
  auto [sender, receiver] = UnixStream::pair(loop).value();
  std::uint64_t unsent = file_bytes;
  const test::Faults counts;
  spawn(loop, [](Stream& stream, std::string name, std::uint64_t& size) -> Task<> {
    const auto file = co_await File::open(std::move(name));
    EXPECT_TRUE(file);
    const auto sent =
        co_await timeout(std::chrono::milliseconds(20), stream.send_file(*file, 0, size));
    EXPECT_EQ(sent.error(), system_error(ETIMEDOUT));
  }(sender, path, unsent));
  loop.run();
  EXPECT_LT(unsent, file_bytes);
  EXPECT_EQ(counts.count(Call::sendfile), 1U);
}

/// Sends a file in parts over a socket that the program has opened in blocking mode.
Task<> send_parts(EventLoop& loop, UniqueFd fd, std::string path, unsigned parts) {
  const auto file = co_await File::open(std::move(path));
  EXPECT_TRUE(file);
  UnixStream stream(loop, fd.release());
  const test::Faults counts;
  for (unsigned i = 0; i < parts; ++i) {
    std::uint64_t size = 100;
    EXPECT_TRUE(co_await stream.send_file(*file, 100 * i, size));
  }
  EXPECT_EQ(counts.count(Call::sendfile), parts);
  EXPECT_EQ(counts.count(Call::fcntl), 2U);
  EXPECT_NE(::fcntl(stream.fd(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(SendFileFaults, one_call_asks_for_the_mode_of_an_adopted_socket) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << std::string(1'000, 'x');
  std::array<int, 2> fds{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  const UniqueFd peer(fds[1]);
  EventLoop loop;
  spawn(loop, send_parts(loop, UniqueFd(fds[0]), path, 5));
  loop.run();
  std::array<char, 600> received{};
  EXPECT_EQ(::recv(peer.get(), received.data(), received.size(), MSG_DONTWAIT), 500);
}

TEST(HttpFileFaults, of_allocations_change_no_body) {
  const test::TemporaryFolder folder;
  write_files(folder.path());
  const http::Handler handler = handler_of(folder.path());
  EventLoop loop;
  ASSERT_TRUE(fill_cache(loop, handler));
  const auto check = [](const std::string& bodies) {
    EXPECT_TRUE(bodies == "no memory" || expected_bodies().starts_with(bodies));
  };
  test::refuse_each_allocation([&] { return exchange(loop, handler); }, check);
  // The files are opened and kept. The descriptors of a cache are closed with its loop.
  const auto fill = [&]() -> std::string {
    try {
      EventLoop other;
      return exchange(other, handler_of(folder.path()));
    } catch (const std::bad_alloc&) {
      return "no memory";
    } catch (const std::system_error&) {
      return "no memory";
    }
  };
  test::refuse_each_allocation(fill, check);
  EXPECT_TRUE(exchange(loop, handler) == expected_bodies());
}

}  // namespace
}  // namespace tambour::http_files_test
