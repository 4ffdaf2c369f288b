// ChildTable: finds the watchers of a child, collects its status once, and empties the table in a
// forked child.
#include "events/child_table.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <utility>

#include "base/failure.h"
#include "events/group_leader.h"
#include "events/signal_slot.h"
#include "events/wait_id.h"

namespace tambour::detail::events {
namespace {

constinit std::mutex table_mutex;

/// Named children, hashed by the low bits of their pids.
std::array<ChildTable::Bucket, 256> buckets;
Child* any = nullptr;

/// The number of Launching instances, and whether an `any_child` watcher postponed its poll for
/// them.
int launching = 0;
bool poll_postponed = false;

std::uint64_t current_epoch = 1;

int flags_for(ChildChanges changes) noexcept {
  const int stops = changes == ChildChanges::all ? WSTOPPED | WCONTINUED : 0;
  return WEXITED | WNOHANG | stops;
}

ChildStatus status_of(const siginfo_t& info) noexcept {
  ChildStatus status{.pid = info.si_pid, .code = info.si_status};
  switch (info.si_code) {
    case CLD_EXITED:
      status.event = ChildStatus::Event::exited;
      break;
    case CLD_STOPPED:
    case CLD_TRAPPED:
      status.event = ChildStatus::Event::stopped;
      break;
    case CLD_CONTINUED:
      status.event = ChildStatus::Event::continued;
      break;
    default:
      status.event = ChildStatus::Event::signaled;
      status.dumped_core = info.si_code == CLD_DUMPED;
  }
  return status;
}

}  // namespace

std::mutex& ChildTable::mutex() noexcept { return table_mutex; }

std::uint64_t ChildTable::epoch() noexcept { return current_epoch; }

void ChildTable::register_fork_handlers() noexcept {
  static const int registered =
      ::pthread_atfork([] { table_mutex.lock(); }, [] { table_mutex.unlock(); },
                       [] {
                         clear_all();
                         table_mutex.unlock();
                       });
  static_cast<void>(registered);
}

void ChildTable::clear_all() noexcept {
  launching = 0;
  poll_postponed = false;
  for (Bucket& bucket : buckets) bucket.abandon();
  GroupLeader::clear_all();
  any = nullptr;
  ++current_epoch;
}

ChildTable::Bucket& ChildTable::bucket_of(pid_t pid) noexcept {
  return buckets[static_cast<std::size_t>(pid) % buckets.size()];
}

void ChildTable::insert(Child& child) noexcept {
  child.epoch_ = current_epoch;
  if (child.any_) {
    any = &child;
    return;
  }
  bucket_of(child.pid_).push_front(child);
}

Result<> ChildTable::enter(Child& child) noexcept {
  register_fork_handlers();
  const std::scoped_lock lock(table_mutex);
  if (child.any_) {
    if (any != nullptr) return base::failure(EBUSY);
  } else {
    if (child.pid_ <= 0) return base::failure(EINVAL);
    siginfo_t info{};
    // WNOWAIT: only checks that the child exists, and takes no status.
    if (wait_id(P_PID, static_cast<id_t>(child.pid_), info, WEXITED | WNOHANG | WNOWAIT) != 0)
      return base::failure(errno);
  }
  child.has_status_ = false;
  insert(child);
  return {};
}

void ChildTable::leave(Child& child) noexcept {
  const std::scoped_lock lock(table_mutex);
  child.has_status_ = false;
  if (child.epoch_ != current_epoch) return;
  if (child.any_) {
    any = nullptr;
    return;
  }
  child.InTable::unlist();
}

void ChildTable::move(Child& from, Child& to) noexcept {
  const std::scoped_lock lock(table_mutex);
  to.has_status_ = std::exchange(from.has_status_, false);
  to.status_ = from.status_;
  to.epoch_ = std::exchange(from.epoch_, 0);
  if (to.epoch_ != current_epoch) return;
  if (to.any_) {
    any = &to;
    return;
  }
  to.InTable::replace(from);
}

bool ChildTable::poll(Child& child) noexcept {
  const std::scoped_lock lock(table_mutex);
  return poll_locked(child);
}

bool ChildTable::take_status(Child& child, ChildStatus& status) noexcept {
  const std::scoped_lock lock(table_mutex);
  if (!poll_locked(child)) return false;
  status = child.status_;
  child.has_status_ = false;
  return true;
}

bool ChildTable::enter_after_fork(Child& child) noexcept {
  const std::scoped_lock lock(table_mutex);
  if (child.any_) {
    child.has_status_ = false;  // The status belongs to a child of the parent process.
    insert(child);
  } else if (!child.has_status_) {
    store(child, {.pid = child.pid_, .event = ChildStatus::Event::lost, .code = ECHILD});
  }
  return child.has_status_;
}

bool ChildTable::poll_locked(Child& child) noexcept {
  if (child.has_status_) return true;
  return child.any_ ? poll_any(child) : poll_named(child);
}

bool ChildTable::poll_named(Child& child) noexcept {
  siginfo_t info{};
  GroupLeader* const leader = GroupLeader::find(child.pid_);
  const int flags = flags_for(child.changes_) | (leader != nullptr ? WNOWAIT : 0);
  int outcome = -1;
  errno = EINVAL;
  // A pidfd always refers to this child, even if other code reaps it and its pid is reused.
  if (child.fd >= 0) outcome = wait_id(by_pidfd, static_cast<id_t>(child.fd), info, flags);
  if (outcome != 0 && errno == EINVAL)  // Linux 5.3 has pidfds but not P_PIDFD.
    outcome = wait_id(P_PID, static_cast<id_t>(child.pid_), info, flags);
  if (outcome != 0) {
    store(child, {.pid = child.pid_, .event = ChildStatus::Event::lost, .code = errno});
    return true;
  }
  if (info.si_pid == 0) return false;
  if (leader != nullptr) leader->take(info, status_of(info).has_ended());
  store_for_named(status_of(info));
  return child.has_status_;
}

bool ChildTable::poll_any(Child& child) noexcept {
  if (launching > 0) {
    poll_postponed = true;
    return false;
  }
  for (;;) {
    siginfo_t info{};
    const int flags = flags_for(child.changes_);
    const int peek = GroupLeader::has_any() ? WNOWAIT : 0;
    if (wait_id(P_ALL, 0, info, flags | peek) != 0 || info.si_pid == 0) return false;
    GroupLeader* const leader = GroupLeader::find(info.si_pid);
    const bool is_leader = leader != nullptr;
    if (is_leader && status_of(info).has_ended()) leader->kill_group_at_exit();
    if (peek != 0) {
      const auto pid = static_cast<id_t>(info.si_pid);
      info = {};
      if (wait_id(P_PID, pid, info, flags) != 0 || info.si_pid == 0) continue;
    }
    const ChildStatus status = status_of(info);
    if (is_leader && status.has_ended()) leader->leave_locked();
    if (store_for_named(status) || is_leader) continue;
    store(child, status);
    return true;
  }
}

void ChildTable::store(Child& child, const ChildStatus& status) noexcept {
  child.status_ = status;
  child.has_status_ = true;
}

bool ChildTable::store_for_named(const ChildStatus& status) noexcept {
  bool is_named = false;
  for (Child* child = bucket_of(status.pid).front(); child != nullptr;
       child = child->InTable::next()) {
    // A Child that already has a final status waited for a former process with this pid.
    if (child->pid_ != status.pid || (child->has_status_ && child->status_.has_ended())) continue;
    is_named = true;
    if (status.has_ended() || child->changes_ == ChildChanges::all) store(*child, status);
  }
  return is_named;
}

ChildTable::Launching::Launching() noexcept {
  register_fork_handlers();
  const std::scoped_lock lock(table_mutex);
  ++launching;
}

ChildTable::Launching::~Launching() {
  const std::scoped_lock lock(table_mutex);
  // Zero in the child of a fork(2), which has emptied the table.
  if (launching > 0) --launching;
  if (launching > 0) return;
  if (std::exchange(poll_postponed, false)) SignalSlot::raise(SIGCHLD);
}

Result<> ChildTable::send_signal(const Child& child, int number) noexcept {
  const std::scoped_lock lock(table_mutex);
  siginfo_t info{};
  const bool is_reaped =
      child.epoch_ != current_epoch || !child.InTable::listed() ||
      (child.has_status_ && child.status_.has_ended()) ||
      wait_id(P_PID, static_cast<id_t>(child.pid_), info, WEXITED | WNOHANG | WNOWAIT) != 0;
  if (is_reaped) return base::failure(ESRCH);
  if (::kill(child.pid_, number) != 0) return base::failure(errno);
  return {};
}

}  // namespace tambour::detail::events
