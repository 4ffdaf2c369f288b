// A connection that runs out of memory while it sends: a truncated message is never followed by the
// next one.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection.h>

#include "faults/allocations.h"
#include "support/on_every_backend.h"
#include "support/streams.h"

namespace tambour::sending_test {
namespace {

class Sending : public test::OnEveryBackend {
 protected:
  /// Sends a message of which the kernel accepts a part, while each allocation in turn fails;
  /// `send` returns the result of send().
  void refuse_each_allocation(bool (*send)(Connection&, Buffer&)) {
    const std::string message(4'000'000, 'm');
    for (unsigned nth = 1;; ++nth) {
      SCOPED_TRACE(nth);
      test::StreamEnds both = test::open_stream_ends(loop());
      std::vector<Error> ends;
      Connection& connection = Connection::start(
          std::move(both.near),
          std::make_shared<const ConnectionCallbacks>(ConnectionCallbacks{
              .on_close = [&](Connection&, Error error) { ends.push_back(error); }}));
      Buffer bytes;
      bytes.append_shared(std::as_bytes(std::span(message)), nullptr);
      test::refuse_memory(nth, 1);
      const bool sent = send(connection, bytes);
      test::grant_memory();
      const bool was_refused = test::memory_was_refused();
      EXPECT_EQ(sent, !was_refused);
      EXPECT_EQ(connection.send("n"), !was_refused);
      if (!was_refused) {
        connection.close();
        loop().run();
        return;
      }
      loop().run();
      EXPECT_EQ(ends, std::vector<Error>{system_error(ENOMEM)});
      std::string all(message.size(), '\0');
      const ssize_t got = ::recv(both.far.fd(), all.data(), all.size(), 0);
      EXPECT_GT(got, 0);
      EXPECT_EQ(all.find('n'), std::string::npos);
      if (HasFailure()) return;
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(Sending);

TEST_P(Sending, bytes_close_the_connection_if_the_rest_cannot_be_buffered) {
  refuse_each_allocation([](Connection& to, Buffer& bytes) { return to.send(bytes.front()); });
}

TEST_P(Sending, a_buffer_closes_the_connection_if_the_rest_cannot_be_buffered) {
  refuse_each_allocation([](Connection& to, Buffer& bytes) { return to.send(std::move(bytes)); });
}

/// Calls `operation`, and appends `text` to `expected` unless there is no memory for it.
template <class Operation>
void try_to_queue(std::string& expected, std::string_view text, Operation operation) {
  try {
    EXPECT_TRUE(operation());
    expected += text;
  } catch (const std::bad_alloc&) {
    // Nothing was queued.
  }
}

TEST_P(Sending, a_handle_queues_an_operation_or_throws) {
  for (unsigned nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    test::StreamEnds both = test::open_stream_ends(loop());
    Connection& connection =
        Connection::start(std::move(both.near), std::make_shared<const ConnectionCallbacks>());
    ConnectionHandle handle;
    std::string expected;
    Buffer buffer("b");
    test::refuse_memory(nth, 1);
    try {
      handle = connection.handle();
    } catch (const std::bad_alloc&) {
      handle = connection.handle();
    }
    // Behind a task, so that they are queued like those of another thread.
    try_to_queue(expected, "1", [&] { return handle.post([](Connection& to) { to.send("1"); }); });
    try_to_queue(expected, "a", [&] { return handle.send("a"); });
    try_to_queue(expected, "b", [&] { return handle.send(std::move(buffer)); });
    try_to_queue(expected, "2", [&] { return handle.post([](Connection& to) { to.send("2"); }); });
    test::grant_memory();
    const bool was_refused = test::memory_was_refused();
    run_iterations();
    std::array<char, 8> got{};
    const ssize_t size = ::recv(both.far.fd(), got.data(), got.size(), 0);
    EXPECT_EQ(std::string(got.data(), std::size_t(size)), expected);
    handle.close();
    loop().run();
    if (HasFailure()) return;
    if (!was_refused) {
      EXPECT_EQ(expected, "1ab2");
      EXPECT_GT(nth, 4U);
      return;
    }
  }
}

}  // namespace
}  // namespace tambour::sending_test
