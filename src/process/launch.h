// Starts a program in a new process, with options that posix_spawn(3) lacks.
//
// Until execve(2) the child shares the parent's memory and the calling thread is suspended
// (CLONE_VM, CLONE_VFORK), so the cost does not depend on the size of the parent. Other threads of
// the parent may be inside malloc(3) or hold locks, so all memory is allocated beforehand and the
// child only makes system calls. All signals are blocked until the child has reset the signal
// handlers, which would otherwise run in the parent's memory.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>

#include "base/libc/glibc_functions.h"

namespace tambour::detail::process {

/// The parameters of the child process. Pointers refer to memory owned by the caller.
struct Launch {
  struct PassedFd {
    int fd;  ///< In the parent.
    int as;  ///< In the child.
  };
  struct Limit {
    int resource;
    base::rlimit64 limits;
  };
  struct Credentials {
    uid_t user;
    gid_t group;
    std::vector<gid_t> groups;
  };
  enum class Group : unsigned char { inherited, new_group, new_session };

  std::vector<std::string> programs;  ///< Paths; the first one that can be executed is used.
  std::vector<char*> arguments;       ///< Ends with a null pointer, as does `environment`.
  std::vector<char*> environment;
  char* process_id = nullptr;  ///< Buffer for the child's pid in decimal, null-terminated.
  const char* working_directory = nullptr;
  std::vector<PassedFd> passed;  ///< All other descriptors from 3 on are closed by execve(2).
  std::vector<Limit> limits;
  const Credentials* credentials = nullptr;
  Group group = Group::inherited;
  int cgroup_procs = -1;  ///< A file cgroup.procs, open for writing: cgroups(7).
  int death_signal = 0;   ///< PR_SET_PDEATHSIG; 0: not set.
  bool is_subreaper = false;
  bool has_umask = false;
  bool has_nice = false;
  mode_t umask = 0;
  int nice = 0;
  bool keeps_ignored_signals = false;
};

struct Launched {
  pid_t pid;
  UniqueFd pidfd;  ///< Not open before Linux 5.2.
};

/// Returns when the child has executed the program. If a step fails, returns its errno value and
/// leaves no child process. Until execve(2) the child is invisible to waitpid(-1), and its exit
/// sends no SIGCHLD.
Result<Launched> launch(Launch& subject) noexcept;

/// Waits for a child that was launched, or that exited before it executed a program. Returns true
/// if there was one. `flags` are those of waitid(2), without WEXITED.
bool reap(pid_t pid, int flags) noexcept;

/// Sets FD_CLOEXEC on all open descriptors from `first` to `last`. The cost depends on the number
/// of open descriptors, not on the size of the range. Async-signal-safe. Returns 0 or an errno
/// value.
int set_close_on_exec(unsigned first, unsigned last) noexcept;

}  // namespace tambour::detail::process
