// Starts a program in a new process: what posix_spawn(3) does, with what it lacks.
//
// Until execve(2) the child shares the parent's memory, whose calling thread waits (CLONE_VM,
// CLONE_VFORK): nothing is copied, however large the parent is. Other threads of the parent may be
// inside malloc(3) or hold any lock, so everything that needs memory is prepared before, and the
// child makes system calls only. All signals are blocked until the child has reset the handlers,
// which would otherwise run in the parent's memory.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include <tambour/result.h>
#include <tambour/unique_fd.h>

namespace tambour::base {

/// What the child becomes. Pointers refer to memory of the caller.
struct Launch {
  struct PassedFd {
    int fd;  ///< Of the parent.
    int as;  ///< Of the child.
  };
  struct Limit {
    int resource;
    rlimit64 limits;
  };
  struct Credentials {
    uid_t user;
    gid_t group;
    std::vector<gid_t> groups;
  };
  enum class Group : unsigned char { inherited, own, own_session };

  std::vector<std::string> programs;  ///< Paths, of which the first that can be executed is.
  std::vector<char*> arguments;       ///< Ends with null, as the environment.
  std::vector<char*> environment;
  char* process_id = nullptr;  ///< Where to write the digits of the child's pid, and a zero.
  const char* working_directory = nullptr;
  std::vector<PassedFd> passed;  ///< Other descriptors from 3 on are close-on-exec.
  std::vector<Limit> limits;
  const Credentials* credentials = nullptr;
  Group group = Group::inherited;
  bool keeps_ignored_signals = false;
};

struct Launched {
  pid_t pid;
  UniqueFd pidfd;  ///< Not open before Linux 5.2.
};

/// Returns when the child has executed the program, or with the errno value of the step that
/// failed; no child is left then. Until execve(2) the child is invisible to waitpid(-1), and its
/// end sends no SIGCHLD.
Result<Launched> launch(Launch& what) noexcept;

/// Waits for a child that ended before it executed a program, or that was launched and has ended.
/// True if there was one. `flags`: those of waitid(2) besides WEXITED.
bool reap(pid_t pid, int flags) noexcept;

/// Sets FD_CLOEXEC on all open descriptors from `first` to `last`. Takes time by the number of open
/// descriptors, not by the size of the range. Async-signal-safe. 0, or an errno value.
int set_close_on_exec(unsigned first, unsigned last) noexcept;

}  // namespace tambour::base
