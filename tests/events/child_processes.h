// Child processes to watch, by pidfd and by SIGCHLD.
#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/children.h"
#include "events/heartbeat.h"
#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour {

using Event = ChildStatus::Event;

/// fork(2), or abort: kill(-1) would signal every process.
inline pid_t fork_or_abort() {
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  return child;
}

/// A child that exits with `status` when `go` is closed.
inline pid_t fork_waiting(const test::Ends& go, int status) {
  const pid_t child = fork_or_abort();
  if (child != 0) return child;
  ::close(go.far.get());
  pollfd closed{.fd = go.near.get(), .events = POLLIN, .revents = 0};
  ::poll(&closed, 1, -1);
  ::_exit(status);
}

inline pid_t fork_exiting(int status) {
  const pid_t child = fork_or_abort();
  if (child == 0) ::_exit(status);
  return child;
}

/// Waits until the child has exited, and leaves its status.
inline void await_zombie(pid_t child) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
}

/// The fixture of the Child tests; both_ways() runs a test body with pidfds and with SIGCHLD.
class ChildrenTest : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    heartbeat.emplace(loop());
  }
  void TearDown() override {
    heartbeat.reset();
    detail::events::Children::avoid_pidfds(false);
    OnEveryBackend::TearDown();
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  }

  template <class F>
  void both_ways(F&& f) {
    for (const bool avoid : {false, true}) {
      SCOPED_TRACE(avoid ? "by SIGCHLD" : "by pidfd");
      detail::events::Children::avoid_pidfds(avoid);
      seen.clear();
      f();
    }
  }

  auto note() {
    return [this](const ChildStatus& status) { seen.push_back(status); };
  }

  std::vector<ChildStatus> seen;
  std::optional<test::Heartbeat> heartbeat;
};

}  // namespace tambour
