// A forked child holds copies of all descriptors, so closing one of them in the parent does not
// remove it from epoll. Counts system calls; measures no time.
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::copies_test {
namespace {

/// A child process that holds copies of all descriptors until this object is destroyed.
class Holder {
 public:
  Holder() : pid_(::fork()) {
    if (pid_ != 0) return;
    gate_.far.reset(-1);
    pollfd gate{.fd = gate_.near.get(), .events = POLLIN, .revents = 0};
    ::poll(&gate, 1, -1);
    ::_exit(0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    gate_.far.reset(-1);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }

 private:
  test::Ends gate_ = test::open_pipe();
  pid_t pid_;
};

class Copies : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;
  static constexpr std::size_t count = 200;

  struct Ends {
    int near;
    test::UniqueFd far;
  };
  static std::vector<Ends> open_pairs() {
    std::vector<Ends> pairs;
    for (std::size_t i = 0; i < count; ++i) {
      std::array<int, 2> fds{};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()),
                0);
      pairs.push_back({fds[0], test::UniqueFd(fds[1])});
    }
    return pairs;
  }

  [[nodiscard]] std::uint64_t calls() { return loop().stats().system_calls; }

  /// Closes one stream after another from the peer's side and counts the backend's calls for each.
  void expect_few_calls(const std::vector<Ends>& pairs, const std::size_t& ended) {
    const std::uint64_t before = calls();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      ::shutdown(pairs[i].far.get(), SHUT_WR);
      ASSERT_TRUE(run_until([&] { return ended == i + 1; }));
    }
    // Without copies, each of them takes one or two waits.
    EXPECT_LE((calls() - before) / count, 10U);
  }
};

TAMBOUR_ON_EVERY_BACKEND(Copies);

TEST_P(Copies, closing_streams_costs_a_few_calls_each) {
  const std::vector<Ends> pairs = open_pairs();
  std::size_t ended = 0;
  TaskScope scope(loop());
  const auto drain = [](UnixStream stream, std::size_t& count_of_ended) -> Task<> {
    std::array<std::byte, 64> bytes;
    while (true) {
      const auto got = co_await stream.read(bytes);
      if (!got || *got == 0) break;
    }
    stream.close();
    ++count_of_ended;
  };
  for (const Ends& pair : pairs) scope.spawn(drain(UnixStream(loop(), pair.near), ended));
  run_iterations();
  const Holder holder;
  expect_few_calls(pairs, ended);
}

TEST_P(Copies, closing_connections_costs_a_few_calls_each) {
  const std::vector<Ends> pairs = open_pairs();
  std::size_t ended = 0;
  const auto callbacks = std::make_shared<const ConnectionCallbacks>(
      ConnectionCallbacks{.on_close = [&](Connection&, Error) { ++ended; }});
  for (const Ends& pair : pairs) Connection::start(UnixStream(loop(), pair.near), callbacks);
  run_iterations();
  const Holder holder;
  expect_few_calls(pairs, ended);
}

TEST_P(Copies, a_child_that_closes_its_copies_takes_nothing_from_the_parent) {
  std::vector<Ends> pairs = open_pairs();
  std::vector<std::unique_ptr<UnixStream>> streams;
  std::size_t ended = 0;
  TaskScope scope(loop());
  const auto drain = [](UnixStream& stream, std::size_t& count_of_ended) -> Task<> {
    std::array<std::byte, 64> bytes;
    while (true) {
      const auto got = co_await stream.read(bytes);
      if (!got || *got == 0) break;
    }
    stream.close();
    ++count_of_ended;
  };
  for (const Ends& pair : pairs) {
    streams.push_back(std::make_unique<UnixStream>(loop(), pair.near));
    scope.spawn(drain(*streams.back(), ended));
  }
  run_iterations();
  const Holder holder;
  // The loop has detected that there are copies.
  for (std::size_t i = 0; i < 2; ++i) {
    ::shutdown(pairs[i].far.get(), SHUT_WR);
    ASSERT_TRUE(run_until([&] { return ended == i + 1; }));
  }
  // The child does not reopen the loop: the descriptors that it closes stay registered for the
  // parent.
  EXPECT_EQ(test::in_child([&] {
              for (auto& stream : streams) stream->close();
              return 0;
            }),
            0);
  for (std::size_t i = 2; i < pairs.size(); ++i) ::shutdown(pairs[i].far.get(), SHUT_WR);
  EXPECT_TRUE(run_until([&] { return ended == pairs.size(); })) << ended;
}

TEST_P(Copies, closing_watched_descriptors_costs_a_few_calls_each) {
  const std::vector<Ends> pairs = open_pairs();
  std::size_t ended = 0;
  std::vector<std::unique_ptr<FdWatcher>> watchers;
  for (const Ends& pair : pairs) {
    const std::size_t index = watchers.size();
    watchers.push_back(std::make_unique<FdWatcher>(loop(), pair.near, Events::read,
                                                   [&watchers, &ended, &pair, index](Events) {
                                                     watchers[index]->stop();
                                                     ::close(pair.near);
                                                     ++ended;
                                                   }));
    ASSERT_TRUE(watchers.back()->start());
  }
  run_iterations();
  const Holder holder;
  expect_few_calls(pairs, ended);
}

}  // namespace
}  // namespace tambour::copies_test
