// A StreamClient whose attempts run out of memory.
#include <tambour/net/stream_client.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"
#include "support/on_every_backend.h"
#include "support/streams.h"

namespace tambour::stream_client_test {
namespace {

class StreamClients : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(StreamClients);

TEST_P(StreamClients, connects_later_if_an_attempt_runs_out_of_memory) {
  for (unsigned nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    test::StreamEnds ends;
    std::vector<Error> failures;
    StreamClient client(
        loop(),
        [&]() -> Task<ConnectResult> {
          ends = test::open_stream_ends(loop());
          co_return ConnectedStream(std::move(ends.near));
        },
        {.limits = {.idle_timeout = std::chrono::hours(1)}},
        {.retry = {.attempts_max = RetryPolicy::unlimited, .delay = Duration::zero()},
         .on_failure = [&](const ConnectFailure& failure) { failures.push_back(failure.error); }});
    test::refuse_memory(nth);
    client.start();
    for (int i = 0; i < 100 && client.connection() == nullptr; ++i) loop().run_once();
    test::grant_memory();
    EXPECT_NE(client.connection(), nullptr);
    if (HasFailure()) return;
    if (!test::memory_was_refused()) {
      EXPECT_EQ(failures, std::vector<Error>());
      // The frames of two tasks and the connection with its deadlines.
      EXPECT_GT(nth, 4U);
      return;
    }
    EXPECT_EQ(failures, std::vector<Error>{system_error(ENOMEM)});
  }
}

}  // namespace
}  // namespace tambour::stream_client_test
