// After fork(2), each system call and each allocation of reopening a loop fails once: the failure
// is reported, and the next attempt succeeds with all state unchanged.
#include <cerrno>
#include <csignal>
#include <optional>

#include <gtest/gtest.h>

#include "faults/allocations.h"
#include "faults/faults.h"
#include "faults/scenarios.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::reopening_test {
namespace {

using namespace std::chrono_literals;
using test::Call;

/// The exit status of the child.
enum Outcome : int {
  nothing_failed = 0,
  failure_was_reported = 1,
  failure_was_not_reported = 2,
  it_is_broken = 3
};

class Reopening : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    pipe_ = test::open_pipe();
    watcher_.emplace(loop(), pipe_.near.get(), Events::read, [this](Events) {
      test::drain(pipe_.near);
      ++reads_;
    });
    signal_.emplace(loop(), SIGUSR2, [this](int) { ++signals_; });
    wall_timer_.emplace(loop(), [this] { ++expirations_; });
    status_.emplace(loop(), "/tmp", [](const FileState&, const FileState&) {});
    ASSERT_TRUE(watcher_->start());
    ASSERT_TRUE(signal_->start());
    ASSERT_TRUE(wall_timer_->start_every(1ms));
    ASSERT_TRUE(status_->start());
    run_iterations();
  }

  void TearDown() override {
    status_.reset();
    wall_timer_.reset();
    signal_.reset();
    watcher_.reset();
    OnEveryBackend::TearDown();
  }

  /// In the child: reopens the loop, a second time if the first attempt fails, and checks that
  /// everything still works.
  template <class Plan, class Clear, class Hit>
  int reopen(Plan&& plan, Clear&& clear, Hit&& hit) {
    const std::size_t before = test::open_descriptors();
    plan();
    auto reopened = loop().after_fork();
    const bool reported = !reopened;
    clear();
    if (reported) reopened = loop().after_fork();
    EXPECT_TRUE(reopened);
    const int expirations_before = expirations_;
    test::write_to(pipe_.far);
    ::raise(SIGUSR2);
    EXPECT_TRUE(run_until([&] { return reads_ > 0 && signals_ > 0; }));
    EXPECT_TRUE(run_until([&] { return expirations_ > expirations_before; }));
    EXPECT_FALSE(test::play_posting(loop()));
    EXPECT_EQ(test::open_descriptors(), before);
    if (HasFailure()) return it_is_broken;
    if (!hit()) return nothing_failed;
    return reported ? failure_was_reported : failure_was_not_reported;
  }

  int reopen_with(Call call, int error, unsigned nth) {
    return test::in_child([&] {
      test::Faults faults;
      return reopen([&] { faults.fail(call, nth, error); }, [&] { faults.clear(); },
                    [&] { return faults.hit(); });
    });
  }

  int reopen_without_memory(unsigned nth) {
    return test::in_child([&] {
      return reopen([nth] { test::refuse_memory(nth); }, test::grant_memory,
                    test::memory_was_refused);
    });
  }

 private:
  test::Ends pipe_;
  std::optional<FdWatcher> watcher_;
  std::optional<Signal> signal_;
  std::optional<WallTimer> wall_timer_;
  std::optional<FileStatus> status_;
  int reads_ = 0;
  int signals_ = 0;
  int expirations_ = 0;
};

TEST_P(Reopening, reports_a_failed_call_and_can_be_repeated) {
  constexpr std::pair<Call, int> failures[] = {
      {Call::epoll_create, EMFILE},   {Call::eventfd, EMFILE},       {Call::eventfd, ENOMEM},
      {Call::timerfd_create, ENFILE}, {Call::dup, EMFILE},           {Call::ring_open, ENOMEM},
      {Call::ring_open, EMFILE},      {Call::inotify_create, EMFILE}};
  for (const auto& [call, error] : failures) {
    int outcome = failure_was_reported;
    for (unsigned nth = 1; outcome != nothing_failed; ++nth) {
      SCOPED_TRACE(testing::Message() << "call " << static_cast<int>(call) << ", occurrence " << nth
                                      << ": " << system_error(error).message());
      outcome = reopen_with(call, error, nth);
      ASSERT_TRUE(outcome == nothing_failed || outcome == failure_was_reported ||
                  outcome == failure_was_not_reported)
          << outcome;
      // On ENOMEM a ring retries with less memory; without inotify, paths are polled.
      if (error != ENOMEM && call != Call::inotify_create) {
        EXPECT_NE(outcome, failure_was_not_reported);
      }
    }
  }
}

TEST_P(Reopening, needs_no_memory_to_continue) {
  int outcome = failure_was_reported;
  for (unsigned nth = 1; outcome != nothing_failed; ++nth) {
    SCOPED_TRACE(testing::Message() << "allocation " << nth);
    outcome = reopen_without_memory(nth);
    ASSERT_TRUE(outcome == nothing_failed || outcome == failure_was_reported ||
                outcome == failure_was_not_reported)
        << outcome;
  }
}

TAMBOUR_ON_EVERY_BACKEND(Reopening);

}  // namespace
}  // namespace tambour::reopening_test
