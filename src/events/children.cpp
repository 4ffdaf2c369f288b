// Children: one loop watches its children by pidfd_open(2), or by SIGCHLD where pidfds are missing.
#include "events/children.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/system_call.h"
#include "events/child_table.h"
#include "loop/core.h"
#include "loop/service_watch.h"

namespace tambour::detail::events {
namespace {

std::atomic<bool> no_pidfds{false};

int open_pidfd(pid_t pid) noexcept {
  if (no_pidfds.load(std::memory_order_relaxed)) return -1;
  return static_cast<int>(
      base::system_call(base::Call::pidfd_open, ::syscall, long{SYS_pidfd_open}, pid, 0));
}

}  // namespace

void Children::avoid_pidfds(bool avoid) noexcept { no_pidfds = avoid; }

Children::Children(loop::Core& core) noexcept
    : core_(core), sigchld_(core, SIGCHLD, [this](int) { check_all(); }) {
  sigchld_.set_priority(priority_max);
}

Result<> Children::add(Child& child) noexcept {
  if (auto entered = ChildTable::enter(child); !entered) return entered;
  if (!watch_by_pidfd(child)) {
    if (auto watched = watch_by_signal(); !watched) {
      ChildTable::leave(child);
      return watched;
    }
    // The child may have terminated before the SIGCHLD handler was installed.
    if (ChildTable::poll(child)) core_.queue(child);
  }
  children_.push_front(child);
  core_.add_reference();
  return {};
}

void Children::remove(Child& child) noexcept {
  close_pidfd(child);
  child.unlink();
  ChildTable::leave(child);
  child.unlist();
  core_.drop_reference();
}

/// A pidfd reports termination only, and refers to a single child.
bool Children::watch_by_pidfd(Child& child) noexcept {
  if (child.any_ || child.changes_ == ChildChanges::all) return false;
  const int pidfd = open_pidfd(child.pid_);
  if (pidfd < 0) return false;
  if (!can_watch(core_, pidfd)) {
    ::close(pidfd);
    return false;
  }
  child.fd = pidfd;
  core_.backend().invalidate(pidfd);
  core_.backend().submit(child);
  return true;
}

Result<> Children::watch_by_signal() noexcept {
  if (by_signal_ == 0) {
    if (auto started = sigchld_.start(); !started) return started;
    core_.drop_reference();  // The children keep run() from returning, not this watcher.
  }
  ++by_signal_;
  return {};
}

void Children::close_pidfd(Child& child) noexcept {
  child.result = 0;
  if (child.fd < 0) {
    if (--by_signal_ > 0) return;
    core_.add_reference();
    sigchld_.stop();
    return;
  }
  if (child.submitted()) core_.backend().cancel(child);
  core_.backend().invalidate(child.fd);
  ::close(std::exchange(child.fd, -1));
}

void Children::check_all() noexcept {
  for (Child* child = children_.front(); child != nullptr; child = child->next()) {
    if (child->fd < 0 && ChildTable::poll(*child)) core_.queue_now(*child);
  }
}

void Children::run(Child& child) {
  const int error = -std::exchange(child.result, 0);
  if (error > 0) return fall_back_to_signal(child);
  ChildStatus status;
  if (!ChildTable::take_status(child, status)) return;
  if (status.has_ended() && !child.any_) {
    remove(child);
  } else if (ChildTable::poll(child)) {
    // Deliver the next status in the next iteration: a supervisor that restarts children that exit
    // immediately always finds another status and would starve all other handles.
    core_.queue(child);
  }
  child.function_(status);
}

/// Called if the backend could not watch the pidfd (ENOMEM).
void Children::fall_back_to_signal(Child& child) {
  auto watched = watch_by_signal();
  if (watched) {
    core_.backend().invalidate(child.fd);
    ::close(std::exchange(child.fd, -1));
    if (ChildTable::poll(child)) core_.queue(child);
    return;
  }
  const ChildStatus status{.pid = child.pid_, .code = watched.error().value()};
  remove(child);
  child.function_(status);
}

Result<> Children::reopen() noexcept {
  for (Child* child = children_.front(); child != nullptr; child = child->next()) {
    if (ChildTable::enter_after_fork(*child)) core_.queue(*child);
  }
  return {};
}

void Children::close() noexcept {
  while (Child* const child = children_.front()) remove(*child);
}

}  // namespace tambour::detail::events
