// What a loop must not lose, whatever fails: wakeups, the descriptors that it watches for itself,
// and the completions of its ring.
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

#include <tambour/detail/file_operation.h>

#include "faults/faults.h"
#include "faults/scenarios.h"
#include "loop/core.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::losses_test {
namespace {

using namespace std::chrono_literals;
using test::Call;
using test::Faults;

class Losses : public test::OnEveryBackend {
 protected:
  /// Returns whether the backend makes such calls.
  [[nodiscard]] bool makes(Call call) const {
    return is(call == Call::epoll_add ? BackendKind::epoll : BackendKind::io_uring);
  }
};

/// The kernel temporarily lacks memory to watch a descriptor.
constexpr std::pair<Call, int> refusals[] = {{Call::epoll_add, ENOMEM},
                                             {Call::epoll_add, ENOSPC},
                                             {Call::ring_completion, ENOMEM},
                                             {Call::ring_completion, ENOBUFS}};

TEST_P(Losses, of_wakeup_registrations_do_not_stop_wakeups) {
  for (const auto& [call, error] : refusals) {
    SCOPED_TRACE(system_error(error).message());
    Faults faults;
    faults.fail(call, 1, error, 3);
    EventLoop fresh(options());
    // The eventfd for wakeups is the only watched descriptor.
    for (int iteration = 0; iteration < 5; ++iteration) {
      fresh.wake();
      fresh.run_ready();
    }
    faults.clear();
    EXPECT_EQ(faults.hit(), makes(call));
    EXPECT_FALSE(test::play_posting(fresh));
  }
}

TEST_P(Losses, never_affect_signals) {
  for (const auto& [call, error] : refusals) {
    SCOPED_TRACE(system_error(error).message());
    EventLoop fresh(options());
    fresh.run_ready();
    int calls = 0;
    Signal signal(fresh, SIGUSR1, [&calls](int) { ++calls; });
    ASSERT_TRUE(signal.start());
    Faults faults;
    faults.fail(call, 1, error, 3);
    ::raise(SIGUSR1);
    for (int iteration = 0; iteration < 8; ++iteration) fresh.run_ready();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(faults.hit(), makes(call));
  }
}

/// If the completion queue is full, a ring may accept no entries (io_uring_enter(2), EBUSY).
TEST_P(Losses, never_result_from_a_full_completion_queue) {
  if (!is(BackendKind::io_uring)) GTEST_SKIP() << "no ring";
  constexpr std::size_t many = 600;  // More than the ring has entries.
  const test::Ends pipe = test::open_pipe();
  std::array<std::optional<test::UniqueFd>, many> copies;
  std::array<std::optional<FdWatcher>, many> watchers;
  std::size_t calls = 0;
  loop().run_ready();
  for (std::size_t i = 0; i < many; ++i) {
    copies[i] = test::duplicate_above(pipe.near, 0);
    if (!copies[i]->is_open()) GTEST_SKIP() << "too few descriptors";
    watchers[i].emplace(loop(), copies[i]->get(), Events::read, [&calls, &watchers, i](Events) {
      ++calls;
      watchers[i]->stop();
    });
    ASSERT_TRUE(watchers[i]->start());
  }
  loop().wake();
  {
    Faults faults;
    faults.fail_until(Call::ring_completion, Call::ring_enter, 1, EBUSY);
    loop().run_ready();
    EXPECT_TRUE(faults.hit());
  }
  test::write_to(pipe.far);
  EXPECT_TRUE(run_until([&] { return calls == many; })) << calls;
}

/// The kernel had no memory for a completion and reports that once (EBADR); it does not report
/// which one.
TEST_P(Losses, of_completions_are_repaired) {
  if (!is(BackendKind::io_uring)) GTEST_SKIP() << "no ring";
  for (const Trigger trigger : {Trigger::level, Trigger::edge}) {
    const test::Ends pipe = test::open_pipe();
    int calls = 0;
    FdWatcher watcher(
        loop(), pipe.near.get(), Events::read,
        [&](Events) {
          ++calls;
          watcher.stop();
        },
        trigger);
    ASSERT_TRUE(watcher.start());
    loop().run_ready();
    test::write_to(pipe.far);
    Faults faults;
    faults.lose_completion(1);
    EXPECT_TRUE(run_until([&] { return calls == 1; }));
    EXPECT_TRUE(faults.hit());
  }
}

/// The directory appears after the lookup and before its parent is watched.
TEST_P(Losses, never_affect_a_directory_that_appears_concurrently) {
  const test::TemporaryFolder folder;
  const std::filesystem::path appearing = folder.path() + "/appearing";
  std::filesystem::create_directory(appearing);
  bool exists = false;
  FileStatus status(loop(), appearing / "file",
                    [&](const FileState&, const FileState& now) { exists = now.exists; },
                    {.interval = 1h});
  Faults faults;
  faults.fail(Call::inotify_add, 1, ENOENT);
  ASSERT_TRUE(status.start());
  EXPECT_TRUE(faults.hit());
  std::ofstream(appearing / "file") << "text";
  EXPECT_TRUE(run_until([&] { return exists; }));
}

/// A read that the ring executes and whose buffer the ring uses.
struct PipeRead : detail::FileOperation {
  explicit PipeRead(const test::UniqueFd& from)
      : detail::FileOperation(detail::OperationKind::file_read, &note) {
    // If the file is non-blocking, the ring does not wait.
    EXPECT_EQ(::fcntl(from.get(), F_SETFL, 0), 0);
    fd = from.get();
    data = &byte;
    size = 1;
  }
  static void note(detail::ReadyNode& ready) { ++static_cast<PipeRead&>(ready).calls; }
  char byte = 0;
  int calls = 0;
};

/// The loop asks the ring whether a file operation still exists, and that answer may be lost too.
TEST_P(Losses, of_answers_about_operations_are_repaired) {
  detail::backend::Backend& backend = detail::loop::core_of(loop()).backend();
  // The wakeup must be a completion.
  if (!is(BackendKind::io_uring)) GTEST_SKIP() << "no ring";
  if (!backend.supports(detail::OperationKind::file_read)) GTEST_SKIP() << "no file operations";
  for (unsigned lost = 1; lost <= 4; ++lost) {
    SCOPED_TRACE(lost);
    const test::Ends pipe = test::open_pipe();
    PipeRead read(pipe.near);
    backend.submit(read);
    run_iterations();
    Faults faults;
    faults.lose_completion(1);
    loop().wake();
    while (!faults.hit()) loop().run_ready();
    faults.lose_completion(faults.count(Call::ring_completion) + lost);
    run_iterations(8);
    // Discovered with the next lost completion, whichever that is.
    faults.lose_completion(faults.count(Call::ring_completion) + 1);
    loop().wake();
    run_iterations(8);
    test::write_to(pipe.far);
    EXPECT_TRUE(run_until([&] { return read.calls == 1; }));
    EXPECT_TRUE(read.result == 1 || read.result == -EIO) << read.result;
  }
}

TAMBOUR_ON_EVERY_BACKEND(Losses);

}  // namespace
}  // namespace tambour::losses_test
