// sendfile(2) fails in a response with a file.
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

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

}  // namespace
}  // namespace tambour::http_files_test
