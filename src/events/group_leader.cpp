// GroupLeader: keeps the leader of a process group a zombie, and signals the group.
#include "events/group_leader.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <mutex>

#include "base/failure.h"
#include "events/child_table.h"
#include "events/wait_id.h"

namespace tambour::detail::events {
namespace {

/// Hashed by the low bits of their pids.
std::array<detail::Hlist<GroupLeader, ChildTable>, 256> leaders;
int leader_count = 0;

// PIDFD_SIGNAL_PROCESS_GROUP of pidfd_send_signal(2), since Linux 6.9.
constexpr unsigned signal_process_group = 1U << 2U;

}  // namespace

void GroupLeader::enter(pid_t pid, int pidfd, AtExit at_exit) noexcept {
  ChildTable::register_fork_handlers();
  const std::scoped_lock lock(ChildTable::mutex());
  pid_ = pid;
  pidfd_ = pidfd;
  at_exit_ = at_exit;
  epoch_ = ChildTable::epoch();
  leaders[static_cast<std::size_t>(pid) % leaders.size()].push_front(*this);
  ++leader_count;
}

GroupLeader* GroupLeader::find(pid_t pid) noexcept {
  if (leader_count == 0) return nullptr;
  GroupLeader* leader = leaders[static_cast<std::size_t>(pid) % leaders.size()].front();
  while (leader != nullptr && leader->pid_ != pid) leader = leader->InTable::next();
  return leader;
}

bool GroupLeader::has_any() noexcept { return leader_count > 0; }

void GroupLeader::clear_all() noexcept {
  for (auto& bucket : leaders) bucket.abandon();
  leader_count = 0;
}

void GroupLeader::take(siginfo_t& info, bool has_ended) noexcept {
  siginfo_t taken{};
  if (!has_ended) {
    const bool is_taken = wait(taken, WSTOPPED | WCONTINUED | WNOHANG) == 0;
    if (is_taken && taken.si_pid != 0) info = taken;
  } else if (at_exit_ == AtExit::kill_group) {
    kill_group_at_exit();
    wait(taken, WEXITED | WNOHANG);
    leave_locked();
  }
}

void GroupLeader::kill_group_at_exit() const noexcept {
  if (at_exit_ == AtExit::kill_group) ::kill(-pid_, SIGKILL);
}

bool GroupLeader::in_table() const noexcept {
  return epoch_ == ChildTable::epoch() && InTable::listed();
}

void GroupLeader::leave_locked() noexcept {
  if (!in_table()) return;
  InTable::unlist();
  --leader_count;
}

void GroupLeader::leave() noexcept {
  const std::scoped_lock lock(ChildTable::mutex());
  leave_locked();
}

void GroupLeader::reap() noexcept {
  const std::scoped_lock lock(ChildTable::mutex());
  siginfo_t info{};
  if (in_table()) wait(info, WEXITED | WNOHANG);
  leave_locked();
}

int GroupLeader::wait(siginfo_t& info, int flags) const noexcept {
  if (pidfd_ >= 0) {
    const int outcome = wait_id(by_pidfd, static_cast<id_t>(pidfd_), info, flags);
    if (outcome == 0 || errno != EINVAL) return outcome;  // Linux 5.3 has no P_PIDFD.
  }
  return wait_id(P_PID, static_cast<id_t>(pid_), info, flags);
}

Result<> GroupLeader::send_signal(int number) const noexcept {
  const std::scoped_lock lock(ChildTable::mutex());
  if (epoch_ != ChildTable::epoch()) return base::failure(ESRCH);
  siginfo_t info{};
  if (in_table() && wait(info, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (::kill(-pid_, number) == 0) return {};
    return base::failure(errno);
  }
  if (pidfd_ < 0) return base::failure(ESRCH);
  if (::syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, signal_process_group) == 0)
    return {};
  return base::failure(errno == EPERM ? EPERM : ESRCH);
}

}  // namespace tambour::detail::events
