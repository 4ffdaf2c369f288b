// A connection that runs out of memory while it sends: a truncated message is never followed by the
// next one.
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/connection.h>

#include "faults/allocations.h"
#include "support/on_every_backend.h"
#include "support/streams.h"

namespace tambour {
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
      const ssize_t got = ::recv(both.far.descriptor(), all.data(), all.size(), 0);
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

}  // namespace
}  // namespace tambour
